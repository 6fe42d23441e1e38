//! Rules for operations on files, which a run has where it was asked for them (`run --io`): by what they cost.

use std::collections::BTreeMap;

use super::{
    DIVE, FACT, Facts, Finding, LEAST_NS, Rule, Saves, Tone,
    below::most_opened,
    by_file::{Random, of_opened_again, path},
    mapped::mapped_bytes,
};
use crate::{
    base::units::{bytes, count, duration, percent},
    model::{
        files::is_storage,
        group::Group,
        hist::Hist,
        tables::{IO_ERROR, Io, IoError},
    },
    view::{
        file_ops::{added_up, name, ops, place, storage, time_ns},
        io_threads::metadata,
    },
};

/// When there are any.
pub(super) const ASKED: &str = "with `run --io` or `jobtrace io`";
/// Where operations on files take less of the time than this, they are not why it was slow.
const LEAST: f64 = 0.05;
/// Fewer operations than this are no habit.
pub(super) const MANY: u64 = 1_000;
/// An access is small below this, and they matter from this part of the time in I/O on. They are at least that part of all
/// accesses then, for a byte costs no less in them.
pub(super) const SMALL_BYTES: u64 = 1 << 20;
pub(super) const SMALL_TIME: f64 = 0.20;
/// Names and attributes matter from this part of the time in I/O on, where less than this is moved for each open.
pub(super) const NAMES_TIME: f64 = 0.30;
const FILE_BYTES: u64 = 64 << 10;
/// Of opens and stats, the part from which on it is the search that costs.
const MISSING: f64 = 0.20;

/// Those that look a name up.
const LOOKUPS: [&str; 2] = ["open", "stat"];
/// The kernel's own files: no larger piece of them can be had.
pub(super) const KERNELS: [&str; 6] = ["proc", "sysfs", "devtmpfs", "cgroup", "cgroup2", "tracefs"];
/// Errors that no program expects, and what they mean.
const FAILURES: [(&str, &str); 4] = [
    ("EIO", "the device or the server failed"),
    ("ENOSPC", "there was no space left"),
    ("EDQUOT", "a quota was used up"),
    ("ESTALE", "the server no longer had the file"),
];

pub(super) const FILE_ERRORS: Rule = Rule {
    id: "file_errors",
    least_ns: 0,
    threshold: || {
        let errors = FAILURES.map(|(error, _)| error).join(", ");
        format!("{ASKED}: an operation on a file failed with one of {errors}")
    },
    source: "",
    advice: "look whether results are complete; ENOSPC, EDQUOT: remove files or ask for more space; EIO, ESTALE: tell \
             the administrators",
    shown: DIVE,
    find: file_errors,
};

pub(super) const SMALL_ACCESSES: Rule = Rule {
    id: "small_accesses",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "{} of the time in I/O goes into reads or writes below {}, {} of them or more; reads that random_reads tells \
             are left out",
            percent(SMALL_TIME),
            bytes(SMALL_BYTES),
            count(MANY)
        ))
    },
    source: "Drishti: 1,000 below 1 MiB",
    advice: "move more at once: a larger buffer (Python: buffering=1 << 20 of open; C: setvbuf), whole arrays, chunks of \
             1 MiB in HDF5, collective calls of MPI-IO",
    shown: DIVE,
    find: small_accesses,
};

pub(super) const SMALL_FILES: Rule = Rule {
    id: "small_files",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "more than {} of the time in I/O goes into open, stat and the like, and there are {} opens or more with \
             less than {} moved for each; without those of `opened_again`. Where most of these files may be mapped (no \
             read, write or listing for half of the opens, or page faults that read for half of them), their whole size \
             counts as moved",
            percent(NAMES_TIME),
            count(MANY),
            bytes(FILE_BYTES)
        ))
    },
    source: "",
    advice: "pack them: tar or WebDataset for training data, one HDF5 file or database for many results; or copy an \
             archive to a local disk and unpack it there",
    shown: DIVE,
    find: small_files,
};

