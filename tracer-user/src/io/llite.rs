//! The text of `llite.*.stats`: what the client of Lustre counts of one mount.

use std::collections::BTreeMap;

use super::servers::Counts;

/// Nanoseconds of the unit of its times.
const US: u64 = 1_000;

/// What is counted beside requests: pages, how often a file was opened, and how long until it was opened again.
const NO_REQUESTS: [&str; 4] =
    ["dirty_pages_hits", "dirty_pages_misses", "opencount", "openclosetime"];
/// What else begins so, of Lustre before 2.0.
const WRITE_BACK: &str = "writeback_";

/// What was counted of each kind since it was mounted or the counts were cleared, and how many lines have another form.
///
/// `open 8 samples [usecs] 10 200 1234 9876`: how many, their unit and, of those that are measured, the least, the most
/// and the sum. Bytes of a kind are a line of their own, `read_bytes`. How versions differ is in `tests/data/lustre`.
pub fn parse(text: &str) -> (Vec<(String, Counts)>, usize) {
    let (mut kinds, mut strange_lines) = (BTreeMap::<String, Counts>::new(), 0);
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            // The time is two words where its nanoseconds are padded with blanks.
            [] | ["snapshot_time" | "start_time" | "elapsed_time", ..] => {}
            [name, ..] if NO_REQUESTS.contains(&name) || name.starts_with(WRITE_BACK) => {}
            [name, count, "samples", unit, ref rest @ ..] => {
                let Ok(count) = count.parse::<u64>() else {
                    strange_lines += 1;
                    continue;
                };
                let sum = rest.get(2).and_then(|sum| sum.parse::<u64>().ok());
                let kind = name.strip_suffix("_bytes").unwrap_or(name);
                let [ops, _, _, _, sent, received, _, _, time] =
                    kinds.entry(kind.to_owned()).or_insert([None; super::FIELDS.len()]);
                *ops = Some(ops.unwrap_or(0).max(count));
                match (unit, kind) {
                    ("[bytes]", kind) if kind.ends_with("write") => *sent = sum,
                    ("[bytes]", kind) if kind.ends_with("read") => *received = sum,
                    ("[usec]" | "[usecs]", _) => *time = sum.map(|sum| sum.saturating_mul(US)),
                    _ => {}
                }
            }
            _ => strange_lines += 1,
        }
    }
    (kinds.into_iter().collect(), strange_lines)
}

/// Whether `source`, `10.0.0.1@tcp:10.0.0.2@tcp:/scratch/part`, is of the file system `name`.
pub fn is_of(source: &str, name: &str) -> bool {
    let path = source.rsplit_once(":/").map_or("", |(_, path)| path);
    path.split('/').next() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(kinds: &'a [(String, Counts)], name: &str) -> &'a Counts {
        &kinds.iter().find(|(own, _)| own == name).unwrap().1
    }

    /// In the shape of Lustre 2.12 and before: most kinds are not timed.
    #[test]
    fn old_counts_have_numbers_alone() {
        let text = "snapshot_time             1694140455.278503 secs.usecs\n\
                    dirty_pages_hits          4096 samples [regs]\n\
                    read_bytes                31 samples [bytes] 1 1048576 8390000\n\
                    write_bytes               4 samples [bytes] 4096 1048576 2097152\n\
                    open                      8 samples [regs]\n";
        let (kinds, strange) = parse(text);
        assert_eq!(strange, 0);
        assert_eq!(of(&kinds, "read")[..6], [Some(31), None, None, None, None, Some(8_390_000)]);
        assert_eq!(of(&kinds, "write")[4], Some(2_097_152));
        assert_eq!((of(&kinds, "open")[0], of(&kinds, "open")[8]), (Some(8), None));
    }

    /// In that of 2.17: times of their own beside the bytes.
    #[test]
    fn newer_counts_have_times() {
        let text = "snapshot_time             1694140643.273314489 secs.nsecs\n\
                    start_time                1694050011.111111111 secs.nsecs\n\
                    elapsed_time              90632.162203378 secs.nsecs\n\
                    read_bytes                31 samples [bytes] 1 1048576 8390000 8796093022208\n\
                    read                      31 samples [usecs] 2 3851 80065 5387531\n\
                    getattr                   16977 samples [usecs] 2 3904 16809097 16988546393\n\
                    ioctl                     3 samples [reqs]\n\
                    a line of a later version\n\
                    close many samples [usecs] 1 1 1\n";
        let (kinds, strange) = parse(text);
        assert_eq!(strange, 2);
        assert_eq!((of(&kinds, "read")[0], of(&kinds, "read")[5]), (Some(31), Some(8_390_000)));
        assert_eq!(of(&kinds, "read")[8], Some(80_065_000));
        assert_eq!(of(&kinds, "getattr")[8], Some(16_809_097_000));
        assert_eq!(kinds.len(), 3);
    }

    /// What servers count by job has nearly the same words, and is of other things.
    #[test]
    fn counts_of_servers_by_job_are_no_counts_of_a_client() {
        let text = include_str!("../../tests/data/lustre/2.15/obdfilter/scratch-OST0003/job_stats");
        let (kinds, strange) = parse(text);
        assert!(kinds.is_empty(), "{kinds:?}");
        assert_eq!(strange, 13);
    }

    #[test]
    fn a_file_system_is_known_by_its_name() {
        assert!(is_of("10.0.0.1@tcp:10.0.0.2@tcp:/scratch", "scratch"));
        assert!(is_of("mgs@o2ib:/scratch/users/a", "scratch"));
        assert!(!is_of("mgs@o2ib:/scratch2", "scratch"));
        assert!(!is_of("", "scratch"));
    }
}
