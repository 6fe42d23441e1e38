//! Rules for memory: killed for it, short of it, full of file cache, faulting.

use super::{FACT, Facts, Finding, Saves, Tone};
use crate::{
    base::units::{bytes, count, duration, percent},
    model::tables::{Fault, Memory},
    view::{facts::MEMORY_IS_SHORT, request::Ask},
};

/// A twentieth of the time in major faults is far from a program's normal start.
pub(super) const MAJOR: f64 = 0.05;
/// Minor faults that take this part of the time on CPU are worth larger pages or reused memory.
pub(super) const MINOR: f64 = 0.10;

/// Memory needed of that asked for or allowed, below which less would do.
pub(super) const NEEDED: f64 = 0.70;

/// The readings saw most of it: what else is charged is the kernel's own, for the job.
const SEEN: f64 = 0.85;

/// A job that was killed with this part of its limit had too little, whoever had the rest.
const MOSTLY_FULL: f64 = 0.75;
/// Memory that grew to this, from this part of it, is worth a look.
pub(super) const KEPT_BYTES: u64 = 256 << 20;
pub(super) const KEPT_FROM: f64 = 0.40;

pub(super) fn out_of_memory(facts: &Facts) -> Option<Finding> {
    let kills = Some(facts.oom_kills()).filter(|kills| *kills > 0)?;
    let limit = facts.number(Memory::limit_bytes).zip(facts.memory_share());
    let cause = match limit {
        Some((limit, share)) if share >= MEMORY_IS_SHORT => {
            format!("; it needs more than the {} allowed", bytes(limit))
        }
        Some((limit, share)) => format!(
            "; it had {} of the {} allowed: others on the node, or under the same limit, had the rest",
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

pub(super) fn major_faults(facts: &Facts) -> Option<Finding> {
    let share = facts.share(facts.major_ns?);
    if share < MAJOR {
        return None;
    }
    let faults = facts.number(Fault::major).map_or("".into(), |faults| count(faults) + " ");
    let full = facts.memory_share().is_some_and(|share| share >= MEMORY_IS_SHORT);
    let swapped = facts.number(Memory::swap_bytes).is_some_and(|bytes| bytes > 0);
    let cause = match (full, swapped) {
        (true, _) => "memory was full, so pages in use were dropped and read again",
        (false, true) => "it was swapped out and read back",
        (false, false) => "program text or mapped files (a cold start, or memory pressure)",
    };
    let text = format!(
        "{faults}major faults blocked it {} of {}, pages read from disk: {cause}",
        percent(share),
        facts.whole_name()
    );
    Some(Finding::new(share, Tone::Bad, text))
}

pub(super) fn minor_faults(facts: &Facts) -> Option<Finding> {
    let faults = facts.number(Fault::minor)?;
    let mean = facts.hist(Fault::minor_latency_ns)?.mean()?;
    let took = mean * faults as f64;
    if took < facts.on_cpu_ns? as f64 * MINOR || facts.share(took as u64) < MINOR / 2.0 {
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
    let used = facts.number(Memory::used_peak_bytes);
    let ask = used.and_then(|used| facts.request.memory_for(used));
    let ask = ask.filter(|ask| matches!(ask, Ask::Memory(enough) if *enough > limit));
    Some(Finding::new(0.1, Tone::Warn, text).saving(Saves::default()).asking(ask))
}

/// The kernel keeps what was read or written until somebody needs the memory: up to the limit, and gives it back there.
pub(super) fn cache_at_limit(facts: &Facts) -> Option<Finding> {
    let (limit, _) = filled(facts).filter(|_| is_cache(facts))?;
    let used = facts.number(Memory::used_peak_bytes)?;
    let text = format!(
        "file cache fills its memory up to the {} allowed, of which it needed {} itself: that alone is no reason to \
         ask for more",
        bytes(limit),
        bytes(used)
    );
    Some(Finding::new(0.05, Tone::Plain, text).saving(Saves::default()))
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
    let both = facts.number(Memory::used_peak_bytes).zip(facts.number(Memory::limit_bytes));
    both.is_some_and(|(used, limit)| (used as f64) < limit as f64 * NEEDED) && is_seen(facts)
}

/// Whether the readings saw what was charged: memory that came and went between two of them is in the kernel's peak
/// alone, and nobody knows whether it was needed.
pub(crate) fn is_seen(facts: &Facts) -> bool {
    let number = |field| facts.number(field);
    let seen = number(Memory::used_peak_bytes).zip(number(Memory::cache_peak_bytes));
    let both =
        seen.map(|(used, cached)| used.saturating_add(cached)).zip(number(Memory::peak_bytes));
    both.is_none_or(|(seen, charged)| seen as f64 >= charged as f64 * SEEN)
}
