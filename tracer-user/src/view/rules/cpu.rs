//! The rule for cores left idle.

use super::{CPU_BOUND, Facts, Finding, LEAST_NS, Rule, Saves, Tone, asleep};
use crate::{
    base::units::{cores, percent},
    view::{demand::SEVERAL, request::Ask},
};

/// One core's worth, as jobstats and others take it: work of one thread, give or take.
const SERIAL_MILLICORES: std::ops::RangeInclusive<u64> = 850..=1050;
/// Its peak may be this: intervals are not cut to the nanosecond.
const ONE_PEAK: u64 = 1200;
/// What one core is enough for: a tenth of a core is no core.
const ONE_CORE: u64 = 1100;
/// Fewer cores used than this part of those held: most were idle.
pub(super) const FEW_CORES: f64 = 0.50;
/// Cores that are idle because what would use them waits for something are not all too many: so many times what was
/// used are left.
const ROOM: f64 = 1.2;

pub(super) const IDLE_CORES: Rule = Rule {
    id: "idle_cores",
    least_ns: LEAST_NS,
    threshold: || {
        format!(
            "it could have used one core's worth of several, or less than {} of them (of `run`, whose cores nobody \
             allocated, only if it was on a CPU for {} of the time)",
            percent(FEW_CORES),
            percent(CPU_BOUND)
        )
    },
    source: "jobstats: CPU use of 0.85 to 1.01 cores is serial",
    advice: "ask for as many cores as it uses, or divide its work among those that it has",
    shown: "cpu",
    find: idle_cores,
};

fn idle_cores(facts: &Facts) -> Option<Finding> {
    if facts.is_hardly_counted() {
        return None;
    }
    let (used, held) = (facts.used_millicores()?, facts.held_millicores.filter(|h| *h > 1000)?);
    // Those that it could have used are not idle for want of work.
    let wanted = facts.wanted_millicores()?;
    let idle = 1.0 - wanted as f64 / held as f64;
    if asleep::explains_idle_cores(facts) {
        return None;
    }
    let is_waited_for = asleep::fills(facts, held.saturating_sub(wanted));
    // One reading alone cannot tell one task from several that took turns.
    let (busiest, has_course) = (facts.busiest_millicores(), facts.totals.intervals >= SEVERAL);
    let is_one = SERIAL_MILLICORES.contains(&wanted) && busiest <= ONE_PEAK && has_course;
    let serial = is_one && !is_waited_for && !facts.has_waited();
    // Cores that nobody allocated others can use.
    let is_allocated = !matches!(&*facts.request.manager, "" | "run");
    let is_computing = facts.share(facts.on_cpu_ns?) >= CPU_BOUND;
    // What else such a job did says why.
    let weight = if is_computing { idle / 2.0 } else { idle / 10.0 };
    let tasks = facts.request.tasks_per_node();
    let enough = match (serial, is_waited_for) {
        (true, _) => 1,
        (false, true) => enough_cores(facts, tasks, ROOM),
        (false, false) => enough_cores(facts, tasks, 1.0),
    };
    let (weight, what) = match (serial, is_waited_for) {
        (true, _) => (0.9, ": serial as it is, so more cores do not make it faster"),
        _ if idle <= FEW_CORES || !is_allocated && !is_computing => return None,
        (false, true) => (weight, ": tasks that could use the rest were blocked or asleep"),
        _ if has_course && enough == 1 && busiest <= ONE_CORE => (weight, ": one would do"),
        _ => (weight, ": the rest was idle"),
    };
    let text = format!("{} of {} cores used{what}", cores(used), cores(held));
    let all = enough.saturating_mul(tasks).saturating_mul(facts.nodes.len() as u64);
    // What it uses when nothing keeps it from its cores is unknown where something did.
    let is_fewer = all.saturating_mul(1_000) < held && !facts.has_waited();
    let ask = Some(Ask::Cores(enough)).filter(|_| is_fewer);
    let held_ns = facts.core_held_ns()?;
    let kept_ns = match ask {
        Some(_) => (held_ns as f64 * (all * 1_000) as f64 / held as f64) as u64,
        None => (held_ns as f64 * (1.0 - idle)) as u64,
    };
    let saves = match is_allocated {
        true => Saves { core_ns: held_ns.saturating_sub(kept_ns), gpu_ns: 0 },
        false => Saves::default(),
    };
    Some(Finding::new(weight, Tone::Warn, text).saving(saves).asking(ask))
}

/// Cores for each of `tasks` on a node: `room` times what the fullest node used at its busiest moment.
fn enough_cores(facts: &Facts, tasks: u64, room: f64) -> u64 {
    let fullest = facts.nodes.iter().map(|node| node.busiest_of_task(tasks)).max().unwrap_or(0);
    let millicores = (fullest as f64 * room) as u64;
    millicores.saturating_sub(ONE_CORE - 1_000).div_ceil(1_000).max(1)
}
