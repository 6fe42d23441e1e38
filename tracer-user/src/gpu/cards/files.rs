//! Small files of the kernel's: read whole, and no more than a page or a few.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

/// More than any file read here has.
const MOST_BYTES: u64 = 64 * 1024;

/// The text of a file, whatever bytes are in it; `None` where it cannot be read.
pub fn read_text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&read_bytes(path)?).into_owned())
}

/// The bytes of a file; `None` where it cannot be read.
pub fn read_bytes(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The number that is all of a file.
pub fn read_number(path: &Path) -> Option<u64> {
    read_text(path)?.trim().parse().ok()
}

/// What follows `key` and a separator on the line that begins with it.
pub fn value_of<'a>(text: &'a str, key: &str, separator: char) -> Option<&'a str> {
    let after = |line: &'a str| line.strip_prefix(key)?.strip_prefix(separator);
    text.lines().find_map(after).map(str::trim)
}

/// The number behind `prefix` that is the rest of a name.
pub fn number_in(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Entries of `folder` that are called `prefix` and a number, in the order of those.
pub fn numbered(folder: &Path, prefix: &str) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let entry =
        |entry: fs::DirEntry| Some((number_in(entry.file_name().to_str()?, prefix)?, entry.path()));
    let mut numbered: Vec<_> = entries.filter_map(entry).collect();
    numbered.sort();
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values() {
        for (name, number) in [
            ("card0", Some(0)),
            ("card12", Some(12)),
            ("card", None),
            ("card0-DP-1", None),
            ("card+1", None),
            ("card99999999999", None),
        ] {
            assert_eq!(number_in(name, "card"), number, "{name}");
        }
        let text = "DRIVER=amdgpu\nPCI_ID=1002:740F\nPCI_ID_X=1\n";
        assert_eq!(value_of(text, "PCI_ID", '='), Some("1002:740F"));
        assert_eq!(value_of(text, "PCI", '='), None);
    }

    #[test]
    fn numbers_in_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for (bytes, number) in [
            (&b"42\n"[..], Some(42)),
            (b"", None),
            (b"-1\n", None),
            (b"N/A\n", None),
            (b"\xff\xfe\n", None),
            (b"99999999999999999999999\n", None),
        ] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(read_number(&path), number, "{bytes:?}");
        }
        assert_eq!(read_number(&folder.path().join("absent")), None);
        fs::write(&path, vec![b'1'; 1 << 20]).unwrap();
        assert!(read_text(&path).unwrap().len() as u64 == MOST_BYTES);
    }
}
