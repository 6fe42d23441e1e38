//! A report in ten lines at most, for the end of a job's own log: what it used, what to change first, where the rest is.

use super::Report;
use crate::{
    base::{
        text::{clean, wrap},
        units::percent,
    },
    view::{MAX_WIDTH, MIN_WIDTH, Style, joined, line::Line},
};

/// Findings, and lines of each.
const FINDINGS: usize = 2;
const LINES_EACH: usize = 2;
/// Resources: with a title, two findings and where the rest is, that makes ten lines.
const RESOURCES: usize = 4;

/// The lines, each ended by a line feed and none but the last wider than the style's width. `all` are the arguments of the
/// command that tells the rest, as a shell takes them.
pub fn short(report: &Report, all: &str, style: &Style) -> String {
    let style = Style { width: style.width.clamp(MIN_WIDTH, MAX_WIDTH), ..*style };
    let who = &report.who;
    // A job's epilog is part of the job.
    let state = if who.has_ended { &who.state } else { "so far," };
    let took = who.took();
    let title = Line::new().strong("jobtrace: ").plain(&who.name).plain(" ");
    let mut lines = vec![title.with(who.tone, state).plain(format!(" after {took}"))];
    // What has a share of something; disks and networks have none. A GPU's memory is its own.
    let worth = report.used.iter().filter(|bar| bar.share.is_some() && !bar.name.starts_with(' '));
    for bar in worth.take(RESOURCES) {
        let share = bar.share.map_or(String::new(), percent);
        let line = Line::new().plain(format!("  {} ", bar.name)).with(bar.tone, share);
        lines.push(line.plain(format!(": {}", bar.words)));
    }
    for of in report.advice.iter().take(FINDINGS) {
        let option = of.option.iter().map(|option| format!(": {option}"));
        let text = of.text.clone() + &option.collect::<String>();
        let mut wrapped = wrap(&text, style.width - 4);
        // The last line is cut to the width.
        let rest = wrapped.split_off(wrapped.len().min(LINES_EACH - 1)).join(" ");
        wrapped.extend(Some(rest).filter(|rest| !rest.is_empty()));
        for (at, line) in wrapped.iter().enumerate() {
            let lead = if at == 0 { "  • " } else { "    " };
            lines.push(Line::new().plain(lead).with(of.tone, line));
        }
    }
    // To be copied, so it is never cut.
    let rest =
        Line::new().faint(format!("  all of it: jobtrace report {}", clean(all, style.unicode)));
    joined(&[lines], &style) + &rest.render(&Style { width: usize::MAX, ..style }) + "\n"
}
