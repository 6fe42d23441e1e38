//! What a tracer itself takes of a node full of jobs: time on a CPU, resident memory, BPF maps; and what the
//! agent says of itself meanwhile.

use super::found::told;
use super::jobs::{JOB_DIGITS, Jobs};
use super::tracers::{Place, Tracer};
use super::watch::{read_cpu, read_rss_bytes};
use crate::process::say;
use anyhow::{Context, Result, ensure};
use flate2::read::MultiGzDecoder;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A node, and how long a tracer is watched there.
#[derive(Clone, Copy)]
struct Scene {
    jobs: usize,
    /// Whether each job executes ten programs a second, of which the agent never learns whose they are.
    executes: bool,
    interval_s: u64,
    span_s: u64,
}

const fn scene(jobs: usize, executes: bool, interval_s: u64, span_s: u64) -> Scene {
    Scene { jobs, executes, interval_s, span_s }
}

/// Of all tracers the first two, of the agent all: 255 jobs and the rest of the node take 256 slots.
const SCENES: [Scene; 4] = [
    scene(100, false, 10, 60),
    scene(100, false, 1, 20),
    scene(255, false, 1, 10),
    scene(100, true, 10, 60),
];
/// A peer is watched so long at most, seconds.
const PEERS_SPAN_S: u64 = 10;
/// Slots of the agent, where it needs more than by default.
const SLOTS: usize = 400;

/// One tracer in one scene.
pub struct Row {
    /// The tracer.
    pub tracer: &'static str,
    /// Jobs on the node.
    pub jobs: usize,
    /// Between two readings.
    pub interval_s: u64,
    /// What was seen, or why nothing was.
    pub taken: Result<Taken, String>,
}

/// What it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// Watched so long.
    pub span: Duration,
    /// User and system time as a part of one core.
    pub core_ratio: f64,
    /// Resident at the end.
    pub rss_bytes: u64,
    /// Resident at its peak, which is while it starts.
    pub peak_rss_bytes: u64,
    /// Its BPF maps.
    pub map_bytes: u64,
    /// What the agent said of itself.
    pub said: Option<Said>,
}

/// By the agent's own account.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Its readings of the maps: the median.
    pub drain_ns: u64,
    /// The shortest of them: on a loaded machine the median is the others'.
    pub least_drain_ns: u64,
    /// Programs that the jobs executed in a second.
    pub execs_per_s: f64,
    /// What it took for each of them more than beside jobs that execute none; `None` beside such.
    pub exec_ns: Option<f64>,
}

/// Watches each tracer that tells at intervals; quickly, in the second scene for a moment.
///
/// # Errors
/// When the jobs cannot be made.
pub fn measure(place: &Place, tracers: &[Tracer], quick: bool) -> Result<Vec<Row>> {
    let scenes = if quick { &[scene(100, false, 1, 3)][..] } else { &SCENES };
    let mut rows = Vec::new();
    for (number, &scene) in scenes.iter().enumerate() {
        let jobs = Jobs::start(scene.jobs, scene.executes)?;
        let is_agent = |tracer: &Tracer| matches!(tracer, Tracer::Agent);
        for tracer in tracers.iter().filter(|tracer| tracer.has_interval()) {
            if number >= 2 && !is_agent(tracer) {
                continue;
            }
            let most_s = if is_agent(tracer) { u64::MAX } else { PEERS_SPAN_S };
            let scene = Scene { span_s: scene.span_s.min(most_s), ..scene };
            let (interval_s, id) = (scene.interval_s, tracer.id());
            say(format_args!("{id}, {} jobs, every {interval_s} s", jobs.count()));
            let taken = told(watch(place, *tracer, scene));
            rows.push(Row { tracer: id, jobs: scene.jobs, interval_s, taken });
        }
    }
    charge_execs(&mut rows);
    Ok(rows)
}

