//! Rules for disks and file systems.

use super::{FACT, Facts, Finding, Saves, Tone, calls};
use crate::{
    base::units::{count, percent},
    view::{
        disk::{Disk, usually},
        file_wait::FileWait,
    },
};

/// From a fifth of the time on, blocking is worth the reader's first look.
pub(super) const BLOCKED: f64 = 0.20;
/// Waits for one file system that are this part of the blocked time are what there is to say.
const MOSTLY: f64 = 0.5;

pub(super) fn disk_errors(facts: &Facts) -> Option<Finding> {
    let failed = |disk: &&Disk| disk.errors.is_some_and(|errors| errors > 0);
    let worst = facts.disks.iter().filter(failed).max_by_key(|disk| disk.errors)?;
    let errors = count(worst.errors?);
    let text =
        format!("{errors} {} requests to {} failed with an I/O error", worst.op, worst.device);
    Some(Finding::new(FACT, Tone::Bad, text).saving(Saves::default()))
}

/// Requests of this size gain little from being larger.
pub(super) const LARGE_BYTES: u64 = 128 << 10;

/// In small pieces, or nobody knows in which.
pub(super) fn blocked(facts: &Facts) -> Option<Finding> {
    is_in_large_pieces(facts).is_none_or(|is_large| !is_large).then(|| on_io(facts))?
}

/// In pieces that are large already.
pub(super) fn blocked_on_large(facts: &Facts) -> Option<Finding> {
    is_in_large_pieces(facts)?.then(|| on_io(facts))?
}

/// Whether the disk behind it moved large pieces; `None` where none is, or its requests are unknown.
fn is_in_large_pieces(facts: &Facts) -> Option<bool> {
    let disk = Disk::behind(&facts.disks, facts.io_without_faults_ns())?;
    Some(disk.mean_bytes()? >= LARGE_BYTES)
}

fn on_io(facts: &Facts) -> Option<Finding> {
    facts.io_ns?;
    // What major faults blocked has a rule of its own.
    let io_ns = facts.io_without_faults_ns();
    let share = facts.judged(io_ns);
    // A rule of its own says what fsync and metadata are.
    if share < BLOCKED || is_of_calls(facts, io_ns) {
        return None;
    }
    let cause = match Disk::behind(&facts.disks, io_ns) {
        Some(disk) => disk.in_words(),
        None => on_files(facts, io_ns).unwrap_or_else(|| unexplained(facts).into()),
    };
    let text = format!("blocked on I/O {} of {}; {cause}", percent(share), facts.judged_name());
    Some(Finding::new(facts.share(io_ns), Tone::Bad, text))
}

/// Whether most of it is fsync or metadata, of which other rules speak.
fn is_of_calls(facts: &Facts, io_ns: u64) -> bool {
    let share = facts.share(io_ns);
    let rules = [calls::synced, calls::metadata];
    rules.iter().filter_map(|rule| rule(facts)).any(|of| of.weight >= share * MOSTLY)
}

/// What the calls tell where no disk explains it.
fn on_files(facts: &Facts, io_ns: u64) -> Option<String> {
    let is_most = |wait: &&FileWait| wait.took.sum as f64 >= io_ns as f64 * MOSTLY;
    let wait = facts.files.iter().filter(is_most).find(|wait| wait.is_remote().is_some())?;
    let waits = match wait.call {
        "read" => "reads",
        "write" => "writes",
        "sync" => "fsync",
        "metadata" => "metadata calls",
        _ => return None,
    };
    let local = match wait.is_remote() {
        Some(true) => "",
        _ => "; local disks do not explain it",
    };
    let took = usually(Some(wait.took));
    Some(format!("mostly {waits}{}: waits{took}{local}", wait.place()))
}

fn unexplained(facts: &Facts) -> &'static str {
    if facts.is_unknown("block") {
        "which disk, if any, is unknown here"
    } else if facts.is_unknown("write_back") {
        // What the kernel writes back for it, or makes it wait for, is in no disk's row.
        "the known disk requests do not explain it: buffered writes, which cgroup v1 charges to no \
         job, a network file system, or a lock in the kernel"
    } else {
        "local disks do not explain it: a network file system, or a lock in the kernel"
    }
}
