//! Rules for what the page cache did, which a run has where it was asked for its operations on files (`run --io`): by
//! what they cost. Of what a kernel does not tell they say nothing.

use tracer_ebpf::handle::{Handle, Number};

use super::{
    DIVE, Facts, Finding, LEAST_NS, Rule, Tone,
    files::{ASKED, All, MANY, SMALL_BYTES, SMALL_TIME, in_a_dive},
    memory::{MAJOR, major_faults},
};
use crate::{
    base::units::{bytes, count, duration, percent},
    model::{group::Group, tables::Io},
    view::file_ops::{place, storage, time_ns},
};

/// Reads of which this part of the bytes is brought into memory first are cold.
const COLD: f64 = 0.50;
/// Where so much more is brought than read, read-ahead is wasted.
const WASTED: f64 = 1.50;
/// Reads cost where this part of their time is waiting.
const WAITING: f64 = 0.50;
/// Pauses matter from this part of the time in I/O on; they are no less of the time of the writes.
const PAUSES: f64 = 0.10;
/// Page faults of which this part brings one page read ahead nothing.
const SINGLE: f64 = 0.80;
/// Reads past the page cache of which this part is consecutive, and waits, would be served by read-ahead.
const IN_ORDER: f64 = 0.80;

pub(super) const COLD_CACHE: Rule = Rule {
    id: "cold_cache",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "{} of the time in I/O goes into waiting for reads of which {} to {WASTED} times the bytes are brought into \
             memory first, and {} of their time or more is waiting",
            percent(SMALL_TIME),
            percent(COLD),
            percent(WAITING)
        ))
    },
    source: "",
    advice: "read ahead in another thread (more loader processes; POSIX_FADV_WILLNEED), keep the data in memory from \
             one use to the next, or copy it to a local disk first",
    shown: DIVE,
    find: cold_cache,
};

pub(super) const READAHEAD_WASTED: Rule = Rule {
    id: "readahead_wasted",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "{} of the time in I/O goes into waiting for reads for which {WASTED} times their bytes or more are brought \
             into memory, and {} of their time or more is waiting",
            percent(SMALL_TIME),
            percent(WAITING)
        ))
    },
    source: "",
    advice: "read what lies together together: sort by offset, store arrays in chunks of the shape that is read (HDF5); \
             where the order must be random, say so (posix_fadvise, POSIX_FADV_RANDOM)",
    shown: DIVE,
    find: readahead_wasted,
};

pub(super) const DIRECT_READS: Rule = Rule {
    id: "direct_reads",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "{} of the time in I/O goes into waiting for reads past the page cache, {} of them or more and below {} on \
             the mean, of which {} begin where the one before ended; {} of their time or more is waiting",
            percent(SMALL_TIME),
            count(MANY),
            bytes(SMALL_BYTES),
            percent(IN_ORDER),
            percent(IN_ORDER)
        ))
    },
    source: "",
    advice: "read without O_DIRECT, so that the kernel reads ahead; or read pieces of 1 MiB or more, several at a time",
    shown: DIVE,
    find: direct_reads,
};

pub(super) const THROTTLED_WRITES: Rule = Rule {
    id: "throttled_writes",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "{} of the time in I/O are pauses that the kernel makes in writes because they are faster than the device",
            percent(PAUSES)
        ))
    },
    source: "",
    advice: "write less (compress it, keep results that are needed), to a faster or less busy file system, or from a \
             thread of its own while the next part is computed",
    shown: DIVE,
    find: throttled_writes,
};

pub(super) const MMAP_RANDOM: Rule = Rule {
    id: "mmap_random",
    least_ns: LEAST_NS,
    threshold: || {
        format!(
            "{ASKED}: major faults blocked it for {} of the time, {} page faults or more brought pages of mapped files \
             of one mount into memory, and {} of them one page each",
            percent(MAJOR),
            count(MANY),
            percent(SINGLE)
        )
    },
    source: "",
    advice: "go through a mapped file in its order (NumPy: sort the indices of a memmap), or read the file whole; where it \
             is larger than memory, read blocks and not single records",
    shown: DIVE,
    find: mmap_random,
};

fn number(group: &Group, field: Handle<Number>) -> f64 {
    group.number(field).unwrap_or(0) as f64
}

fn of_op<'a>(groups: &[&'a Group], op: &str) -> Option<&'a Group> {
    groups.iter().copied().find(|group| group.tags[2] == op)
}