fn watch(place: &Place, tracer: Tracer, scene: Scene) -> Result<Taken> {
    let slots = (scene.jobs > 200).then_some(SLOTS);
    let mut beside = tracer.start(place, scene.interval_s, slots)?;
    // In the middle between two readings, so that the span has a whole number of them.
    sleep(Duration::from_millis(scene.interval_s * 500));
    let attached = &mut beside.attached;
    let (begin, cpu_before) = (Instant::now(), read_cpu(attached.process())?);
    sleep(Duration::from_secs(scene.span_s));
    let (span, cpu) = (begin.elapsed(), read_cpu(attached.process())?);
    attached.look();
    let said = match tracer {
        Tracer::Agent => Some(said(&lines(&beside.folder.path().join("spool/outbox"))?, scene)?),
        _ => None,
    };
    let taken = Taken {
        span,
        core_ratio: (cpu - cpu_before).as_secs_f64() / span.as_secs_f64(),
        rss_bytes: read_rss_bytes(attached.process())?,
        peak_rss_bytes: attached.watch.peak_rss_bytes,
        map_bytes: attached.watch.all_map_bytes(),
        said,
    };
    beside.attached.end()?;
    Ok(taken)
}

/// What the agent has written so far.
fn lines(outbox: &Path) -> Result<String> {
    let entries = fs::read_dir(outbox).context("read the spool")?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()
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

fn said(lines: &str, scene: Scene) -> Result<Said> {
    // Others' jobs may be there too.
    let counted = values(lines, "jobtrace_self,", "jobs").last().copied().unwrap_or(0);
    ensure!(counted >= scene.jobs as u64, "the agent counted {counted} jobs of {}", scene.jobs);
    let dropped: u64 = values(lines, "jobtrace_self,", "dropped_slot").iter().sum();
    ensure!(dropped == 0, "{dropped} cgroups found no slot");
    let mut drains = values(lines, "jobtrace_self,", "drain_ns");
    drains.sort_unstable();
    let execs: u64 = values(lines, "job_sched,", "execs").iter().sum();
    let spans_ns: u64 = values(lines, "job_sched,", "interval_ns").iter().sum();
    let jobs_span_s = spans_ns as f64 / 1e9 / scene.jobs as f64;
    let least_drain_ns = *drains.first().context("the agent told of no drain")?;
    Ok(Said {
        drain_ns: drains[drains.len() / 2],
        least_drain_ns,
        execs_per_s: execs as f64 / jobs_span_s,
        exec_ns: None,
    })
}

/// The values of an integer field, in the order of `lines`: of lines that begin so and, where they are of a
/// job, of the bench's own.
fn values(lines: &str, measurement: &str, field: &str) -> Vec<u64> {
    let own = format!(",job={JOB_DIGITS}");
    let is_own = |line: &&str| {
        line.starts_with(measurement) && (!line.contains(",job=") || line.contains(&own))
    };
    let value = |line: &str| {
        let mut fields = line.split(' ').nth(1)?.split(',').filter_map(|pair| pair.split_once('='));
        fields.find(|(name, _)| *name == field)?.1.strip_suffix('i')?.parse().ok()
    };
    lines.lines().filter(is_own).filter_map(value).collect()
}

/// Beside executing jobs the agent takes more than in the first scene: for each program so much.
fn charge_execs(rows: &mut [Row]) {
    let usual = rows.iter().find(|row| row.tracer == Tracer::Agent.id());
    let Some(Ok(usual)) = usual.map(|row| row.taken.as_ref().map(|taken| taken.core_ratio)) else {
        return;
    };
    for taken in rows.iter_mut().skip(1).filter_map(|row| row.taken.as_mut().ok()) {
        let more_ns = (taken.core_ratio - usual) * 1e9;
        if let Some(said) = taken.said.as_mut().filter(|said| said.execs_per_s > 1.0) {
            said.exec_ns = Some(more_ns / said.execs_per_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_agent_says_of_itself_is_read() {
        let lines = "jobtrace_self,host=n1 jobs=9i,drain_ns=7i,load=1.5 3\n\
                     job_sched,host=n1,job=990007,user=root execs=8i,interval_ns=2000000000i 3\n\
                     job_sched,host=n1,job=5 drain_ns=1i,execs=1i 3\n\
                     jobtrace_self,host=n1 drain_ns=5i 4\njobtrace_self,host=n1 jobs=1i,drain_ns=6i 5\n";
        assert_eq!(values(lines, "jobtrace_self,", "drain_ns"), [7, 5, 6]);
        assert!(values(lines, "jobtrace_self,", "load").is_empty(), "no integer");
        assert_eq!(values(lines, "job_sched,", "execs"), [8], "of the bench's jobs alone");
        let found = said(lines, scene(1, true, 1, 1)).expect("all is there");
        assert_eq!((found.drain_ns, found.least_drain_ns, found.execs_per_s), (6, 5, 4.0));
        assert!(said(lines, scene(2, true, 1, 1)).is_err(), "a job is missing");
    }
}
