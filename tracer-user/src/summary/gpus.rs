//! A line for each GPU that the job was on: how busy, how full, how much power.

use super::{
    Style,
    facts::Facts,
    line::{Line, Tone, labelled},
    reading::Finding,
    text,
    units::{self, UNKNOWN},
};
use crate::model::{group::Group, hist::Hist};

/// GPUs shown; more are counted.
const MAX_GPUS: usize = 8;
/// Columns of a GPU's number and of its model.
const MAX_INDEX: usize = 12;
const MAX_MODEL: usize = 24;
/// Fewer readings say nothing about a job.
const SEVERAL: u64 = 5;
/// A GPU that is busy for less than this part of the time is mostly waited for by nobody.
const IDLE: f64 = 0.5;
/// GPUs that are busy for this part of the time set the pace.
const FULL: f64 = 0.9;

/// Nothing for a job without GPUs.
pub fn lines(facts: &Facts, indent: usize, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let groups = || facts.totals.stats.groups("gpu");
    for (index, group) in groups().take(MAX_GPUS).enumerate() {
        let tag = |tag: usize| group.tags.get(tag).map_or("", String::as_str);
        let number = text::truncate(&text::clean(tag(0), facts.unicode), MAX_INDEX);
        let model = text::clean(tag(2), facts.unicode);
        let model = model.strip_prefix("NVIDIA ").unwrap_or(&model);
        let mut name = format!("{number} {}", text::truncate(model, MAX_MODEL));
        name.truncate(name.trim_end().len());
        let shown = format!("{name}: {}", values(group));
        let label = if index == 0 { "GPU" } else { "" };
        lines.extend(labelled(label, indent, Tone::Plain, &shown, style));
    }
    if let more @ 1.. = groups().count().saturating_sub(MAX_GPUS) {
        lines.extend(labelled("", indent, Tone::Faint, &format!("and {more} more"), style));
    }
    lines
}

/// Whether the GPUs set the pace or wait. Shared ones are left out: how busy a part of one could be, nobody
/// knows.
pub(super) fn finding(facts: &Facts) -> Option<Finding> {
    let own = |group: &&Group| group.number("readings_shared") == Some(0);
    let busy = |group: &Group| {
        let hist = group.hist("utilization_ratio").filter(|hist| hist.count() >= SEVERAL)?;
        hist.mean().map(|ppm| (ppm / 1e6).min(1.0))
    };
    let shares: Vec<f64> = facts.totals.stats.groups("gpu").filter(own).filter_map(busy).collect();
    let idle: Vec<f64> = shares.iter().copied().filter(|share| *share < IDLE).collect();
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
    if let Some(weight) = (!idle.is_empty()).then(|| 1.0 - mean(&idle)) {
        let part = units::percent(mean(&idle));
        let text = match (idle.len(), shares.len()) {
            (1, 1) => {
                format!(
                    "the GPU was busy {part} of the time: the rest of the program keeps it waiting"
                )
            }
            (some, all) => {
                format!("{some} of {all} GPUs were busy only {part} of the time on average")
            }
        };
        return Some(Finding { weight, tone: Tone::Warn, text });
    }
    let is_full = !shares.is_empty() && shares.iter().all(|share| *share >= FULL);
    is_full.then(|| {
        let part = units::percent(mean(&shares));
        let who = if shares.len() == 1 { "the GPU was" } else { "the GPUs were" };
        let text =
            format!("{who} busy {part} of the time: a faster CPU or disk would not help much");
        Finding { weight: mean(&shares), tone: Tone::Good, text }
    })
}

fn values(group: &Group) -> String {
    let mean = |name| group.hist(name).and_then(Hist::mean);
    let mut parts = Vec::new();
    if let Some(ppm) = mean("utilization_ratio") {
        parts.push(format!("{} busy", units::percent(ppm / 1e6)));
    }
    match (group.number("memory_peak_bytes"), group.number("memory_total_bytes")) {
        (Some(peak), Some(total)) => {
            parts.push(format!("{} of {}", units::bytes(peak), units::bytes(total)));
        }
        (Some(peak), None) => parts.push(format!("{} at its peak", units::bytes(peak))),
        (None, _) => {}
    }
    if let Some(milliwatts) = mean("power_watts") {
        parts.push(format!("{} average", units::watts(milliwatts / 1e3)));
    }
    if let Some(millijoules @ 1..) = group.number("energy_joules") {
        parts.push(units::joules(millijoules as f64 / 1e3));
    }
    if group.number("readings_shared").is_some_and(|shared| shared > 0) {
        parts.push("shared with others".into());
    }
    if parts.is_empty() { UNKNOWN.into() } else { parts.join(", ") }
}