/// Waiting for reads for which `is` so many times their bytes are brought into memory.
fn waits_for_reads(facts: &Facts, is: impl Fn(f64) -> bool, words: &str) -> Option<Finding> {
    let all = All::of(facts)?;
    all.dearest(|mount, groups| {
        let reads = of_op(groups, "read")?;
        let (read, fetched) = (reads.number(Io::bytes)?, reads.number(Io::fetched_bytes)?);
        let times = fetched as f64 / read.max(1) as f64;
        let waited_ns = reads.number(Io::waited_ns)?;
        let is_waiting = waited_ns as f64 >= WAITING * time_ns(reads) as f64;
        (is(times) && is_waiting && all.of_io(waited_ns) >= SMALL_TIME).then(|| {
            let text = format!(
                "{} goes into waiting for reads on {} {words}: {} brought into memory for {} read",
                all.cost(waited_ns),
                all.place(mount),
                bytes(fetched),
                bytes(read)
            );
            (waited_ns, text)
        })
    })
}

fn cold_cache(facts: &Facts) -> Option<Finding> {
    let is = |times| (COLD..WASTED).contains(&times);
    waits_for_reads(facts, is, "that were not in memory")
}

fn readahead_wasted(facts: &Facts) -> Option<Finding> {
    waits_for_reads(facts, |times| times >= WASTED, "that use little of what comes")
}

fn direct_reads(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    all.dearest(|mount, groups| {
        let reads = of_op(groups, "read")?;
        let (read, fetched) = (number(reads, Io::bytes), reads.number(Io::fetched_bytes)? as f64);
        let is_direct = number(reads, Io::device_read_bytes) >= IN_ORDER * read
            && fetched < (1.0 - IN_ORDER) * read;
        let follow = number(reads, Io::consecutive);
        let accesses = follow + number(reads, Io::sequential) + number(reads, Io::random);
        let is_habit = accesses >= MANY as f64
            && follow >= IN_ORDER * accesses
            && read < SMALL_BYTES as f64 * accesses;
        let waited_ns = reads.number(Io::waited_ns)?;
        let is_waiting = waited_ns as f64 >= IN_ORDER * time_ns(reads) as f64;
        let is_dear = is_waiting && all.of_io(waited_ns) >= SMALL_TIME;
        (is_direct && is_habit && is_dear).then(|| {
            let text = format!(
                "{} goes into waiting for reads past the page cache (O_DIRECT) on {}: {} one after the other, averaging \
                 {}, so that nothing is read ahead",
                all.cost(waited_ns),
                all.place(mount),
                count(follow as u64),
                bytes((read / accesses) as u64)
            );
            (waited_ns, text)
        })
    })
}

fn throttled_writes(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    all.dearest(|mount, groups| {
        let writes = of_op(groups, "write")?;
        let paused_ns = writes.number(Io::throttled_ns)?;
        (all.of_io(paused_ns) >= PAUSES).then(|| {
            let text = format!(
                "{} goes into {} pauses in writes on {}: it writes faster than the device, {} in all",
                all.cost(paused_ns),
                count(writes.number(Io::throttled).unwrap_or(0)),
                all.place(mount),
                bytes(writes.number(Io::bytes).unwrap_or(0))
            );
            (paused_ns, text)
        })
    })
}

pub(super) fn mmap_random(facts: &Facts) -> Option<Finding> {
    let major_ns = facts.major_ns.filter(|ns| facts.judged(*ns) >= MAJOR)?;
    // Pages in use were dropped then.
    if major_faults(facts).is_some() {
        return None;
    }
    let mapped = storage(facts).filter(|group| group.tags[2] == "mmap");
    let single = mapped.filter_map(|group| {
        let (faults, more) = (group.number(Io::ops)?, group.number(Io::fetched_more)?);
        let single = faults.saturating_sub(more);
        (faults >= MANY && single as f64 >= SINGLE * faults as f64).then_some((single, group))
    });
    let (single, group) = single.max_by_key(|(single, _)| *single)?;
    let text = format!(
        "major faults blocked it {} of {} ({}): {} of {} brought one page each of mapped files on {}",
        percent(facts.judged(major_ns)),
        facts.judged_name(),
        duration(major_ns),
        count(single),
        count(group.number(Io::ops).unwrap_or(0)),
        place(&group.tags[0], &group.tags[1], facts.unicode)
    );
    Some(Finding::new(facts.share(major_ns), Tone::Bad, text))
}
