//! Line protocol read back: from the text that [`line`](super::line) writes to its points.
//!
//! Pure, and strict: what the writer never writes (booleans, negative or unsigned integers, a line without
//! its time, a key twice, a backslash that consumers read differently) is refused line by line, so that a
//! damaged file shows as one. Refuses to know a measurement: `decode` does.

use std::{collections::BTreeSet, error::Error, fmt};

use super::line::{MAX_HEAD_BYTES, MAX_LINE_BYTES, MAX_TAG_BYTES, is_reserved};
use crate::model::point::{FieldValue, Name, Point};

/// A line that our writer did not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its number, from 1 on.
    pub line: usize,
    /// What is wrong with it.
    pub why: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl Error for Refused {}

/// The points of `text`, line by line; comments and empty lines are none.
pub fn points(text: &str) -> impl Iterator<Item = Result<Point, Refused>> + '_ {
    text.split_inclusive('\n').enumerate().filter_map(|(index, line)| {
        let point = match line.strip_suffix('\n') {
            Some(line) if line.is_empty() || line.starts_with('#') => return None,
            Some(line) => point(line),
            None => Err("it is cut off: no line feed ends it"),
        };
        Some(point.map_err(|why| Refused { line: index + 1, why }))
    })
}

/// The point of a line without its line feed.
fn point(line: &str) -> Result<Point, &'static str> {
    ensure(line.len() < MAX_LINE_BYTES, "it is longer than any of ours")?;
    let mut rest = Rest(line);
    let measurement = rest.key(&[',', ' '])?.into();
    let mut keys = BTreeSet::new();
    let mut tags: Vec<(Name, String)> = Vec::new();
    while rest.takes(',') {
        let key = Name::from(rest.key(SPECIAL)?);
        ensure(rest.takes('='), "a tag has no value")?;
        let value = rest.name(SPECIAL)?;
        ensure(tags.last().is_none_or(|(last, _)| *last < key), "its tags are not in order")?;
        keys.insert(key.clone());
        tags.push((key, value));
    }
    ensure(line.len() - rest.0.len() <= MAX_HEAD_BYTES, "its tags are longer than any of ours")?;
    ensure(rest.takes(' '), "no field follows its tags")?;
    let mut fields = Vec::new();
    loop {
        let key = Name::from(rest.key(SPECIAL)?);
        ensure(rest.takes('='), "a field has no value")?;
        ensure(keys.insert(key.clone()), "a key is in it twice")?;
        fields.push((key, rest.value()?));
        if !rest.takes(',') {
            break;
        }
    }
    ensure(rest.takes(' '), "no time follows its fields")?;
    let time_ns = integer(rest.0).ok_or("its time is no number")?;
    ensure(time_ns < i64::MAX as u64, "its time is past the last one")?;
    Ok(Point { measurement, tags, fields, time_ns })
}

