//! The histograms that matter, one row each over one common time axis: a plot of counts, the
//! percentiles and the longest. A row without enough values or without a noticeable share is left out.

use std::cmp::Reverse;

use tracer_ebpf::loglinear::{UNIT_BITS, bucket_low};

use super::{
    Style,
    facts::Facts,
    heading,
    line::{Line, Tone},
    shares::is_blocked_otherwise,
};
use crate::{
    base::{text, units},
    model::{
        hist::Hist,
        tables::{Fault, Sched},
    },
};

/// Fewer values have no shape worth a plot.
const MIN_VALUES: u64 = 20;
/// Less than this share of the time does not make a job slow.
const MIN_SHARE: f64 = 0.01;
/// Rows shown; those with the largest sums win.
const MAX_ROWS: usize = 9;
/// Columns of the rows' names, and of each number.
const NAME: usize = 18;
const NUMBER: usize = 9;
const NUMBERS: [&str; 4] = ["p50", "p90", "p99", "max"];
/// Below this the plot and the numbers stand in two lines.
const ONE_LINE: usize = 72;
/// Heights by eighths; nothing for no values at all.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

struct Row<'a> {
    name: String,
    hist: &'a Hist,
    /// What one counted value stands for, where only a sample was timed.
    every: u64,
    tone: Tone,
}

impl Row<'_> {
    fn total_ns(&self) -> u64 {
        self.hist.sum.saturating_mul(self.every)
    }
}

/// The heading, the rows and the axis; nothing where no histogram matters.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    let mut rows = rows(facts);
    let matters =
        |row: &Row| row.hist.count() >= MIN_VALUES && facts.share(row.total_ns()) >= MIN_SHARE;
    rows.retain(matters);
    let mut by_total: Vec<u64> = rows.iter().map(Row::total_ns).collect();
    by_total.sort_by_key(|total| Reverse(*total));
    let least = by_total.get(MAX_ROWS - 1).copied().unwrap_or(0);
    rows.retain(|row| row.total_ns() >= least);
    rows.truncate(MAX_ROWS);
    let octaves = || rows.iter().flat_map(|row| row.hist.buckets().map(|(index, _)| octave(index)));
    let (Some(low), Some(high)) = (octaves().min(), octaves().max()) else {
        return Vec::new();
    };
    let one_line = style.width >= ONE_LINE;
    let numbers = NUMBER * NUMBERS.len();
    let room = style.width - 2 - NAME - 1 - if one_line { numbers } else { 0 };
    let axis = Axis::new(low, high, room);
    let names: String = NUMBERS.iter().map(|name| text::right(name, NUMBER)).collect();
    let mut lines = head(&names, one_line, style);
    for row in &rows {
        let name = Line::new().plain("  ").plain(text::left(&row.name, NAME)).plain(" ");
        let plot = name.with(row.tone, text::left(&axis.plot(row.hist), room));
        if one_line {
            lines.push(plot.plain(values(row.hist)));
        } else {
            lines.extend([plot, Line::new().plain(" ").plain(values(row.hist))]);
        }
    }
    lines.extend(axis.lines(style));
    lines
}

fn head(names: &str, one_line: bool, style: &Style) -> Vec<Line> {
    if !one_line {
        let mut lines = heading("How long each one took", "", style);
        lines.push(Line::new().plain(" ").faint(names));
        return lines;
    }
    let title = text::left("How long each one took", style.width - names.len());
    vec![Line::new().strong(title).faint(names)]
}

