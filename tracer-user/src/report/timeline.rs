//! The job's course: one track for each resource, a value for each column of time.

use serde::Serialize;

use crate::{
    base::units::{bytes, cores},
    record::{
        series::SERIES,
        timeline::{Column, Timeline},
    },
    view::{facts::Facts, line::Tone},
};

/// The course of a job.
#[derive(Debug, Serialize)]
pub struct Course {
    /// From when on, nanoseconds since the Unix epoch.
    pub begin: u64,
    /// Until when.
    pub end: u64,
    /// Width of a column, ns; the first and the last may be cut.
    pub width_ns: u64,
    /// What is known of it.
    pub tracks: Vec<Track>,
}

/// One resource.
#[derive(Debug, Serialize)]
pub struct Track {
    /// `Cores`.
    pub name: &'static str,
    /// Unit of the values: `cores`, `GPUs`, `bytes`, `bytes/s`.
    pub unit: &'static str,
    /// One for each column; null where unknown.
    pub values: Vec<Option<f64>>,
    /// What a full column would be: what was held, or the largest value.
    pub full: f64,
    /// The largest value, in words.
    pub most: String,
}

/// How a track comes from the series: which are added up, and whether they are a rate.
struct Kind {
    name: &'static str,
    unit: &'static str,
    series: &'static [&'static str],
    is_rate: bool,
    words: fn(f64) -> String,
}

/// Fewer tasks than this, on average, are none.
const LEAST: f64 = 0.01;

static KINDS: [Kind; 6] = [
    Kind { name: "Cores", unit: "cores", series: &["on_cpu_ns"], is_rate: true, words: of_cores },
    Kind {
        name: "Blocked",
        unit: "tasks",
        series: &["blocked_ns"],
        is_rate: true,
        words: |ns| format!("{} tasks", of_cores(ns)),
    },
    Kind {
        name: "Memory",
        unit: "bytes",
        series: &["memory_bytes"],
        is_rate: false,
        words: |value| bytes(value as u64),
    },
    Kind { name: "GPUs", unit: "GPUs", series: &["gpu_busy_ns"], is_rate: true, words: of_cores },
    Kind {
        name: "Disk",
        unit: "bytes/s",
        series: &["disk_read_bytes", "disk_written_bytes"],
        is_rate: true,
        words: |value| format!("{}/s", bytes(value as u64)),
    },
    Kind {
        name: "Network",
        unit: "bytes/s",
        series: &["net_bytes"],
        is_rate: true,
        words: |value| format!("{}/s", bytes(value as u64)),
    },
];

fn of_cores(value: f64) -> String {
    cores((value * 1000.0) as u64)
}

impl Course {
    /// That of `timeline`; tracks that are empty all the time are left out, but for cores.
    pub(super) fn of(timeline: &Timeline, facts: &Facts) -> Self {
        let tracks = KINDS.iter().filter_map(|kind| track(kind, timeline, facts));
        Self {
            begin: timeline.begin_ns(),
            end: timeline.end_ns(),
            width_ns: timeline.width_ns(),
            tracks: tracks.collect(),
        }
    }
}

fn track(kind: &Kind, timeline: &Timeline, facts: &Facts) -> Option<Track> {
    let values = values(kind, timeline);
    let most = values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = if matches!(kind.unit, "tasks" | "GPUs") { LEAST } else { 0.0 };
    if !most.is_finite() || (most <= least && kind.unit != "cores") {
        return None;
    }
    let held = facts.held_millicores.map_or(1.0, |held| held as f64 / 1000.0);
    let full = match kind.unit {
        "cores" => held.max(most),
        "tasks" | "GPUs" => most.max(1.0),
        _ => most,
    };
    Some(Track { name: kind.name, unit: kind.unit, full, most: (kind.words)(most), values })
}

/// The values of each column; a rate is per second, of time in seconds per second.
fn values(kind: &Kind, timeline: &Timeline) -> Vec<Option<f64>> {
    let places: Vec<usize> =
        (0..SERIES.len()).filter(|at| kind.series.contains(&SERIES[*at].name)).collect();
    let is_time = kind.series[0].ends_with("_ns");
    let value = |(at, column): (u64, Column)| {
        let known = places.iter().filter_map(|place| column[*place]);
        let amount = known.reduce(u64::saturating_add)? as f64;
        if !kind.is_rate {
            return Some(amount);
        }
        let from_ns = timeline.start_ns() + at * timeline.width_ns();
        let until_ns = (from_ns + timeline.width_ns()).min(timeline.end_ns());
        let span_ns = until_ns.saturating_sub(from_ns.max(timeline.begin_ns())) as f64;
        // What came late, after the end, has no time of its own.
        let span_ns = if span_ns > 0.0 { span_ns } else { timeline.width_ns() as f64 };
        Some(if is_time { amount / span_ns } else { amount * 1e9 / span_ns })
    };
    (0..).zip(timeline.columns()).map(value).collect()
}

impl Track {
    /// What kind of thing it is: in the colours of where the time went.
    pub(super) fn tone(&self) -> Tone {
        match self.name {
            "Blocked" => Tone::Bad,
            "Cores" | "GPUs" => Tone::Good,
            _ => Tone::Plain,
        }
    }

    /// What a full column would be, where that is more than the largest value: `8.0`.
    pub(super) fn full_in_words(&self) -> Option<String> {
        let most = self.values.iter().flatten().copied().fold(0.0, f64::max);
        let kind = KINDS.iter().find(|kind| kind.name == self.name)?;
        let has_whole = matches!(kind.unit, "cores" | "GPUs");
        (has_whole && self.full > most).then(|| (kind.words)(self.full))
    }

    /// Shares of `full` in `columns` equal parts of the time, for as many columns as the terminal has: means of rates,
    /// peaks of sizes.
    pub fn resampled(&self, columns: usize) -> Vec<Option<f64>> {
        let count = self.values.len().max(1);
        let part = |at: usize| {
            let from = at * count / columns;
            let until = ((at + 1) * count).div_ceil(columns).max(from + 1).min(count);
            let known = self.values.get(from..until)?.iter().flatten().copied();
            let (number, sum, most) =
                known.fold((0.0, 0.0, 0.0f64), |(n, s, m), v| (n + 1.0, s + v, m.max(v)));
            let value = if self.unit == "bytes" { most } else { sum / number };
            (number > 0.0).then(|| if self.full > 0.0 { value / self.full } else { 0.0 })
        };
        (0..columns).map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(values: Vec<Option<f64>>, unit: &'static str) -> Track {
        Track { name: "x", unit, values, full: 8.0, most: String::new() }
    }

    #[test]
    fn as_many_columns_as_wanted() {
        let values = vec![Some(0.0), Some(8.0), None, Some(4.0)];
        let half = track(values.clone(), "cores").resampled(2);
        assert_eq!(half, [Some(0.5), Some(0.5)]);
        assert_eq!(track(values.clone(), "bytes").resampled(2), [Some(1.0), Some(0.5)]);
        let wide = track(values, "cores").resampled(8);
        let expected = [0.0, 0.0, 1.0, 1.0].map(Some);
        assert_eq!(wide[..4], expected);
        assert_eq!(wide[4..], [None, None, Some(0.5), Some(0.5)]);
    }
}
