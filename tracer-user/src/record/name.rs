//! Where a record lies below a store's folder: `YYYY-MM-DD/<manager>-<job>-<begin>@<host>.json.gz`, the day and the
//! nanosecond (UTC) from which the job was counted there. It stays the same as long as the job lasts.
//!
//! Pure: it makes names and reads them. Texts from outside are escaped (`%2F`), so that none leaves its folder.

use std::{
    fmt::Write,
    time::{Duration, UNIX_EPOCH},
};

use super::Record;

/// What the name of each record ends in.
pub const EXTENSION: &str = ".json.gz";
/// Longest part of a name that is shown; what begins alike differs in the nanosecond.
const LONGEST_PART: usize = 96;

/// The day's folder, and the file in it.
pub fn place(record: &Record) -> (String, String) {
    let begin_ns = record.timeline.begin_ns();
    let job = record.job();
    let id =
        if job.step.is_empty() { job.job.clone() } else { format!("{}.{}", job.job, job.step) };
    let (manager, id) = (escaped(&job.manager), escaped(&id));
    let host = escaped(&record.hosts.join(","));
    (day(begin_ns), format!("{manager}-{id}-{begin_ns}@{host}{EXTENSION}"))
}

/// The day of `wall_ns`: `2026-11-22`.
pub fn day(wall_ns: u64) -> String {
    let moment = UNIX_EPOCH + Duration::from_nanos(wall_ns);
    humantime::format_rfc3339_seconds(moment).to_string().chars().take(10).collect()
}

/// Whether a folder is a day's.
pub fn is_day(name: &str) -> bool {
    let is_place = |(at, byte): (usize, &u8)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    name.len() == 10 && name.as_bytes().iter().enumerate().all(is_place)
}

/// The nanosecond in the name of a record of `host`; `None` where it is no such name.
pub fn begin_ns(host: &str, name: &str) -> Option<u64> {
    let (front, of_host) = name.strip_suffix(EXTENSION)?.rsplit_once('@')?;
    let (_, begin) = front.rsplit_once('-')?;
    (of_host == escaped(host)).then(|| begin.parse().ok())?
}

/// The file of a day with the heads of the records of `host`.
pub fn heads(host: &str) -> String {
    format!("heads@{}.jsonl", escaped(host))
}

/// Whether a file has heads.
pub fn is_heads(name: &str) -> bool {
    name.starts_with("heads@") && name.ends_with(".jsonl")
}

/// `text` as a part of a file's name, never empty.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        let is_first_dot = byte == b'.' && escaped.is_empty();
        if (byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) && !is_first_dot {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
        if escaped.len() >= LONGEST_PART {
            break;
        }
    }
    if escaped.is_empty() { "%".to_owned() } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_leaves_the_folder() {
        for (text, expected) in [
            ("4711", "4711"),
            ("4711_3", "4711_3"),
            ("pod-1a2b.c", "pod-1a2b.c"),
            ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
            (".hidden", "%2Ehidden"),
            ("", "%"),
            ("a@b%\n\0ö", "a%40b%25%0A%00%C3%B6"),
        ] {
            assert_eq!(escaped(text), expected, "{text:?}");
        }
        assert!(escaped(&"/".repeat(500)).len() < 100);
    }

    #[test]
    fn days_are_utc() {
        assert_eq!(day(1_795_305_599_999_999_999), "2026-11-21");
        assert_eq!(day(1_795_305_600_000_000_000), "2026-11-22");
        assert_eq!(day(1 << 62), "2116-02-20");
        assert!(
            is_day("2026-11-22")
                && !is_day("2026-11-2x")
                && !is_day("2026.11.22")
                && !is_day("tmp")
        );
    }

    #[test]
    fn names_are_read_back_by_their_own_node_alone() {
        let name = "slurm-a-1-1795305599999999999@n-1.json.gz";
        assert_eq!(begin_ns("n-1", name), Some(1_795_305_599_999_999_999));
        for other in ["heads@n-1.jsonl", "slurm-1-x@n-1.json.gz", "5@n-1.json.gz", "x.json.gz"] {
            assert_eq!(begin_ns("n-1", other), None, "{other}");
        }
        assert_eq!(begin_ns("n", name), None);
        assert!(is_heads(&heads("n/1")) && !is_heads(name));
        assert_eq!(heads("n/1"), "heads@n%2F1.jsonl");
    }
}
