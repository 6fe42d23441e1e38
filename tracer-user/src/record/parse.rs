//! The other way of `document.rs`. Names that no table has are left out: a later program of the same version
//! wrote them. Everything else that no program wrote is refused, with its place.

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value as Json};
use tracer_ebpf::{
    loglinear::{BUCKETS, bucket_of},
    table::{Field, Kind, Measurement, Unit},
};

use super::{
    Record,
    document::SCHEMA,
    schema::{FILES, FOLDERS, LATENCY, LOST, PROGRAMS, SLOWEST, SOFTWARE, THREADS},
    series::{SERIES, WIDTH},
    timeline::{Column, MOST_COLUMNS, Timeline},
};
use crate::model::{
    files::Files,
    gaps::Gap,
    group::{Group, Value},
    hist::{Hist, MAX_COUNT},
    info::{Exit, Facts, JobInfo},
    io_latency::IoLatency,
    io_threads::IoThreads,
    job::Job,
    lost_files::LostFiles,
    parts::{OtherParts, Part, Parts},
    software::Software,
    tables,
    totals::{Peaks, RunTotals},
};

/// The record in `text`, a document of this version or an older one.
///
/// # Errors
/// When it is damaged, or of a later version; the message says which, and where.
pub fn parse(text: &[u8]) -> Result<Record> {
    let json: Json = serde_json::from_slice(text).context("the record is damaged: no JSON")?;
    let version = json.get("schema").and_then(Json::as_u64);
    let version = version.context("the record is damaged: `schema` is missing")?;
    ensure!(
        version <= u64::from(SCHEMA),
        "the record has version {version}, this program reads up to {SCHEMA}: read it with a newer jobtrace"
    );
    record(&json).context("the record is damaged")
}

fn record(json: &Json) -> Result<Record> {
    let job_json = object(json.get("job").unwrap_or(&Json::Null), "job")?;
    let facts: Facts = serde_json::from_value(Json::Object(job_json.clone())).context("`job`")?;
    let job = Job {
        job: text(job_json, "job")?,
        manager: text(job_json, "manager")?,
        user: text(job_json, "user")?,
        step: text(job_json, "step")?,
        ..Job::default()
    };
    let map = object(json, "the record")?;
    let info = JobInfo { user: job.user.clone(), ..JobInfo::from(&facts) };
    let mut totals = RunTotals::new(job, info);
    totals.elapsed_ns = number(map, "elapsed_ns")?.context("`elapsed_ns` is missing")?;
    totals.intervals = number(map, "intervals")?.unwrap_or(0);
    let exit = map.get("exit").map(|exit| serde_json::from_value::<Exit>(exit.clone()));
    totals.exit = exit.transpose().context("`exit`")?;
    if let Some(peaks) = map.get("peaks") {
        let peaks = object(peaks, "peaks")?;
        totals.peaks = Peaks {
            millicores: held(peaks, "cores", Unit::Millicores)?.unwrap_or(0),
            millicores_from: number(peaks, "cores_from")?,
            disk_bytes_per_s: number(peaks, "disk_bytes_per_s")?.unwrap_or(0),
            disk_from: number(peaks, "disk_from")?,
        };
    }
    for table in tables::ALL {
        for group in groups(map, table).with_context(|| format!("`{}`", table.key))? {
            let is_own = group.is(&tables::SELF) || group.is(&tables::NODE_NET);
            let to = if is_own { &mut totals.own } else { &mut totals.stats.groups };
            ensure!(
                !to.iter().any(|known| known.same_series(&group)),
                "`{}` is there twice",
                table.key
            );
            to.push(group);
        }
    }
    let gaps = map.get("not_counted").map(Vec::<Gap>::deserialize);
    totals.gaps = gaps.transpose().context("`not_counted`")?.into_iter().flatten().collect();
    let parts = map.get("parts").map(Vec::<Part>::deserialize).transpose().context("`parts`")?;
    let others = map.get("other_parts").map(OtherParts::deserialize).transpose();
    totals.parts = Parts {
        listed: parts.unwrap_or_default(),
        others: others.context("`other_parts`")?.unwrap_or_default(),
    };
    let latency = map.get(LATENCY).map(IoLatency::deserialize).transpose();
    let lost = map.get(LOST).map(LostFiles::deserialize).transpose();
    totals.files = Files {
        files: list(map, FILES)?,
        folders: list(map, FOLDERS)?,
        lost: lost.with_context(|| format!("`{LOST}`"))?.unwrap_or_default(),
        slowest: list(map, SLOWEST)?,
        threads: IoThreads { threads: list(map, THREADS)?, programs: list(map, PROGRAMS)? },
        latency: latency.with_context(|| format!("`{LATENCY}`"))?.unwrap_or_default(),
    };
    let software = map.get(SOFTWARE).map(Software::deserialize).transpose();
    totals.software = software.with_context(|| format!("`{SOFTWARE}`"))?;
    totals.unknown = texts(map, "unknown")?;
    totals.notes = texts(map, "notes")?;
    let timeline = timeline(object(map.get("timeline").unwrap_or(&Json::Null), "timeline")?);
    Ok(Record {
        cluster: text(map, "cluster")?,
        hosts: texts(map, "hosts")?,
        facts,
        totals,
        timeline: timeline.context("`timeline`")?,
    })
}

