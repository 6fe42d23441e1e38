//! Points made of a job's values by their tables.

use std::sync::LazyLock;

use tracer_ebpf::table::{Field, Kind, Unit};

use super::{
    group::{Group, Value},
    hist::QUANTILES,
    info::{Exit, Facts, JobInfo},
    job::{Job, JobStats},
    point::{FieldValue, Name, Origin, Point},
    tables::{ALL, INTERVAL, JOB_INFO, fact},
};

/// One point for each series of `stats` in which anything happened.
pub fn job_points(origin: &Origin, stats: &JobStats, time_ns: u64) -> Vec<Point> {
    let tags = origin.job_tags(&stats.job);
    stats.groups.iter().filter_map(|group| group_point(group, &tags, time_ns)).collect()
}

/// The same with the length of the interval in each: what rates are made of where a tick came late.
pub fn interval_points(
    origin: &Origin,
    stats: &JobStats,
    time_ns: u64,
    span_ns: u64,
) -> Vec<Point> {
    let mut points = job_points(origin, stats, time_ns);
    for point in &mut points {
        point.fields.push((INTERVAL.name.into(), FieldValue::Integer(span_ns)));
    }
    points
}

/// The facts of a run; `end` is the wall time and way of its end, once it has ended.
pub fn ended_facts(info: &JobInfo, end: Option<(u64, Exit)>) -> Facts {
    let mut facts = info.facts();
    facts.set(const { fact("end") }, end.map(|(wall_ns, _)| wall_ns));
    facts.set(const { fact("exit") }, end.map(|(_, exit)| exit.status() as u64));
    facts
}

/// The point of `job_info` of a run, as [`ended_facts`], which was counted for `elapsed_ns`, once it has ended.
pub fn info_point(
    origin: &Origin,
    job: &Job,
    info: &JobInfo,
    end: Option<(u64, Exit)>,
    elapsed_ns: Option<u64>,
    time_ns: u64,
) -> Point {
    let mut facts = ended_facts(info, end);
    facts.set(const { fact("elapsed_ns") }, elapsed_ns);
    facts_point(origin, job, &facts, Vec::new(), time_ns)
}

/// The point of `job_info` that tells `facts` and `totals`.
pub fn facts_point(
    origin: &Origin,
    job: &Job,
    facts: &Facts,
    totals: Vec<(Name, FieldValue)>,
    time_ns: u64,
) -> Point {
    let fields = facts.fields().chain(totals).collect();
    Point { measurement: JOB_INFO.into(), tags: origin.job_tags(job), fields, time_ns }
}

fn group_point(group: &Group, job_tags: &[(Name, String)], time_ns: u64) -> Option<Point> {
    if group.is_idle() && !group.has_peaks_alone() {
        return None;
    }
    let mut tags = job_tags.to_vec();
    tags.extend(group.own_tags());
    let fields = fields_of(group);
    let measurement = group.measurement.name.into();
    (!fields.is_empty()).then_some(Point { measurement, tags, fields, time_ns })
}

/// Every known field of `group`, histograms spread over their parts.
fn fields_of(group: &Group) -> Vec<(Name, FieldValue)> {
    let of_value = |value: &Option<Value>| match value {
        None => 0,
        Some(Value::Number(_)) => 1,
        Some(Value::Histogram(_)) => PARTS,
    };
    // One more: that of the interval's length.
    let count = group.values.iter().map(of_value).sum::<usize>() + 1;
    let mut fields = Vec::with_capacity(count);
    for (field, value) in group.fields() {
        match value {
            None => {}
            Some(Value::Number(number)) => {
                debug_assert!(field.kind != Kind::Histogram);
                fields.push((field.name.into(), number_value(field.unit, *number)));
            }
            Some(Value::Histogram(hist)) => {
                let number = |number| number_value(field.unit, number);
                let [count, sum, ends @ ..] = hist_names(field);
                fields.push((count, FieldValue::Integer(hist.count())));
                fields.push((sum, number(hist.sum)));
                if let (Some(min), Some(quantiles)) = (hist.min(), hist.quantiles()) {
                    let values = [min, hist.max].into_iter().chain(quantiles).map(number);
                    fields.extend(ends.into_iter().zip(values));
                }
            }
        }
    }
    fields
}

/// Fields that a histogram is told by.
const PARTS: usize = 4 + QUANTILES.len();

/// Their names, by the address of the histogram's field in its table: made once, not for each line.
static HIST_NAMES: LazyLock<Vec<(usize, [&'static str; PARTS])>> = LazyLock::new(|| {
    let hists = ALL.iter().flat_map(|table| table.fields);
    let hists = hists.filter(|field| field.kind == Kind::Histogram);
    let made = |field| (address(field), make_names(field).map(|name| &*name.leak()));
    let mut names: Vec<_> = hists.map(made).collect();
    names.sort_unstable();
    names
});

fn address(field: &Field) -> usize {
    std::ptr::from_ref(field).addr()
}

fn make_names(field: &Field) -> [String; PARTS] {
    let quantiles = QUANTILES.map(|(name, _)| name);
    let mut suffixes = ["count", "sum", "min", "max"].into_iter().chain(quantiles);
    std::array::from_fn(|_| format!("{}_{}", field.name, suffixes.next().unwrap_or_default()))
}

/// The names of the fields that histogram `field` is told by: count, sum, min, max and the quantiles.
fn hist_names(field: &'static Field) -> [Name; PARTS] {
    match HIST_NAMES.binary_search_by_key(&address(field), |(address, _)| *address) {
        Ok(at) => HIST_NAMES[at].1.map(Name::from),
        Err(_) => make_names(field).map(Name::from),
    }
}

/// A number in its public unit.
pub fn number_value(unit: Unit, number: u64) -> FieldValue {
    match unit.per_public() {
        1 => FieldValue::Integer(number),
        divisor => FieldValue::Float(number as f64 / divisor as f64),
    }
}
