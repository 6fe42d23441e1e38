//! Where a record lies below a store's folder: `<uid>/YYYY-MM-DD/<manager>-<job>-<begin>@<host>.json.gz`, the job's
//! owner, the day and the nanosecond (UTC) from which it was counted there. It stays the same as long as the job lasts,
//! unless its owner or its name comes to light later.
//!
//! Pure: it makes names and reads them. Texts from outside are escaped (`%2F`), so that none leaves its folder.

use std::{
    fmt::{self, Display, Formatter, Write},
    time::{Duration, UNIX_EPOCH},
};

use super::Record;
use crate::model::tables::fact;

/// What the name of each record ends in.
pub const EXTENSION: &str = ".json.gz";
/// Longest part of a name that is shown; what begins alike differs in the nanosecond.
const LONGEST_PART: usize = 96;

/// The owner's folder of jobs whose owner is not known.
pub const NO_OWNER: &str = "none";

/// Where a record lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The owner's folder.
    pub owner: String,
    /// The day's folder in it.
    pub day: String,
    /// The file in that.
    pub file: String,
}

impl Place {
    /// The place that [`Display`] wrote; `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (owner, rest) = text.split_once('/')?;
        let (day, file) = rest.split_once('/')?;
        let is_place = is_owner(owner) && is_day(day) && is_record(file);
        is_place.then(|| Self { owner: owner.into(), day: day.into(), file: file.into() })
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.owner, self.day, self.file)
    }
}

/// Where `record` lies.
pub fn place(record: &Record) -> Place {
    let begin_ns = record.timeline.begin_ns();
    let job = record.job();
    let id =
        if job.step.is_empty() { job.job.clone() } else { format!("{}.{}", job.job, job.step) };
    let (manager, id) = (escaped(&job.manager), escaped(&id));
    let host = escaped(&record.hosts.join(","));
    let owner = record.facts.number(const { fact("uid") });
    let owner = owner.map_or_else(|| NO_OWNER.to_owned(), |uid| uid.to_string());
    let file = format!("{manager}-{id}-{begin_ns}@{host}{EXTENSION}");
    Place { owner, day: day(begin_ns), file }
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

/// Whether a folder is an owner's.
pub fn is_owner(name: &str) -> bool {
    let is_number = !name.starts_with('+') && name.parse::<u32>().is_ok();
    name == NO_OWNER || is_number
}

/// Whether a file is a record, by its name: it leads nowhere else.
pub fn is_record(name: &str) -> bool {
    let is_ours = |byte: u8| byte.is_ascii_alphanumeric() || b"._-%@".contains(&byte);
    name.ends_with(EXTENSION) && name.contains('@') && name.bytes().all(is_ours)
}

/// Whether a record may be of `job` or one of its steps, by its name: a long one may be of another.
pub fn may_be_of(job: &str, name: &str) -> bool {
    let Some((front, _)) = name.rsplit_once('@') else { return false };
    let Some((front, _)) = front.rsplit_once('-') else { return false };
    let job = escaped(job);
    front.match_indices('-').any(|(at, _)| {
        let id = &front[at + 1..];
        id.strip_prefix(&job).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The nanosecond in the name of a record of `host`; `None` where it is no such name.
pub fn begin_ns(host: &str, name: &str) -> Option<u64> {
    let (front, of_host) = name.strip_suffix(EXTENSION)?.rsplit_once('@')?;
    let (_, begin) = front.rsplit_once('-')?;
    (of_host == escaped(host)).then(|| begin.parse().ok())?
}

/// The file of a day with the heads of the records of `host`.
pub fn heads(host: &str) -> String {
    heads_of_escaped(&escaped(host))
}

/// The same, of a node as [`escaped_host`] gives it.
pub(super) fn heads_of_escaped(host: &str) -> String {
    format!("heads@{host}.jsonl")
}

/// The node in the name of a record, as names of files have it; `None` where it is no such name.
pub(super) fn escaped_host(name: &str) -> Option<&str> {
    is_record(name)
        .then(|| name.strip_suffix(EXTENSION)?.rsplit_once('@'))
        .flatten()
        .map(|(_, host)| host)
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
