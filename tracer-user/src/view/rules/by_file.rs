//! Rules for single files, which a run has where it was asked for its operations on files (`run --io`): by what they
//! cost. What a file cost is known of those that a record lists.

use super::{
    DIVE, Facts, Finding, LEAST_NS, Rule, Tone, below,
    files::{ASKED, All, KERNELS, MANY, SMALL_BYTES, SMALL_TIME, in_a_dive},
};
use crate::{
    base::{
        text::{clean, middle},
        units::{bytes, count, percent},
    },
    model::{
        files::{FileCounts, FileUse, is_storage},
        group::Group,
        tables::Io,
    },
    view::file_ops::{added_up, time_ns},
};

/// Where syncs after little data take this part of the time, they are why it was slow; fewer are no habit.
const SYNCS: f64 = 0.10;
const MANY_SYNCS: u64 = 100;
/// A file opened so often is opened again and again; it matters from this part of the time in I/O on.
const OPENS: u64 = 10;
const OPENS_TIME: f64 = 0.10;
/// Reads of which less than this follow the one before are random; they cost where this part of their time is waiting.
const IN_ORDER: f64 = 0.50;
/// Of reads in no order half go back in the file. Where next to none does, it is read in its order by several that take
/// turns, or with gaps.
const BACK: f64 = 0.25;
const WAITING: f64 = 0.50;
/// A file of which so many times its size is read is read again.
const TIMES: u64 = 3;
/// Columns of a path.
const MAX_PATH: usize = 40;

pub(super) const SYNC_EACH_RECORD: Rule = Rule {
    id: "sync_each_record",
    least_ns: LEAST_NS,
    threshold: || {
        format!(
            "{ASKED}: {} of the time goes into fsync and the like of files that are synced {} times or more, \
             after less than {} each",
            percent(SYNCS),
            count(MANY_SYNCS),
            bytes(SMALL_BYTES)
        )
    },
    source: "Drishti: 10 % of the time",
    advice: "write many records and sync once: one transaction for many rows of a database, no os.fsync in the loop \
             (Python), no O_SYNC (C), H5Fflush at checkpoints alone (HDF5)",
    shown: DIVE,
    find: sync_each_record,
};

pub(super) const OPENED_AGAIN: Rule = Rule {
    id: "opened_again",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "{} of the time in I/O goes into open and close of files that are opened {} times or more each, {} times \
             together; files that are not listed count by the mean of their folder",
            percent(OPENS_TIME),
            count(OPENS),
            count(MANY)
        ))
    },
    source: "Drishti: 10 opens of a file",
    advice: "open it once, before the loop, and keep it open (Python: h5py.File or open outside the loop; C: hand the \
             descriptor on); start fewer short programs",
    shown: DIVE,
    find: opened_again,
};

pub(super) const RANDOM_READS: Rule = Rule {
    id: "random_reads",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "{} of the time in I/O goes into waiting for reads of which less than {} begin where the one before ended and \
             {} or more before that, {} of them or more, and {} of their time or more is waiting",
            percent(SMALL_TIME),
            percent(IN_ORDER),
            percent(BACK),
            count(MANY),
            percent(WAITING)
        ))
    },
    source: "",
    advice: "read in the file's order: sort by offset, shuffle blocks and not single records, store arrays in chunks of \
             the shape that is read (HDF5); or copy the file to memory or a local disk first",
    shown: DIVE,
    find: random_reads,
};

pub(super) const READ_AGAIN: Rule = Rule {
    id: "read_again",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "{} of the time in I/O goes into reading files of which {TIMES} times their size or more is read",
            percent(SMALL_TIME)
        ))
    },
    source: "",
    advice: "keep what was read (Python: a dict or functools.cache, the dataset's own cache), read once and hand it on \
             (MPI_Bcast), or copy it to memory first",
    shown: DIVE,
    find: read_again,
};

/// Files of a kind, with what they cost together.
pub(super) struct Costly<'a> {
    /// The one that cost most.
    pub(super) worst: &'a FileUse,
    others: u64,
    pub(super) cost_ns: u64,
    counts: FileCounts,
}

impl<'a> Costly<'a> {
    /// Those to which `cost` gives nanoseconds.
    pub(super) fn of(facts: &Facts<'a>, cost: impl Fn(&FileUse) -> Option<u64>) -> Option<Self> {
        let data = facts.totals.files.files.iter().filter(|file| is_data(file));
        let costly: Vec<_> =
            data.filter_map(|file| Some((cost(file).filter(|ns| *ns > 0)?, file))).collect();
        let (_, worst) = costly.iter().max_by_key(|(cost_ns, _)| *cost_ns)?;
        let mut counts = FileCounts::default();
        costly.iter().for_each(|(_, file)| counts.add(&file.counts));
        let cost_ns = added_up(costly.iter().map(|(cost_ns, _)| *cost_ns));
        Some(Self { worst, others: costly.len() as u64 - 1, cost_ns, counts })
    }

    /// More of them, that are not listed.
    fn add(&mut self, files: u64, cost_ns: u64, counts: &FileCounts) {
        self.others = self.others.saturating_add(files);
        self.cost_ns = self.cost_ns.saturating_add(cost_ns);
        self.counts.add(counts);
    }

    /// `/data/a and 12 other files`.
    pub(super) fn names(&self, facts: &Facts) -> String {
        let path = path(&self.worst.path, facts);
        match self.others {
            0 => path,
            1 => format!("{path} and 1 other file"),
            others => format!("{path} and {} other files", count(others)),
        }
    }
}

/// Whether it lies on storage, and is none of the kernel's.
fn is_data(file: &FileUse) -> bool {
    is_storage(&file.fs) && !KERNELS.contains(&&*file.fs)
}

