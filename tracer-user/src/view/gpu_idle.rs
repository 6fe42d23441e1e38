//! Whether the GPUs set the pace or wait, and for what the job's tasks waited meanwhile.
//!
//! Shared devices are left out: how busy a part of one could be, nobody knows.

use tracer_ebpf::handle::{Handle, Number};

use super::{
    disk::Disk,
    facts::Facts,
    file_wait::{FileWait, doing},
    finding::{Finding, Saves},
    line::Tone,
    node_use::NodeUse,
    request::Ask,
};
use crate::{
    base::{text, units},
    model::{
        group::Group,
        tables::{GPU, Gpu},
    },
};

/// Fewer readings say nothing about a job.
const SEVERAL: u64 = 5;
/// A GPU that is busy for less than this part of the time is mostly waited for by nobody.
pub(super) const IDLE: f64 = 0.5;
/// GPUs that are busy for this part of the time set the pace.
pub(super) const FULL: f64 = 0.9;
/// A cause of this part of the idle time is what there is to say.
const MOSTLY: f64 = 0.6;
/// One of less than this is not worth a word.
const WORTH: f64 = 0.1;
/// Longest number of a GPU that is shown.
const MAX_INDEX: usize = 12;

/// Those that mostly wait.
pub(super) fn idle(facts: &Facts) -> Option<Finding> {
    let groups = used(facts);
    let idle: Vec<_> = groups.iter().copied().filter(|(_, busy)| *busy < IDLE).collect();
    if idle.is_empty() {
        return None;
    }
    let busy = mean(&idle);
    let text = match why(facts, &idle) {
        Some(why) => {
            format!("{} idle {}{why}", who(facts, &idle, groups.len()), units::percent(1.0 - busy))
        }
        None => without_cause(busy, idle.len(), groups.len()),
    };
    let idle_ns = idle.iter().filter_map(|(group, busy)| {
        Some((group.number(Gpu::held_ns)? as f64 * (1.0 - busy)) as u64)
    });
    let saves = Saves { core_ns: 0, gpu_ns: idle_ns.fold(0, u64::saturating_add) };
    Some(Finding::new(1.0 - busy, Tone::Warn, text).saving(saves))
}

/// All of them, where they set the pace.
pub(super) fn busy(facts: &Facts) -> Option<Finding> {
    let groups = used(facts);
    if groups.is_empty() || groups.iter().any(|(_, busy)| *busy < FULL) {
        return None;
    }
    let part = units::percent(mean(&groups));
    let who = if groups.len() == 1 { "the GPU was" } else { "the GPUs were" };
    let text = format!("{who} busy {part} of the time: a faster CPU or disk would not help much");
    Some(Finding::new(mean(&groups), Tone::Good, text))
}

/// Devices of its own that it used, each with the share of the time in which it was busy.
fn used<'a>(facts: &'a Facts) -> Vec<(&'a Group, f64)> {
    let own = |group: &&Group| group.number(Gpu::readings_shared) == Some(0) && !is_unused(group);
    let groups = facts.totals.stats.groups(&GPU).filter(own);
    groups.filter_map(|group| Some((group, share_busy(group)?))).collect()
}

fn mean(of: &[(&Group, f64)]) -> f64 {
    of.iter().map(|(_, busy)| busy).sum::<f64>() / of.len() as f64
}

/// What was held and used by nobody.
pub(super) fn unused(facts: &Facts) -> Option<Finding> {
    let groups: Vec<_> = facts.totals.stats.groups(&GPU).collect();
    let unused = groups.iter().filter(|group| is_unused(group)).count();
    let text = match (unused, groups.len()) {
        (0, _) => return None,
        (1, 1) => "none of its processes used its GPU".to_owned(),
        (1, all) => format!("none of its processes used 1 of its {all} GPUs"),
        (some, all) => format!("none of its processes used {some} of its {all} GPUs"),
    };
    let weight = unused as f64 / groups.len() as f64;
    let held_ns = groups.iter().filter(|group| is_unused(group));
    let held_ns =
        held_ns.filter_map(|group| group.number(Gpu::held_ns)).fold(0, u64::saturating_add);
    let saves = Saves { core_ns: 0, gpu_ns: held_ns };
    let most = |of: fn(&NodeUse) -> usize| facts.nodes.iter().map(of).max().unwrap_or(0) as u64;
    let (used, held) = (most(|node| node.gpus_used), most(|node| node.gpus));
    let ask = Some(Ask::Gpus(used)).filter(|_| (1..held).contains(&used));
    Some(Finding::new(weight, Tone::Warn, text).saving(saves).asking(ask))
}

/// Whether the job had it and no process of it was on it.
pub(super) fn is_unused(group: &Group) -> bool {
    group.number(Gpu::held_ns).is_some_and(|held_ns| held_ns > 0)
        && group.number(Gpu::used_ns) == Some(0)
}

/// Share of the time in which it was busy.
fn share_busy(group: &Group) -> Option<f64> {
    let hist = group.hist(Gpu::utilization_ratio).filter(|hist| hist.count() >= SEVERAL)?;
    hist.mean().map(|ppm| (ppm / 1e6).min(1.0))
}

