//! Why the job was slow, in one to three sentences: a table of rules over the facts.
//!
//! A rule says what was measured and what that usually means; it never guesses past that. Rules that
//! state facts (an out-of-memory kill) hold for any run, all others need [`LEAST_NS`] of it.

use super::{
    Style,
    facts::{DISKS_EXPLAIN, Disk, Facts, MEMORY_IS_SHORT},
    finding::Finding,
    gpu_idle,
    line::{Line, Tone, labelled},
};
use crate::{
    base::units::{at_least, bytes, cores, count, duration, percent},
    model::tables::{Cpu, Fault, Memory},
};

/// Sentences shown.
const MOST: usize = 3;
/// Starting a program takes tens of milliseconds; below this there is nothing but the start.
const LEAST_NS: u64 = 100_000_000;
/// From a fifth of the time on, blocking is worth the reader's first look.
const BLOCKED: f64 = 0.20;
/// Waits of a few percent are normal on any shared node.
const WAITED: f64 = 0.15;
/// Throttling behind this part of the wait for a CPU is its cause.
const QUOTA_EXPLAINS: f64 = 0.5;
/// Cores used from this part of those held on are full (jobstats takes the same).
const FULL: f64 = 0.85;
/// A twentieth of the time in major faults is far from a program's normal start.
const MAJOR: f64 = 0.05;
/// Minor faults that take this part of the time on CPU are worth larger pages or reused memory.
const MINOR: f64 = 0.10;
/// Half of the elapsed time with every task asleep: the job waited for something outside.
const ASLEEP: f64 = 0.50;
/// One core's worth, as jobstats and others take it: work of one thread, give or take.
const SERIAL_MILLICORES: std::ops::RangeInclusive<u64> = 850..=1050;
/// Its peak may be this: intervals are not cut to the nanosecond.
const ONE_PEAK: u64 = 1200;
/// Readings that make a peak worth the name.
const SEVERAL: u64 = 3;
/// Fewer cores used than this part of those held: most were idle.
const FEW_CORES: f64 = 0.50;
/// Time on CPU from which a job is called CPU-bound.
const CPU_BOUND: f64 = 0.80;
/// Weight of facts: they come before any share of the time.
const FACT: f64 = 10.0;

/// One rule: whether it holds for a run however short, and its sentence where it applies.
struct Rule {
    is_fact: bool,
    find: fn(&Facts) -> Option<Finding>,
}

const fn fact(find: fn(&Facts) -> Option<Finding>) -> Rule {
    Rule { is_fact: true, find }
}

const fn advice(find: fn(&Facts) -> Option<Finding>) -> Rule {
    Rule { is_fact: false, find }
}

static RULES: [Rule; 11] = [
    fact(out_of_memory),
    fact(disk_errors),
    advice(blocked),
    advice(waited),
    advice(major_faults),
    advice(minor_faults),
    advice(all_asleep),
    advice(idle_cores),
    advice(memory_short),
    advice(gpu_idle::finding),
    advice(gpu_idle::unused),
];

/// The sentences, the weightiest first.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    let elapsed_ns = facts.totals.elapsed_ns;
    let long_enough = elapsed_ns >= LEAST_NS;
    let rules = RULES.iter().filter(|rule| rule.is_fact || long_enough);
    let mut findings: Vec<_> = rules.filter_map(|rule| (rule.find)(facts)).collect();
    if !long_enough {
        let (took, least) = (duration(elapsed_ns), duration(LEAST_NS));
        let text = format!("too short to judge: {took}, where at least {least} are needed");
        findings.push(Finding { weight: 0.0, tone: Tone::Plain, text });
    } else if findings.is_empty() {
        findings.push(nothing(facts));
    }
    findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    findings.truncate(MOST);
    let mut lines = vec![Line::new().strong("In short")];
    for Finding { tone, text, .. } in findings {
        lines.extend(labelled("  • ", 4, tone, &text, style));
    }
    lines
}

