//! Hostile points through the encoder and InfluxData's own parser, and what that parser lets pass.

use influxdb_line_protocol::{FieldValue as Parsed, ParsedLine, parse_lines};
use jobtrace::{
    lines::{
        line::{MAX_LINE_BYTES, MAX_TAG_BYTES, encode},
        read,
    },
    model::point::{FieldValue, Name, Point},
};
use proptest::{collection::vec, prelude::*};

/// Strings in which everything that has a meaning to someone comes often.
fn hostile() -> impl Strategy<Value = String> + Clone {
    let piece = prop_oneof![
        4 => proptest::sample::select(vec![
            ",", "=", " ", "\"", "\\", "\\\\", "\n", "\r", "\t", "\0", "\u{7f}", "\u{85}", "#", "_", "time",
            "é", "😀", "\u{a0}", "\u{2028}", "'", "a", "b", "i", "0", "t",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => (1..300_usize).prop_map(|n| "x".repeat(n)),
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Strings that a writer has no reason to change.
fn plain() -> impl Strategy<Value = String> + Clone {
    let piece = prop_oneof![
        proptest::sample::select(vec![",", "=", " ", "\"", "é", "😀", "'", "#", "_", "\\n"]),
        proptest::sample::select(vec!["a", "b", "time", "0"]),
    ];
    vec(piece, 0..20).prop_map(|pieces| format!("k{}", pieces.concat()))
}

/// Text that has the look of lines, right and wrong.
fn hostile_lines() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        ",",
        "=",
        " ",
        "\"",
        "\\",
        "\n",
        "m",
        "a=b",
        "f=1i",
        "f=1.5",
        "g=\"x y\"",
        " 5\n",
        "0",
        "i",
        "-",
        ".",
        "é",
        "#",
        "time",
        "job_sched,host=n,job=1 on_cpu_ns=1i 5\n",
        "m,a=b f=1i",
        ",c=d",
        "\\ ",
        "\\\"",
    ]);
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn field() -> impl Strategy<Value = FieldValue> {
    prop_oneof![
        any::<u64>().prop_map(FieldValue::Integer),
        any::<f64>().prop_map(FieldValue::Float),
        any::<u64>().prop_map(|bits| FieldValue::Float(f64::from_bits(bits))),
        hostile().prop_map(FieldValue::Text),
    ]
}

fn point(text: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = Point> {
    (
        text.clone(),
        vec((text.clone(), text.clone()), 0..6),
        vec((text, field()), 0..6),
        prop_oneof![any::<u64>(), 1_700_000_000_000_000_000..1_800_000_000_000_000_000_u64],
    )
        .prop_map(|(measurement, tags, fields, time_ns)| Point {
            measurement: measurement.into(),
            tags: named(tags),
            fields: named(fields),
            time_ns,
        })
}

fn named<T>(values: Vec<(String, T)>) -> Vec<(Name, T)> {
    values.into_iter().map(|(key, value)| (key.into(), value)).collect()
}

fn encoded(point: &Point) -> String {
    let mut out = Vec::new();
    encode(point, &mut out);
    String::from_utf8(out).expect("line protocol is UTF-8")
}

fn parsed(text: &str) -> Vec<ParsedLine<'_>> {
    let lines: Result<Vec<_>, _> = parse_lines(text).collect();
    lines.unwrap_or_else(|error| panic!("the official parser: {error}: {text:?}"))
}

/// The points of `text` as we read it ourselves.
fn read_back(text: &str) -> Vec<Point> {
    read::points(text).collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

/// The same as InfluxData's parser reads it.
fn read_by_others(lines: &[ParsedLine<'_>]) -> Vec<Point> {
    let value = |value: &Parsed<'_>| match value {
        Parsed::I64(number) => FieldValue::Integer(*number as u64),
        Parsed::F64(number) => FieldValue::Float(*number),
        Parsed::String(text) => FieldValue::Text(text.to_string()),
        other => panic!("no type of ours: {other:?}"),
    };
    let point = |line: &ParsedLine<'_>| Point {
        measurement: line.series.measurement.to_string().into(),
        tags: (line.series.tag_set.iter().flatten())
            .map(|(key, value)| (key.to_string().into(), value.to_string()))
            .collect(),
        fields: line.field_set.iter().map(|(k, v)| (k.to_string().into(), value(v))).collect(),
        time_ns: line.timestamp.expect("a time stamp of its own") as u64,
    };
    lines.iter().map(point).collect()
}

/// What every consumer but the official Rust parser would stumble over.
fn check_strict(text: &str, line: &ParsedLine<'_>) {
    let keys_ok = |key: &str| {
        assert!(!key.is_empty() && key != "time" && !key.starts_with('_'), "key {key:?}: {text:?}");
        assert!(key.len() <= MAX_TAG_BYTES, "key of {} bytes", key.len());
        assert!(!key.chars().any(char::is_control), "control character in {key:?}");
    };
    assert!(!line.series.measurement.starts_with('_'));
    let tags = line.series.tag_set.as_deref().unwrap_or_default();
    let keys: Vec<String> = tags.iter().map(|(key, _)| key.to_string()).collect();
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "tags sorted and unique: {text:?}");
    keys.iter().for_each(|key| keys_ok(key));
    for (_, value) in tags {
        assert!(!value.is_empty() && value.len() <= MAX_TAG_BYTES, "tag value: {text:?}");
        assert!(!value.chars().any(char::is_control), "control character in {value:?}");
    }
    let mut fields: Vec<String> = line.field_set.iter().map(|(key, _)| key.to_string()).collect();
    fields.iter().for_each(|key| keys_ok(key));
    fields.extend(keys);
    fields.sort();
    assert!(fields.windows(2).all(|pair| pair[0] != pair[1]), "keys unique: {text:?}");
    for (_, value) in &line.field_set {
        match value {
            Parsed::U64(_) | Parsed::Boolean(_) => panic!("no such type: {text:?}"),
            Parsed::F64(number) => assert!(number.is_finite(), "{text:?}"),
            Parsed::String(string) => assert!(!string.chars().any(char::is_control), "{text:?}"),
            Parsed::I64(number) => assert!(*number >= 0, "{text:?}"),
        }
    }
    let time_ns = line.timestamp.expect("a time stamp of its own");
    assert!((0..i64::MAX).contains(&time_ns), "time {time_ns}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..Default::default() })]

    #[test]
    fn hostile_points_are_read_by_all(point in point(hostile())) {
        let text = encoded(&point);
        let lines = parsed(&text);
        prop_assert_eq!(lines.len(), text.matches('\n').count());
        prop_assert!(text.is_empty() || text.ends_with('\n'));
        prop_assert!(text.split_inclusive('\n').all(|line| line.len() < MAX_LINE_BYTES));
        for line in &lines {
            check_strict(&text, line);
        }
        prop_assert_eq!(read_back(&text), read_by_others(&lines));
    }

    #[test]
    fn plain_points_come_back_as_they_were(mut point in point(plain())) {
        point.fields.retain(|(_, value)| !matches!(value, FieldValue::Float(f) if !f.is_finite()));
        point.tags.sort();
        point.tags.dedup_by(|a, b| a.0 == b.0);
        point.fields.sort_by(|a, b| a.0.cmp(&b.0));
        point.fields.dedup_by(|a, b| a.0 == b.0);
        point.fields.retain(|(key, _)| point.tags.iter().all(|(tag, _)| tag != key));
        let text = encoded(&point);
        let lines = parsed(&text);
        if point.fields.is_empty() {
            prop_assert!(text.is_empty());
            return Ok(());
        }
        prop_assert_eq!(read_back(&text), read_by_others(&lines));
        prop_assert_eq!(lines.len(), 1);
        let line = &lines[0];
        prop_assert_eq!(line.series.measurement.as_str(), &point.measurement);
        let tags = line.series.tag_set.as_deref().unwrap_or_default();
        let tags: Vec<_> =
            tags.iter().map(|(k, v)| (Name::from(k.to_string()), v.to_string())).collect();
        prop_assert_eq!(tags, point.tags);
        prop_assert_eq!(line.timestamp, Some(point.time_ns.min(i64::MAX as u64 - 1) as i64));
        prop_assert_eq!(line.field_set.len(), point.fields.len());
        for ((key, value), (expected_key, expected)) in line.field_set.iter().zip(&point.fields) {
            prop_assert_eq!(key.as_str(), expected_key);
            match (value, expected) {
                (Parsed::I64(value), FieldValue::Integer(number)) => {
                    prop_assert_eq!(*value as u64, (*number).min(i64::MAX as u64));
                }
                (Parsed::F64(value), FieldValue::Float(number)) => {
                    prop_assert_eq!(value.to_bits(), number.to_bits());
                }
                (Parsed::String(value), FieldValue::Text(string)) => {
                    let spaces = |c: char| if c.is_control() { ' ' } else { c };
                    prop_assert_eq!(value.as_str(), string.chars().map(spaces).collect::<String>());
                }
                other => prop_assert!(false, "another type: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_read_is_written_alike(text in hostile_lines()) {
        for point in read::points(&text).filter_map(Result::ok) {
            prop_assert_eq!(read_back(&encoded(&point)), [point]);
        }
    }

    #[test]
    fn floats_have_a_digit_on_both_sides_of_the_dot(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        let fields = vec![("f".into(), FieldValue::Float(number))];
        let text = encoded(&Point { measurement: "m".into(), tags: vec![], fields, time_ns: 1 });
        if !number.is_finite() {
            prop_assert_eq!(text, "");
            return Ok(());
        }
        let digits = text.trim_start_matches("m f=").trim_start_matches('-');
        let (whole, rest) = digits.trim_end().split_once('.').expect("a dot");
        let (part, time) = rest.split_once(' ').expect("a time stamp");
        for digits in [whole, part, time] {
            prop_assert!(!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()), "{text}");
        }
    }
}

#[test]
fn fields_that_do_not_fit_go_to_lines_of_the_same_series() {
    let text = |n: usize| (Name::from(format!("f{n}")), FieldValue::Text("\"".repeat(60_000)));
    let tags = vec![("host".into(), "n1".to_owned())];
    let mut fields: Vec<_> = (0..9).map(text).collect();
    fields.push(("last".into(), FieldValue::Integer(1)));
    let text = encoded(&Point { measurement: "m".into(), tags, fields, time_ns: 7 });
    let lines = parsed(&text);
    assert!(lines.len() > 1);
    assert!(text.lines().all(|line| line.len() < MAX_LINE_BYTES));
    assert!(lines.iter().all(|line| line.timestamp == Some(7)));
    assert!(text.lines().all(|line| line.starts_with("m,host=n1 ")));
    assert_eq!(lines.iter().map(|line| line.field_set.len()).sum::<usize>(), 10);
}

#[test]
fn tags_that_do_not_fit_write_nothing() {
    let tag = |n: usize| (Name::from(format!("t{n:04}")), " ".repeat(300));
    let fields = vec![("f".into(), FieldValue::Integer(1))];
    let point = |count| Point {
        measurement: "m".into(),
        tags: (0..count).map(tag).collect(),
        fields: fields.clone(),
        time_ns: 7,
    };
    assert_eq!(parsed(&encoded(&point(30))).len(), 1);
    assert_eq!(encoded(&point(1000)), "");
}
