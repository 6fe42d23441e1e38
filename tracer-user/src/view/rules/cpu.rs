//! Rules for CPUs: waited for, or left idle.

use super::{CPU_BOUND, Facts, Finding, Saves, Tone, asleep::explains_idle_cores};
use crate::{
    base::units::{cores, duration, percent},
    model::tables::Cpu,
    view::{node_use::NodeUse, request::Ask},
};

/// Waits of a few percent are normal on any shared node.
pub(super) const WAITED: f64 = 0.15;
/// Throttling behind this part of the wait for a CPU is its cause.
const QUOTA_EXPLAINS: f64 = 0.5;
/// Cores used from this part of those held on are full (jobstats takes the same).
const FULL: f64 = 0.85;
/// One core's worth, as jobstats and others take it: work of one thread, give or take.
const SERIAL_MILLICORES: std::ops::RangeInclusive<u64> = 850..=1050;
/// Its peak may be this: intervals are not cut to the nanosecond.
const ONE_PEAK: u64 = 1200;
/// Readings that make a peak worth the name.
const SEVERAL: u64 = 3;
/// Fewer cores used than this part of those held: most were idle.
pub(super) const FEW_CORES: f64 = 0.50;

/// Time waiting for a CPU of the time it could have run.
fn wait_share(facts: &Facts) -> Option<f64> {
    let (on_cpu, waiting) = (facts.on_cpu_ns? as f64, facts.waiting_ns? as f64);
    Some(waiting / (on_cpu + waiting).max(1.0))
}

pub(super) fn waited(facts: &Facts) -> Option<Finding> {
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
    Some(Finding::new(facts.share(waiting), Tone::Warn, text))
}

fn core_count(millicores: u64) -> String {
    match millicores {
        1000 => "the one core".to_owned(),
        _ => format!("the {} cores", cores(millicores)),
    }
}

pub(super) fn idle_cores(facts: &Facts) -> Option<Finding> {
    let (used, held) = (facts.used_millicores()?, facts.held_millicores.filter(|h| *h > 1000)?);
    let idle = 1.0 - used as f64 / held as f64;
    // Tasks that all wait for the one core they are bound to are not serial.
    let all_wait = wait_share(facts).is_some_and(|share| share >= WAITED);
    if all_wait || explains_idle_cores(facts) {
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
    let tasks = facts.request.tasks_per_node();
    let enough = if serial { 1 } else { enough_cores(facts, tasks) };
    let all = enough.saturating_mul(tasks).saturating_mul(facts.nodes.len() as u64);
    let ask = Some(Ask::Cores(enough)).filter(|_| all.saturating_mul(1_000) < held);
    let saves =
        Saves { core_ns: facts.core_held_ns()?.saturating_sub(facts.on_cpu_ns?), gpu_ns: 0 };
    Some(Finding::new(weight, Tone::Warn, text).saving(saves).asking(ask))
}

/// Cores for each of `tasks` on a node: what the fullest node used at its busiest moment; a fifth of a core is no core.
fn enough_cores(facts: &Facts, tasks: u64) -> u64 {
    let of_node =
        |node: &NodeUse| (node.busiest_millicores / tasks).max(node.busiest_task_millicores);
    let fullest = facts.nodes.iter().map(of_node).max().unwrap_or(0);
    (fullest.saturating_add(800) / 1_000).max(1)
}
