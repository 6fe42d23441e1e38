//! Points back to values, by the tables that they were made of: the way of `model/points.rs` and
//! `model/hist_points.rs` the other way round.
//!
//! Pure. What no table knows, as a later version may write it, is skipped and counted. Of a histogram a line
//! has a few figures, and only the full profile's lines its buckets: [`gather`](super::gather) joins the two.

use std::{collections::BTreeMap, sync::LazyLock};

use tracer_ebpf::{
    loglinear::bucket_of,
    table::{Field, Kind, Measurement, Unit},
};

use crate::model::{
    buckets::{BucketStyle, index_of},
    group::{Group, Value},
    hist::{Hist, QUANTILES},
    hist_points::JOB_HIST,
    info::Facts,
    job::Job,
    point::{FieldValue, Origin, Point},
    tables::{self, FACTS, INTERVAL, JOB_INFO, total_name, total_parts},
};

/// What was left out, by what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Lines of measurements that no table has, or without a host or a job.
    pub lines: u64,
    /// Fields that their table does not have, or of another type; buckets that are none of ours.
    pub fields: u64,
    /// Tags that their table does not have: what they tell apart is one series here.
    pub tags: u64,
}

/// What a line tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Of which node.
    pub origin: Origin,
    /// Of which job.
    pub job: Job,
    /// The line's time.
    pub time_ns: u64,
    /// Length of the interval that ended then, where the line has it.
    pub span_ns: Option<u64>,
    /// And what.
    pub what: What,
}

/// One of three.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Numbers of a measurement, and by their place in the table what is told of its histograms.
    Values(Group, Vec<(usize, Figures)>),
    /// One bucket of a histogram.
    Bucket(Bucket),
    /// Facts of the job, and its totals by their names.
    Facts(Facts, BTreeMap<String, FieldValue>),
}

/// What a line of values has of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// Lower bound of the lowest; 0 without values.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// At the [`QUANTILES`].
    pub quantiles: [u64; 4],
}

/// One bucket of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// The series that the histogram is of; its values are unknown.
    pub series: Group,
    /// The histogram's place in the table.
    pub field: usize,
    /// The highest of the kernel's buckets in it.
    pub index: usize,
    /// Values in it, or up to its bound.
    pub count: u64,
    /// Whether it counts all up to its bound.
    pub is_cumulative: bool,
}

impl Figures {
    /// A histogram with these figures: count, sum and largest value are exact, and between the known
    /// percentiles all values are taken to be at the higher one.
    pub fn sketch(&self) -> Hist {
        let rank = |(_, quantile): (&str, f64)| (self.count as f64 * quantile).ceil() as u64;
        let ranks = QUANTILES.map(rank).into_iter().chain([self.count]);
        let values = self.quantiles.into_iter().chain([self.max]);
        let mut hist = Hist::from_buckets(self.sum, self.max, []);
        let mut below = 0;
        if self.count > 1 {
            hist.add(bucket_of(self.min) as usize, 1);
            below = 1;
        }
        for (rank, value) in ranks.zip(values) {
            hist.add(bucket_of(value) as usize, rank.min(self.count).saturating_sub(below));
            below = below.max(rank.min(self.count));
        }
        hist
    }
}

/// What `point` tells; `None` where no table knows its measurement, or it is of no job.
pub fn decode(point: &Point, skipped: &mut Skipped) -> Option<Told> {
    let mut tags: BTreeMap<&str, &str> =
        point.tags.iter().map(|(key, value)| (&**key, value.as_str())).collect();
    let mut take = |key: &str| tags.remove(key).unwrap_or_default().to_owned();
    let origin = Origin { cluster: take("cluster"), host: take("host") };
    let job = Job {
        job: take("job"),
        manager: take("manager"),
        user: take("user"),
        step: take("step"),
        ..Job::default()
    };
    let mut span_ns = None;
    let what = if origin.host.is_empty() || job.job.is_empty() {
        None
    } else if point.measurement == JOB_INFO {
        Some(facts(point, skipped))
    } else if point.measurement == JOB_HIST {
        bucket(point, &mut tags).map(What::Bucket)
    } else {
        let table = tables::ALL.iter().find(|table| table.name == point.measurement);
        table.map(|table| values(table, point, &mut tags, &mut span_ns, skipped))
    };
    skipped.lines += u64::from(what.is_none());
    let what = what?;
    skipped.tags += tags.len() as u64;
    Some(Told { origin, job, time_ns: point.time_ns, span_ns, what })
}

/// The series of `table` that `tags` name, which are taken out of them.
fn series(table: &'static Measurement, tags: &mut BTreeMap<&str, &str>) -> Group {
    let own = table.tags.iter().map(|key| tags.remove(key).unwrap_or_default().to_owned());
    Group::unknown(table, own.collect())
}

fn values(
    table: &'static Measurement,
    point: &Point,
    tags: &mut BTreeMap<&str, &str>,
    span_ns: &mut Option<u64>,
    skipped: &mut Skipped,
) -> What {
    let mut group = series(table, tags);
    let mut hists = BTreeMap::<usize, Figures>::new();
    for (name, value) in &point.fields {
        if name == INTERVAL.name {
            *span_ns = held(INTERVAL.unit, value);
            continue;
        }
        let is_known = match place(table, name) {
            Some((index, "")) => {
                group.values[index] = held(table.fields[index].unit, value).map(Value::Number);
                group.values[index].is_some()
            }
            Some((index, part)) => {
                let figures = hists.entry(index).or_default();
                set_figure(figures, part, table.fields[index].unit, value).is_some()
            }
            None => false,
        };
        skipped.fields += u64::from(!is_known);
    }
    What::Values(group, hists.into_iter().collect())
}

