//! A report for a terminal, of the summary's lines.

pub(super) mod tables;

use super::{Report, used::shown};
use crate::{
    base::{
        text::{left, right, truncate, width, wrap},
        units::long_duration,
    },
    view::{
        MAX_WIDTH, MIN_WIDTH, Style, file_ops, files, heading, io_threads, joined,
        line::{Line, Tone, labelled},
        plots::height,
        shares::bar,
        slow_ops,
    },
};

/// Columns of a bar's name, of the bar, of its percentage.
const NAME: usize = 9;
const BAR: usize = 10;
const PERCENT: usize = 6;
/// Columns of words that are worth being beside a bar.
const LEAST_WORDS: usize = 26;
/// Lines of a thing that was not seen; notes are texts from outside.
const MOST_LINES: usize = 4;
/// Columns of a track's name and, at most, of its largest value.
const TRACK: usize = 10;
const MOST: usize = 16;

/// The report, each line ended by a line feed and none wider than the style's width.
pub fn render(report: &Report, style: &Style) -> String {
    let style = Style { width: style.width.clamp(MIN_WIDTH, MAX_WIDTH), ..*style };
    joined(&blocks(report, &style), &style)
}

/// Its parts, from the top.
pub(crate) fn blocks(report: &Report, style: &Style) -> [Vec<Line>; 15] {
    [
        who(report, style),
        used(report, style),
        time(report, style),
        gpu_idle(report, style),
        course(report, style),
        file_ops::block(&report.io, style),
        files::block(&report.files, style),
        slow_ops::block(&report.slowest, style),
        io_threads::block(&report.threads, style),
        tables::devices(report, style),
        tables::nodes(report, style),
        tables::parts(report, style),
        advice(report, style),
        next(report, style),
        unseen(report, style),
    ]
}

fn who(report: &Report, style: &Style) -> Vec<Line> {
    let who = &report.who;
    let took = who.took();
    let mut lines = Vec::new();
    let title = Line::new().strong(format!("{} ", truncate(&who.name, style.width / 2)));
    lines.push(title.with(who.tone, &who.state).plain(format!(" after {took}")));
    let says = who.queue().into_iter().chain(report.scheduler_says.iter().cloned());
    for text in [who.in_words(), who.place(), who.times()].into_iter().chain(says) {
        lines.extend(wrap(&text, style.width).into_iter().map(|line| Line::new().plain(line)));
    }
    if !who.command.is_empty() {
        let command = truncate(&format!("$ {}", who.command), style.width);
        lines.push(Line::new().faint(command));
    }
    lines
}

/// A bar and its words, beside it or, where that is too narrow, below.
fn row(name: &str, tone: Tone, share: Option<f64>, words: &str, style: &Style) -> Vec<Line> {
    let indent = 2 + NAME + 1 + BAR + PERCENT + 2;
    if style.width < indent + LEAST_WORDS {
        let bar_of = left(&share.map_or(String::new(), |share| bar(share, BAR)), BAR);
        let head = Line::new().plain("  ").plain(left(name, NAME)).plain(" ").with(tone, bar_of);
        let words = wrap(words, style.width - 4);
        let below = words.iter().map(|line| Line::new().plain("    ").plain(line));
        return std::iter::once(head.plain(right(&shown(share), PERCENT))).chain(below).collect();
    }
    let shown_bar = left(&share.map_or(String::new(), |share| bar(share, BAR)), BAR);
    let head = Line::new().plain("  ").plain(left(name, NAME)).plain(" ").with(tone, shown_bar);
    let head = head.plain(right(&shown(share), PERCENT)).plain("  ");
    let words = wrap(words, style.width - indent);
    let mut lines = Vec::new();
    for (at, line) in words.iter().enumerate() {
        lines.push(match at {
            0 => head.clone().plain(line),
            _ => Line::new().plain(" ".repeat(indent)).plain(line),
        });
    }
    if words.is_empty() {
        lines.push(head);
    }
    lines
}

fn used(report: &Report, style: &Style) -> Vec<Line> {
    let mut lines = vec![Line::new().strong("Used")];
    for bar in &report.used {
        lines.extend(row(&bar.name, bar.tone, bar.share, &bar.words, style));
    }
    lines
}