fn rows<'a>(facts: &Facts<'a>) -> Vec<Row<'a>> {
    let every = facts.number(Fault::latency_sample_every).unwrap_or(1).max(1);
    // The histogram has all blocks, whatever for.
    let blocked = if is_blocked_otherwise(facts) { "blocked" } else { "blocked (I/O)" };
    let own = [
        (Sched::run_queue_wait_ns, "waiting for a CPU", 1, Tone::Warn),
        (Sched::blocked_ns, blocked, 1, Tone::Bad),
        (Fault::major_wait_ns, "in major faults", 1, Tone::Bad),
        (Fault::major_latency_ns, "a major fault", 1, Tone::Bad),
        (Fault::minor_latency_ns, "a minor fault", every, Tone::Plain),
    ];
    let own = own.into_iter().filter_map(|(field, name, every, tone)| {
        Some(Row { name: name.to_owned(), hist: facts.hist(field)?, every, tone })
    });
    let disks = facts.disks.iter().flat_map(|disk| {
        let row = |part: &str, hist: Option<&'a Hist>| {
            let room = NAME.saturating_sub(disk.op.len() + part.len() + 2).max(4);
            let name = format!("{} {}{part}", text::truncate(&disk.device, room), disk.op);
            hist.map(|hist| Row { name, hist, every: 1, tone: Tone::Plain })
        };
        [row(" queue", disk.queue), row("", disk.latency)]
    });
    own.chain(disks.flatten()).collect()
}

fn values(hist: &Hist) -> String {
    let [p50, p90, p99, _] = hist.quantiles().unwrap_or_default();
    let values = [p50, p90, p99, hist.max];
    values.iter().map(|ns| text::right(&units::duration(*ns), NUMBER)).collect()
}

/// The height of `share` of a line; nothing for none.
pub fn height(share: f64) -> char {
    match (share * 8.0).ceil() as usize {
        0 => ' ',
        eighths => HEIGHTS[eighths.min(8) - 1],
    }
}

/// Power of two that bucket `index` lies in: 0 below the finest unit, then one per doubling.
fn octave(index: usize) -> usize {
    (u64::BITS - (bucket_low(index) >> UNIT_BITS).leading_zeros()) as usize
}

/// The columns that all plots share.
struct Axis {
    low: usize,
    high: usize,
    /// Doublings to a column, and columns to a doubling; one of them is 1.
    merged: usize,
    wide: usize,
}

impl Axis {
    /// An axis from octave `low` to `high` in at most `room` columns.
    fn new(low: usize, high: usize, room: usize) -> Self {
        let octaves = high - low + 1;
        let merged = octaves.div_ceil(room.max(1));
        let wide = (room / octaves).clamp(1, 2);
        Self { low, high, merged, wide }
    }

    fn plot(&self, hist: &Hist) -> String {
        let mut counts = vec![0u64; (self.high - self.low) / self.merged + 1];
        for (index, count) in hist.buckets() {
            let column = (octave(index).max(self.low) - self.low) / self.merged;
            if let Some(sum) = counts.get_mut(column) {
                *sum = sum.saturating_add(count);
            }
        }
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        let height = |count: u64| height(count as f64 / most as f64);
        counts.iter().flat_map(|count| std::iter::repeat_n(height(*count), self.wide)).collect()
    }

    /// What its ends stand for.
    fn lines(&self, style: &Style) -> Vec<Line> {
        let columns = ((self.high - self.low) / self.merged + 1) * self.wide;
        let edge = |octave: usize| match octave {
            0 => "0".to_owned(),
            _ => units::duration(1 << (UNIT_BITS as usize + octave - 1)),
        };
        let end = self.low + ((self.high - self.low) / self.merged + 1) * self.merged;
        let (low, high) = (edge(self.low), edge(end));
        let gap = columns.saturating_sub(text::width(&low) + text::width(&high));
        let between = if gap > 0 { " ".repeat(gap) } else { " – ".to_owned() };
        let factor = 1u64.checked_shl(self.merged as u32).unwrap_or(u64::MAX);
        let step = if self.wide > 1 { "two columns" } else { "a column" };
        let note = format!("  {step}: ×{factor}");
        let line = Line::new().plain(" ".repeat(2 + NAME + 1)).faint(low + &between + &high);
        vec![if style.width >= ONE_LINE { line.faint(note) } else { line }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_puts_each_power_of_two_in_its_column() {
        let hist = Hist::from_buckets(0, 1 << 20, [(1, 4), (2, 8), (3, 8), (4, 1), (9, 2)]);
        let axis = Axis::new(1, 4, 40);
        assert_eq!((axis.merged, axis.wide), (1, 2));
        assert_eq!(axis.plot(&hist), "▂▂██▁▁▁▁");
        assert_eq!(Axis::new(1, 4, 2).plot(&hist), "█▂");
    }
}
