//! Rules for what was asked of the scheduler and what only several nodes show: they speak of records alone.

use super::{
    FACT, Facts, Finding, REQUEST_NS, Saves, Tone,
    memory::{NEEDED, is_short, memory_enough},
};
use crate::{
    base::units::{bytes, long_duration, percent},
    model::{
        end_reason::EndReason,
        tables::{GPU, Gpu},
    },
    view::request::Ask,
};

/// Time taken of that asked for, up to which less would do.
pub(super) const TIME: f64 = 0.60;
/// What the busiest part did beyond the mean, as a share of its own time.
pub(super) const IMBALANCE: f64 = 0.10;
/// A GPU that is busy for no more than this part of the time.
pub(super) const SMALL_GPU: f64 = 0.15;
/// Most that a job has which a part of a GPU would do for.
const SMALL_MEMORY_BYTES: u64 = 32 << 30;
const SMALL_GPU_MEMORY_BYTES: u64 = 10 << 30;
/// Below this there is no memory worth giving back.
const LITTLE_BYTES: u64 = 1 << 30;

pub(super) fn time_limit(facts: &Facts) -> Option<Finding> {
    let request = &facts.request;
    if request.end_reason != EndReason::TimeLimit.word() {
        return None;
    }
    let asked_ns = request.time_ns;
    let limit = asked_ns.map_or(String::new(), |ns| format!(" of {}", long_duration(ns)));
    let text = format!("it ended at its time limit{limit}: what was not yet written is lost");
    // How much it lacks nobody knows: half as much again is a try.
    let ask = asked_ns.map(|ns| Ask::time_for(ns.saturating_add(ns / 4)));
    Some(Finding::new(FACT, Tone::Bad, text).asking(ask))
}

pub(super) fn memory_unused(facts: &Facts) -> Option<Finding> {
    let request = &facts.request;
    let needed = facts.memory_needed()?;
    let (name, aside) = match needed.is_seen() {
        true => ("needed", "file cache not included"),
        false => ("was charged at most", "file cache included"),
    };
    let used = needed.most_bytes;
    let asked = request.memory_bytes.filter(|asked| *asked > LITTLE_BYTES)?;
    let share = used as f64 / asked as f64;
    let enough = memory_enough(facts)?;
    let is_much = share < NEEDED && enough < asked;
    if !is_much || !request.ended_itself || is_short(facts) {
        return None;
    }
    // Memory that nobody could use is a part of the node.
    let part = request.node_memory_bytes.map_or(0.0, |node| (asked - enough) as f64 / node as f64);
    let cores = request.node_cores.unwrap_or(0) as f64;
    let core_ns = part * cores * facts.totals.elapsed_ns as f64 * request.nodes.max(1) as f64;
    let text = format!(
        "it {name} {} of the {} of memory asked ({}), {aside}",
        bytes(used),
        bytes(asked),
        percent(share)
    );
    let saves = Saves { core_ns: core_ns as u64, gpu_ns: 0 };
    Some(
        Finding::new((1.0 - share) / 10.0, Tone::Warn, text)
            .saving(saves)
            .asking(Some(Ask::Memory(enough))),
    )
}

pub(super) fn time_unused(facts: &Facts) -> Option<Finding> {
    let request = &facts.request;
    let (took_ns, asked_ns) = (request.took_ns, request.time_ns?);
    let share = took_ns as f64 / asked_ns as f64;
    let ask = Ask::time_for(took_ns);
    let Ask::Time(enough_ns) = ask else { return None };
    if share > TIME || enough_ns >= asked_ns || !request.ended_itself {
        return None;
    }
    let text = format!(
        "it took {} of the {} asked ({})",
        long_duration(took_ns),
        long_duration(asked_ns),
        percent(share)
    );
    let finding = Finding::new((1.0 - share) / 20.0, Tone::Warn, text);
    Some(finding.saving(Saves::default()).asking(ask))
}

pub(super) fn imbalance(facts: &Facts) -> Option<Finding> {
    let balance = facts.balance.as_ref()?;
    let beyond = balance.beyond();
    if beyond <= IMBALANCE || balance.most_ns < REQUEST_NS / 10 {
        return None;
    }
    let text = format!(
        "{} {} computed {:.2} times as long as the mean of its {} {}s: the others wait for it",
        balance.what,
        balance.busiest,
        balance.most_ns as f64 / balance.mean_ns.max(1) as f64,
        balance.parts,
        balance.what
    );
    Some(Finding::new(beyond, Tone::Warn, text))
}

pub(super) fn gpu_too_large(facts: &Facts) -> Option<Finding> {
    let mut gpus = facts.totals.stats.groups(&GPU);
    let (gpu, None) = (gpus.next()?, gpus.next()) else { return None };
    let held_ns = gpu.number(Gpu::held_ns).filter(|ns| *ns > 0)?;
    let busy = gpu.number(Gpu::busy_ns)? as f64 / held_ns as f64;
    let memory_bytes = gpu.number(Gpu::memory_peak_bytes)?;
    let is_small = busy > 0.0
        && busy <= SMALL_GPU
        && memory_bytes < SMALL_GPU_MEMORY_BYTES
        && facts.memory_needed()?.most_bytes < SMALL_MEMORY_BYTES
        && facts.used_millicores()? <= 1_000
        && gpu.number(Gpu::readings_shared) == Some(0);
    let text = format!(
        "the GPU was busy {} of the time with {} of its memory: a part of one would do",
        percent(busy),
        bytes(memory_bytes)
    );
    let saves = Saves { core_ns: 0, gpu_ns: (held_ns as f64 * (1.0 - busy)) as u64 };
    is_small.then(|| Finding::new(0.5, Tone::Warn, text).saving(saves))
}