fn time(report: &Report, style: &Style) -> Vec<Line> {
    let mut lines = heading("Where the time went", &report.time_of, style);
    for of in &report.time {
        lines.push(share(&of.name, of.tone, of.share, &of.words, style));
    }
    for cause in report.causes.iter().chain(&report.faults) {
        lines.extend(
            wrap(cause, style.width - 2).iter().map(|line| Line::new().plain("  ").faint(line)),
        );
    }
    lines
}

/// One line: a name, a bar as wide as there is room, a percentage and a time.
fn share(name: &str, tone: Tone, share: Option<f64>, words: &str, style: &Style) -> Line {
    let room = style.width.saturating_sub(2 + 18 + PERCENT + 14);
    let shown_bar = left(&share.map_or(String::new(), |share| bar(share, room)), room);
    let line = Line::new().plain("  ").plain(left(name, 18)).with(tone, shown_bar);
    line.plain(right(&shown(share), PERCENT)).plain(right(words, 14))
}

fn gpu_idle(report: &Report, style: &Style) -> Vec<Line> {
    if report.gpu_idle.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Line::new().strong("Why GPUs were idle")];
    for of in &report.gpu_idle {
        let label = right(&of.words, 18) + "  ";
        lines.extend(labelled(&label, 20, Tone::Plain, &of.name, style));
    }
    lines
}

fn course(report: &Report, style: &Style) -> Vec<Line> {
    let course = &report.course;
    if course.tracks.is_empty() {
        return Vec::new();
    }
    let room = style.width.saturating_sub(2 + TRACK + 1 + MOST).clamp(16, 80);
    let span = long_duration(course.end.saturating_sub(course.begin));
    let columns = course.tracks.iter().map(|track| track.values.len()).max().unwrap_or(1);
    // A short job's columns are as wide as they can be.
    let room = if columns < room { room / columns.max(1) * columns } else { room };
    let mut lines = heading("Its course", &format!("{span} from left to right"), style);
    for track in &course.tracks {
        let heights = track.resampled(room).into_iter().map(|share| share.map_or('?', plot));
        let line = Line::new().plain("  ").plain(left(track.name, TRACK));
        let line = line.with(track.tone(), heights.collect::<String>());
        lines.push(line.plain(" ").faint(truncate(&format!("max {}", track.most), MOST)));
    }
    lines
}

/// A height, with a base line: nothing is not unknown.
fn plot(share: f64) -> char {
    match height(share) {
        ' ' => '▁',
        other => other,
    }
}

fn advice(report: &Report, style: &Style) -> Vec<Line> {
    let mut lines = vec![Line::new().strong("What stands out, and what to change")];
    for of in &report.advice {
        lines.extend(labelled("  • ", 4, of.tone, &of.text, style));
        let mut what = of.advice.to_owned();
        if let Some(option) = &of.option {
            what += &format!(": {option}");
        }
        if let Some(saves) = of.saves().filter(|_| !what.is_empty()) {
            what += &format!(" ({saves})");
        }
        if !what.is_empty() {
            let lines_of = wrap(&what, style.width.saturating_sub(6).max(16));
            for (at, line) in lines_of.iter().enumerate() {
                let lead = if at == 0 { "    > " } else { "      " };
                lines.push(Line::new().plain(lead).plain(line));
            }
        }
    }
    lines
}

/// `0.31`, `12.4`, `1880`.
pub(super) fn hours_shown(hours: f64) -> String {
    match hours {
        ..10.0 => format!("{hours:.2}"),
        10.0..100.0 => format!("{hours:.1}"),
        _ => format!("{hours:.0}"),
    }
}

fn next(report: &Report, style: &Style) -> Vec<Line> {
    if report.next.is_empty() {
        return Vec::new();
    }
    let longest = report.next.iter().map(|next| width(&next.what)).max().unwrap_or(0);
    let indent = (2 + longest + 2).min(style.width / 2);
    let mut lines = vec![Line::new().strong("Next time")];
    for next in &report.next {
        lines.extend(labelled(&format!("  {}", next.what), indent, Tone::Plain, &next.why, style));
    }
    lines
}

fn unseen(report: &Report, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    for (at, text) in report.unseen.iter().enumerate() {
        let label = if at == 0 { "Not seen  " } else { "" };
        let mut of = labelled(label, 10, Tone::Faint, text, style);
        if of.len() > MOST_LINES {
            of.truncate(MOST_LINES - 1);
            of.push(Line::new().plain(" ".repeat(10)).faint("…"));
        }
        lines.extend(of);
    }
    lines
}
