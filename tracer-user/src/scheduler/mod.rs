//! What a job's scheduler tells of it: asked once, when somebody wants a report, as that user, by the scheduler's own
//! command. One file for each scheduler: which command to run, and a pure parser of its answer.
//!
//! The agent never asks: a thousand nodes would ask at once.

mod ask;
mod clock;
mod lsf;
mod pbs;
mod slurm;

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde::Serialize;

use self::ask::{Answer, run};
use crate::model::{end_reason::EndReason, info::Exit};

/// How long all commands together may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest id that is asked for.
const LONGEST_ID: usize = 64;
/// Runs of one job that are read: a requeued job has several.
const MOST_RUNS: usize = 100;

/// One run of a job as its scheduler tells it. What it does not tell is absent. Texts are as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The command that told it: `sacct`.
    pub source: &'static str,
    /// Its state in the scheduler's own word: `COMPLETED`, `F`.
    pub state: String,
    /// What that state or its exit tells of its end.
    pub end_reason: Option<EndReason>,
    /// How its batch script ended.
    pub exit: Option<Exit>,
    /// When it was handed in, nanoseconds since the Unix epoch, as the two below.
    pub submit: Option<u64>,
    /// When it began to run.
    pub start: Option<u64>,
    /// When it ended.
    pub end: Option<u64>,
    /// Nodes that it was given.
    pub nodes: Option<u64>,
    /// Cores that it was given, on all nodes.
    pub cores: Option<u64>,
    /// Memory that it asked for on each node.
    pub memory_per_node_bytes: Option<u64>,
    /// GPUs that it was given, on all nodes.
    pub gpus: Option<u64>,
    /// Run time that it was allowed.
    pub time_limit_ns: Option<u64>,
    /// Partition or queue.
    pub partition: String,
    /// Account or project.
    pub account: String,
    /// Quality of service.
    pub qos: String,
}

/// A time of which something is asked, nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Begin.
    pub begin: u64,
    /// End, or the last time known.
    pub end: u64,
}

impl Told {
    /// Whether this run was under way in `span`, give or take a minute for what goes before and after.
    fn is_in(&self, span: Span) -> bool {
        const AROUND_NS: u64 = 60_000_000_000;
        let starts = self.start.is_none_or(|start| start <= span.end.saturating_add(AROUND_NS));
        let ends = self.end.is_none_or(|end| end.saturating_add(AROUND_NS) >= span.begin);
        starts && ends
    }
}

/// Whether jobs of `manager` can be asked for.
pub fn is_known(manager: &str) -> bool {
    matches!(manager, "slurm" | "pbs" | "torque" | "lsf")
}

/// What the scheduler `manager` tells of the run of `job` that was under way in `span`. `None` where none of its
/// commands is installed.
///
/// # Errors
/// When they do not answer in time, know no such job or run, or answer what cannot be read; the message says which.
pub fn ask(manager: &str, job: &str, span: Span) -> Result<Option<Told>> {
    let of_an_id = |c: char| c.is_ascii_alphanumeric() || "._-[]+".contains(c);
    let is_id = job.starts_with(|c: char| c.is_ascii_alphanumeric());
    ensure!(
        is_id && job.len() <= LONGEST_ID && job.chars().all(of_an_id),
        "its id is not one that its scheduler could be asked for"
    );
    let until = Instant::now() + PATIENCE;
    let mut refused = Vec::new();
    for way in ways(manager) {
        let parse = |text: &str| (way.parse)(text, job, span.end);
        let runs = match run(way.program, &(way.words)(job), way.environment, until) {
            Answer::NotInstalled => continue,
            Answer::Refused(why) => Err(why),
            Answer::Text(text) => match parse(&text) {
                runs if runs.is_empty() => Err("knows no such job".to_owned()),
                runs => Ok(runs),
            },
        };
        match runs.map(|runs| run_of(runs, span)) {
            Ok(Some(told)) => return Ok(Some(Told { source: way.program, ..told })),
            Ok(None) => refused.push(format!("{} tells of other runs of it only", way.program)),
            Err(why) => refused.push(format!("{} {why}", way.program)),
        }
    }
    if refused.is_empty() {
        return Ok(None);
    }
    bail!("{}", refused.join("; "))
}

/// The run that was under way in `span`; of several that which began when it did.
fn run_of(runs: Vec<Told>, span: Span) -> Option<Told> {
    let apart = |run: &Told| run.start.map_or(u64::MAX, |start| start.abs_diff(span.begin));
    runs.into_iter().filter(|run| run.is_in(span)).min_by_key(apart)
}

/// A command that tells of a job.
struct Way {
    program: &'static str,
    words: fn(&str) -> Vec<String>,
    environment: &'static [(&'static str, &'static str)],
    /// The runs of a job in an answer, the last one last; the time is near that of the run asked for.
    parse: fn(&str, &str, u64) -> Vec<Told>,
}

/// The commands of a scheduler, the best one first.
fn ways(manager: &str) -> &'static [Way] {
    match manager {
        "slurm" => slurm::WAYS,
        "pbs" | "torque" => pbs::WAYS,
        "lsf" => lsf::WAYS,
        _ => &[],
    }
}

/// `4G`, `4000Mn`, `16gb`, `4194304kb`: bytes by powers of 1024; without a unit by `default`.
fn bytes(text: &str, default: u64) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = match text[end..].bytes().next().map(|unit| unit.to_ascii_lowercase()) {
        None => default,
        Some(b'b') => 1,
        Some(b'k') => 1 << 10,
        Some(b'm') => 1 << 20,
        Some(b'g') => 1 << 30,
        Some(b't') => 1 << 40,
        Some(b'p') => 1 << 50,
        Some(_) => return None,
    };
    Some((number * unit as f64) as u64).filter(|bytes| *bytes > 0)
}

/// `[days-]hours:minutes:seconds` or fewer of these, in nanoseconds.
fn span_ns(text: &str) -> Option<u64> {
    let parts: Option<Vec<u64>> = text.rsplit(['-', ':']).map(|part| part.parse().ok()).collect();
    let parts = parts.filter(|parts| parts.len() <= 4)?;
    let seconds = parts
        .iter()
        .zip([1, 60, 3600, 86400])
        .try_fold(0_u64, |sum, (part, unit)| sum.checked_add(part.checked_mul(unit)?));
    seconds?.checked_mul(1_000_000_000).filter(|ns| *ns > 0)
}

/// `name=value,…`: the value of `name`.
fn of_list<'t>(list: &'t str, name: &str) -> Option<&'t str> {
    list.split(',').find_map(|item| item.strip_prefix(name)?.strip_prefix('='))
}

/// The text, unless it is one of the words for none.
fn known(text: &str) -> String {
    let is_none = matches!(text, "(null)" | "None" | "N/A" | "Unknown" | "UNKNOWN");
    if is_none { String::new() } else { text.to_owned() }
}

/// Of a job's number, whatever its server or array.
fn number_of(job: &str) -> &str {
    job.split(|c: char| !c.is_ascii_digit()).next().unwrap_or(job)
}

/// Why an answer is no number.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests;
