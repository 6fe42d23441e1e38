//! Rules for waiting for a CPU, by what can be done about it: a quota, tasks bound to a few CPUs, more tasks than cores,
//! other work on the node.

use super::{Facts, Finding, LEAST_NS, Rule, Saves, Tone};
use crate::{
    base::units::{cores, duration, percent},
    model::tables::{Cpu, Sched},
    view::{facts::WAITED, node_use::millicores},
};

/// Throttling behind this part of the wait for a CPU is its cause.
const QUOTA_EXPLAINS: f64 = 0.5;
/// Tasks that ran on no more than this part of the cores that they could have used are bound to them: other work takes
/// a part of each core, and tasks move to the better ones.
const BOUND: f64 = 0.6;
/// And they fill the busiest one: where other work has a part of it, that may be why.
const FULL: f64 = 0.8;
/// Tasks that never left one CPU are bound to it from fewer cores on: these are so many times the one.
const ONE_ALONE: f64 = 1.2;
/// Tasks on a CPU or waiting for one on average, in thousandths, of one task that did nothing else.
const ONE_TASK: std::ops::RangeInclusive<u64> = 850..=1_100;
/// Where all cores were full nothing is lost but what changing tasks costs: nearly any other finding is worth more.
const CROWDED_WEIGHT: f64 = 0.1;

pub(super) const CPU_QUOTA: Rule = Rule {
    id: "cpu_quota",
    least_ns: LEAST_NS,
    threshold: || {
        of_the_time(&format!(
            "its CPU quota was behind {} of that or more",
            percent(QUOTA_EXPLAINS)
        ))
    },
    source: "",
    advice: "raise the quota: the CPU limit of a container or pod, CPUQuota= of systemd",
    shown: "cpu",
    find: quota,
};

pub(super) const WAITED_FOR_CPU: Rule = Rule {
    id: "waited_for_cpu",
    least_ns: LEAST_NS,
    threshold: || of_the_time("at moments at which it had more runnable tasks than cores allowed"),
    source: "jobstats: more than 1.2 runnable tasks to a core",
    advice: "start as many threads as it has cores (OMP_NUM_THREADS, -j), or ask for more cores",
    shown: "cpu",
    find: crowded,
};

pub(super) const BOUND_TO_FEW: Rule = Rule {
    id: "bound_to_few",
    least_ns: LEAST_NS,
    threshold: || {
        of_the_time(&format!(
            "its tasks ran on {} or less of the cores that they could have used, and filled one for {}; or on one CPU \
             alone, where they could have used {ONE_ALONE} cores or more",
            percent(BOUND),
            percent(FULL)
        ))
    },
    source: "",
    advice: "look at what binds its tasks: taskset, sched_setaffinity, OMP_PROC_BIND, the binding of srun or mpirun",
    shown: "cpu",
    find: bound,
};

pub(super) const NODE_BUSY: Rule = Rule {
    id: "node_busy",
    least_ns: LEAST_NS,
    threshold: || {
        of_the_time(
            "at moments at which it did not get all cores allowed; where its tasks or cores are not known, if it was on a \
             CPU or waited for one as long as one task that does nothing else",
        )
    },
    source: "",
    advice: "run it when the node is less busy, or ask for cores that nobody else uses (Slurm: --exclusive; all of the \
             node is then charged)",
    shown: "cpu",
    find: node_busy,
};

fn of_the_time(when: &str) -> String {
    format!("waited for a CPU for {} of the time: {when}", percent(WAITED))
}

/// `waited for a CPU 56 % of the time it could have run`, of all its waiting.
fn waited(facts: &Facts) -> String {
    waited_for(facts, facts.waiting_ns.unwrap_or(0))
}

/// The same of a part of it.
fn waited_for(facts: &Facts, ns: u64) -> String {
    let (on_cpu, waiting) = (facts.on_cpu_ns.unwrap_or(0), facts.waiting_ns.unwrap_or(0));
    let share = ns as f64 / on_cpu.saturating_add(waiting).max(1) as f64;
    format!("waited for a CPU {} of the time it could have run", percent(share))
}

fn allowed(millicores: u64) -> String {
    match millicores {
        1000 => "the one core allowed".to_owned(),
        _ => format!("the {} cores allowed", cores(millicores)),
    }
}

/// Where it missed much of the core time that it could have used.
fn missed(facts: &Facts, text: String) -> Option<Finding> {
    let share = facts.share(facts.demand?.missed_ns);
    (share >= WAITED).then(|| Finding::new(share, Tone::Warn, text))
}

