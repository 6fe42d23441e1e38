//! A line for each GPU that the job was on: how busy, how full, how much power.

use super::{
    Style,
    facts::Facts,
    gpu_idle::is_unused,
    line::{Line, Tone, labelled},
};
use crate::{
    base::{
        text,
        units::{self, UNKNOWN},
    },
    model::{
        group::Group,
        hist::Hist,
        tables::{GPU, Gpu},
    },
};

/// GPUs shown; more are counted.
const MAX_GPUS: usize = 8;
/// Columns of a GPU's number and of its model.
const MAX_INDEX: usize = 12;
const MAX_MODEL: usize = 24;

/// Nothing for a job without GPUs.
pub fn lines(facts: &Facts, indent: usize, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let groups = || facts.totals.stats.groups(&GPU);
    for (index, group) in groups().take(MAX_GPUS).enumerate() {
        let shown = format!("{}: {}", name(group, facts.unicode), values(group));
        let label = if index == 0 { "GPU" } else { "" };
        lines.extend(labelled(label, indent, Tone::Plain, &shown, style));
    }
    if let more @ 1.. = groups().count().saturating_sub(MAX_GPUS) {
        lines.extend(labelled("", indent, Tone::Faint, &format!("and {more} more"), style));
    }
    lines
}

/// Its number and model, made harmless.
pub fn name(group: &Group, unicode: bool) -> String {
    let tag = |tag: usize| group.tags.get(tag).map_or("", String::as_str);
    let number = text::truncate(&text::clean(tag(0), unicode), MAX_INDEX);
    let model = text::clean(tag(2), unicode);
    let model = model.strip_prefix("NVIDIA ").unwrap_or(&model);
    let name = format!("{number} {}", text::truncate(model, MAX_MODEL));
    name.trim_end().to_owned()
}

/// How busy, how full, how much power.
pub fn values(group: &Group) -> String {
    let mean = |field| group.hist(field).and_then(Hist::mean);
    let mut parts = Vec::new();
    if let Some(ppm) = mean(Gpu::utilization_ratio) {
        parts.push(format!("{} busy", units::percent(ppm / 1e6)));
    }
    // A kernel of one block keeps a device busy and nearly all of it idle.
    if let Some(ppm) = mean(Gpu::sm_activity_ratio) {
        parts.push(format!("{} of its multiprocessors at work", units::percent(ppm / 1e6)));
    }
    match (group.number(Gpu::memory_peak_bytes), group.number(Gpu::memory_total_bytes)) {
        (Some(peak), Some(total)) => {
            parts.push(format!("{} of {}", units::bytes(peak), units::bytes(total)));
        }
        (Some(peak), None) => parts.push(format!("{} at its peak", units::bytes(peak))),
        (None, _) => {}
    }
    if let Some(milliwatts) = mean(Gpu::power_watts) {
        parts.push(format!("{} average", units::watts(milliwatts / 1e3)));
    }
    if let Some(millijoules @ 1..) = group.number(Gpu::energy_joules) {
        parts.push(units::joules(millijoules as f64 / 1e3));
    }
    if is_unused(group) {
        parts.push("allocated, used by none of its processes".into());
    }
    if group.number(Gpu::readings_shared).is_some_and(|shared| shared > 0) {
        parts.push("shared with others".into());
    }
    if parts.is_empty() { UNKNOWN.into() } else { parts.join(", ") }
}