/// A path as a sentence has room for it, made harmless.
pub(super) fn path(path: &str, facts: &Facts) -> String {
    middle(&clean(path, facts.unicode), MAX_PATH)
}

pub(super) fn sync_each_record(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    let costly = Costly::of(facts, |FileUse { counts: file, .. }| {
        let is_habit = file.syncs >= MANY_SYNCS && file.written_bytes / file.syncs < SMALL_BYTES;
        is_habit.then_some(file.sync_ns)
    })?;
    let share = all.share(costly.cost_ns);
    (share >= SYNCS).then(|| {
        let text = format!(
            "{} goes into {} syncs of {}, after {} each",
            all.cost(costly.cost_ns),
            count(costly.counts.syncs),
            costly.names(facts),
            bytes(costly.counts.written_bytes / costly.counts.syncs.max(1))
        );
        Finding::new(share, Tone::Bad, text)
    })
}

/// Of a name under which new files are made again and again each one is opened for the first time.
pub(super) fn is_opened_again(file: &FileUse) -> bool {
    file.counts.opens / file.files.max(1) >= OPENS
}

/// The same of so many files of a folder that are not listed, where they are opened often enough to matter.
pub(super) fn are_again(files: u64, opens: u64) -> bool {
    opens >= MANY && opens / files.max(1) >= OPENS
}

/// What was done with the files of a mount that are opened again and again.
pub(super) fn of_opened_again(facts: &Facts, [fs, mount]: [&str; 2]) -> FileCounts {
    let files = facts.totals.files.files.iter();
    let mut counts = FileCounts::default();
    files
        .filter(|file| file.fs == fs && file.mount == mount && is_opened_again(file))
        .for_each(|file| counts.add(&file.counts));
    below::opened_again(facts)
        .filter(|(folder, ..)| folder.fs == fs && folder.mount == mount)
        .for_each(|(.., of_folder)| counts.add(&of_folder));
    counts
}

fn opened_again(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    let mut costly =
        Costly::of(facts, |file| is_opened_again(file).then_some(file.counts.open_ns))?;
    for (_, files, counts) in below::opened_again(facts).filter(|(folder, ..)| is_data(folder)) {
        costly.add(files, counts.open_ns, &counts);
    }
    let is_habit = costly.counts.opens >= MANY && all.of_io(costly.cost_ns) >= OPENS_TIME;
    is_habit.then(|| {
        let text = format!(
            "{} goes into opening {} again: {} times",
            all.cost(costly.cost_ns),
            costly.names(facts),
            count(costly.counts.opens)
        );
        Finding::new(all.share(costly.cost_ns), Tone::Bad, text)
    })
}

fn random_reads(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    all.dearest(|mount, groups| {
        let reads = groups.iter().find(|group| group.tags[2] == "read")?;
        let Random { waited_ns, beyond, accesses } = Random::of(&all, reads)?;
        let text = format!(
            "{} goes into waiting for reads on {} that do not follow each other: {} of {}{}",
            all.cost(waited_ns),
            all.place(mount),
            count(beyond),
            count(accesses),
            most_of(facts, reads)
        );
        Some((waited_ns, text))
    })
}

/// Reads of a mount that cost because they are in no order.
pub(super) struct Random {
    waited_ns: u64,
    beyond: u64,
    accesses: u64,
}

impl Random {
    /// Of all `reads` of a mount; `None` where they are in order, or cost little.
    pub(super) fn of(all: &All, reads: &Group) -> Option<Self> {
        let number = |field| reads.number(field).unwrap_or(0);
        let (follow, back) = (number(Io::consecutive), number(Io::random));
        let beyond = number(Io::sequential).saturating_add(back);
        let accesses = follow.saturating_add(beyond);
        let waited_ns = number(Io::waited_ns);
        let of_all = |part: u64| part as f64 / accesses.max(1) as f64;
        let is_random = accesses >= MANY && of_all(follow) < IN_ORDER && of_all(back) >= BACK;
        let is_waiting = waited_ns as f64 >= WAITING * time_ns(reads) as f64;
        let is_costly = all.of_io(waited_ns) >= SMALL_TIME;
        (is_random && is_waiting && is_costly).then_some(Self { waited_ns, beyond, accesses })
    }
}

/// `; most of /data/a`, where the file is known.
fn most_of(facts: &Facts, reads: &Group) -> String {
    let of_mount = facts.totals.files.files.iter();
    let of_mount = of_mount.filter(|file| file.fs == reads.tags[0] && file.mount == reads.tags[1]);
    let most =
        of_mount.max_by_key(|file| file.counts.random.saturating_add(file.counts.sequential));
    most.map_or(String::new(), |file| format!("; most of {}", path(&file.path, facts)))
}

fn read_again(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    let costly = Costly::of(facts, |FileUse { counts: file, .. }| {
        // What is written anew is read for the first time.
        let once_bytes = file.size_bytes.max(file.written_bytes);
        let is_again = file.size_bytes > 0 && file.read_bytes / once_bytes >= TIMES;
        // The first time had to be.
        let again = 1.0 - once_bytes as f64 / file.read_bytes.max(1) as f64;
        is_again.then_some((file.read_ns as f64 * again) as u64)
    })?;
    (all.of_io(costly.cost_ns) >= SMALL_TIME).then(|| {
        let text = format!(
            "{} goes into reading {} again: {} read of {}",
            all.cost(costly.cost_ns),
            costly.names(facts),
            bytes(costly.counts.read_bytes),
            bytes(costly.counts.size_bytes)
        );
        Finding::new(all.share(costly.cost_ns), Tone::Bad, text)
    })
}