fn ensure(is_so: bool, why: &'static str) -> Result<(), &'static str> {
    if is_so { Ok(()) } else { Err(why) }
}

/// What an escape is for in tags and the keys of fields.
const SPECIAL: &[char] = &[',', '=', ' '];

/// What is left of a line.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// Takes `c`, if it is next.
    fn takes(&mut self, c: char) -> bool {
        self.0.strip_prefix(c).map(|rest| self.0 = rest).is_some()
    }

    /// A measurement or a key.
    fn key(&mut self, special: &[char]) -> Result<String, &'static str> {
        let key = self.name(special)?;
        ensure(!is_reserved(&key), "a key is one that databases keep for themselves")?;
        Ok(key)
    }

    /// What comes before one of `special` that no backslash is before.
    fn name(&mut self, special: &[char]) -> Result<String, &'static str> {
        let mut name = String::new();
        let mut chars = self.0.char_indices().peekable();
        let mut end = self.0.len();
        while let Some((at, c)) = chars.next() {
            if special.contains(&c) {
                end = at;
                break;
            }
            ensure(!c.is_control(), "a name has a control character")?;
            let next = chars.peek().map(|(_, next)| *next);
            match (c, next) {
                ('\\', Some(next)) if special.contains(&next) => {
                    name.push(next);
                    chars.next();
                }
                ('\\', None | Some(',' | '=' | ' ' | '\\')) => {
                    return Err("a backslash in it can be read in two ways");
                }
                _ => name.push(c),
            }
        }
        ensure(!name.is_empty(), "a name is empty")?;
        ensure(name.len() <= MAX_TAG_BYTES, "a name is longer than any of ours")?;
        self.0 = &self.0[end..];
        Ok(name)
    }

    /// A field's value.
    fn value(&mut self) -> Result<FieldValue, &'static str> {
        if self.takes('"') {
            return self.text();
        }
        let end = self.0.find([',', ' ']).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        if let Some(digits) = word.strip_suffix('i') {
            let number = integer(digits).filter(|number| *number <= i64::MAX as u64);
            return number.map(FieldValue::Integer).ok_or("an integer is none of ours");
        }
        let (whole, part) = word.split_once('.').ok_or("a value has no type of ours")?;
        let whole = whole.strip_prefix('-').unwrap_or(whole);
        let is_plain = [whole, part].iter().all(|digits| is_digits(digits));
        let number = word.parse().ok().filter(|number: &f64| is_plain && number.is_finite());
        number.map(FieldValue::Float).ok_or("a number is none of ours")
    }

    /// A text, whose first quotation mark was taken.
    fn text(&mut self) -> Result<FieldValue, &'static str> {
        let mut text = String::new();
        let mut chars = self.0.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Ok(FieldValue::Text(text));
                }
                '\\' => match chars.next() {
                    Some((_, c @ ('"' | '\\'))) => text.push(c),
                    _ => return Err("a backslash in a text escapes nothing"),
                },
                c if c.is_control() => return Err("a text has a control character"),
                c => text.push(c),
            }
        }
        Err("a text has no end")
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Digits alone: no sign, as `parse` would take it.
fn integer(text: &str) -> Option<u64> {
    is_digits(text).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> &'static str {
        points(line).next().unwrap().unwrap_err().why
    }

    #[test]
    fn a_line_of_ours_is_read_back() {
        let text = "# DML\n\njob_sched,host=n\\ 1,job=a\\,b\\=c on_cpu_ns=5i,share=-0.5,name=\"a \\\"b\\\\\" 17\n";
        let read: Vec<_> = points(text).collect();
        let own = |text: &str| text.to_owned();
        let expected = Point {
            measurement: "job_sched".into(),
            tags: vec![("host".into(), own("n 1")), ("job".into(), own("a,b=c"))],
            fields: vec![
                ("on_cpu_ns".into(), FieldValue::Integer(5)),
                ("share".into(), FieldValue::Float(-0.5)),
                ("name".into(), FieldValue::Text(own("a \"b\\"))),
            ],
            time_ns: 17,
        };
        assert_eq!(read, [Ok(expected)]);
    }

    #[test]
    fn what_the_writer_does_not_write_is_refused() {
        for (line, why) in [
            ("m a=1i 5", "it is cut off: no line feed ends it"),
            ("m,b=1,a=2 f=1i 5\n", "its tags are not in order"),
            ("m,a=1,a=2 f=1i 5\n", "its tags are not in order"),
            ("m,a= f=1i 5\n", "a name is empty"),
            ("m,a f=1i 5\n", "a tag has no value"),
            ("m\n", "no field follows its tags"),
            ("m f 5\n", "a field has no value"),
            ("m f=1i,f=2i 5\n", "a key is in it twice"),
            ("m,f=a f=2i 5\n", "a key is in it twice"),
            ("m f=1i\n", "no time follows its fields"),
            ("m f=1i -5\n", "its time is no number"),
            ("m f=1i 9223372036854775807\n", "its time is past the last one"),
            ("m time=1i 5\n", "a key is one that databases keep for themselves"),
            ("_m f=1i 5\n", "a key is one that databases keep for themselves"),
            ("m f=-1i 5\n", "an integer is none of ours"),
            ("m f=9223372036854775808i 5\n", "an integer is none of ours"),
            ("m f=1u 5\n", "a value has no type of ours"),
            ("m f=t 5\n", "a value has no type of ours"),
            ("m f=1 5\n", "a value has no type of ours"),
            ("m f=1.0e5 5\n", "a number is none of ours"),
            ("m f=.5 5\n", "a number is none of ours"),
            ("m f=\"a 5\n", "a text has no end"),
            ("m f=\"a\\n\" 5\n", "a backslash in a text escapes nothing"),
            ("m\\\\,a=b f=1i 5\n", "a backslash in it can be read in two ways"),
            ("m\\=a f=1i 5\n", "a backslash in it can be read in two ways"),
            ("m f=1i 5\r\n", "its time is no number"),
        ] {
            assert_eq!(refusal(line), why, "{line:?}");
        }
        let long = format!("m f=\"{}\" 5\n", "x".repeat(MAX_LINE_BYTES));
        assert_eq!(refusal(&long), "it is longer than any of ours");
        let refused = points("m f=1i 5\nm\n").nth(1).unwrap().unwrap_err();
        assert_eq!(refused.to_string(), "line 2: no field follows its tags");
    }
}
