//! Rules for memory: killed for it, short of it, full of file cache, faulting.

use super::{FACT, Facts, Finding, Saves, Tone, cache::mmap_random, programs::many_programs};
use crate::{
    base::units::{bytes, count, duration, percent},
    model::{
        needed::{MEMORY_IS_SHORT, Needed},
        tables::{Fault, Memory},
    },
    view::request::Ask,
};

/// A twentieth of the time in major faults is far from a program's normal start.
pub(super) const MAJOR: f64 = 0.05;
/// Minor faults that take this part of the time on CPU are worth larger pages or reused memory.
pub(super) const MINOR: f64 = 0.10;

/// Memory needed of that asked for or allowed, below which less would do.
pub(super) const NEEDED: f64 = 0.70;

/// A job that was killed with this part of its limit had too little: it was refused what it asked for in one piece, or
/// little was left to others.
const MOSTLY_FULL: f64 = 0.75;
/// Memory that grew to this, from this part of it, is worth a look.
pub(super) const KEPT_BYTES: u64 = 256 << 20;
pub(super) const KEPT_FROM: f64 = 0.40;

pub(super) fn out_of_memory(facts: &Facts) -> Option<Finding> {
    let kills = Some(facts.oom_kills()).filter(|kills| *kills > 0)?;
    // Where more had been charged than a lowered limit allows, it was full.
    let share = facts.memory_share().or(facts.was_limit_lowered().then_some(1.0));
    let limit = facts.number(Memory::limit_bytes).zip(share);
    let cause = match limit {
        Some((limit, share)) if share >= MEMORY_IS_SHORT => {
            format!("; it needs more than the {} allowed", bytes(limit))
        }
        // What it took after the last reading, its end did not leave to read. A cgroup below its own may have a limit too.
        Some((limit, share)) if facts.request.ended_for_memory => format!(
            "; at most {} of the {} allowed was seen: it took the rest at its end, or others on the node, or under the same \
             limit, had it, or a part of it has a lower limit",
            percent(share),
            bytes(limit)
        ),
        Some((limit, share)) => format!(
            "; it had {} of the {} allowed: others on the node, or under the same limit, had the rest, or a part of it has \
             a lower limit",
            percent(share),
            bytes(limit)
        ),
        None => String::new(),
    };
    let text = format!("out of memory: the kernel killed {} of its tasks{cause}", count(kills));
    // How much it lacks nobody knows: half as much again is a try.
    let is_near = |(_, share): &(u64, f64)| *share >= MOSTLY_FULL;
    let ask = limit
        .filter(is_near)
        .and_then(|(limit, _)| facts.request.memory_for(limit.saturating_add(limit / 4)));
    Some(Finding::new(FACT + 1.0, Tone::Bad, text).asking(ask))
}

/// Faults for which memory was short.
pub(super) fn major_faults(facts: &Facts) -> Option<Finding> {
    let full = facts.memory_share().is_some_and(|share| share >= MEMORY_IS_SHORT);
    let swapped = facts.number(Memory::swap_bytes).is_some_and(|bytes| bytes > 0);
    faulted(
        facts,
        match (full, swapped) {
            (true, _) => "memory was full, so pages in use were dropped and read again",
            (false, true) => "it was swapped out and read back",
            (false, false) => return None,
        },
    )
}

/// Faults that more memory would not spare it.
pub(super) fn mapped_files(facts: &Facts) -> Option<Finding> {
    // Of files that are mapped and used in no order a rule of its own speaks.
    let is_told = major_faults(facts).is_some() || mmap_random(facts).is_some();
    let cause = "mapped files, or programs and libraries that were not in memory yet";
    faulted(facts, cause).filter(|_| !is_told)
}

fn faulted(facts: &Facts, cause: &str) -> Option<Finding> {
    let major_ns = facts.major_ns?;
    let share = facts.judged(major_ns);
    let faults = facts.number(Fault::major).map_or("".into(), |faults| count(faults) + " ");
    let text = format!(
        "{faults}major faults blocked it {} of {}, pages read from disk: {cause}",
        percent(share),
        facts.judged_name()
    );
    (share >= MAJOR).then(|| Finding::new(facts.share(major_ns), Tone::Bad, text))
}