pub(super) const MISSING_FILES: Rule = Rule {
    id: "missing_files",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "more than {} of opens and stats asked for what is not there, {} times",
            percent(MISSING),
            count(MANY)
        ))
    },
    source: "",
    advice: "shorten the search paths (PATH, PYTHONPATH, LD_LIBRARY_PATH), load fewer modules, or list a folder once in \
             place of asking for each name",
    shown: DIVE,
    find: missing_files,
};

pub(super) fn in_a_dive(what: &str) -> String {
    format!("{ASKED}, where I/O takes {} of the time: {what}", percent(LEAST))
}

/// Operations on files, where they took long enough to speak of.
pub(super) struct All<'a> {
    facts: &'a Facts<'a>,
    /// By file system and mount.
    mounts: BTreeMap<[&'a str; 2], Vec<&'a Group>>,
    time_ns: u64,
}

impl<'a> All<'a> {
    pub(super) fn of(facts: &'a Facts<'a>) -> Option<Self> {
        let mut mounts: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for group in storage(facts) {
            mounts.entry([&*group.tags[0], &*group.tags[1]]).or_default().push(group);
        }
        let time_ns = added_up(mounts.values().flatten().map(|group| time_ns(group)));
        let all = Self { facts, mounts, time_ns };
        (all.share(time_ns) >= LEAST).then_some(all)
    }

    /// `ns` as a share of the job's time, or of the time in I/O where tasks that sleep there make it more.
    pub(super) fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.facts.whole_ns().max(self.time_ns).max(1) as f64
    }

    /// `ns` as a share of the time in I/O.
    pub(super) fn of_io(&self, ns: u64) -> f64 {
        ns as f64 / self.time_ns.max(1) as f64
    }

    /// What `cost_ns` is, in words: `61 % of its time in I/O (1.20 s)`.
    pub(super) fn cost(&self, cost_ns: u64) -> String {
        format!("{} of its time in I/O ({})", percent(self.of_io(cost_ns)), duration(cost_ns))
    }

    /// Of what each mount has to say, that which costs most.
    pub(super) fn dearest(
        &self,
        of: impl Fn([&str; 2], &[&Group]) -> Option<(u64, String)>,
    ) -> Option<Finding> {
        let found = self.mounts.iter().filter_map(|(mount, groups)| of(*mount, groups));
        let (cost_ns, text) = found.max_by_key(|(cost_ns, _)| *cost_ns)?;
        Some(Finding::new(self.share(cost_ns), Tone::Bad, text))
    }

    pub(super) fn place(&self, [fs, mount]: [&str; 2]) -> String {
        place(fs, mount, self.facts.unicode)
    }
}

/// The sum of `value` over those of `groups` that are of `ops`.
pub(super) fn sum(groups: &[&Group], ops: &[&str], value: impl Fn(&Group) -> u64) -> u64 {
    let of_ops = groups.iter().filter(|group| ops.contains(&&*group.tags[2]));
    added_up(of_ops.map(|group| value(group)))
}

fn file_errors(facts: &Facts) -> Option<Finding> {
    let failures = facts.totals.stats.groups(&IO_ERROR).filter_map(|group| {
        let [error, fs, mount, op] = &group.tags[..] else { return None };
        let (error, meaning) = FAILURES.iter().find(|(name, _)| name == error)?;
        let times = group.number(IoError::ops).filter(|times| *times > 0)?;
        let is_data = is_storage(fs) && !KERNELS.contains(&&**fs);
        is_data.then(|| (times, name(op, fs, mount, facts.unicode), error, meaning))
    });
    let (times, name, error, meaning) = failures.max()?;
    let times = if times == 1 { "once".into() } else { format!("{} times", count(times)) };
    let text = format!("{name} failed {times} with {error}: {meaning}");
    Some(Finding::new(FACT, Tone::Bad, text).saving(Saves::default()))
}

