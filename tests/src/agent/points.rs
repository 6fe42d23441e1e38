//! Points as a consumer of the spool sees them, and sums over them.

use std::{collections::BTreeSet, fs, io::Read, path::Path};

use anyhow::{Context, Result, ensure};
use flate2::read::MultiGzDecoder;
use influxdb_line_protocol::{FieldValue, ParsedLine};
pub use jobtrace::model::point::FieldValue as Value;
use jobtrace::{lines::read, model::point};

use super::Named;

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its measurement.
    pub measurement: String,
    /// Its tags; one that is absent is not there.
    pub tags: Named<String>,
    /// Its fields.
    pub fields: Named<Value>,
    /// Nanoseconds since the Unix epoch.
    pub time_ns: i64,
}

impl Point {
    /// A tag, empty where it is absent.
    pub fn tag(&self, key: &str) -> &str {
        self.tags.get(key).map_or("", String::as_str)
    }

    /// A whole number.
    pub fn number(&self, field: &str) -> Option<u64> {
        match self.fields.get(field)? {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// A number, whole or not.
    pub fn float(&self, field: &str) -> Option<f64> {
        match self.fields.get(field)? {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::Text(_) => None,
        }
    }
}

impl Point {
    /// Whether the server's parser reads the same line.
    fn is(&self, theirs: &ParsedLine<'_>) -> bool {
        let tags = theirs.series.tag_set.iter().flatten();
        let tags = tags.map(|(key, value)| (key.to_string(), value.to_string()));
        let value = |value: &FieldValue<'_>| match value {
            FieldValue::I64(number) => u64::try_from(*number).ok().map(Value::Integer),
            FieldValue::F64(number) => Some(Value::Float(*number)),
            FieldValue::String(text) => Some(Value::Text(text.to_string())),
            _ => None,
        };
        let fields = theirs.field_set.iter().map(|(key, it)| Some((key.to_string(), value(it)?)));
        theirs.series.measurement == self.measurement.as_str()
            && tags.collect::<Named<String>>() == self.tags
            && fields.collect::<Option<Named<Value>>>().as_ref() == Some(&self.fields)
            && theirs.timestamp == Some(self.time_ns)
    }
}

impl From<point::Point> for Point {
    fn from(point: point::Point) -> Self {
        let point::Point { measurement, tags, fields, time_ns } = point;
        let tags = tags.into_iter().map(|(key, value)| (key.into_owned(), value)).collect();
        let fields = fields.into_iter().map(|(key, value)| (key.into_owned(), value)).collect();
        let measurement = measurement.into_owned();
        Self { measurement, tags, fields, time_ns: time_ns as i64 }
    }
}

/// All lines of a spool's finished files.
#[derive(Clone, Debug, Default)]
pub struct Points(pub Vec<Point>);

impl Points {
    /// Reads a folder of `.lp.gz` files, in the order of their names.
    ///
    /// # Errors
    /// When one is not gzip, or holds something that is no line.
    pub fn read(outbox: &Path) -> Result<Self> {
        let entries = fs::read_dir(outbox).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
        files.retain(|file| file.to_string_lossy().ends_with(".lp.gz"));
        files.sort();
        let mut points = Vec::new();
        for file in files {
            let mut text = String::new();
            let packed = fs::File::open(&file)?;
            MultiGzDecoder::new(packed)
                .read_to_string(&mut text)
                .with_context(|| format!("{} is not whole", file.display()))?;
            // The server's own parser is asked too: one reading of ours could share a mistake with our writer.
            let theirs = influxdb_line_protocol::parse_lines(&text).collect::<Result<Vec<_>, _>>();
            let theirs = theirs.with_context(|| format!("in {}", file.display()))?;
            let before = points.len();
            for point in read::points(&text) {
                let point = point.with_context(|| format!("in {}", file.display()))?;
                points.push(Point::from(point));
            }
            for (ours, theirs) in points[before..].iter().zip(&theirs) {
                ensure!(ours.is(theirs), "{ours:?} is read as {theirs} by others");
            }
            ensure!(points.len() - before == theirs.len(), "{} lines for others", theirs.len());
        }
        Ok(Self(points))
    }

    /// Those of a job.
    pub fn of(&self, job: &str) -> impl DoubleEndedIterator<Item = &Point> {
        self.0.iter().filter(move |point| point.tag("job") == job)
    }

    /// Those that `chosen` picks.
    pub fn only(&self, chosen: impl Fn(&Point) -> bool) -> Self {
        Self(self.0.iter().filter(|point| chosen(point)).cloned().collect())
    }

    /// The `job` tags there are.
    pub fn jobs(&self) -> BTreeSet<&str> {
        self.0.iter().map(|point| point.tag("job")).filter(|job| !job.is_empty()).collect()
    }

    /// The values that a tag has among a job's points of `measurement`; empty where it is absent.
    pub fn tags(&self, job: &str, measurement: &str, tag: &str) -> BTreeSet<&str> {
        let mut values = BTreeSet::new();
        for point in &self.0 {
            if point.tag("job") == job && point.measurement == measurement {
                values.insert(point.tag(tag));
            }
        }
        values
    }

    /// A field summed over a job's points of `measurement`, all its series and intervals.
    pub fn sum(&self, job: &str, measurement: &str, field: &str) -> u64 {
        let of_job = self.of(job).filter(|point| point.measurement == measurement);
        of_job.filter_map(|point| point.number(field)).sum()
    }

    /// A field summed over everything on the node.
    pub fn total(&self, measurement: &str, field: &str) -> u64 {
        let points = self.0.iter().filter(|point| point.measurement == measurement);
        points.filter_map(|point| point.number(field)).sum()
    }

    /// Bytes or ops of a job's block I/O by `op`, all devices together.
    pub fn block(&self, job: &str, op: &str, field: &str) -> u64 {
        self.only(|point| point.tag("op") == op).sum(job, "job_block", field)
    }

    /// The last of the job's `job_info`: what was said of it at its end, where it has ended.
    pub fn info(&self, job: &str) -> Option<&Point> {
        self.of(job).rfind(|point| point.measurement == "job_info")
    }

    /// A fact of a job as text.
    pub fn fact(&self, job: &str, field: &str) -> Option<String> {
        Some(match self.info(job)?.fields.get(field)? {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Text(text) => text.clone(),
        })
    }

    /// A counter of `jobtrace_self`, summed.
    pub fn own(&self, field: &str) -> u64 {
        self.total("jobtrace_self", field)
    }

    /// The last value of a gauge of `jobtrace_self`.
    pub fn last_own(&self, field: &str) -> Option<u64> {
        let own = self.0.iter().filter(|point| point.measurement == "jobtrace_self");
        own.rev().find_map(|point| point.number(field))
    }
}