pub(super) fn minor_faults(facts: &Facts) -> Option<Finding> {
    let faults = facts.number(Fault::minor)?;
    let mean = facts.hist(Fault::minor_latency_ns)?.mean()?;
    let took = mean * faults as f64;
    let is_much =
        took >= facts.on_cpu_ns? as f64 * MINOR && facts.judged(took as u64) >= MINOR / 2.0;
    // Those of programs that start are told with these.
    if !is_much || many_programs(facts).is_some() {
        return None;
    }
    let text = format!(
        "memory touched for the first time: {} minor faults took about {}",
        count(faults),
        duration(took as u64)
    );
    Some(Finding::new(facts.share(took as u64), Tone::Warn, text))
}

/// What a job keeps that handles one thing after the other.
pub(super) fn memory_kept(facts: &Facts) -> Option<Finding> {
    let growth = facts.growth.filter(|growth| growth.to_bytes >= KEPT_BYTES)?;
    let is_much = growth.from_bytes as f64 <= growth.to_bytes as f64 * KEPT_FROM;
    let text = format!(
        "its memory grew all the time, from {} to {}: it keeps all that it reads or makes",
        bytes(growth.from_bytes),
        bytes(growth.to_bytes)
    );
    is_much.then(|| Finding::new(0.3, Tone::Warn, text).saving(Saves::default()))
}

pub(super) fn memory_short(facts: &Facts) -> Option<Finding> {
    let (limit, share) = filled(facts).filter(|_| !is_cache(facts))?;
    let text = format!(
        "memory peaked at {} of the {} allowed, file cache included: little is left",
        percent(share),
        bytes(limit)
    );
    let ask = memory_enough(facts).filter(|enough| *enough > limit).map(Ask::Memory);
    Some(Finding::new(0.1, Tone::Warn, text).saving(Saves::default()).asking(ask))
}

/// The kernel keeps what was read or written until somebody needs the memory: up to the limit, and gives it back there.
pub(super) fn cache_at_limit(facts: &Facts) -> Option<Finding> {
    let (limit, _) = filled(facts).filter(|_| is_cache(facts))?;
    let needed = needed_where_full(facts)?;
    let text = format!(
        "file cache fills its memory up to the {} allowed, of which it needed {} itself: that alone is no reason to \
         ask for more",
        bytes(limit),
        bytes(needed.least_bytes)
    );
    Some(Finding::new(0.05, Tone::Plain, text).saving(Saves::default()))
}

/// Memory to ask for, in bytes: of what no reading saw no more than sufficed, as it may have been file cache.
pub(crate) fn memory_enough(facts: &Facts) -> Option<u64> {
    let needed = facts.memory_needed()?;
    let Ask::Memory(enough) = facts.request.memory_for(needed.most_bytes)? else { return None };
    let sufficed = || facts.oom_kills() == 0 && major_faults(facts).is_none();
    let limit = facts.number(Memory::limit_bytes).filter(|_| !needed.is_seen() && sufficed());
    Some(limit.map_or(enough, |limit| enough.min(limit.max(needed.most_bytes))))
}

/// Whether a rule says that it had too little memory: then none says that less would do.
pub(super) fn is_short(facts: &Facts) -> bool {
    [out_of_memory, major_faults, memory_short].iter().any(|rule| rule(facts).is_some())
}

/// Its limit, and how much of it was charged, where that is nearly all; nothing where that had consequences, which are
/// told already.
fn filled(facts: &Facts) -> Option<(u64, f64)> {
    let found = facts.number(Memory::limit_bytes).zip(facts.memory_share());
    let is_told = facts.oom_kills() > 0 || major_faults(facts).is_some();
    found.filter(|(_, share)| *share >= MEMORY_IS_SHORT && !is_told)
}

/// Whether so little of the limit was needed that the rest of what was charged is file cache.
fn is_cache(facts: &Facts) -> bool {
    let both = needed_where_full(facts).zip(facts.number(Memory::limit_bytes));
    both.is_some_and(|(needed, limit)| (needed.most_bytes as f64) < limit as f64 * NEEDED)
}

/// What those nodes needed on which nearly all was charged.
fn needed_where_full(facts: &Facts) -> Option<Needed> {
    let full = facts.nodes.iter().filter(|node| node.is_full());
    full.map(|node| node.memory).collect::<Option<Vec<_>>>()?.into_iter().reduce(Needed::most)
}
