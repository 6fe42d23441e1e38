//! What holds for each line that leaves us, by InfluxData's own parser and by what the other consumers
//! refuse.

use influxdb_line_protocol::{FieldValue as Parsed, ParsedLine, parse_lines};
use jobtrace::{
    lines::line::{MAX_LINE_BYTES, MAX_TAG_BYTES, encode},
    model::point::Point,
};

/// The text of `points`, whose every line is sound.
///
/// # Panics
/// Where one is not.
pub fn sound(points: &[Point]) -> String {
    let mut text = Vec::new();
    points.iter().for_each(|point| encode(point, &mut text));
    let text = String::from_utf8(text).expect("line protocol is UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'));
    check(&text);
    text
}

fn check(text: &str) {
    let lines = parsed(text);
    assert_eq!(lines.len(), text.matches('\n').count(), "a line is one to all: {text:?}");
    for (line, raw) in lines.iter().zip(text.split_inclusive('\n')) {
        assert!(raw.len() < MAX_LINE_BYTES, "a line of {} bytes", raw.len());
        strict(line, raw);
    }
}

/// The lines of `text`.
///
/// # Panics
/// Where the parser refuses one.
pub fn parsed(text: &str) -> Vec<ParsedLine<'_>> {
    let lines: Result<Vec<_>, _> = parse_lines(text).collect();
    lines.unwrap_or_else(|error| panic!("the official parser: {error}: {text:?}"))
}

/// The value of tag `key`; empty where it is absent.
pub fn tag(line: &ParsedLine<'_>, key: &str) -> String {
    let mut tags = line.series.tag_set.iter().flatten();
    tags.find(|(name, _)| *name == key).map_or(String::new(), |(_, v)| v.to_string())
}

/// `value` as the writer puts it into a tag: this again, and not its code.
pub fn expected_tag(value: &str) -> String {
    let mut kept = String::new();
    for c in value.chars() {
        if kept.len() + c.len_utf8() > MAX_TAG_BYTES {
            break;
        }
        kept.push(c);
    }
    let chars: Vec<char> = kept.chars().collect();
    let tag = chars.iter().enumerate().map(|(at, c)| match (c, chars.get(at + 1)) {
        (c, _) if c.is_control() => '_',
        ('\\', None | Some(',' | '=' | ' ' | '\\')) => '_',
        (c, _) => *c,
    });
    tag.collect()
}

/// What every consumer but the official Rust parser would stumble over.
fn strict(line: &ParsedLine<'_>, text: &str) {
    let key_ok = |key: &str| {
        assert!(!key.is_empty() && key != "time" && !key.starts_with('_'), "{key:?}: {text:?}");
        assert!(key.len() <= MAX_TAG_BYTES, "a key of {} bytes", key.len());
        assert!(!key.chars().any(char::is_control), "control character in {key:?}");
    };
    assert!(!line.series.measurement.starts_with(['_', '#']), "{text:?}");
    let mut keys: Vec<String> = Vec::new();
    for (key, value) in line.series.tag_set.iter().flatten() {
        let value = value.to_string();
        assert!(!value.is_empty() && value.len() <= MAX_TAG_BYTES, "tag value: {text:?}");
        assert!(!value.chars().any(char::is_control), "control character in {value:?}");
        keys.push(key.to_string());
    }
    assert!(keys.is_sorted(), "tags are sorted: {text:?}");
    for (key, value) in &line.field_set {
        keys.push(key.to_string());
        match value {
            Parsed::U64(_) | Parsed::Boolean(_) => panic!("no type of ours: {text:?}"),
            Parsed::F64(number) => assert!(number.is_finite(), "{text:?}"),
            Parsed::String(words) => assert!(!words.chars().any(char::is_control), "{text:?}"),
            Parsed::I64(number) => assert!(*number >= 0, "{text:?}"),
        }
    }
    keys.iter().for_each(|key| key_ok(key));
    keys.sort();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "keys are unique: {text:?}");
    assert!(line.timestamp.is_some_and(|at| (0..i64::MAX).contains(&at)), "{text:?}");
}
