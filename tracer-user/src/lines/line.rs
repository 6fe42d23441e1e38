//! Line protocol that InfluxDB 1 to 3, Telegraf and VictoriaMetrics all read alike.
//!
//! Refuses whatever one of them reads differently: unsigned integers, NaN, empty or repeated keys,
//! control characters, lines that Telegraf cannot hold.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    base::tag::clean,
    model::point::{FieldValue, Point},
};

/// Longest tag value; no consumer of ours takes less.
pub use crate::base::tag::MAX_TAG_BYTES;
/// Every line is shorter than this, its line feed included: Telegraf reads lines of 64 KiB, and one
/// longer line loses it the rest of the file.
pub const MAX_LINE_BYTES: usize = 60 * 1024;
/// Longest string field, escapes included; the rest is cut.
const MAX_TEXT_BYTES: usize = 16 * 1024;
/// Longest measurement with tags, so that the longest field still fits beside it.
pub(super) const MAX_HEAD_BYTES: usize = 32 * 1024;
/// Put before keys that the consumers keep for themselves.
const PREFIX: &str = "x_";
/// In what time stamps are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Precision {
    /// Nanoseconds, as all consumers of ours take them unasked.
    #[default]
    Nanoseconds,
    /// Whole seconds, rounded down.
    Seconds,
}

/// InfluxDB's latest time: 1 ns before the end of its signed clock, whose last value means "none".
const MAX_TIME_NS: u64 = i64::MAX as u64 - 1;

/// Appends `point` as a line, or as several of the same series and time where its fields do not fit
/// into one (consumers join them again); nothing for a point without fields.
///
/// - Keys, measurement and tag values: control characters, and a backslash at the end or before a
///   comma, equals sign, space or backslash, become `_` (no form of it is read alike by all); cut at
///   256 bytes. The key `time`, and any that begins with `_`, gets the prefix `x_`.
/// - Empty keys, empty tag values and floats that are not finite are left out. Of a repeated key the
///   first stands, and a tag stands before a field.
/// - Text: control characters become spaces; cut at 16 KiB.
///
/// A point whose tags alone take more than 32 KiB (at least 30 of the longest) writes nothing.
pub fn encode(point: &Point, out: &mut Vec<u8>) {
    encode_at(point, Precision::Nanoseconds, out);
}

/// The same with the time stamp in `precision`.
pub fn encode_at(point: &Point, precision: Precision, out: &mut Vec<u8>) {
    let Some(measurement) = clean_key(&point.measurement) else { return };
    let tags = clean_tags(&point.tags);
    let mut head = String::new();
    push_escaped(&measurement, &[',', ' '], &mut head);
    for (key, value) in &tags {
        head.push(',');
        push_key(key, &mut head);
        head.push('=');
        push_key(value, &mut head);
    }
    if head.len() > MAX_HEAD_BYTES {
        return;
    }
    let time_ns = point.time_ns.min(MAX_TIME_NS);
    let time = match precision {
        Precision::Nanoseconds => time_ns,
        Precision::Seconds => time_ns / 1_000_000_000,
    };
    let tail = format!(" {time}\n");
    let room = MAX_LINE_BYTES - 1 - head.len() - tail.len();
    let mut fields = String::new();
    let mut line = |fields: &mut String| {
        if !fields.is_empty() {
            out.extend([head.as_bytes(), fields.as_bytes(), tail.as_bytes()].concat());
            fields.clear();
        }
    };
    let mut written = BTreeSet::new();
    for (key, value) in &point.fields {
        let (Some(key), Some(value)) = (clean_key(key), field_value(value)) else { continue };
        if tags.contains_key(&key) || written.contains(&key) {
            continue;
        }
        let mut field = String::new();
        push_key(&key, &mut field);
        field.push('=');
        field.push_str(&value);
        if fields.len() + 1 + field.len() > room {
            line(&mut fields);
        }
        fields.push(if fields.is_empty() { ' ' } else { ',' });
        fields.push_str(&field);
        written.insert(key);
    }
    line(&mut fields);
}

/// Tags by their key, as they will be written: sorted, unique, none empty.
fn clean_tags(tags: &[(String, String)]) -> BTreeMap<String, String> {
    let mut clean_tags = BTreeMap::new();
    for (key, value) in tags {
        if let (Some(key), Some(value)) = (clean_key(key), clean(value, MAX_TAG_BYTES)) {
            clean_tags.entry(key).or_insert(value);
        }
    }
    clean_tags
}

/// `raw` as a key or measurement; `None` where nothing is left of it.
fn clean_key(raw: &str) -> Option<String> {
    let key = clean(raw, MAX_TAG_BYTES - PREFIX.len())?;
    Some(if is_reserved(&key) { format!("{PREFIX}{key}") } else { key })
}

/// Whether the consumers keep `key` for themselves; a line that begins with `#` is a comment.
pub(super) fn is_reserved(key: &str) -> bool {
    key == "time" || key.starts_with(['_', '#'])
}

/// Appends a tag key, tag value or field key.
fn push_key(text: &str, out: &mut String) {
    push_escaped(text, &[',', '=', ' '], out);
}

fn push_escaped(text: &str, special: &[char], out: &mut String) {
    for c in text.chars() {
        if special.contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
}

/// `value` as it is written; `None` where line protocol has no form for it.
fn field_value(value: &FieldValue) -> Option<String> {
    match value {
        FieldValue::Integer(number) => Some(format!("{}i", (*number).min(i64::MAX as u64))),
        FieldValue::Float(number) if !number.is_finite() => None,
        FieldValue::Float(number) => {
            // Display never writes an exponent, whose forms the consumers do not agree on.
            let digits = number.to_string();
            Some(if digits.contains('.') { digits } else { format!("{digits}.0") })
        }
        FieldValue::Text(text) => Some(quoted(text)),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        if quoted.len() + c.len_utf8() + 2 > MAX_TEXT_BYTES {
            break;
        }
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(if c.is_control() { ' ' } else { c });
    }
    quoted.push('"');
    quoted
}
