//! Rules for tasks that use files at the same time, which a run has where it was asked for its operations on files
//! (`run --io`): one that others wait for, and several that wait for each other.

use super::{
    DIVE, Facts, Finding, LEAST_NS, Rule, Tone,
    by_file::Costly,
    files::{ASKED, All, SMALL_TIME, in_a_dive},
};
use crate::{
    base::units::{bytes, count, duration, percent},
    model::files::{FileCounts, FileUse},
    view::io_threads::{UNEVEN, UNEVEN_COST, Uneven},
};

/// Who moves more than the others by this part of its bytes has more to do.
const MORE_BYTES: f64 = 0.30;
/// Writes that take so many times as long as those of one thread alone wait for the others'.
const TIMES: u64 = 3;
/// Fewer writes of either kind are no habit.
const WRITES: u64 = 100;

pub(super) const UNEVEN_IO: Rule = Rule {
    id: "uneven_io",
    least_ns: LEAST_NS,
    threshold: || {
        format!(
            "{ASKED}: of the program that spends most on files, one process (or one thread, if it has one process) \
             takes longer than the others like it on average, by {} of its time and {} of the run; where all move as \
             much, by waiting, and not for a CPU",
            percent(UNEVEN),
            percent(UNEVEN_COST)
        )
    },
    source: "Drishti: 15 % of its time; 30 % more bytes are told as the cause",
    advice: "if it moves more, divide files by their bytes and not by their number, and let all take part: each rank its \
             own part of the file (C: pread, pwrite), collective calls of MPI-IO and HDF5 (H5FD_MPIO_COLLECTIVE), a \
             shard for each loader process (Python); if all move as much, look what it waits for: a file that others \
             write to or lock, a slower disk or server (Lustre: lfs getstripe)",
    shown: DIVE,
    find: uneven_io,
};

pub(super) const SHARED_WRITES: Rule = Rule {
    id: "shared_writes",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "{} of the time in I/O is what writes to files that several threads of a node write to between two readings \
             take longer than those that one thread makes alone, on the same mount and at least as large: {TIMES} times \
             as long or more, {} of each kind or more",
            percent(SMALL_TIME),
            count(WRITES)
        ))
    },
    source: "",
    advice: "give each its own file and join them afterwards, or let one write for all (Python: one writer fed by a \
             queue; C: larger pieces, gathered; MPI-IO and HDF5: collective calls with few aggregators, cb_nodes); on \
             Lustre stripe the file (lfs setstripe)",
    shown: DIVE,
    find: shared_writes,
};

/// Why it takes longer, as far as that is known: by what it moves, or what it waits.
fn cause(uneven: &Uneven) -> String {
    let (most, mean) = (uneven.most.bytes(), uneven.mean.bytes());
    if uneven.moves_as_much() {
        let waited = [&uneven.most, &uneven.mean].map(|of| duration(of.waited_ns));
        return format!(
            "; they move as much, but it waits {} of it, they {}",
            waited[0], waited[1]
        );
    }
    let has_more = most.saturating_sub(mean) as f64 >= MORE_BYTES * most as f64;
    match (most.max(mean), has_more) {
        (0, _) => String::new(),
        (_, true) => format!("; it moves {}, they {}", bytes(most), bytes(mean)),
        (_, false) => format!("; though it moves {}, they {}", bytes(most), bytes(mean)),
    }
}

fn uneven_io(facts: &Facts) -> Option<Finding> {
    let uneven = Uneven::of(facts)?;
    let text = format!("{}{}", uneven.in_words(), cause(&uneven));
    let weight = uneven.beyond_ns() as f64 / facts.totals.elapsed_ns.max(1) as f64;
    Some(Finding::new(weight, Tone::Bad, text))
}

/// Nanoseconds that a write to `file` takes: to which several write, and that one alone makes, where both are known and
/// the first ones take so much longer.
fn slowed(facts: &Facts, file: &FileUse) -> Option<[u64; 2]> {
    let shared = &file.counts;
    let enough = |writes: u64| Some(writes).filter(|writes| *writes >= WRITES);
    let shared_writes = enough(shared.shared_writes)?;
    // A write takes no less than a smaller one.
    let is_as_large = |alone: &FileCounts| {
        u128::from(alone.written_bytes) * u128::from(shared_writes)
            >= u128::from(shared.shared_written_bytes) * u128::from(alone.writes)
    };
    let of_mount = facts.totals.files.files.iter();
    let of_mount = of_mount.filter(|other| (&other.fs, &other.mount) == (&file.fs, &file.mount));
    let mut all = FileCounts::default();
    of_mount.map(|other| alone(&other.counts)).filter(is_as_large).for_each(|of| all.add(&of));
    let shared_ns = shared.shared_write_ns / shared_writes;
    let alone_ns = all.write_ns / enough(all.writes)?;
    (shared_ns >= alone_ns.saturating_mul(TIMES)).then_some([shared_ns, alone_ns])
}

/// Writes while nobody else wrote to the file.
fn alone(counts: &FileCounts) -> FileCounts {
    FileCounts {
        writes: counts.writes.saturating_sub(counts.shared_writes),
        written_bytes: counts.written_bytes.saturating_sub(counts.shared_written_bytes),
        write_ns: counts.write_ns.saturating_sub(counts.shared_write_ns),
        ..FileCounts::default()
    }
}

fn shared_writes(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    let costly = Costly::of(facts, |file| {
        let [shared_ns, alone_ns] = slowed(facts, file)?;
        Some(file.counts.shared_writes.saturating_mul(shared_ns - alone_ns))
    })?;
    let [shared_ns, alone_ns] = slowed(facts, costly.worst)?;
    (all.of_io(costly.cost_ns) >= SMALL_TIME).then(|| {
        let text = format!(
            "{} goes into waiting where several threads write at once to {}: a write takes {}, by one thread alone {}",
            all.cost(costly.cost_ns),
            costly.names(facts),
            duration(shared_ns),
            duration(alone_ns)
        );
        Finding::new(all.share(costly.cost_ns), Tone::Bad, text)
    })
}
