//! A cgroup's path made plain: components decoded, decoration gone. Pure and total.

use super::answer::DELETED;

/// A path that rules can match: `/a/b`, or empty for the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    /// Each component after one slash, systemd's escapes undone; bytes, since an escape may stand for any.
    pub bytes: Vec<u8>,
    /// How many leading `..` are left out: a cgroup namespace shows what lies outside it so.
    pub climbed: usize,
}

/// Makes `path` plain. Never fails: what is no escape stays as it is.
pub fn plain(path: &str) -> Plain {
    let path = path.strip_suffix(DELETED).unwrap_or(path);
    let mut plain = Plain { bytes: Vec::with_capacity(path.len()), climbed: 0 };
    for component in path.split('/').filter(|component| !component.is_empty()) {
        if component == ".." && plain.bytes.is_empty() {
            plain.climbed += 1;
            continue;
        }
        plain.bytes.push(b'/');
        decode(component, &mut plain.bytes);
    }
    plain
}

/// `\xNN` undone, as text.
pub fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    decode(text, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Appends `component` with systemd's `\xNN` undone. An escaped slash or control character stays
/// escaped: it may neither end the component nor reach an output.
fn decode(component: &str, into: &mut Vec<u8>) {
    let mut rest = component.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        match escaped(rest).filter(|byte| *byte != b'/' && !byte.is_ascii_control()) {
            Some(decoded) => {
                into.push(decoded);
                rest = &rest[4..];
            }
            None => {
                into.push(byte);
                rest = tail;
            }
        }
    }
}

/// The byte that the four bytes `\xNN` at the begin of `bytes` stand for.
fn escaped(bytes: &[u8]) -> Option<u8> {
    let digits = bytes.strip_prefix(br"\x")?.get(..2)?;
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    Some(digit(digits[0])? * 16 + digit(digits[1])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_plain() {
        for (path, bytes, climbed) in [
            ("/", "", 0),
            ("", "", 0),
            ("/a/b", "/a/b", 0),
            ("a//b/", "/a/b", 0),
            ("/../../a/../b", "/a/../b", 2),
            ("/..", "", 1),
            ("/a/b (deleted)", "/a/b", 0),
            (r"/machine-qemu\x2d2\x2da.scope", "/machine-qemu-2-a.scope", 0),
            (r"/\x5b4\x5D", "/[4]", 0),
            (r"/\xc6\x92", "/ƒ", 0),
            (r"/\x2f\x00\x0a\x7f", r"/\x2f\x00\x0a\x7f", 0),
            (r"/\x2\xg0\x\", r"/\x2\xg0\x\", 0),
            (r"/\x5cx41", r"/\x41", 0),
        ] {
            let plain = plain(path);
            assert_eq!(
                (plain.bytes.as_slice(), plain.climbed),
                (bytes.as_bytes(), climbed),
                "{path}"
            );
        }
        assert_eq!(plain(r"/\xff").bytes, b"/\xff");
        assert_eq!(decoded(r"\xff\x2da"), "\u{fffd}-a");
    }
}
