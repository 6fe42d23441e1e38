//! Text that line protocol has a form for, on which all its consumers agree.

use std::borrow::Cow;

/// Bytes of a tag's key or value at most.
pub const MAX_TAG_BYTES: usize = 256;

/// `raw` without what no escape exists for, cut to `max` bytes; `None` where nothing is left.
pub fn clean(raw: &str, max: usize) -> Option<Cow<'_, str>> {
    // Nearly all are as they may be: one look at their bytes tells.
    if (1..=max).contains(&raw.len())
        && raw.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'\\')
    {
        return Some(raw.into());
    }
    let fits = raw.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= max);
    let raw = &raw[..fits.last().unwrap_or(0)];
    let mut chars = raw.chars().peekable();
    let mut clean = String::with_capacity(raw.len());
    while let Some(c) = chars.next() {
        // `\\,` is a backslash and a separator to some and an escaped comma to others; `\\` is one
        // backslash to InfluxDB 3 and two to InfluxDB 1.
        let next = chars.peek();
        let ambiguous = c == '\\' && next.is_none_or(|next| matches!(next, ',' | '=' | ' ' | '\\'));
        clean.push(if c.is_control() || ambiguous { '_' } else { c });
    }
    (!clean.is_empty()).then_some(clean.into())
}
