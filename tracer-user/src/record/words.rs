//! A text that lies in the file that it was read from: of ten thousand heads few texts are looked at for longer.

use std::{borrow::Cow, fmt, ops::Deref};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A text; its own only where the file writes it otherwise (`\n`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Words<'a>(Cow<'a, str>);

impl Deref for Words<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<Words<'_>> for String {
    fn from(words: Words<'_>) -> Self {
        words.0.into_owned()
    }
}

/// What can be lent for a while: a text as [`Words`], a number as it is.
pub trait Lend {
    /// As it is lent.
    type Lent<'a>
    where
        Self: 'a;

    /// Lends it.
    fn lend(&self) -> Self::Lent<'_>;
}

impl Lend for String {
    type Lent<'a> = Words<'a>;

    fn lend(&self) -> Words<'_> {
        Words(Cow::Borrowed(self))
    }
}

impl Lend for u64 {
    type Lent<'a> = u64;

    fn lend(&self) -> u64 {
        *self
    }
}

/// `Cow` alone would copy each.
struct Read;

impl<'de> de::Visitor<'de> for Read {
    type Value = Words<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Words<'de>, E> {
        Ok(Words(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Words<'de>, E> {
        Ok(Words(Cow::Owned(text.to_owned())))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(Read)
    }
}

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_otherwise_is_copied() {
        let read = |json| serde_json::from_str::<Words<'_>>(json).unwrap();
        assert!(matches!(read(r#""plain""#), Words(Cow::Borrowed("plain"))));
        let escaped = read(r#""two\nlines""#);
        assert!(matches!(&escaped, Words(Cow::Owned(text)) if text == "two\nlines"));
        assert_eq!(String::from(escaped), "two\nlines");
        assert!(serde_json::from_str::<Words<'_>>("7").is_err());
    }
}
