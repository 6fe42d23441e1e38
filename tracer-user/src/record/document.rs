//! A record as JSON, under the names of the tables: what `--json` writes and, compressed, the files under
//! `records/`.
//!
//! What is unknown is absent, never zero: a field, a measurement, an empty histogram's percentiles; in a column of
//! time it is null. Names no field itself; the keys beside the tables' are in `schema.rs`.

use anyhow::{Context, Result};
use serde::{Serialize, Serializer, ser::SerializeMap};
use tracer_ebpf::table::Unit;

use super::{
    Record,
    schema::{FILES, FOLDERS, LATENCY, LOST, PROGRAMS, SLOWEST, SOFTWARE, THREADS},
    series::SERIES,
    timeline::Timeline,
};
use crate::model::{
    group::{Group, Value},
    hist::{Hist, QUANTILES},
    point::FieldValue,
    points::number_value,
    tables::{self, SCHED},
    totals::RunTotals,
};

/// Version of the document's form; a new field does not change it.
pub const SCHEMA: u32 = 1;

/// The document of `record` on one line, line feed included.
///
/// # Errors
/// None that its input could cause.
pub fn document(record: &Record) -> Result<String> {
    let text = serde_json::to_string(&Document(record)).context("cannot write a record as json")?;
    Ok(text + "\n")
}

struct Document<'a>(&'a Record);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let totals = &self.0.totals;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema", &SCHEMA)?;
        if !self.0.cluster.is_empty() {
            map.serialize_entry("cluster", &self.0.cluster)?;
        }
        map.serialize_entry("hosts", &self.0.hosts)?;
        map.serialize_entry("job", &Job(self.0))?;
        map.serialize_entry("elapsed_ns", &totals.elapsed_ns)?;
        if let Some(exit) = &totals.exit {
            map.serialize_entry("exit", exit)?;
        }
        for table in tables::ALL {
            let groups = totals.stats.groups.iter().chain(&totals.own);
            let groups = groups.filter(|group| group.is(table));
            let mut known = groups.filter(|group| group.values.iter().any(Option::is_some));
            if !table.tags.is_empty() {
                let list: Vec<_> = known.map(Values).collect();
                if !list.is_empty() {
                    map.serialize_entry(table.key, &list)?;
                }
            } else if let Some(group) = known.next() {
                map.serialize_entry(table.key, &Values(group))?;
            }
        }
        map.serialize_entry("intervals", &totals.intervals)?;
        // Without an interval nobody knows how busy the busiest one was.
        if totals.intervals > 0 {
            map.serialize_entry("peaks", &Busiest(totals))?;
        }
        if !totals.parts.listed.is_empty() {
            map.serialize_entry("parts", &totals.parts.listed)?;
        }
        if totals.parts.others.count > 0 {
            map.serialize_entry("other_parts", &totals.parts.others)?;
        }
        for (key, list) in [(FILES, &totals.files.files), (FOLDERS, &totals.files.folders)] {
            if !list.is_empty() {
                map.serialize_entry(key, list)?;
            }
        }
        if !totals.files.lost.is_empty() {
            map.serialize_entry(LOST, &totals.files.lost)?;
        }
        if !totals.files.slowest.is_empty() {
            map.serialize_entry(SLOWEST, &totals.files.slowest)?;
        }
        let threads = &totals.files.threads;
        if !threads.is_empty() {
            map.serialize_entry(THREADS, &threads.threads)?;
            map.serialize_entry(PROGRAMS, &threads.programs)?;
        }
        if !totals.files.latency.is_empty() {
            map.serialize_entry(LATENCY, &totals.files.latency)?;
        }
        if let Some(software) = &totals.software {
            map.serialize_entry(SOFTWARE, software)?;
        }
        map.serialize_entry("timeline", &Columns(&self.0.timeline))?;
        if !totals.gaps.is_empty() {
            map.serialize_entry("not_counted", &totals.gaps)?;
        }
        for (key, texts) in [("unknown", &totals.unknown), ("notes", &totals.notes)] {
            if !texts.is_empty() {
                map.serialize_entry(key, texts)?;
            }
        }
        map.end()
    }
}

