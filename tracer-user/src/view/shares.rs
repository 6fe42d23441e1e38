//! Where the time went: one bar each for time on CPU, waiting, blocked and all asleep, and what for.
//!
//! The sleep of single tasks has no bar: a parent that waits and a pool of idle threads are asleep all
//! the time and say nothing about why the job was slow. What has one is the elapsed time that all the
//! busy time together cannot cover: then surely every task slept.

use super::{
    Style, details,
    facts::Facts,
    heading,
    line::{Line, Tone},
};
use crate::base::{
    text,
    units::{self, UNKNOWN},
};

/// Columns of the rows' names, of the percentage and of the time.
const NAME: usize = 18;
const PERCENT: usize = 6;
const TIME: usize = 14;
/// Narrower rows than this say `1.50 min` in few columns and leave the rest to the bar.
const ROOMY: usize = 56;
const SHORT_TIME: usize = 9;
/// A bar's ends by eighths of a column.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// Sleep is mentioned where it is more than this many times what the bar shows.
const MORE_SLEEP: f64 = 1.05;

/// Less than this share blocked on something else than I/O has no bar.
const OTHERWISE: f64 = 0.01;

/// What has a bar.
pub struct Row {
    /// What kind of time it is.
    pub tone: Tone,
    /// What tasks did in it.
    pub name: &'static str,
    /// How much of it there was; `None` where that is unknown.
    pub ns: Option<u64>,
}

/// What has a bar here.
pub fn rows(facts: &Facts) -> Vec<Row> {
    let all_asleep = facts.all_asleep_ns();
    let rows = [
        (Tone::Good, "on CPU", facts.on_cpu_ns, true),
        (Tone::Warn, "waiting for a CPU", facts.waiting_ns, true),
        (Tone::Bad, "blocked (I/O)", facts.io_ns, true),
        (Tone::Bad, "  in major faults", facts.major_ns, facts.major_ns != Some(0)),
        (Tone::Bad, "blocked otherwise", facts.otherwise_ns, is_blocked_otherwise(facts)),
        (Tone::Faint, "all tasks asleep", all_asleep, all_asleep.is_some_and(|ns| ns > 0)),
    ];
    let shown = rows.into_iter().filter(|(.., shown)| *shown);
    shown.map(|(tone, name, ns, _)| Row { tone, name, ns }).collect()
}

/// What the bars are shares of.
pub fn aside(facts: &Facts) -> String {
    let whole = units::long_duration(facts.whole_ns());
    let time = if facts.counted_ns() < facts.totals.elapsed_ns { "counted" } else { "elapsed" };
    if facts.busy_ns() > facts.counted_ns() {
        format!("all tasks added up: 100 % = {whole}, more than {time}")
    } else {
        format!("all tasks added up; 100 % = the {whole} {time}")
    }
}

/// The heading and the rows.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    let mut lines = heading("Where the time went", &aside(facts), style);
    let rows = rows(facts);
    lines.extend(rows.iter().map(|of| row(of.tone, of.name, of.ns, facts, style)));
    lines.extend(details::blocked(facts, style));
    let asleep = details::asleep(facts, style);
    lines.extend(asleep.unwrap_or_else(|| sleep_not_shown(facts, facts.all_asleep_ns(), style)));
    lines
}

/// Whether enough of the time was spent blocked on something that is not I/O, or not known to be.
pub fn is_blocked_otherwise(facts: &Facts) -> bool {
    facts.otherwise_ns.is_some_and(|ns| facts.share(ns) >= OTHERWISE)
}

/// How long single tasks slept, where nobody knows what for.
fn sleep_not_shown(facts: &Facts, all_asleep: Option<u64>, style: &Style) -> Vec<Line> {
    let asleep = facts.asleep_ns.filter(|asleep| {
        *asleep as f64 > all_asleep.unwrap_or(0) as f64 * MORE_SLEEP && facts.share(*asleep) > 0.01
    });
    let Some(asleep) = asleep else { return Vec::new() };
    let text = format!(
        "not shown: {} of sleep by single tasks (idle threads, waiting parents)",
        units::long_duration(asleep)
    );
    let wrapped = text::wrap(&text, style.width - 2);
    wrapped.iter().map(|line| Line::new().plain("  ").faint(line)).collect()
}

fn row(tone: Tone, name: &str, ns: Option<u64>, facts: &Facts, style: &Style) -> Line {
    let line = Line::new().plain("  ").plain(text::left(name, NAME));
    let Some(ns) = ns else {
        return line.faint(UNKNOWN);
    };
    let share = facts.share(ns);
    let (columns, show): (_, fn(u64) -> String) = match style.width {
        ROOMY.. => (TIME, units::long_duration),
        _ => (SHORT_TIME, units::duration),
    };
    let room = style.width.saturating_sub(2 + NAME + PERCENT + columns);
    let bar = text::left(&bar(share, room), room);
    let time = if ns == 0 { "none".to_owned() } else { show(ns) };
    let percent = text::right(&units::percent(share), PERCENT);
    line.with(tone, bar).plain(percent).plain(text::right(&time, columns))
}

/// A bar of `share` of `columns`; the least share above zero is still seen.
pub fn bar(share: f64, columns: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { eighths };
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars() {
        for (share, expected) in
            [(0.0, ""), (1e-9, "▏"), (0.5, "██"), (0.55, "██▎"), (1.0, "████"), (9.0, "████")]
        {
            assert_eq!(bar(share, 4), expected);
        }
    }
}
