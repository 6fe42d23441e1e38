//! What the job used of what it had: cores, memory, GPUs, time, disks, the network.

use super::{
    Bar,
    whole::{Whole, number},
};
use crate::{
    base::{
        text::clean,
        units::{UNKNOWN, byte_rate, bytes, long_duration, percent},
    },
    model::{
        group::Group,
        hist::Hist,
        tables::{GPU, Gpu, Memory, Sched},
    },
    record::Record,
    view::{facts::Facts, gpus, line::Tone, resources, software},
};

/// Of those that are worth it, from here on enough is used (jobstats takes 80 % for cores, 25 % for GPUs).
const CORES_DULL: f64 = 0.80;
const CORES_BAD: f64 = 0.65;
/// CPUs are even enough from here on (POP takes a balance of 80 % for acceptable).
const EVEN: f64 = 0.80;
const UNEVEN: f64 = 0.50;
const GPU_DULL: f64 = 0.25;
const GPU_BAD: f64 = 0.15;

/// Memory is read as intervals end: of a shorter job a mean says nothing.
const LEAST_FOR_A_MEAN_NS: u64 = 1_000_000_000;

/// A bar for each resource; without a share where there is no whole.
pub(super) fn bars(facts: &Facts, whole: &Whole) -> Vec<Bar> {
    let mut bars = vec![cores(facts)];
    bars.extend(balance(whole, facts.unicode));
    bars.push(memory(facts));
    for group in facts.totals.stats.groups(&GPU) {
        bars.extend(gpu(group, facts.unicode));
    }
    bars.extend(time(facts));
    bars.extend(disk(facts));
    bars.extend(network(facts));
    bars.extend(software(facts));
    bars
}

/// What it ran, where somebody watched for that.
fn software(facts: &Facts) -> Option<Bar> {
    software::in_words(facts).map(|words| bar("Software", Tone::Plain, None, words))
}

fn toned(share: Option<f64>, dull: f64, bad: f64) -> Tone {
    match share {
        Some(share) if share < bad => Tone::Bad,
        Some(share) if share < dull => Tone::Warn,
        _ => Tone::Good,
    }
}

fn bar(name: impl Into<String>, tone: Tone, share: Option<f64>, words: String) -> Bar {
    Bar { name: name.into(), tone, share, words }
}

fn cores(facts: &Facts) -> Bar {
    let both = facts.used_millicores().zip(facts.held_millicores);
    let share = both.map(|(used, held)| used as f64 / held as f64);
    bar("Cores", toned(share, CORES_DULL, CORES_BAD), share, resources::cpu(facts))
}

/// How evenly the CPUs that it used computed: their mean time by the longest, on the node where that is least. Nothing
/// of a job that used one CPU.
fn balance(whole: &Whole, unicode: bool) -> Option<Bar> {
    let of = |node: &Record| {
        let cpus = number(node, Sched::cpus_used).filter(|cpus| *cpus > 1)?;
        let busiest_ns = number(node, Sched::busiest_cpu_ns)? as f64;
        let on_cpu_ns = number(node, Sched::on_cpu_ns).filter(|ns| *ns > 0)?;
        let mean_ns = on_cpu_ns as f64 / cpus as f64;
        // What runs now is in the sum alone.
        Some((mean_ns.min(busiest_ns) / busiest_ns.max(1.0), cpus, node.hosts.first()?.clone()))
    };
    let known = whole.nodes.iter().filter_map(of);
    let (share, cpus, host) = known.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let mut words = format!("{cpus} CPUs used");
    if whole.nodes.len() > 1 {
        words += &format!(" on {}, the least even node", clean(&host, unicode));
    }
    words += &format!("; the busiest computed {:.2} times as long as their mean", 1.0 / share);
    Some(bar("  balance", toned(Some(share), EVEN, UNEVEN), Some(share), words))
}

fn memory(facts: &Facts) -> Bar {
    let needed = facts.memory_needed();
    let charged = facts.number(Memory::peak_bytes);
    let limit = facts.number(Memory::limit_bytes);
    let asked = facts.request.memory_bytes;
    // The kernel holds it to its limit, whatever was asked for.
    let whole = limit.or(asked).or(facts.request.node_memory_bytes);
    let peak = needed.map(|needed| needed.least_bytes).or(charged);
    // What was needed may have room in the lower one too.
    let is_lower = facts.was_limit_lowered() && peak > limit;
    let share = peak.zip(whole).filter(|_| !is_lower);
    let share = share.map(|(peak, whole)| peak as f64 / whole as f64);
    // What it took after the last reading, its end did not leave to read.
    let is_cut_short = facts.request.ended_for_memory;
    let mut words = match (needed, charged) {
        (Some(needed), _) => {
            let (bound, peak_bytes) = match needed.is_seen() {
                _ if is_cut_short => ("at least ", needed.least_bytes),
                true => ("", needed.most_bytes),
                false => ("up to ", needed.most_bytes),
            };
            format!("{bound}{} needed at its peak", bytes(peak_bytes))
        }
        (None, Some(charged)) => format!("{} at its peak, file cache included", bytes(charged)),
        (None, None) => UNKNOWN.to_owned(),
    };
    words += &match (limit, asked, whole) {
        (Some(limit), ..) if is_lower => {
            format!("; {} allowed at the end: its limit was lowered", bytes(limit))
        }
        (Some(limit), Some(asked), _) if asked != limit => {
            format!(" of {} allowed, {} asked", bytes(limit), bytes(asked))
        }
        (Some(limit), ..) => format!(" of {} allowed", bytes(limit)),
        (None, Some(asked), _) => format!(" of {} asked", bytes(asked)),
        (None, None, Some(node)) => format!(" of the node's {}", bytes(node)),
        (None, None, None) => ", no limit known".to_owned(),
    };
    if let Some(mean) = mean_memory(facts) {
        words += &format!("; {} on average", bytes(mean));
    }
    match (needed, charged) {
        (Some(needed), Some(charged)) if needed.is_seen() => {
            words += &format!("; with file cache {}", bytes(charged));
        }
        (Some(needed), Some(charged)) if is_cut_short && charged > needed.least_bytes => {
            words += &format!("; {} charged at most, file cache included", bytes(charged));
        }
        (Some(needed), _) if !needed.is_seen() && !is_cut_short => {
            words += &format!("; at most {} at any reading", bytes(needed.least_bytes));
        }
        _ => {}
    }
    if let Some(swap) = facts.number(Memory::swap_bytes).filter(|bytes| *bytes > 0) {
        words += &format!("; {} swapped out at the end", bytes(swap));
    }
    if facts.request.nodes > 1 {
        words += " (the fullest node)";
    }
    let is_short = share.is_some_and(|share| share >= crate::model::needed::MEMORY_IS_SHORT);
    bar("Memory", if is_short { Tone::Warn } else { Tone::Good }, share, words)
}

