//! What `jobtrace agent` costs a node full of jobs: CPU, memory and the time of a drain, looked at
//! from outside while the jobs hardly do anything.

use super::jobs::{JOB_DIGITS, Jobs, Loop};
use super::watch::{Watch, read_cpu, read_rss_bytes};
use crate::process::{say, target_dir};
use anyhow::{Context, Result, bail, ensure};
use flate2::read::MultiGzDecoder;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Jobs on the node.
const JOBS: usize = 100;
/// Jobs for the time of a drain: with the rest of the node 256 slots.
const MOST_JOBS: usize = 255;
/// How long the agent may take to write its first file, besides an interval.
const PATIENCE: Duration = Duration::from_secs(30);

/// One agent over a span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Jobs on the node.
    pub jobs: usize,
    /// Between two readings.
    pub interval: Duration,
    /// Watched so long.
    pub span: Duration,
    /// Its user and system time as a part of one core.
    pub core_ratio: f64,
    /// Resident at the end.
    pub rss_bytes: u64,
    /// Resident at its peak, which is while it starts.
    pub peak_rss_bytes: u64,
    /// Its BPF maps.
    pub map_bytes: u64,
    /// Its readings of the maps, by its own account: the median.
    pub drain_ns: u64,
    /// The shortest of them: on a loaded machine the median is the others'.
    pub least_drain_ns: u64,
    /// Programs that the jobs executed in a second.
    pub execs_per_s: f64,
    /// What it took for each of them more than beside jobs that execute none; `None` beside such.
    pub exec_ns: Option<f64>,
}

/// Measures an agent at its usual interval, at one ten times as short, with 256 slots, and beside jobs of
/// which it never learns more and that execute programs.
///
/// # Errors
/// When the cgroups cannot be made, or the agent fails or misses a job.
pub fn measure(scratch: &Path) -> Result<Vec<Cost>> {
    let (idle, executing) = (Loop { execute: false }, Loop { execute: true });
    let jobs = Jobs::start(JOBS, idle)?;
    let usual = watch(scratch, &jobs, 10, 60)?;
    let short = watch(scratch, &jobs, 1, 20)?;
    drop(jobs);
    let jobs = Jobs::start(MOST_JOBS, idle)?;
    let full = watch(scratch, &jobs, 1, 10)?;
    drop(jobs);
    let jobs = Jobs::start(JOBS, executing)?;
    let mut busy = watch(scratch, &jobs, 10, 60)?;
    let more_ns = (busy.core_ratio - usual.core_ratio) * 1e9;
    busy.exec_ns = (busy.execs_per_s > 0.0).then_some(more_ns / busy.execs_per_s);
    Ok(vec![usual, short, full, busy])
}

fn watch(scratch: &Path, jobs: &Jobs, interval_s: u64, span_s: u64) -> Result<Cost> {
    let interval = Duration::from_secs(interval_s);
    say(format_args!("agent, {} jobs, every {interval_s} s: {span_s} s", jobs.count()));
    let mut agent = Agent::start(scratch, interval_s)?;
    agent.wait_for_output(interval + PATIENCE)?;
    // In the middle between two readings, so that the span has a whole number of them.
    sleep(interval / 2);
    let begin = (Instant::now(), read_cpu(&agent.process)?);
    sleep(Duration::from_secs(span_s));
    let end = (Instant::now(), read_cpu(&agent.process)?);
    let mut seen = Watch::default();
    seen.look(&agent.process);
    let rss_bytes = read_rss_bytes(&agent.process)?;
    let lines = agent.end()?;
    // Others' jobs may be there too.
    let counted = values(&lines, "jobs").last().copied().unwrap_or(0);
    ensure!(counted >= jobs.count() as u64, "the agent counted {counted} jobs of {}", jobs.count());
    let dropped: u64 = values(&lines, "dropped_slot").iter().sum();
    ensure!(dropped == 0, "{dropped} cgroups found no slot");
    let span = end.0 - begin.0;
    let drains = values(&lines, "drain_ns");
    let jobs_execs: u64 = sched_values(&lines, "execs").sum();
    let spans_ns: u64 = sched_values(&lines, "interval_ns").sum();
    let jobs_span_s = spans_ns as f64 / 1e9 / jobs.count() as f64;
    Ok(Cost {
        execs_per_s: jobs_execs as f64 / jobs_span_s,
        exec_ns: None,
        jobs: jobs.count(),
        interval,
        span,
        core_ratio: (end.1 - begin.1).as_secs_f64() / span.as_secs_f64(),
        rss_bytes,
        peak_rss_bytes: seen.peak_rss_bytes,
        map_bytes: seen.map_bytes.values().sum(),
        least_drain_ns: drains.iter().copied().min().context("the agent told of no drain")?,
        drain_ns: median(drains).context("the agent told of no drain")?,
    })
}

