//! Lines of /proc/PID/mountinfo.

use std::{
    fs::{self, File},
    io::{self, Read},
};

/// Every mount that this process sees.
pub const OWN: &str = "/proc/self/mountinfo";
/// Most of another process's that is looked at: whoever has a mount namespace of his own decides how much there is.
const MOST_BYTES: usize = 2 << 20;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// The file system as the kernel numbers it, `major << 20 | minor`.
    pub device: u32,
    /// Which directory of the file system is mounted; of some (`nsfs`) no path.
    pub root: String,
    /// Where it is mounted.
    pub point: String,
    /// Options of the mount.
    pub options: &'a str,
    /// The file system's type.
    pub fs: &'a str,
    /// What is mounted, as the file system's own words have it: a device, `server:/export`.
    pub source: String,
    /// Options of the file system.
    pub fs_options: &'a str,
}

/// The text of [`OWN`].
///
/// # Errors
/// When /proc is not mounted.
pub fn read() -> io::Result<String> {
    // One mount's name in another encoding must not hide the others.
    Ok(in_utf8(fs::read(OWN)?))
}

/// The text as `process` sees it, and whether that is all of it: of more than 2 MiB the first lines.
///
/// # Errors
/// When it has ended.
pub fn read_of(process: u32) -> io::Result<(String, bool)> {
    first_lines(File::open(format!("/proc/{process}/mountinfo"))?, MOST_BYTES)
}

/// The counts of each of `process`'s mounts (/proc/PID/mountstats), as far as they are looked at.
///
/// # Errors
/// When it has ended.
pub fn read_counts_of(process: &str) -> io::Result<String> {
    first_lines(File::open(format!("/proc/{process}/mountstats"))?, MOST_BYTES)
        .map(|(text, _)| text)
}

/// The first lines of `from`, of `most` bytes together, and whether there are no others.
fn first_lines(from: impl Read, most: usize) -> io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    from.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let is_whole = bytes.len() <= most;
    if !is_whole {
        bytes.truncate(most);
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    }
    Ok((in_utf8(bytes), is_whole))
}

fn in_utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The mounts in `text`, in the order of mounting; lines of another shape are passed over.
pub fn mounts(text: &str) -> impl Iterator<Item = Mount<'_>> {
    text.lines().filter_map(Mount::parse)
}

impl<'a> Mount<'a> {
    /// `31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate`; the fields
    /// before the dash vary in number.
    fn parse(line: &'a str) -> Option<Self> {
        let fields: Vec<&str> = line.split(' ').collect();
        let dash = fields.iter().skip(6).position(|field| *field == "-")? + 6;
        let (fs, source, fs_options) =
            (fields.get(dash + 1)?, fields.get(dash + 2)?, fields.get(dash + 3)?);
        let (major, minor) = fields[2].split_once(':')?;
        let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
        Some(Self {
            device: major << 20 | minor,
            root: unescape(fields[3]),
            point: unescape(fields[4]),
            options: fields[5],
            fs,
            source: unescape(source),
            fs_options,
        })
    }
}

/// Undoes the kernel's octal escapes (`\040` is a space); anything else stays as it is.
pub fn unescape(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|digits| {
            byte == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
        });
        let value = octal.map(|d| d.iter().fold(0, |sum, d| sum * 8 + u32::from(d - b'0')));
        match value.and_then(|value| u8::try_from(value).ok()) {
            Some(value) => {
                bytes.push(value);
                rest = &tail[3..];
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_lies_before_its_dash() {
        let text = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n\
                    damaged\n32 22 x:y / / rw - ext4 a rw\n\
                    37 35 0:44 / /mnt/my\\040data rw - fuse.sshfs host: rw\n";
        let found: Vec<_> = mounts(text).collect();
        let first = Mount {
            device: 98 << 20,
            root: "/mnt1".into(),
            point: "/mnt2".into(),
            options: "rw,noatime",
            fs: "ext3",
            source: "/dev/root".into(),
            fs_options: "rw,errors=continue",
        };
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], first);
        let second = (found[1].device, found[1].point.as_str(), found[1].fs);
        assert_eq!(second, (44, "/mnt/my data", "fuse.sshfs"));
        assert!(
            mounts(&read().unwrap()).any(|mount| mount.point == "/"),
            "this process has a root"
        );
    }

    #[test]
    fn no_more_is_read_than_there_is_room_for() {
        let lines = |text: &[u8]| first_lines(text, 8).map_err(|error| error.kind());
        assert_eq!(lines(b"one\ntwo\n"), Ok(("one\ntwo\n".into(), true)));
        assert_eq!(lines(b"one\ntwo\nthree\n"), Ok(("one\ntwo\n".into(), false)));
        assert_eq!(lines(b"one\nthree\n"), Ok(("one\n".into(), false)));
        assert_eq!(lines(b"seventeen"), Ok((String::new(), false)));
        assert_eq!(lines(b"a\xff\n"), Ok(("a\u{fffd}\n".into(), true)));
        assert_eq!(lines(b""), Err(io::ErrorKind::NotFound), "of a process that has ended");
        let endless = first_lines(io::repeat(b'\n'), 1 << 10).unwrap();
        assert_eq!((endless.0.len(), endless.1), (1 << 10, false));
    }

    #[test]
    fn escapes() {
        for (field, plain) in [
            ("a\\040b", "a b"),
            ("\\134", "\\"),
            ("\\04", "\\04"),
            ("\\777", "\\777"),
            ("\\", "\\"),
        ] {
            assert_eq!(unescape(field), plain);
        }
    }
}
