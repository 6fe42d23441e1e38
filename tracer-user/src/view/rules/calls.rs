//! Rules for what tasks are blocked on, by the call that they are in.

use tracer_ebpf::handle::{Handle, Number};

use super::{Facts, Finding, Tone, by_file::sync_each_record, programs::many_programs};
use crate::{
    base::units::{count, duration, percent},
    model::tables::Sched,
    view::{disk::Disk, facts::Waited, file_wait::FileWait},
};

/// A tenth of the time in fsync or in metadata can be had back.
const CALLS: f64 = 0.10;
/// Fewer waits than this are no habit.
pub(super) const MANY: u64 = 100;
/// A twentieth of the time in the kernel's own locks, or for the start of programs, is out of the ordinary.
pub(super) const KERNEL: f64 = 0.05;
/// As for I/O: from a fifth of the time on.
pub(super) const OTHERWISE: f64 = 0.20;

/// When rules speak of what blocks that often, and that much.
pub(super) fn often(what: &str) -> String {
    format!("blocked in {what} for {} of the time, {} times", percent(CALLS), count(MANY))
}

/// Many waits until what was written is stored, where no rule tells the files.
pub(super) fn sync(facts: &Facts) -> Option<Finding> {
    synced(facts).filter(|_| sync_each_record(facts).is_none())
}

/// The same, whoever tells more of it.
pub(super) fn synced(facts: &Facts) -> Option<Finding> {
    let syncs = facts.waited((Sched::blocked_sync_ns, Sched::blocked_sync_waits))?;
    let share = facts.judged(syncs.ns);
    if share < CALLS || syncs.count < MANY {
        return None;
    }
    let text = format!(
        "blocked in fsync and the like{} {} of {}, {}: usually a program that stores each record; \
         store many at once",
        place(facts, "sync", syncs.ns),
        percent(share),
        facts.judged_name(),
        times(syncs)
    );
    Some(Finding::new(facts.share(syncs.ns), Tone::Bad, text))
}

/// Names and attributes of files, on a network file system or where nobody knows.
pub(super) fn metadata(facts: &Facts) -> Option<Finding> {
    let calls = facts.waited((Sched::blocked_metadata_ns, Sched::blocked_metadata_waits))?;
    let share = facts.judged(calls.ns);
    if share < CALLS || calls.count < MANY {
        return None;
    }
    let on_one = most(facts, "metadata", calls.ns).and_then(FileWait::is_remote);
    let usual = match on_one {
        Some(true) => "each of them asks a server: fewer and larger files, or a local copy",
        // A directory that is not in memory yet.
        Some(false) => return None,
        None if Disk::behind(&facts.disks, calls.ns).is_some() => return None,
        None if facts.is_unknown("block") => {
            "usually many small files on a network file system; local disks are unknown here"
        }
        None => "local disks do not explain it: usually many small files on a network file system",
    };
    let text = format!(
        "blocked in open, stat and the like{} {} of {}, {}; {usual}",
        place(facts, "metadata", calls.ns),
        percent(share),
        facts.judged_name(),
        times(calls)
    );
    Some(Finding::new(facts.share(calls.ns), Tone::Bad, text))
}

/// Threads that change the same memory map.
pub(super) fn memory_maps(facts: &Facts) -> Option<Finding> {
    let (share, calls) = kernels(facts, (Sched::blocked_memory_ns, Sched::blocked_memory_waits))?;
    let text = format!(
        "blocked {} of {} changing its memory maps (mmap, munmap, brk), {}: usually threads that \
         wait for each other there; allocate less often, or keep what was freed",
        percent(share),
        facts.judged_name(),
        times(calls)
    );
    (calls.count >= MANY).then(|| Finding::new(facts.share(calls.ns), Tone::Warn, text))
}

/// Parents whose children have their memory.
pub(super) fn vfork(facts: &Facts) -> Option<Finding> {
    if many_programs(facts).is_some() {
        return None;
    }
    let (share, calls) = kernels(facts, (Sched::blocked_child_ns, Sched::blocked_child_waits))?;
    let text = format!(
        "blocked {} of {} starting children (vfork, posix_spawn), {}: a parent stops until its \
         child has executed a program or ended; that is not I/O of its own",
        percent(share),
        facts.judged_name(),
        times(calls)
    );
    Some(Finding::new(facts.share(calls.ns), Tone::Warn, text))
}

/// What else is not known to be I/O: drivers, and calls that do not tell.
pub(super) fn otherwise(facts: &Facts) -> Option<Finding> {
    let ioctl_ns = facts.number(Sched::blocked_ioctl_ns)?;
    let other_ns = facts.number(Sched::blocked_other_ns)?;
    let ns = ioctl_ns.max(other_ns);
    let share = facts.judged(ns);
    if share < OTHERWISE {
        return None;
    }
    let cause = match Disk::behind(&facts.disks, ns) {
        _ if ioctl_ns > other_ns => "in drivers (ioctl), as of GPUs or networks".to_owned(),
        Some(disk) => format!("in calls that do not tell what for; {}", disk.in_words()),
        None => "in calls that do not tell what for (io_uring's I/O is among them)".to_owned(),
    };
    let text = format!("blocked {} of {} {cause}", percent(share), facts.judged_name());
    Some(Finding::new(facts.share(ns), Tone::Bad, text))
}

/// Blocks in the kernel's own matters and their share, where that is out of the ordinary.
fn kernels(facts: &Facts, of: (Handle<Number>, Handle<Number>)) -> Option<(f64, Waited)> {
    let waited = facts.waited(of)?;
    let share = facts.judged(waited.ns);
    (share >= KERNEL && waited.count > 0).then_some((share, waited))
}

/// `5.20k times for 3.80 ms each`.
pub(super) fn times(waited: Waited) -> String {
    let mean = duration(waited.mean_ns());
    match waited.count {
        1 => format!("once, for {mean}"),
        many => format!("{} times for {mean} each", count(many)),
    }
}

/// The file system that most of `ns` in `call` was waited for, where the calls name it.
fn most<'f>(facts: &'f Facts, call: &str, ns: u64) -> Option<&'f FileWait<'f>> {
    let of_call = |wait: &&FileWait| wait.call == call && wait.is_remote().is_some();
    facts.files.iter().find(of_call).filter(|wait| wait.took.sum >= ns / 2)
}

fn place(facts: &Facts, call: &str, ns: u64) -> String {
    most(facts, call, ns).map_or(String::new(), FileWait::place)
}
