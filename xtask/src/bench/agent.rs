//! What `jobtrace agent` costs a node full of jobs: CPU, memory and the time of a drain, looked at from
//! outside while the jobs hardly do anything.

use super::jobs::Jobs;
use super::watch::{Watch, number};
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
}

/// Measures an agent at its usual interval, at one ten times as short, and with 256 slots.
///
/// # Errors
/// When the cgroups cannot be made, or the agent fails or misses a job.
pub fn measure(scratch: &Path) -> Result<Vec<Cost>> {
    let jobs = Jobs::start(JOBS)?;
    let usual = watch(scratch, &jobs, 10, 60)?;
    let short = watch(scratch, &jobs, 1, 20)?;
    drop(jobs);
    let jobs = Jobs::start(MOST_JOBS)?;
    Ok(vec![usual, short, watch(scratch, &jobs, 1, 10)?])
}

fn watch(scratch: &Path, jobs: &Jobs, interval_s: u64, span_s: u64) -> Result<Cost> {
    let interval = Duration::from_secs(interval_s);
    say(format_args!("agent, {} jobs, every {interval_s} s: {span_s} s", jobs.count()));
    let mut agent = Agent::start(scratch, interval_s)?;
    agent.wait_for_output(interval + PATIENCE)?;
    // In the middle between two readings, so that the span has a whole number of them.
    sleep(interval / 2);
    let begin = (Instant::now(), agent.read_cpu()?);
    sleep(Duration::from_secs(span_s));
    let end = (Instant::now(), agent.read_cpu()?);
    let mut seen = Watch::default();
    seen.look(&agent.process);
    let rss_bytes = agent.read_rss_bytes()?;
    let lines = agent.end()?;
    // Others' jobs may be there too.
    let counted = values(&lines, "jobs").last().copied().unwrap_or(0);
    ensure!(counted >= jobs.count() as u64, "the agent counted {counted} jobs of {}", jobs.count());
    let dropped: u64 = values(&lines, "dropped_slot").iter().sum();
    ensure!(dropped == 0, "{dropped} cgroups found no slot");
    let span = end.0 - begin.0;
    let drains = values(&lines, "drain_ns");
    Ok(Cost {
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

/// A running agent with a spool of its own; killed when dropped, which disturbs no job.
struct Agent {
    process: Child,
    outbox: PathBuf,
    _folder: tempfile::TempDir,
}

impl Agent {
    fn start(scratch: &Path, interval_s: u64) -> Result<Self> {
        let folder = tempfile::tempdir_in(scratch).context("make a folder for the agent")?;
        let (spool, state) = (folder.path().join("spool"), folder.path().join("state"));
        let config = folder.path().join("jobtrace.toml");
        let text = format!(
            "interval = \"{interval_s}s\"\nslots = 400\n[spool]\ndir = {spool:?}\n[state]\ndir = {state:?}\n"
        );
        fs::write(&config, text).context("write the agent's configuration")?;
        let process = Command::new(target_dir().join("release/jobtrace"))
            .args(["agent", "--config"])
            .arg(config)
            .stdin(Stdio::null())
            .spawn()
            .context("start target/release/jobtrace agent")?;
        Ok(Self { process, outbox: spool.join("outbox"), _folder: folder })
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

    /// User and system time of all its threads, those that have ended included.
    fn read_cpu(&self) -> Result<Duration> {
        let path = format!("/proc/{}/stat", self.process.id());
        let stat = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
        parse_cpu(&stat, rustix::param::clock_ticks_per_second())
            .with_context(|| format!("understand {path}"))
    }

    fn read_rss_bytes(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.process.id());
        let status = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
        number(&status, "VmRSS").map(|kib| kib * 1024).context("no VmRSS")
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

/// Fields 14 and 15 of proc(5)'s stat; the 2nd may hold blanks but ends with ')'.
fn parse_cpu(stat: &str, ticks_per_second: u64) -> Option<Duration> {
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_secs_f64((ticks()? + ticks()?) as f64 / ticks_per_second as f64))
}

/// The values of an integer field of `jobtrace_self`, in the order of `lines`.
fn values(lines: &str, field: &str) -> Vec<u64> {
    let value = |line: &str| {
        let fields = line.strip_prefix("jobtrace_self,")?.split(' ').nth(1)?;
        let mut fields = fields.split(',').filter_map(|pair| pair.split_once('='));
        fields.find(|(name, _)| *name == field)?.1.strip_suffix('i')?.parse().ok()
    };
    lines.lines().filter_map(value).collect()
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
        assert_eq!(median(values(lines, "drain_ns")), Some(6));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn processor_time_is_read_behind_a_name_with_blanks() {
        let stat = "12 (a ) b) S 1 12 12 0 -1 4194560 100 0 0 0 25 5 0 0 20 0 3 0 99 1 2";
        assert_eq!(parse_cpu(stat, 100), Some(Duration::from_millis(300)));
        assert_eq!(parse_cpu("12 (a) S 1", 100), None);
    }
}