fn out_of_memory(facts: &Facts) -> Option<Finding> {
    let kills = Some(facts.oom_kills()).filter(|kills| *kills > 0)?;
    let limit = facts.number(Memory::limit_bytes).zip(facts.memory_share());
    let cause = match limit {
        Some((limit, share)) if share >= MEMORY_IS_SHORT => {
            format!("; it needs more than the {} allowed", bytes(limit))
        }
        Some(_) => {
            "; its own limit was not reached, so the node may have run out of memory".to_owned()
        }
        None => String::new(),
    };
    let text = format!("out of memory: the kernel killed {} of its tasks{cause}", count(kills));
    Some(Finding { weight: FACT + 1.0, tone: Tone::Bad, text })
}

fn disk_errors(facts: &Facts) -> Option<Finding> {
    let failed = |disk: &&Disk| disk.errors.is_some_and(|errors| errors > 0);
    let worst = facts.disks.iter().filter(failed).max_by_key(|disk| disk.errors)?;
    let errors = count(worst.errors?);
    let text =
        format!("{errors} {} requests to {} failed with an I/O error", worst.op, worst.device);
    Some(Finding { weight: FACT, tone: Tone::Bad, text })
}

fn blocked(facts: &Facts) -> Option<Finding> {
    // What major faults blocked has a rule of its own.
    let blocked_ns = facts.blocked_ns?.saturating_sub(facts.major_ns.unwrap_or(0));
    let share = facts.share(blocked_ns);
    if share < BLOCKED {
        return None;
    }
    let busiest = facts.disks.iter().max_by_key(|disk| disk.busy_ns());
    let explains = |disk: &&Disk| disk.busy_ns() as f64 >= blocked_ns as f64 * DISKS_EXPLAIN;
    let cause = match busiest.filter(explains) {
        Some(disk) => on_disk(disk),
        None if facts.is_unknown("block") => "which disk, if any, is unknown here".into(),
        // What the kernel writes back for it, or makes it wait for, is in no disk's row.
        None if facts.is_unknown("write_back") => {
            "the known disk requests do not explain it: buffered writes, which cgroup v1 charges \
             to no job, a network file system, or a lock in the kernel"
                .into()
        }
        None => {
            "local disks do not explain it: a network file system, or a lock in the kernel".into()
        }
    };
    let text = format!("blocked on I/O {} of {}; {cause}", percent(share), facts.whole_name());
    Some(Finding { weight: share, tone: Tone::Bad, text })
}

fn on_disk(disk: &Disk) -> String {
    let op = match &*disk.op {
        "read" => "reads",
        "write" => "writes",
        "flush" => "flushes (fsync)",
        other => other,
    };
    let size = match (disk.bytes, disk.ops) {
        (Some(bytes_moved), Some(ops @ 1..)) if bytes_moved > 0 => {
            format!(" of {} each", bytes(bytes_moved / ops))
        }
        _ => String::new(),
    };
    let latency = disk.latency.and_then(|hist| hist.quantiles());
    let latency = latency.map_or(String::new(), |[p50, _, p99, _]| {
        format!(" usually take {}, one in a hundred {} or more", duration(p50), duration(p99))
    });
    format!("mostly {}: {op}{size}{latency}", disk.device)
}

/// Time waiting for a CPU of the time it could have run.
fn wait_share(facts: &Facts) -> Option<f64> {
    let (on_cpu, waiting) = (facts.on_cpu_ns? as f64, facts.waiting_ns? as f64);
    Some(waiting / (on_cpu + waiting).max(1.0))
}