/// The groups of `table`: one, or a list where it has tags.
fn groups(map: &Map<String, Json>, table: &'static Measurement) -> Result<Vec<Group>> {
    let Some(json) = map.get(table.key) else { return Ok(Vec::new()) };
    if table.tags.is_empty() {
        return Ok(vec![group(object(json, "it")?, table)?]);
    }
    let list = json.as_array().context("is no list")?;
    list.iter().map(|json| group(object(json, "an entry")?, table)).collect()
}

fn group(map: &Map<String, Json>, table: &'static Measurement) -> Result<Group> {
    let tags = table.tags.iter().map(|tag| text(map, tag)).collect::<Result<_>>()?;
    let mut group = Group::unknown(table, tags);
    for (field, value) in table.fields.iter().zip(&mut group.values) {
        let Some(json) = map.get(field.name) else { continue };
        *value = Some(if field.kind == Kind::Histogram {
            Value::Histogram(hist(object(json, field.name)?, field).context(field.name)?)
        } else {
            Value::Number(public(json, field.unit).context(field.name)?)
        });
    }
    Ok(group)
}

fn hist(map: &Map<String, Json>, field: &Field) -> Result<Hist> {
    let of = |key| held(map, key, field.unit);
    let (sum, max) = (of("sum")?.context("`sum` is missing")?, of("max")?.unwrap_or(0));
    let list = map.get("buckets").and_then(Json::as_array).context("`buckets` is no list")?;
    ensure!(list.len() <= BUCKETS, "there are too many buckets");
    let bucket = |json: &Json| {
        let pair = json.as_array().filter(|pair| pair.len() == 2).context("a bucket is no pair")?;
        let count = pair[1].as_u64().context("a count is no number")?;
        Ok((bucket_of(public(&pair[0], field.unit)?) as usize, count))
    };
    let buckets = list.iter().map(bucket).collect::<Result<Vec<_>>>()?;
    let counts: u128 = buckets.iter().map(|(_, count)| u128::from(*count)).sum();
    ensure!(counts <= u128::from(MAX_COUNT), "{counts} values are too many");
    Ok(Hist::from_buckets(sum, max, buckets))
}

fn timeline(map: &Map<String, Json>) -> Result<Timeline> {
    let of = |key| number(map, key)?.with_context(|| format!("`{key}` is missing"));
    let count = usize::try_from(of("columns")?).ok().filter(|n| *n as u64 <= MOST_COLUMNS);
    let mut columns: Vec<Column> =
        vec![[None; WIDTH]; count.context("there are too many columns")?];
    for (at, series) in SERIES.iter().enumerate() {
        let Some(json) = map.get(series.name) else { continue };
        let values = json.as_array().filter(|values| values.len() == columns.len());
        let values = values.with_context(|| format!("`{}` has not all columns", series.name))?;
        for (column, value) in columns.iter_mut().zip(values) {
            column[at] = match value {
                Json::Null => None,
                value => Some(public(value, series.unit).context(series.name)?),
            };
        }
    }
    let timeline = Timeline::of(of("begin")?, of("end")?, of("width_ns")?, &columns);
    timeline.context("its columns do not fit its times")
}

fn object<'a>(json: &'a Json, name: &str) -> Result<&'a Map<String, Json>> {
    json.as_object().with_context(|| format!("`{name}` is no object"))
}

/// A text; empty where it is absent.
fn text(map: &Map<String, Json>, key: &str) -> Result<String> {
    match map.get(key) {
        None => Ok(String::new()),
        Some(Json::String(text)) => Ok(text.clone()),
        Some(_) => bail!("`{key}` is no text"),
    }
}

/// A list of texts; empty where it is absent.
fn texts(map: &Map<String, Json>, key: &str) -> Result<Vec<String>> {
    let list = map.get(key).map(|list| serde_json::from_value(list.clone()));
    Ok(list.transpose().with_context(|| format!("`{key}`"))?.unwrap_or_default())
}

/// A list of things; empty where it is absent.
fn list<T: DeserializeOwned>(map: &Map<String, Json>, key: &str) -> Result<Vec<T>> {
    let list = map.get(key).map(Vec::<T>::deserialize).transpose();
    Ok(list.with_context(|| format!("`{key}`"))?.unwrap_or_default())
}

fn number(map: &Map<String, Json>, key: &str) -> Result<Option<u64>> {
    held(map, key, Unit::Count)
}

/// A number of `unit`; `None` where it is absent.
fn held(map: &Map<String, Json>, key: &str, unit: Unit) -> Result<Option<u64>> {
    map.get(key).map(|json| public(json, unit).with_context(|| format!("`{key}`"))).transpose()
}

/// A number in its public unit, as it is held.
fn public(json: &Json, unit: Unit) -> Result<u64> {
    if unit.per_public() == 1 {
        return json.as_u64().context("is no whole number");
    }
    let number = json.as_f64().filter(|number| *number >= 0.0).context("is no number")?;
    Ok((number * unit.per_public() as f64).round() as u64)
}