/// The field of `table` that `name` is of, and which part of a histogram; of numbers the part is empty.
fn place<'a>(table: &Measurement, name: &'a str) -> Option<(usize, &'a str)> {
    table.fields.iter().enumerate().find_map(|(index, field)| {
        let part = name.strip_prefix(field.name)?;
        match field.kind {
            Kind::Histogram => part.strip_prefix('_').map(|part| (index, part)),
            _ => part.is_empty().then_some((index, part)),
        }
    })
}

fn set_figure(figures: &mut Figures, part: &str, unit: Unit, value: &FieldValue) -> Option<()> {
    let quantile = QUANTILES.iter().position(|(name, _)| *name == part);
    let (place, unit) = match (part, quantile) {
        ("count", _) => (&mut figures.count, Unit::Count),
        ("sum", _) => (&mut figures.sum, unit),
        ("min", _) => (&mut figures.min, unit),
        ("max", _) => (&mut figures.max, unit),
        (_, Some(quantile)) => (&mut figures.quantiles[quantile], unit),
        _ => return None,
    };
    *place = held(unit, value)?;
    Some(())
}

/// `value` in the unit in which it is held, exact below 2^51; `None` where its type is another's.
fn held(unit: Unit, value: &FieldValue) -> Option<u64> {
    match (unit.per_public(), value) {
        (1, FieldValue::Integer(number)) => Some(*number),
        (2.., FieldValue::Float(number)) if *number >= 0.0 => {
            Some((number * unit.per_public() as f64).round() as u64)
        }
        _ => None,
    }
}

fn bucket(point: &Point, tags: &mut BTreeMap<&str, &str>) -> Option<Bucket> {
    let (key, name) = tags.remove("metric")?.split_once('.')?;
    let table = tables::ALL.iter().find(|table| table.key == key)?;
    let is_it = |field: &Field| field.name == name && field.kind == Kind::Histogram;
    let field = table.fields.iter().position(is_it)?;
    let [(name, FieldValue::Integer(count))] = &point.fields[..] else { return None };
    let style = [BucketStyle::Le, BucketStyle::Prom, BucketStyle::Vmrange]
        .into_iter()
        .find(|style| style.field() == name && tags.contains_key(style.tag()))?;
    let index = index_of(style, table.fields[field].unit, tags.remove(style.tag())?)?;
    let is_cumulative = style == BucketStyle::Prom;
    Some(Bucket { series: series(table, tags), field, index, count: *count, is_cumulative })
}

fn facts(point: &Point, skipped: &mut Skipped) -> What {
    let (mut facts, mut totals) = (Facts::default(), BTreeMap::new());
    for (name, value) in &point.fields {
        let fact = FACTS.iter().find(|fact| fact.name == name);
        match (fact, value) {
            (Some(fact), FieldValue::Integer(number)) if fact.unit.is_some() => {
                facts.set(fact, *number);
            }
            (Some(fact), FieldValue::Text(text)) if fact.unit.is_none() => {
                facts.set_text(fact, text);
            }
            (None, FieldValue::Integer(_) | FieldValue::Float(_))
                if TOTALS.contains_key(&**name) =>
            {
                totals.insert(name.to_string(), value.clone());
            }
            _ => skipped.fields += 1,
        }
    }
    What::Facts(facts, totals)
}

/// A total by its name: the field, and the last tag of what it was added up of.
type Total = (&'static Measurement, Option<&'static str>, usize);

/// All totals of a job that `job_info` may have, by name.
static TOTALS: LazyLock<BTreeMap<String, Total>> = LazyLock::new(|| {
    let mut totals = BTreeMap::new();
    for table in tables::ALL {
        let parts = [None].into_iter().chain(total_parts(table).iter().map(|part| Some(*part)));
        for part in parts {
            for (at, field) in table.fields.iter().enumerate() {
                totals.insert(total_name(table, part, field), (table, part, at));
            }
        }
    }
    totals
});

/// The totals of a job as groups, one for each operation or family: without devices, which they are the sums of. Of a
/// histogram a total is the sum.
pub fn total_groups(totals: &BTreeMap<String, FieldValue>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (name, value) in totals {
        let Some((table, part, at)) = TOTALS.get(name) else { continue };
        let Some(number) = held(table.fields[*at].unit, value) else { continue };
        let mut tags = vec![String::new(); table.tags.len()];
        if let (Some(last), Some(part)) = (tags.last_mut(), part) {
            (*part).clone_into(last);
        }
        let series = Group::unknown(table, tags);
        let known = groups.iter().position(|group| group.same_series(&series));
        let group = known.unwrap_or_else(|| {
            groups.push(series);
            groups.len() - 1
        });
        groups[group].values[*at] = Some(match table.fields[*at].kind {
            Kind::Histogram => Value::Histogram(Hist::from_buckets(number, 0, [])),
            _ => Value::Number(number),
        });
    }
    groups
}

/// Whether numbers of the field `name` of `measurement` are floats in its lines.
pub fn is_float(measurement: &str, name: &str) -> bool {
    let unit = if measurement == JOB_INFO {
        TOTALS.get(name).map(|(table, _, at)| table.fields[*at].unit)
    } else {
        let table = tables::ALL.iter().find(|table| table.name == measurement);
        table.and_then(|table| {
            let (at, part) = place(table, name)?;
            Some(if part == "count" { Unit::Count } else { table.fields[at].unit })
        })
    };
    unit.is_some_and(|unit| unit.per_public() > 1)
}
