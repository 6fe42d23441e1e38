//! How long operations on files took over time, as a map of shades: time from left to right, durations from bottom to
//! top. One path for each shade.

use std::fmt::Write;

use crate::{
    base::units::{count, duration, long_duration},
    model::io_latency::{CLASSES, IoLatency, MOST_COLUMNS, least_ns},
    record::timeline::Timeline,
    report::Whole,
};

/// Columns of the map.
const COLUMNS: usize = MOST_COLUMNS / 2;
/// Shades; where there was no operation there is none. Each stands for more operations than the one before, by the
/// same factor.
const SHADES: usize = 6;
/// Pixels of a row.
const ROW_PX: usize = 18;

/// The map.
pub struct LatencyMap {
    pub words: String,
    pub columns: usize,
    pub rows: usize,
    pub height: usize,
    /// Number of the shade and its path.
    pub shades: Vec<(usize, String)>,
    /// Number of each shade, and up to how many operations it stands for.
    pub legend: Vec<(usize, String)>,
    /// Durations at equal distances, from the top.
    pub scale: Vec<String>,
}

impl LatencyMap {
    /// Of a job that was asked for its operations.
    pub fn of(whole: &Whole) -> Option<Self> {
        let latency = &whole.record.totals.files.latency;
        let cells = cells(latency, &whole.record.timeline);
        let some = |class: &usize| cells.iter().any(|column| column[*class] > 0);
        let (low, high) = ((0..CLASSES).find(some)?, (0..CLASSES).rfind(some)?);
        let most = cells.iter().flatten().copied().max().unwrap_or(0).max(2);
        let mut shades = vec![String::new(); SHADES];
        for (row, class) in (low..=high).rev().enumerate() {
            let shade_at =
                |at: usize| Some(cells[at][class]).filter(|n| *n > 0).map(|n| shade(n, most));
            let mut at = 0;
            while at < COLUMNS {
                let shade = shade_at(at);
                let run = (at..COLUMNS).take_while(|next| shade_at(*next) == shade).count();
                if let Some(shade) = shade {
                    let _ = write!(shades[shade], "M{at} {row}h{run}v1h-{run}z");
                }
                at += run;
            }
        }
        let all = &whole.record.timeline;
        let span = long_duration(all.end_ns().saturating_sub(all.begin_ns()));
        let rows = high - low + 1;
        Some(Self {
            words: format!(
                "{span} from left to right; durations from bottom to top, each row four times as long; number of \
                 operations by shade"
            ),
            columns: COLUMNS,
            rows,
            height: rows * ROW_PX,
            shades: (1..).zip(shades).filter(|(_, path)| !path.is_empty()).collect(),
            legend: legend(most),
            scale: (low..=high + 1).rev().map(edge).collect(),
        })
    }
}

/// The duration at the lower edge of a class; above the last there is none.
fn edge(class: usize) -> String {
    match class {
        0 => "0".to_owned(),
        CLASSES => "longer".to_owned(),
        _ => duration(least_ns(class)),
    }
}

/// The shade of `number` operations, of which there are `most` in the fullest cell.
fn shade(number: u64, most: u64) -> usize {
    let share = (number as f64).ln_1p() / (most as f64).ln_1p();
    ((share * SHADES as f64).ceil() as usize).clamp(1, SHADES) - 1
}

/// Up to how many operations each shade stands for; equals are one.
fn legend(most: u64) -> Vec<(usize, String)> {
    let up_to = |shade: usize| {
        let share = shade as f64 / SHADES as f64;
        ((most as f64).ln_1p() * share).exp_m1().round() as u64
    };
    let mut legend = Vec::new();
    for shade in 1..=SHADES {
        if up_to(shade) > up_to(shade - 1) {
            legend.push((shade, format!("up to {}", count(up_to(shade)))));
        }
    }
    legend
}

/// The operations of each part of the whole job's time, by class: a column of a part that it does not fill counts for
/// each.
fn cells(latency: &IoLatency, all: &Timeline) -> Vec<[u64; CLASSES]> {
    let span_ns = u128::from(all.end_ns().saturating_sub(all.begin_ns()).max(1));
    let place = |ns: u64| {
        let after_ns = u128::from(ns.saturating_sub(all.begin_ns()));
        (after_ns * COLUMNS as u128 / span_ns).min(COLUMNS as u128) as usize
    };
    let mut cells = vec![[0; CLASSES]; COLUMNS];
    for (begin_ns, counts) in latency.columns() {
        let from = place(begin_ns).min(COLUMNS - 1);
        let until = place(begin_ns.saturating_add(latency.width_ns())).clamp(from + 1, COLUMNS);
        for cell in &mut cells[from..until] {
            cell.iter_mut().zip(counts).for_each(|(sum, more)| *sum = (*more).saturating_add(*sum));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shade_stands_for_more_operations_than_the_one_before() {
        let shades: Vec<_> =
            [1, 4, 40, 400, 4_000, 40_000].map(|number| shade(number, 40_000)).into();
        assert!(shades.is_sorted() && shades[5] == SHADES - 1, "{shades:?}");
        assert_eq!(shade(1, u64::MAX), 0);
        let words: Vec<_> = legend(40_000).into_iter().map(|(_, words)| words).collect();
        assert_eq!(words.last().unwrap(), "up to 40.0k");
        assert_eq!(legend(2).last().unwrap().1, "up to 2");
    }

    #[test]
    fn edges_are_durations() {
        assert_eq!([edge(0), edge(1), edge(CLASSES)], ["0", "4.10 µs", "longer"]);
    }
}
