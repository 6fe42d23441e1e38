//! The last lines: what the reader must know about the numbers, and what the tracing itself cost.

use super::{
    Style,
    facts::Facts,
    line::{Line, Tone, labelled},
    text,
    units::{self, UNKNOWN},
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
    lines
}

fn own(facts: &Facts, name: &str) -> Option<u64> {
    facts.totals.own.iter().find(|group| group.measurement.key == "self")?.number(name)
}

fn cost(facts: &Facts) -> Option<String> {
    let (agent, probes) = (own(facts, "cpu_ns"), own(facts, "bpf_ns"));
    let rss = own(facts, "rss_bytes");
    let memory = rss.zip(own(facts, "map_bytes")).map(|(rss, maps)| rss.saturating_add(maps));
    if agent.is_none() && probes.is_none() && memory.is_none() {
        return None;
    }
    let time = |ns: Option<u64>| ns.map_or(UNKNOWN.into(), units::duration);
    let memory = memory.map_or(UNKNOWN.into(), units::bytes);
    let (agent, probes) = (time(agent), time(probes));
    Some(format!("jobtrace itself used {agent} of CPU, its probes {probes}; memory {memory}"))
}

/// What could not be counted, by cause; `None` where nothing was lost or nothing is known.
fn lost(facts: &Facts) -> Option<String> {
    let group = facts.totals.own.iter().find(|group| group.measurement.key == "self")?;
    let fields = group.measurement.fields.iter().filter(|field| {
        field.name.starts_with("dropped_") || matches!(field.name, "bpf_missed" | "hooks_missing")
    });
    let lost = fields.filter_map(|field| {
        let number = group.number(field.name).filter(|number| *number > 0)?;
        Some(format!("{} {}", units::count(number), field.name.replace('_', " ")))
    });
    let lost: Vec<_> = lost.collect();
    (!lost.is_empty()).then(|| format!("{}: these numbers are a little short", lost.join(", ")))
}
