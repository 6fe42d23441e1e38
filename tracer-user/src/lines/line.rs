//! Line protocol that InfluxDB 1 to 3, Telegraf and VictoriaMetrics all read alike.
//!
//! Refuses whatever one of them reads differently: unsigned integers, NaN, empty or repeated keys,
//! control characters, lines that Telegraf cannot hold.

use std::{borrow::Cow, io::Write as _};

use super::{
    keys::Key,
    seen::{Seen, mark},
};
use crate::{
    base::tag::clean,
    model::point::{FieldValue, Name, Point},
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
    let begin = out.len();
    push_escaped(&measurement, b", ", out);
    for (key, value) in &tags {
        out.push(b',');
        push_key(key, out);
        out.push(b'=');
        push_key(value, out);
    }
    let head = begin..out.len();
    let time_ns = point.time_ns.min(MAX_TIME_NS);
    let time = match precision {
        Precision::Nanoseconds => time_ns,
        Precision::Seconds => time_ns / 1_000_000_000,
    };
    let mut room = itoa::Buffer::new();
    let time = room.format(time).as_bytes();
    let tail_bytes = time.len() + 2;
    let (mut line, mut is_first, mut seen) = (begin, true, Seen::default());
    for (key, _) in &tags {
        seen.add(key, mark(key), |_| false);
    }
    let fields = if head.len() <= MAX_HEAD_BYTES { &point.fields[..] } else { &[] };
    for (at, (raw, value)) in fields.iter().enumerate() {
        let Key { is_plain, mark: own_mark } = Key::of_name(raw);
        let key = if is_plain { Some(Cow::Borrowed(raw.as_ref())) } else { clean_key(raw) };
        let Some(key) = key.filter(|_| can_be_written(value)) else { continue };
        let mark = if is_plain { own_mark } else { mark(&key) };
        // A tag stands before a field, and the first field before others.
        let is_known = |key: &str| {
            let is_same = |(known, value): &(Name, FieldValue)| {
                can_be_written(value) && (known == key || is_cleaned_to(known, key))
            };
            tags.iter().any(|(tag, _)| tag == key) || fields[..at].iter().any(is_same)
        };
        if !seen.add(&key, mark, is_known) {
            continue;
        }
        let field = out.len();
        out.push(if is_first { b' ' } else { b',' });
        if is_plain {
            out.extend_from_slice(key.as_bytes());
        } else {
            push_key(&key, out);
        }
        out.push(b'=');
        push_value(value, out);
        if !is_first && out.len() - line + tail_bytes >= MAX_LINE_BYTES {
            let field = out.split_off(field);
            push_time(time, out);
            line = out.len();
            out.extend_from_within(head.clone());
            out.push(b' ');
            out.extend_from_slice(&field[1..]);
        }
        is_first = false;
    }
    if is_first {
        out.truncate(begin);
    } else {
        push_time(time, out);
    }
}

fn push_time(time: &[u8], out: &mut Vec<u8>) {
    out.push(b' ');
    out.extend_from_slice(time);
    out.push(b'\n');
}

/// Tags as they will be written: sorted by their keys, unique, none empty.
fn clean_tags(tags: &[(Name, String)]) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    let mut clean_tags = Vec::with_capacity(tags.len());
    for (key, value) in tags {
        clean_tags.extend(clean_key(key).zip(clean(value, MAX_TAG_BYTES)));
    }
    // The first of a repeated key stands: the order of equal ones stays.
    clean_tags.sort_by(|(one, _), (other, _)| one.cmp(other));
    clean_tags.dedup_by(|(later, _), (first, _)| later == first);
    clean_tags
}

/// `raw` as a key or measurement; `None` where nothing is left of it.
fn clean_key(raw: &str) -> Option<Cow<'_, str>> {
    let key = clean(raw, MAX_TAG_BYTES - PREFIX.len())?;
    Some(if is_reserved(&key) { format!("{PREFIX}{key}").into() } else { key })
}

/// Whether `raw` is another key, which is written as `key`.
fn is_cleaned_to(raw: &str, key: &str) -> bool {
    !is_plain(raw) && clean_key(raw).is_some_and(|cleaned| cleaned == key)
}

/// Whether `raw` is a key that is written as it is: nothing in it is cleaned or escaped, as in all of our own. Each
/// byte is looked at once.
pub(super) fn is_plain(raw: &str) -> bool {
    const PLAIN: [bool; 256] = {
        let mut plain = [false; 256];
        let mut byte = b'!' as usize;
        while byte <= b'~' as usize {
            plain[byte] = !matches!(byte as u8, b'\\' | b',' | b'=');
            byte += 1;
        }
        plain
    };
    (1..=MAX_TAG_BYTES - PREFIX.len()).contains(&raw.len())
        && raw.bytes().fold(true, |all, byte| all & PLAIN[usize::from(byte)])
        && !is_reserved(raw)
}

/// Whether the consumers keep `key` for themselves; a line that begins with `#` is a comment.
pub(super) fn is_reserved(key: &str) -> bool {
    key == "time" || key.starts_with(['_', '#'])
}

/// Appends a tag key, tag value or field key.
fn push_key(text: &str, out: &mut Vec<u8>) {
    push_escaped(text, b",= ", out);
}

fn push_escaped(text: &str, special: &[u8], out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    if !bytes.iter().any(|byte| special.contains(byte)) {
        return out.extend_from_slice(bytes);
    }
    for byte in bytes {
        if special.contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
}

/// Whether line protocol has a form for `value`.
fn can_be_written(value: &FieldValue) -> bool {
    !matches!(value, FieldValue::Float(number) if !number.is_finite())
}

fn push_value(value: &FieldValue, out: &mut Vec<u8>) {
    match value {
        FieldValue::Integer(number) => {
            let mut room = itoa::Buffer::new();
            let number = room.format((*number).min(i64::MAX as u64));
            out.extend_from_slice(number.as_bytes());
            out.push(b'i');
        }
        FieldValue::Float(number) => {
            // Display never writes an exponent, whose forms the consumers do not agree on. Writing to memory does not
            // fail.
            let begin = out.len();
            let _ = write!(out, "{number}");
            if !out[begin..].contains(&b'.') {
                out.extend_from_slice(b".0");
            }
        }
        FieldValue::Text(text) => push_quoted(text, out),
    }
}

fn push_quoted(text: &str, out: &mut Vec<u8>) {
    let begin = out.len();
    out.push(b'"');
    let mut room = [0; 4];
    for c in text.chars() {
        if out.len() - begin + c.len_utf8() + 2 > MAX_TEXT_BYTES {
            break;
        }
        if matches!(c, '"' | '\\') {
            out.push(b'\\');
        }
        let c = if c.is_control() { ' ' } else { c };
        out.extend_from_slice(c.encode_utf8(&mut room).as_bytes());
    }
    out.push(b'"');
}