fn small_accesses(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    all.dearest(|mount, groups| {
        let of_data = groups.iter().filter(|_| !KERNELS.contains(&mount[0]));
        let kinds = of_data.filter_map(|group| {
            let accesses = ["read", "write"].into_iter().find(|op| *op == group.tags[2])?;
            // To move more at once makes reads in no order slower: they have a rule of their own.
            if accesses == "read" && Random::of(&all, group).is_some() {
                return None;
            }
            let sizes = group.hist(Io::size_bytes)?;
            let (small, small_bytes) = below(sizes, SMALL_BYTES);
            // A byte costs no less in a small access than in a large one: they took this or more.
            let part = small_bytes as f64 / sizes.sum.max(1) as f64;
            let cost_ns = (time_ns(group) as f64 * part) as u64;
            (small >= MANY && all.of_io(cost_ns) >= SMALL_TIME).then(|| {
                let text = format!(
                    "{} goes into {accesses}s below {} on {}: {} of them, averaging {}",
                    all.cost(cost_ns),
                    bytes(SMALL_BYTES),
                    all.place(mount),
                    count(small),
                    bytes(small_bytes / small)
                );
                (cost_ns, text)
            })
        });
        kinds.max_by_key(|(cost_ns, _)| *cost_ns)
    })
}

/// How many of `sizes` are below `bytes`, a bound of buckets, and the least that they add up to.
fn below(sizes: &Hist, bytes: u64) -> (u64, u64) {
    let large = sizes.buckets().filter(|(bucket, _)| sizes.bound(*bucket) >= bytes);
    let (number, most) = large.fold((0, 0_u64), |(number, most), (bucket, count)| {
        (number + count, most.saturating_add(count.saturating_mul(sizes.bound(bucket))))
    });
    (sizes.count() - number, sizes.sum.saturating_sub(most))
}

pub(super) fn small_files(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    all.dearest(|mount, groups| {
        // Files that are opened again and again are few: a rule of its own tells them.
        let again = of_opened_again(facts, mount);
        let cost_ns = sum(groups, &metadata(), time_ns).saturating_sub(again.open_ns);
        let failed = |group: &Group| group.number(Io::errors).unwrap_or(0);
        let opens = sum(groups, &["open"], |group| ops(group).saturating_sub(failed(group)));
        let opens = opens.saturating_sub(again.opens);
        let moved = added_up(groups.iter().filter_map(|group| group.number(Io::bytes)));
        let moved = moved.saturating_sub(again.read_bytes.saturating_add(again.written_bytes));
        let mapped_bytes = mapped_bytes(facts, mount, groups, opens)?;
        let each_bytes = moved.checked_div(opens)?.saturating_add(mapped_bytes);
        let is_small = opens >= MANY && each_bytes < FILE_BYTES;
        (is_small && all.of_io(cost_ns) > NAMES_TIME).then(|| {
            let below = most_opened(facts, mount).map_or(String::new(), |below| {
                let files = if below.files == 1 { "file" } else { "files" };
                let (opens, number) = (count(below.opens), count(below.files));
                let path = path(below.path, facts);
                format!("; among them {opens} opens of {number} {files} below {path}")
            });
            let each = match mapped_bytes {
                0 => format!("{} moved for each", bytes(each_bytes)),
                size_bytes => format!("most of files of {}", bytes(size_bytes)),
            };
            let text = format!(
                "{} goes into open, stat and the like on {}: {} opens, {each}{below}",
                all.cost(cost_ns),
                all.place(mount),
                count(opens)
            );
            (cost_ns, text)
        })
    })
}

pub(super) fn missing_files(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    all.dearest(|[fs, mount], groups| {
        let errors = facts.totals.stats.groups(&IO_ERROR);
        let is_missing = |group: &&Group| {
            let [error, of_fs, of_mount, op] = &group.tags[..] else { return false };
            error == "ENOENT" && of_fs == fs && of_mount == mount && LOOKUPS.contains(&&**op)
        };
        let missing = errors.filter(is_missing).filter_map(|group| group.number(IoError::ops));
        let missing = added_up(missing);
        let (lookups, time_ns) = (sum(groups, &LOOKUPS, ops), sum(groups, &LOOKUPS, time_ns));
        let is_habit = missing >= MANY && missing as f64 > MISSING * lookups as f64;
        (is_habit && all.share(time_ns) >= LEAST).then(|| {
            let text = format!(
                "{} of {} opens and stats on {} asked for what is not there; all {} together took {}",
                count(missing),
                count(lookups),
                all.place([fs, mount]),
                count(lookups),
                all.cost(time_ns)
            );
            (time_ns, text)
        })
    })
}
