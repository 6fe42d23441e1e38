//! The busiest moment of what ran beside each other: steps of a node, or nodes.
//!
//! Each record knows its own, and how much it did in each column of its course, but not when within the column. So of each
//! column this is the most that all can have done at once: no less than they did, and no more than what each did there
//! can have been within one of its readings. Who did nothing in a column adds nothing to it.

use std::collections::BTreeMap;

use super::{Record, series::SERIES};
use crate::model::totals::{Peaks, SLIVER_NS, per_second};

/// The peaks of `records`, all together: at least those of each.
pub fn at_once(records: &[Record]) -> Peaks {
    let mut all = Peaks::default();
    records.iter().for_each(|record| all.merge(&record.totals.peaks));
    let Some(width_ns) = records.iter().map(|record| record.timeline.width_ns()).max() else {
        return all;
    };
    if records.len() == 1 {
        return all;
    }
    let mut columns = BTreeMap::<u64, [u64; 2]>::new();
    for record in records {
        for (number, most) in most_at_once(record, width_ns) {
            let column = columns.entry(number).or_default();
            for (sum, more) in column.iter_mut().zip(most) {
                *sum = sum.saturating_add(more);
            }
        }
    }
    for [millicores, disk_bytes_per_s] in columns.into_values() {
        all.merge(&Peaks { millicores, disk_bytes_per_s, ..Peaks::default() });
    }
    all
}

/// Of each column of `width_ns` that `record` was there in, by its number since the Unix epoch, the most cores (in
/// thousandths) and disk bytes per second that it can have had at a moment of it.
fn most_at_once(record: &Record, width_ns: u64) -> BTreeMap<u64, [u64; 2]> {
    let totals = &record.totals;
    let place = |name| SERIES.iter().position(|series| series.name == name);
    let on_cpu = [place("on_cpu_ns"), None];
    let disk = [place("disk_read_bytes"), place("disk_written_bytes")];
    let mut amounts = BTreeMap::<u64, [Option<u64>; 2]>::new();
    let timeline = &record.timeline;
    for (at, column) in timeline.columns().enumerate() {
        let from_ns = timeline.start_ns() + at as u64 * timeline.width_ns();
        let wide = amounts.entry(from_ns / width_ns).or_insert([Some(0); 2]);
        for (sum, places) in wide.iter_mut().zip([on_cpu, disk]) {
            let known = places.iter().flatten().filter_map(|place| column[*place]);
            let more = known.reduce(u64::saturating_add);
            *sum = sum.zip(more).map(|(sum, more)| sum.saturating_add(more));
        }
    }
    // All of a column may have been done within one reading, if that is the shorter.
    let reading_ns = totals.elapsed_ns.checked_div(totals.intervals).unwrap_or(0);
    let peaks = [totals.peaks.millicores, totals.peaks.disk_bytes_per_s];
    let most = |column: u64, [on_cpu_ns, bytes]: [Option<u64>; 2]| {
        let from_ns = column.saturating_mul(width_ns);
        let to_ns = from_ns.saturating_add(width_ns).min(timeline.end_ns());
        let span_ns = to_ns.saturating_sub(from_ns.max(timeline.begin_ns()));
        let span_ns = span_ns.min(reading_ns).max(SLIVER_NS);
        let within = [
            on_cpu_ns.map(|ns| per_second(ns, span_ns).div_ceil(1_000_000)),
            bytes.map(|bytes| per_second(bytes, span_ns)),
        ];
        [0, 1].map(|which| within[which].map_or(peaks[which], |most| most.min(peaks[which])))
    };
    amounts.into_iter().map(|(column, amounts)| (column, most(column, amounts))).collect()
}
