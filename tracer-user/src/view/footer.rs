//! The last lines: what the reader must know about the numbers, and what the tracing itself cost.

use tracer_ebpf::table::Unit;

use super::{
    Style,
    facts::Facts,
    line::{Line, Tone, labelled},
};
use crate::{
    base::{
        text,
        units::{self, UNKNOWN},
    },
    model::{group::Value, tables::Own},
};

/// Notes shown, and lines of each; the rest is counted.
const MAX_NOTES: usize = 8;
const MAX_NOTE_LINES: usize = 4;
/// Columns of the labels.
const INDENT: usize = 8;

/// Notes of the run, then the tracing's own line where anything is known of it.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    let notes = &facts.totals.notes;
    let mut lines = Vec::new();
    for note in notes.iter().take(MAX_NOTES) {
        let mut note =
            labelled("Note", INDENT, Tone::Plain, &text::clean(note, facts.unicode), style);
        if note.len() > MAX_NOTE_LINES {
            note.truncate(MAX_NOTE_LINES - 1);
            note.push(Line::new().plain(" ".repeat(INDENT)).faint("…"));
        }
        lines.extend(note);
    }
    if let more @ 1.. = notes.len().saturating_sub(MAX_NOTES) {
        lines.extend(labelled("", INDENT, Tone::Faint, &format!("and {more} more notes"), style));
    }
    if let Some(cost) = cost(facts) {
        lines.extend(labelled("Tracing", INDENT, Tone::Faint, &cost, style));
    }
    if let Some(lost) = lost(facts) {
        lines.extend(labelled("Lost", INDENT, Tone::Warn, &lost, style));
    }
    if let Some(missing) = missing(facts) {
        lines.extend(labelled("Hooks", INDENT, Tone::Warn, &missing, style));
    }
    lines
}

fn cost(facts: &Facts) -> Option<String> {
    let (agent, probes) = (facts.number_of_own(Own::cpu_ns), facts.number_of_own(Own::bpf_ns));
    let rss = facts.number_of_own(Own::rss_bytes);
    let memory =
        rss.zip(facts.number_of_own(Own::map_bytes)).map(|(rss, maps)| rss.saturating_add(maps));
    if agent.is_none() && probes.is_none() && memory.is_none() {
        return None;
    }
    let time = |ns: Option<u64>| ns.map_or(UNKNOWN.into(), units::duration);
    let memory = memory.map_or(UNKNOWN.into(), units::bytes);
    let (agent, probes) = (time(agent), time(probes));
    let mut out = format!("{agent} in jobtrace, {probes} in probes");
    let total = facts.number_of_own(Own::cpu_ns).zip(facts.number_of_own(Own::bpf_ns));
    if let (Some((agent, probes)), 1..) = (total, facts.totals.elapsed_ns) {
        let share = (agent as f64 + probes as f64) / facts.totals.elapsed_ns as f64;
        out += &format!(" ({} of a core)", units::fine_percent(share));
    }
    Some(format!("{out}; memory {memory}"))
}

/// What could not be counted, by cause; `None` where nothing was lost or nothing is known.
pub fn lost(facts: &Facts) -> Option<String> {
    let lost = facts.own()?.fields().filter_map(|(field, value)| {
        let Some(Value::Number(number @ 1..)) = *value else { return None };
        let cause = match field.name {
            "bpf_missed" => "probe runs".to_owned(),
            name => name.strip_prefix("dropped_")?.trim_end_matches("_bytes").replace('_', " "),
        };
        let number = match field.unit {
            Unit::Bytes => units::bytes(number),
            _ => units::count(number),
        };
        Some(format!("{cause} {number}"))
    });
    let lost: Vec<_> = lost.collect();
    (!lost.is_empty()).then(|| format!("not counted above: {}", lost.join(", ")))
}

/// Hooks that could not be attached.
pub fn missing(facts: &Facts) -> Option<String> {
    let hooks = facts.number_of_own(Own::hooks_missing).filter(|hooks| *hooks > 0)?;
    Some(format!("{hooks} not available on this node: what they count is unknown"))
}
