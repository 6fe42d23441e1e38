//! A line for each GPU that the job was on: how busy, how full, how much power, and what went wrong.

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
/// What works for less than this share of the time is idle.
const IDLE: f64 = 0.01;
/// Clocks that are lowered for this share of the time are worth a word.
const OFTEN: f64 = 0.1;
/// So are so many bytes per second over PCIe: links of the last ten years carry 16 to 60 times that.
const MUCH_PER_SECOND: u64 = 1_000_000_000;

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

/// How busy, how full, how much power; then errors and lowered clocks.
pub fn values(group: &Group) -> String {
    let mean = |field| group.hist(field).and_then(Hist::mean);
    let mut parts = Vec::new();
    if let Some(ppm) = mean(Gpu::utilization_ratio) {
        parts.push(format!("{} busy", units::percent(ppm / 1e6)));
    }
    // A kernel of one block keeps a device busy and nearly all of it idle.
    if let Some(ppm) = mean(Gpu::sm_activity_ratio) {
        // AMD's driver tells how many of its units the work would fill.
        let what = match group.tags[3].as_str() {
            "amd" => "compute units filled",
            _ => "multiprocessors at work",
        };
        parts.push(format!("{} of its {what}", units::percent(ppm / 1e6)));
    }
    // Of a device that idles altogether this says nothing.
    let is_idle = |field| mean(field).map(|ppm| ppm / 1e6 < IDLE);
    if is_idle(Gpu::tensor_activity_ratio) == Some(true)
        && is_idle(Gpu::sm_activity_ratio) == Some(false)
    {
        parts.push("tensor units idle".into());
    }
    parts.extend(copies(group));
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
    parts.extend(troubles(group));
    if parts.is_empty() { UNKNOWN.into() } else { parts.join(", ") }
}

/// Bytes over PCIe, both ways, where they are many.
fn copies(group: &Group) -> Option<String> {
    let sent = group.number(Gpu::pcie_sent_bytes)?;
    let bytes = sent.saturating_add(group.number(Gpu::pcie_received_bytes)?);
    let held_ns = group.number(Gpu::held_ns)?;
    let is_much = u128::from(bytes) * 1_000_000_000
        >= u128::from(held_ns.max(1)) * u128::from(MUCH_PER_SECOND);
    is_much.then(|| format!("{} over PCIe", units::byte_rate(bytes, held_ns)))
}

/// Errors, and clocks that were lowered for long.
fn troubles(group: &Group) -> Vec<String> {
    let mut parts = Vec::new();
    match (group.number(Gpu::xid_errors), group.number(Gpu::xid_first)) {
        (Some(1), Some(code)) => parts.push(format!("XID error {code}")),
        (Some(more @ 2..), Some(code)) => {
            parts.push(format!("{more} XID errors (the first: {code})"));
        }
        _ => {}
    }
    if let Some(errors @ 1..) = group.number(Gpu::ecc_uncorrected_errors) {
        let errors = units::counted(errors, "memory error");
        parts.push(format!("{errors} that ECC could not correct"));
    }
    let held_ns = group.number(Gpu::held_ns).filter(|ns| *ns > 0);
    let mut lowered = Vec::new();
    for (field, why) in [
        (Gpu::throttled_power_ns, "by its power limit"),
        (Gpu::throttled_thermal_ns, "by heat"),
        (Gpu::throttled_other_ns, "by the driver"),
    ] {
        let share = group.number(field).zip(held_ns).map(|(ns, held)| ns as f64 / held as f64);
        if let Some(share) = share.filter(|share| *share >= OFTEN) {
            lowered.push(format!("{why} {} of the time", units::percent(share)));
        }
    }
    if !lowered.is_empty() {
        parts.push(format!("clocks lowered {}", lowered.join(" and ")));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    fn told(change: impl Fn(&mut Group)) -> String {
        let mut group = Group::unknown(&GPU, GPU.tags.iter().map(|_| String::new()).collect());
        group.set(Gpu::held_ns, 10 * GB);
        change(&mut group);
        values(&group)
    }

    #[test]
    fn what_is_worth_a_word_and_what_is_not() {
        let activity = |tensor, sm| {
            told(|group| {
                group.set_hist(Gpu::tensor_activity_ratio, Some(Hist::of(&[(tensor, 3)])));
                group.set_hist(Gpu::sm_activity_ratio, Some(Hist::of(&[(sm, 3)])));
            })
        };
        assert_eq!(
            activity(9_000, 500_000),
            "50 % of its multiprocessors at work, tensor units idle"
        );
        assert_eq!(activity(10_000, 500_000), "50 % of its multiprocessors at work");
        assert!(!activity(0, 9_000).contains("tensor units"), "all of it is idle");
        let copied = |sent, received| {
            told(|group| {
                group.set(Gpu::pcie_sent_bytes, sent);
                group.set(Gpu::pcie_received_bytes, received);
            })
        };
        assert_eq!(copied(4 * GB, 6 * GB), "954 MiB/s over PCIe");
        assert_eq!(copied(4 * GB, 6 * GB - 1), UNKNOWN);
        let error = |errors| {
            told(|group| {
                group.set(Gpu::xid_errors, errors);
                group.set(Gpu::xid_first, 31);
                group.set(Gpu::ecc_uncorrected_errors, errors);
            })
        };
        assert_eq!(error(0), UNKNOWN);
        assert_eq!(error(1), "XID error 31, 1 memory error that ECC could not correct");
        for (field, words) in [
            (Gpu::throttled_power_ns, "clocks lowered by its power limit 10 % of the time"),
            (Gpu::throttled_thermal_ns, "clocks lowered by heat 10 % of the time"),
            (Gpu::throttled_other_ns, "clocks lowered by the driver 10 % of the time"),
        ] {
            assert_eq!(told(|group| group.set(field, GB)), words);
            assert_eq!(told(|group| group.set(field, GB - 1)), UNKNOWN);
        }
    }
}