struct Job<'a>(&'a Record);

impl Serialize for Job<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (job, info) = (self.0.job(), &self.0.totals.info);
        let user = if job.user.is_empty() { &info.user } else { &job.user };
        let texts =
            [("job", &job.job), ("manager", &job.manager), ("user", user), ("step", &job.step)];
        let mut map = serializer.serialize_map(None)?;
        for (key, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
            map.serialize_entry(key, text)?;
        }
        for (name, value) in self.0.facts.fields() {
            map.serialize_entry(&name, &Plain(value))?;
        }
        map.end()
    }
}

struct Busiest<'a>(&'a RunTotals);

impl Serialize for Busiest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let totals = self.0;
        let peaks = &totals.peaks;
        // Nothing at all is zero where it was counted at some time.
        let is_counted = totals.stats.group(&SCHED).is_some();
        if is_counted || peaks.millicores > 0 {
            map.serialize_entry("cores", &Number(Unit::Millicores, peaks.millicores))?;
        }
        if let Some(from_ns) = peaks.millicores_from {
            map.serialize_entry("cores_from", &from_ns)?;
        }
        if is_counted || peaks.disk_bytes_per_s > 0 {
            map.serialize_entry("disk_bytes_per_s", &peaks.disk_bytes_per_s)?;
        }
        if let Some(from_ns) = peaks.disk_from {
            map.serialize_entry("disk_from", &from_ns)?;
        }
        map.end()
    }
}

struct Columns<'a>(&'a Timeline);

impl Serialize for Columns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let timeline = self.0;
        let columns: Vec<_> = timeline.columns().collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("begin", &timeline.begin_ns())?;
        map.serialize_entry("end", &timeline.end_ns())?;
        map.serialize_entry("width_ns", &timeline.width_ns())?;
        map.serialize_entry("columns", &columns.len())?;
        for (at, series) in SERIES.iter().enumerate() {
            let values: Vec<Option<Number>> =
                columns.iter().map(|column| Some(Number(series.unit, column[at]?))).collect();
            if values.iter().any(Option::is_some) {
                map.serialize_entry(series.name, &values)?;
            }
        }
        map.end()
    }
}

/// A group: its own tags, then its known fields.
struct Values<'a>(&'a Group);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let group = self.0;
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in group.own_tags().filter(|(_, value)| !value.is_empty()) {
            map.serialize_entry(&key, &value)?;
        }
        for (field, value) in group.fields() {
            match value {
                None => {}
                Some(Value::Histogram(hist)) => {
                    map.serialize_entry(field.name, &Summary(field.unit, hist))?
                }
                Some(Value::Number(number)) => {
                    map.serialize_entry(field.name, &Number(field.unit, *number))?;
                }
            }
        }
        map.end()
    }
}

/// A number in its public unit.
struct Number(Unit, u64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Plain(number_value(self.0, self.1)).serialize(serializer)
    }
}

/// A value without anything around it.
struct Plain(FieldValue);

impl Serialize for Plain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            FieldValue::Integer(number) => number.serialize(serializer),
            FieldValue::Float(number) => number.serialize(serializer),
            FieldValue::Text(text) => text.serialize(serializer),
        }
    }
}

struct Summary<'a>(Unit, &'a Hist);

impl Serialize for Summary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(unit, hist) = *self;
        let number = |value| Number(unit, value);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("count", &hist.count())?;
        map.serialize_entry("sum", &number(hist.sum))?;
        if let (Some(min), Some(quantiles)) = (hist.min(), hist.quantiles()) {
            map.serialize_entry("min", &number(min))?;
            map.serialize_entry("max", &number(hist.max))?;
            for ((name, _), value) in QUANTILES.iter().zip(quantiles) {
                map.serialize_entry(name, &number(value))?;
            }
        }
        let buckets = hist.buckets().map(|(index, count)| (number(hist.bound(index)), count));
        map.serialize_entry("buckets", &buckets.collect::<Vec<_>>())?;
        map.end()
    }
}

#[cfg(test)]
mod tests;