fn who(facts: &Facts, idle: &[(&Group, f64)], all: usize) -> String {
    match (idle, all) {
        ([(one, _)], _) => {
            let index = text::clean(one.tags.first().map_or("", String::as_str), facts.unicode);
            format!("GPU {}", text::truncate(&index, MAX_INDEX))
        }
        (some, all) => format!("{} of {all} GPUs", some.len()),
    }
}

/// Where nobody looked at the tasks.
fn without_cause(busy: f64, idle: usize, all: usize) -> String {
    let part = units::percent(busy);
    match (idle, all) {
        (1, 1) => {
            format!("the GPU was busy {part} of the time: the rest of the program keeps it waiting")
        }
        (some, all) => format!("{some} of {all} GPUs were busy only {part} of the time on average"),
    }
}

/// What the tasks did while all of the job's devices were idle: shares of that time, the largest first.
pub(crate) fn causes_of_all(facts: &Facts) -> Option<(u64, Vec<(f64, String)>)> {
    let groups: Vec<&Group> = facts.totals.stats.groups(&GPU).collect();
    let idle_ns = groups.iter().filter_map(|group| group.number(Gpu::idle_ns));
    Some((idle_ns.fold(0, u64::saturating_add), causes(facts, &groups)?))
}

/// What the tasks did while the devices were idle; `None` where that is not known.
fn why(facts: &Facts, idle: &[(&Group, f64)]) -> Option<String> {
    let groups: Vec<&Group> = idle.iter().map(|(group, _)| *group).collect();
    let causes = causes(facts, &groups)?;
    let [(first, main), (second, next), ..] = &*causes else { return None };
    Some(if *first >= MOSTLY {
        format!(": mostly {main}")
    } else if *second >= WORTH {
        let (first, second) = (units::percent(*first), units::percent(*second));
        format!(": {first} of that {main}, {second} {next}")
    } else {
        format!(": {} of that {main}", units::percent(*first))
    })
}

fn causes(facts: &Facts, idle: &[&Group]) -> Option<Vec<(f64, String)>> {
    let sum = |field: Handle<Number>| -> Option<u64> {
        let numbers: Vec<u64> = idle.iter().filter_map(|of| of.number(field)).collect();
        (!numbers.is_empty())
            .then(|| numbers.iter().fold(0, |sum, number| u64::saturating_add(sum, *number)))
    };
    let blocked_ns = sum(Gpu::idle_while_blocked_ns)?;
    let whole = sum(Gpu::idle_ns).filter(|ns| *ns > 0)?;
    let network_ns = sum(Gpu::idle_while_network_ns);
    let asleep = match network_ns {
        Some(_) => "while the job's tasks slept (locks, timers) or for unknown reasons",
        None => "while the job's tasks slept (network, locks, timers)",
    };
    let on = disk(facts).unwrap_or_else(|| files(facts, blocked_ns, sum));
    let mut causes = [
        (blocked_ns, format!("while blocked on I/O{on}")),
        (sum(Gpu::idle_while_run_queue_ns)?, "while the job's tasks waited for a CPU".to_owned()),
        (sum(Gpu::idle_while_faulting_ns).unwrap_or(0), "in major page faults".to_owned()),
        (sum(Gpu::idle_while_on_cpu_ns)?, "while the job's tasks computed on CPUs".to_owned()),
        (network_ns.unwrap_or(0), "while the job's tasks waited in poll or on sockets".to_owned()),
        (sum(Gpu::idle_other_ns)?, asleep.to_owned()),
    ]
    .map(|(ns, text)| (ns as f64 / whole as f64, text));
    causes.sort_by(|a, b| b.0.total_cmp(&a.0));
    Some(causes.into())
}

/// `, reading 64.0 KiB blocks from vda`, where a disk explains the time blocked.
fn disk(facts: &Facts) -> Option<String> {
    let disk = Disk::behind(&facts.disks, facts.io_without_faults_ns())?;
    let blocks = match (disk.bytes, disk.ops) {
        (Some(moved), Some(ops @ 1..)) if moved > 0 => {
            format!(" {} blocks", units::bytes(moved / ops))
        }
        _ => String::new(),
    };
    Some(match &*disk.op {
        "read" => format!(", reading{blocks} from {}", disk.device),
        "write" => format!(", writing{blocks} to {}", disk.device),
        "flush" => format!(", flushing {}", disk.device),
        _ => format!(", on {}", disk.device),
    })
}

/// `, mostly reading on nfs (/data)`, where one kind of call has most of the time blocked.
fn files(facts: &Facts, blocked_ns: u64, sum: impl Fn(Handle<Number>) -> Option<u64>) -> String {
    let calls = [
        (Gpu::idle_while_reading_ns, "read"),
        (Gpu::idle_while_writing_ns, "write"),
        (Gpu::idle_while_syncing_ns, "sync"),
        (Gpu::idle_while_metadata_ns, "metadata"),
    ];
    let is_most = |field| sum(field).is_some_and(|ns| ns as f64 >= blocked_ns as f64 * MOSTLY);
    let Some((_, call)) = calls.into_iter().find(|(field, _)| is_most(*field)) else {
        return String::new();
    };
    let longest = facts.files.iter().find(|wait| wait.call == call);
    let place = longest.map_or(String::new(), FileWait::place);
    format!(", mostly {}{place}", doing(call))
}