fn waited(facts: &Facts) -> Option<Finding> {
    let waiting = facts.waiting_ns?;
    let share = wait_share(facts)?;
    if share < WAITED || facts.share(waiting) < WAITED / 2.0 {
        return None;
    }
    let throttled = facts.number(Cpu::throttled_ns).unwrap_or(0);
    let used = facts.used_millicores().zip(facts.held_millicores);
    let cause = match used {
        _ if throttled as f64 >= waiting as f64 * QUOTA_EXPLAINS => {
            format!("its CPU quota held it back for {}", duration(throttled))
        }
        Some((used, held)) if used as f64 >= held as f64 * FULL => {
            format!("more runnable tasks than {} allowed", core_count(held))
        }
        Some((_, held)) if facts.totals.peaks.millicores as f64 >= held as f64 * FULL => {
            format!("at times more runnable tasks than {} allowed", core_count(held))
        }
        Some((_, held)) => format!(
            "it did not fill {} allowed, so other work runs there or its tasks are bound to a few",
            core_count(held)
        ),
        None => "more runnable tasks than cores".to_owned(),
    };
    let text =
        format!("waited for a CPU {} of the time it could have run: {cause}", percent(share));
    Some(Finding { weight: facts.share(waiting), tone: Tone::Warn, text })
}

fn core_count(millicores: u64) -> String {
    match millicores {
        1000 => "the one core".to_owned(),
        _ => format!("the {} cores", cores(millicores)),
    }
}

fn major_faults(facts: &Facts) -> Option<Finding> {
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
    Some(Finding { weight: share, tone: Tone::Bad, text })
}

fn minor_faults(facts: &Facts) -> Option<Finding> {
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
    Some(Finding { weight: facts.share(took as u64), tone: Tone::Warn, text })
}

fn all_asleep(facts: &Facts) -> Option<Finding> {
    let share = facts.share(facts.all_asleep_ns()?);
    let text = format!(
        "every task slept for {} of the time: it waited for timers, locks, the network or other \
         programs, not for CPU or disk",
        at_least(share)
    );
    (share >= ASLEEP).then_some(Finding { weight: share, tone: Tone::Warn, text })
}

fn idle_cores(facts: &Facts) -> Option<Finding> {
    let (used, held) = (facts.used_millicores()?, facts.held_millicores.filter(|h| *h > 1000)?);
    let idle = 1.0 - used as f64 / held as f64;
    // Tasks that all wait for the one core they are bound to are not serial.
    if wait_share(facts).is_some_and(|share| share >= WAITED) {
        return None;
    }
    // One reading alone cannot tell one task from several that took turns.
    let serial = SERIAL_MILLICORES.contains(&used)
        && facts.totals.peaks.millicores <= ONE_PEAK
        && facts.totals.intervals >= SEVERAL;
    // A job that sleeps or is blocked leaves cores idle too, and that is what it is told.
    let ran = facts.share(facts.on_cpu_ns?) >= CPU_BOUND;
    let (weight, what) = match (serial, ran) {
        (true, _) => (0.9, "serial, more cores would not make it faster"),
        (false, true) if idle > FEW_CORES => (idle / 2.0, "the others were idle"),
        _ => return None,
    };
    let text = format!("{} of {} cores used: {what}", cores(used), cores(held));
    Some(Finding { weight, tone: Tone::Warn, text })
}

fn memory_short(facts: &Facts) -> Option<Finding> {
    let limit = facts.number(Memory::limit_bytes)?;
    let share = facts.memory_share()?;
    // Where that had consequences, they are told already.
    let told = facts.oom_kills() > 0 || major_faults(facts).is_some();
    let text = format!(
        "memory peaked at {} of the {} allowed, file cache included: little is left",
        percent(share),
        bytes(limit)
    );
    (share >= MEMORY_IS_SHORT && !told).then_some(Finding { weight: 0.1, tone: Tone::Warn, text })
}

fn nothing(facts: &Facts) -> Finding {
    let text = match facts.on_cpu_ns.map(|ns| facts.share(ns)) {
        None => "too little is known to judge".to_owned(),
        Some(share) if share >= CPU_BOUND => {
            format!("nothing stands out: CPU-bound, {} on CPU", percent(share))
        }
        Some(share) => format!("nothing stands out: {} on CPU", percent(share)),
    };
    Finding { weight: 0.0, tone: Tone::Good, text }
}