fn quota(facts: &Facts) -> Option<Finding> {
    let waiting_ns = facts.waiting_ns.filter(|_| facts.has_waited())?;
    let throttled_ns = facts.number(Cpu::throttled_ns)?;
    if (throttled_ns as f64) < waiting_ns as f64 * QUOTA_EXPLAINS {
        return None;
    }
    // One that was changed was not always as large.
    let held = facts.held_millicores.filter(|_| !facts.has_held_others);
    let quota = held.map_or(String::new(), |held| match held {
        1000 => " of 1 core".to_owned(),
        _ => format!(" of {} cores", cores(held)),
    });
    let text = format!(
        "{}: its CPU quota{quota} held it back for {}",
        waited(facts),
        duration(throttled_ns)
    );
    Some(Finding::new(facts.share(waiting_ns), Tone::Warn, text))
}

/// Whether it looks like one task that was runnable all the time, where nobody knows how many there were, or cores.
fn is_like_one(facts: &Facts) -> bool {
    let runnable_ns =
        facts.on_cpu_ns.zip(facts.waiting_ns).map(|(on, waiting)| on.saturating_add(waiting));
    let runnable = runnable_ns.and_then(|ns| millicores(ns, facts.counted_ns()));
    facts.demand.is_none() && runnable.is_some_and(|tasks| ONE_TASK.contains(&tasks))
}

fn crowded(facts: &Facts) -> Option<Finding> {
    if quota(facts).is_some() || bound(facts).is_some() || is_like_one(facts) {
        return None;
    }
    let Some((demand, held)) = facts.demand.zip(facts.held_millicores) else {
        let text =
            format!("{}: more runnable tasks than cores, or other work beside it", waited(facts));
        let weight = facts.share(facts.waiting_ns?);
        return facts.has_waited().then(|| Finding::new(weight, Tone::Warn, text));
    };
    let at_times = if demand.wanted_ns < facts.core_held_ns()? / 10 * 9 { "at times " } else { "" };
    let waited = waited_for(facts, demand.crowded_ns);
    let text = format!("{waited}: {at_times}more runnable tasks than {}", allowed(held));
    let share = facts.share(demand.crowded_ns);
    let finding = Finding::new(share * CROWDED_WEIGHT, Tone::Warn, text).saving(Saves::default());
    (share >= WAITED).then_some(finding)
}

fn bound(facts: &Facts) -> Option<Finding> {
    let ran_on = facts.nodes.iter().map(|node| node.ran_on_millicpus);
    let ran_on = ran_on.reduce(|all, node| Some(all?.saturating_add(node?)))??;
    let are_on_one = facts.nodes.iter().all(|node| node.is_on_one_cpu);
    // Of a course that nobody knows: on one CPU, what waited wanted another.
    let without_course = || {
        let runnable_ns = facts.on_cpu_ns?.saturating_add(facts.waiting_ns?);
        millicores(runnable_ns, facts.counted_ns()).filter(|_| are_on_one)
    };
    let wanted = match facts.demand {
        Some(_) => facts.wanted_millicores(),
        None => without_course().or(facts.wanted_millicores()),
    }? as f64;
    let held = facts.held_millicores?;
    let is_bound = if are_on_one {
        wanted >= ran_on as f64 * ONE_ALONE
    } else {
        // Of several nodes the busiest CPUs of all are added up.
        let elapsed_ns = facts.counted_ns() as f64 * facts.nodes.len() as f64;
        let is_full = facts.number(Sched::busiest_cpu_ns)? as f64 >= elapsed_ns * FULL;
        ran_on as f64 <= wanted * BOUND && is_full
    };
    if !is_bound || quota(facts).is_some() {
        return None;
    }
    let text =
        format!("{}: its tasks shared {} of {}", waited(facts), cores(ran_on), allowed(held));
    if facts.demand.is_none() {
        let weight = facts.share(facts.waiting_ns?);
        return (facts.has_waited() && held > ran_on)
            .then(|| Finding::new(weight, Tone::Warn, text));
    }
    missed(facts, text)
}

fn node_busy(facts: &Facts) -> Option<Finding> {
    if quota(facts).is_some() || bound(facts).is_some() {
        return None;
    }
    // A single task has no other that it could wait for, and without a quota nothing else holds it back.
    let is_sure =
        facts.number(Sched::forks) == Some(0) && facts.number(Cpu::throttled_ns).is_some();
    let usually = if is_sure { "" } else { "usually " };
    if is_like_one(facts) {
        let text = format!("{}, as one task alone: {usually}other work runs there", waited(facts));
        let weight = facts.share(facts.waiting_ns?);
        return facts.has_waited().then(|| Finding::new(weight, Tone::Warn, text).at_a_price());
    }
    let text = format!(
        "{} though it did not fill {}: {usually}other work runs there",
        waited_for(facts, facts.demand?.missed_ns),
        allowed(facts.held_millicores?)
    );
    // Cores of its own are paid for with all others of the node.
    missed(facts, text).map(Finding::at_a_price)
}