/// `jobtrace agent` with its configuration, spool and state in `folder`; without `slots` as many as
/// it has by itself.
///
/// # Errors
/// When the configuration cannot be written.
pub fn command(folder: &Path, interval_s: u64, slots: Option<u32>) -> Result<Command> {
    let (spool, state) = (folder.join("spool"), folder.join("state"));
    let slots = slots.map_or(String::new(), |slots| format!("slots = {slots}\n"));
    let text = format!(
        "interval = \"{interval_s}s\"\n{slots}[spool]\ndir = {spool:?}\n[state]\ndir = {state:?}\n"
    );
    let config = folder.join("jobtrace.toml");
    fs::write(&config, text).context("write the agent's configuration")?;
    let mut command = Command::new(target_dir().join("release/jobtrace"));
    command.args(["agent", "--config"]).arg(config).stdin(Stdio::null());
    Ok(command)
}

/// A running agent with a spool of its own; killed when dropped, which disturbs no job.
struct Agent {
    process: Child,
    outbox: PathBuf,
    _folder: tempfile::TempDir,
}

impl Agent {
    fn start(scratch: &Path, interval_s: u64) -> Result<Self> {
        let folder = tempfile::tempdir_in(scratch).context("make a folder for the agent")?;
        let process = command(folder.path(), interval_s, Some(400))?
            .spawn()
            .context("start target/release/jobtrace agent")?;
        Ok(Self { process, outbox: folder.path().join("spool/outbox"), _folder: folder })
    }

    fn wait_for_output(&mut self, patience: Duration) -> Result<()> {
        let begin = Instant::now();
        while fs::read_dir(&self.outbox).map_or(0, Iterator::count) == 0 {
            if let Some(status) = self.process.try_wait().context("wait for the agent")? {
                bail!("the agent ended: {status}");
            }
            ensure!(begin.elapsed() < patience, "the agent writes nothing");
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Ends it; all that it wrote.
    fn end(mut self) -> Result<String> {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .context("end the agent")?;
        let status = self.process.wait().context("wait for the agent")?;
        ensure!(status.success(), "the agent failed: {status}");
        let mut files = fs::read_dir(&self.outbox)
            .and_then(|entries| {
                entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>()
            })
            .context("read the spool")?;
        files.sort();
        let mut text = String::new();
        for file in files {
            let opened = File::open(&file).with_context(|| format!("open {}", file.display()))?;
            MultiGzDecoder::new(opened)
                .read_to_string(&mut text)
                .with_context(|| format!("unpack {}", file.display()))?;
        }
        Ok(text)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The values of an integer field of `jobtrace_self`, in the order of `lines`.
fn values(lines: &str, field: &str) -> Vec<u64> {
    let own = lines.lines().filter(|line| line.starts_with("jobtrace_self,"));
    own.filter_map(|line| value(line, field)).collect()
}

/// The same of the jobs' `job_sched`.
fn sched_values<'a>(lines: &'a str, field: &'a str) -> impl Iterator<Item = u64> + 'a {
    let is_jobs = |line: &&str| {
        line.starts_with("job_sched,") && line.contains(&format!(",job={JOB_DIGITS}"))
    };
    lines.lines().filter(is_jobs).filter_map(move |line| value(line, field))
}

fn value(line: &str, field: &str) -> Option<u64> {
    let fields = line.split(' ').nth(1)?;
    let mut fields = fields.split(',').filter_map(|pair| pair.split_once('='));
    fields.find(|(name, _)| *name == field)?.1.strip_suffix('i')?.parse().ok()
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_agent_says_of_itself_is_read() {
        let lines = "jobtrace_self,host=n1 cpu_ns=9i,drain_ns=7i,load=1.5 3\n\
                     job_sched,host=n1,job=5 drain_ns=1i 3\n\
                     jobtrace_self,host=n1 drain_ns=5i 4\njobtrace_self,host=n1 drain_ns=6i 5\n";
        assert_eq!(values(lines, "drain_ns"), [7, 5, 6]);
        assert!(values(lines, "load").is_empty(), "no integer");
        let jobs = "job_sched,host=n1,job=990007,user=root execs=8i,interval_ns=2i 3\n\
                     job_sched,host=n1,job=5 execs=1i 3\njobtrace_self,host=n1 execs=1i 4\n";
        assert_eq!(sched_values(jobs, "execs").sum::<u64>(), 8, "of the bench's jobs alone");
        assert_eq!(median(values(lines, "drain_ns")), Some(6));
        assert_eq!(median(Vec::new()), None);
    }
}
