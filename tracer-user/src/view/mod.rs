//! What `jobtrace run` prints at the end: why the job took as long as it did, in one screen. `report` says the same
//! things by the same parts.
//!
//! Pure but for `terminal`, which looks at where the text will go. Every text from outside (names,
//! commands, devices, notes) passes `text::clean`; every line passes `Line::render`, which
//! cuts it to the width. Nothing else prints.

pub(crate) mod demand;
pub(crate) mod details;
pub(crate) mod disk;
mod dive;
pub(crate) mod facts;
pub(crate) mod file_ops;
pub(crate) mod file_wait;
pub(crate) mod files;
mod finding;
pub(crate) mod footer;
pub(crate) mod gpu_idle;
pub(crate) mod gpus;
pub(crate) mod headline;
pub(crate) mod io_threads;
mod labels;
pub(crate) mod line;
pub(crate) mod node_use;
pub(crate) mod plots;
pub(crate) mod request;
pub(crate) mod resources;
pub mod rules;
mod servers;
pub(crate) mod shares;
pub(crate) mod slow_ops;
pub(crate) mod software;
pub(crate) mod table;
mod terminal;

use crate::{base::text, model::totals::RunTotals, record::Record};
use demand::Demand;
use facts::Facts;
use line::Line;

/// Narrower terminals are treated as this wide.
pub const MIN_WIDTH: usize = 40;
/// Longer lines are hard to read, so wider terminals are not filled.
pub const MAX_WIDTH: usize = 100;

/// How the text may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; used within [`MIN_WIDTH`] and [`MAX_WIDTH`].
    pub width: usize,
    /// Whether ANSI colours are understood and wanted.
    pub color: bool,
    /// Whether more than ASCII can be shown.
    pub unicode: bool,
}

/// The summary of a run with its course, each line ended by a line feed and none wider than the style's width.
pub fn summary(record: &Record, style: &Style) -> String {
    let mut facts = Facts::new(&record.totals, style.unicode);
    facts.begin_ns = record.timeline.begin_ns();
    facts.demand = Demand::of(&record.totals, Some(&record.timeline));
    of_facts(&facts, style)
}

/// The same of a run whose course is unknown.
pub fn render(totals: &RunTotals, style: &Style) -> String {
    of_facts(&Facts::new(totals, style.unicode), style)
}

/// What file operations did while those of a running job were counted, in the same form.
pub fn of_dive(record: &Record, style: &Style) -> String {
    let mut facts = Facts::new(&record.totals, style.unicode);
    facts.begin_ns = record.timeline.begin_ns();
    let style = Style { width: style.width.clamp(MIN_WIDTH, MAX_WIDTH), ..*style };
    let blocks = [
        dive::lines(record, &facts, &style),
        with_threads(&facts, &style),
        files::lines(&facts, &style),
        slow_ops::lines(&facts, &style),
        rules::lines_of_dive(&facts, &style),
        footer::lines(&facts, &style),
    ];
    joined(&blocks, &style)
}

fn of_facts(facts: &Facts, style: &Style) -> String {
    let style = Style { width: style.width.clamp(MIN_WIDTH, MAX_WIDTH), ..*style };
    let blocks = [
        headline::lines(facts, &style),
        resources::lines(facts, &style),
        shares::lines(facts, &style),
        plots::lines(facts, &style),
        with_threads(facts, &style),
        files::lines(facts, &style),
        slow_ops::lines(facts, &style),
        rules::lines(facts, &style),
        footer::lines(facts, &style),
    ];
    joined(&blocks, &style)
}

/// Operations by mount, and the one that others wait for.
fn with_threads(facts: &Facts, style: &Style) -> Vec<Line> {
    let ops = file_ops::lines(facts, style);
    if ops.is_empty() { ops } else { [ops, io_threads::lines(facts, style)].concat() }
}

/// The text of `blocks`, with an empty line between any two.
pub(crate) fn joined(blocks: &[Vec<Line>], style: &Style) -> String {
    let mut out = String::new();
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        if !out.is_empty() {
            out.push('\n');
        }
        for line in block {
            out.push_str(&line.render(style));
            out.push('\n');
        }
    }
    out
}

/// A block's heading, with what explains it in the rest of the line, or below where that is short.
pub(crate) fn heading(title: &str, aside: &str, style: &Style) -> Vec<Line> {
    let line = Line::new().strong(title);
    if title.len() + 2 + text::width(aside) <= style.width {
        return vec![line.plain("  ").faint(aside)];
    }
    let rest = text::wrap(aside, style.width - 2);
    std::iter::once(line).chain(rest.iter().map(|l| Line::new().plain("  ").faint(l))).collect()
}
