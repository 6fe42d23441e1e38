//! Bytes that a terminal sends as the keys that a view knows. Pure. Owns which bytes belong together; refuses to read
//! them: crossterm, which could, never comes back from a terminal that is gone, nor from half a key.

/// A key that was pressed, whatever is held besides it but for Ctrl with a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are called as on the keyboard")]
pub enum Press {
    /// A character of ASCII.
    Char(char),
    /// Ctrl and this character.
    Ctrl(char),
    Enter,
    Esc,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
}

const ESC: u8 = 0x1b;

/// Bytes on their way to keys.
#[derive(Default)]
pub struct Keys {
    /// The begin of a key whose end is to come.
    begun: Vec<u8>,
}

impl Keys {
    /// The keys that `bytes` complete. Without bytes nothing more comes: an escape character was the key Esc then, and
    /// any other half a key is none.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Press> {
        if bytes.is_empty() {
            let is_esc = std::mem::take(&mut self.begun) == [ESC];
            return Vec::from_iter(is_esc.then_some(Press::Esc));
        }
        self.begun.extend(bytes);
        let mut keys = Vec::new();
        let mut rest = &self.begun[..];
        while let Some((key, length)) = first(rest) {
            keys.extend(key);
            rest = &rest[length..];
        }
        self.begun = rest.to_vec();
        keys
    }
}

/// The first key of `bytes`, if it is one that is known, and its length; `None` where its end is to come.
fn first(bytes: &[u8]) -> Option<(Option<Press>, usize)> {
    match *bytes {
        [] | [ESC] | [ESC, b'O'] => None,
        [ESC, b'O', last, ..] => Some((named(b"", last), 3)),
        [ESC, b'[', ref rest @ ..] => {
            let end = rest.iter().position(|byte| !(0x20..=0x3f).contains(byte))?;
            Some((named(&rest[..end], rest[end]), end + 3))
        }
        [byte, ..] => Some((plain(byte), 1)),
    }
}

fn plain(byte: u8) -> Option<Press> {
    Some(match byte {
        ESC => Press::Esc,
        b'\r' | b'\n' => Press::Enter,
        0x7f | 0x08 => Press::Backspace,
        0x00..=0x1f => Press::Ctrl((byte | 0x40).to_ascii_lowercase().into()),
        0x20..=0x7e => Press::Char(byte.into()),
        0x80.. => return None,
    })
}

/// The key of a sequence with these numbers and this last byte, as xterm and its kin have it.
fn named(numbers: &[u8], last: u8) -> Option<Press> {
    // The second number is what is held besides.
    let number = numbers.split(|byte| *byte == b';').next().unwrap_or_default();
    Some(match (last, number) {
        (b'A', _) => Press::Up,
        (b'B', _) => Press::Down,
        (b'C', _) => Press::Right,
        (b'D', _) => Press::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Press::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Press::End,
        (b'~', b"5") => Press::PageUp,
        (b'~', b"6") => Press::PageDown,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of pieces that come one after the other.
    fn keys(pieces: &[&[u8]]) -> Vec<Press> {
        let mut keys = Keys::default();
        pieces.iter().flat_map(|piece| keys.take(piece)).collect()
    }

    #[test]
    fn keys_are_told_apart() {
        let all = b"q \r\x03\x1c\x7f\x1b[A\x1bOB\x1b[1;5C\x1b[D\x1b[H\x1b[4~\x1b[5~\x1b[6;2~";
        let expected = [
            Press::Char('q'),
            Press::Char(' '),
            Press::Enter,
            Press::Ctrl('c'),
            Press::Ctrl('\\'),
            Press::Backspace,
            Press::Up,
            Press::Down,
            Press::Right,
            Press::Left,
            Press::Home,
            Press::End,
            Press::PageUp,
            Press::PageDown,
        ];
        assert_eq!(keys(&[all]), expected);
        let one_by_one: Vec<&[u8]> = all.chunks(1).collect();
        assert_eq!(keys(&one_by_one), expected, "however they come");
    }

    #[test]
    fn what_is_no_key_is_passed_over_whole() {
        // F5, Delete, a place of the cursor, a letter that is none of ASCII.
        assert_eq!(keys(&[b"\x1b[15~\x1b[3~\x1b[12;40R\xc3\xa4q"]), [Press::Char('q')]);
    }

    #[test]
    fn half_a_key_is_none_and_half_an_escape_is_esc() {
        assert_eq!(keys(&[b"\x1b", b""]), [Press::Esc]);
        assert_eq!(keys(&[b"\x1bq"]), [Press::Esc, Press::Char('q')]);
        assert_eq!(keys(&[b"\x1b\x1b[A"]), [Press::Esc, Press::Up]);
        assert_eq!(keys(&[b"\x1b[1;", b"", b"q"]), [Press::Char('q')]);
        assert_eq!(keys(&[b"\x1b[", b"B"]), [Press::Down]);
    }
}