/// The mean over its time, of a job on one node: over several it is of no node.
fn mean_memory(facts: &Facts) -> Option<u64> {
    let ns_times_bytes = u128::from(facts.number(Memory::used_byte_s)?) * 1_000_000_000;
    let mean = ns_times_bytes.checked_div(u128::from(facts.totals.elapsed_ns))?;
    // Where nobody looked in between nothing was added up.
    let is_worth =
        mean > 0 && facts.request.nodes == 1 && facts.totals.elapsed_ns >= LEAST_FOR_A_MEAN_NS;
    is_worth.then(|| u64::try_from(mean).ok())?
}

fn gpu(group: &Group, unicode: bool) -> Vec<Bar> {
    let held_ns = group.number(Gpu::held_ns).filter(|ns| *ns > 0);
    let is_shared = group.number(Gpu::readings_shared).is_some_and(|shared| shared > 0);
    // Of one that others are on too it is the job's own share, as in the words.
    let share = match is_shared {
        true => group.hist(Gpu::utilization_ratio).and_then(Hist::mean).map(|ppm| ppm / 1e6),
        false => {
            group.number(Gpu::busy_ns).zip(held_ns).map(|(busy, held)| busy as f64 / held as f64)
        }
    };
    let name = gpus::name(group, unicode);
    let (number, model) = name.split_once(' ').unwrap_or((&name, ""));
    let values = gpus::values(group);
    let words = if model.is_empty() { values } else { format!("{model}: {values}") };
    let mut bars =
        vec![bar(format!("GPU {number}"), toned(share, GPU_DULL, GPU_BAD), share, words)];
    let both = group.number(Gpu::memory_peak_bytes).zip(group.number(Gpu::memory_total_bytes));
    if let Some((peak, total)) = both.filter(|(_, total)| *total > 0) {
        let words = format!("{} at its peak of {}", bytes(peak), bytes(total));
        bars.push(bar("  memory", Tone::Plain, Some(peak as f64 / total as f64), words));
    }
    bars
}

fn time(facts: &Facts) -> Option<Bar> {
    let (took_ns, asked_ns) = (facts.request.took_ns, facts.request.time_ns?);
    let share = took_ns as f64 / asked_ns as f64;
    let words = format!("{} of the {} asked", long_duration(took_ns), long_duration(asked_ns));
    Some(bar("Time", Tone::Plain, Some(share), words))
}

fn disk(facts: &Facts) -> Option<Bar> {
    if facts.is_unknown("block") {
        return Some(bar("Disk", Tone::Plain, None, UNKNOWN.to_owned()));
    }
    let moved = |op: &str| {
        let disks = facts.disks.iter().filter(|disk| disk.op == op);
        disks.filter_map(|disk| disk.bytes).fold(0, u64::saturating_add)
    };
    let (read, written) = (moved("read"), moved("write"));
    if facts.disks.is_empty() {
        return Some(bar("Disk", Tone::Plain, None, facts.no_disks().into()));
    }
    let rate = |bytes| byte_rate(bytes, facts.totals.elapsed_ns);
    let mut words = format!(
        "{} read ({}), {} written ({})",
        bytes(read),
        rate(read),
        bytes(written),
        rate(written)
    );
    let peak = facts.totals.peaks.disk_bytes_per_s;
    if facts.totals.intervals > 1 && peak > 0 {
        words += &format!("; {}/s at the busiest moment", bytes(peak));
    }
    Some(bar("Disk", Tone::Plain, None, words))
}

fn network(facts: &Facts) -> Option<Bar> {
    let sum = |of: fn(&crate::view::facts::Traffic) -> Option<u64>| {
        let network = facts.traffic.iter().filter(|traffic| traffic.family != "unix");
        network.filter_map(of).reduce(u64::saturating_add)
    };
    let (sent, received) = (sum(|traffic| traffic.sent)?, sum(|traffic| traffic.received)?);
    let rate = |bytes| byte_rate(bytes, facts.totals.elapsed_ns);
    let mut words = format!(
        "{} sent ({}), {} received ({})",
        bytes(sent),
        rate(sent),
        bytes(received),
        rate(received)
    );
    if let Some(again @ 1..) = sum(|traffic| traffic.retransmits) {
        let sent = crate::base::units::count(again);
        words += &format!("; {sent} TCP segments sent again");
    }
    let is_any = sent.saturating_add(received) > 0;
    is_any.then(|| bar("Network", Tone::Plain, None, words))
}

/// `62 %`, or nothing where there is no share.
pub(super) fn shown(share: Option<f64>) -> String {
    share.map_or(String::new(), percent)
}
