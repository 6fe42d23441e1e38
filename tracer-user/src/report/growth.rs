//! Whether a job's memory grew all the time, by its time line.

use crate::{
    record::{Record, series::SERIES},
    view::facts::Growth,
};

/// Columns that make a course.
const LEAST: usize = 8;
/// What memory may shrink by, of its peak, and still only grow.
const SHRINKS: f64 = 0.02;
/// Halfway it has this part of its peak, at least and at most: it neither was there from the begin nor came at the end.
const HALFWAY: std::ops::RangeInclusive<f64> = 0.25..=0.85;

/// From where to where it grew; of a job on one node, where that is known. Its end, at which it lets go, is left out.
pub(super) fn of(record: &Record) -> Option<Growth> {
    let at = SERIES.iter().position(|series| series.name == "memory_bytes")?;
    let known: Option<Vec<u64>> = record.timeline.columns().map(|column| column[at]).collect();
    let known = known.filter(|known| known.len() > LEAST && record.hosts.len() == 1)?;
    let (_, course) = known.split_last()?;
    let (from_bytes, peak) = (*course.first()?, *course.iter().max()?);
    let share = |bytes: u64| bytes as f64 / peak.max(1) as f64;
    let grows = course.windows(2).all(|two| share(two[0]) - share(two[1]) <= SHRINKS);
    let is_gradual = HALFWAY.contains(&share(course[course.len() / 2]));
    (grows && is_gradual).then_some(Growth { from_bytes, to_bytes: peak })
}
