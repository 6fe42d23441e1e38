//! What a tracer itself takes of a node full of jobs: time on a CPU, resident memory, BPF maps; and what the
//! agent says of itself meanwhile.

use super::found::told;
use super::jobs::{Activity, JOB_DIGITS, Jobs, Shape};
use super::tracers::{Place, Setting, Tracer};
use super::watch::{read_cpu, read_rss_bytes};
use crate::process::say;
use anyhow::{Context, Result, ensure};
use flate2::read::MultiGzDecoder;
use std::fs::{self, File};
use std::io::Read;
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A node, and how long a tracer is watched there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Jobs on the node.
    pub jobs: usize,
    /// How their cgroups lie.
    pub shape: Shape,
    /// What goes on there besides.
    pub load: Load,
    /// Between two readings.
    pub interval_s: u64,
    span_s: u64,
}

/// What the jobs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Nothing at all.
    Asleep,
    /// They wake up.
    Calm,
    /// Each executes ten programs a second, of which the agent never learns whose they are.
    Executes,
    /// They wake up, beside one that keeps each CPU busy.
    Busy,
}

impl Load {
    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Asleep => "sleep",
            Self::Calm => "wake",
            Self::Executes => "execute",
            Self::Busy => "wake, beside busy CPUs",
        }
    }

    fn activity(self) -> Activity {
        match self {
            Self::Asleep => Activity::Sleeps,
            Self::Calm | Self::Busy => Activity::Wakes,
            Self::Executes => Activity::Executes,
        }
    }
}

impl Scene {
    /// One of so many jobs, watched for `span_s`.
    pub const fn of(jobs: usize, shape: Shape, load: Load, interval_s: u64, span_s: u64) -> Self {
        Self { jobs, shape, load, interval_s, span_s }
    }

    /// Whether the agent is watched there with its census of software as well: where it reads as often as by itself.
    fn has_census(self) -> bool {
        self.interval_s == 10 && self.load != Load::Asleep
    }
}

/// Of all tracers the first two, of the agent all: 255 jobs and the rest of the node take 256 slots.
const SCENES: [Scene; 11] = [
    Scene::of(100, Shape::Flat, Load::Calm, 10, 60),
    Scene::of(100, Shape::Flat, Load::Calm, 1, 30),
    Scene::of(100, Shape::Flat, Load::Asleep, 10, 60),
    Scene::of(100, Shape::Flat, Load::Asleep, 1, 30),
    Scene::of(100, Shape::Nested, Load::Asleep, 1, 30),
    Scene::of(100, Shape::Nested, Load::Calm, 1, 30),
    Scene::of(100, Shape::Unified, Load::Calm, 1, 30),
    Scene::of(255, Shape::Flat, Load::Calm, 1, 10),
    Scene::of(100, Shape::Flat, Load::Executes, 10, 60),
    Scene::of(100, Shape::Flat, Load::Busy, 1, 20),
    Scene::of(1000, Shape::Nested, Load::Calm, 10, 60),
];
/// A peer is watched so long at most, seconds.
const PEERS_SPAN_S: u64 = 10;
/// From when on the agent reads as seldom as it ever does what costs much to read.
const SETTLED: Duration = Duration::from_secs(60);
/// The agent that also watches which software jobs run, in tables.
const WITH_CENSUS: &str = "jobtrace agent, `census = \"names\"`";
/// Slots of the agent beyond its jobs', where it needs more than by default, and the most that it may have.
const MORE_SLOTS: usize = 200;
const MOST_SLOTS: usize = 1023;

/// One tracer in one scene.
pub struct Row {
    /// The tracer.
    pub tracer: &'static str,
    /// Where it was watched.
    pub scene: Scene,
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
    /// Intervals that began late.
    pub late: u64,
}

/// Watches each tracer that tells at intervals; quickly, in the second scene for a moment.
///
/// # Errors
/// When the jobs cannot be made.
pub fn measure(place: &Place, tracers: &[Tracer], quick: bool) -> Result<Vec<Row>> {
    let quickly = [Scene::of(100, Shape::Nested, Load::Calm, 1, 3)];
    let scenes = if quick { &quickly[..] } else { &SCENES };
    let mut rows = Vec::new();
    for (number, &scene) in scenes.iter().enumerate() {
        let jobs = Jobs::start(scene.jobs, scene.shape, scene.load.activity())?;
        let _busy = (scene.load == Load::Busy).then(Busy::start).transpose()?;
        let is_agent = |tracer: &Tracer| matches!(tracer, Tracer::Agent);
        for tracer in tracers.iter().filter(|tracer| tracer.has_interval()) {
            if number >= 2 && !is_agent(tracer) {
                continue;
            }
            let most_s = if is_agent(tracer) { u64::MAX } else { PEERS_SPAN_S };
            let scene = Scene { span_s: scene.span_s.min(most_s), ..scene };
            let (interval_s, shape) = (scene.interval_s, scene.shape.name());
            let settled = if is_agent(tracer) && !quick { SETTLED } else { Duration::ZERO };
            let has_census = is_agent(tracer) && (quick || scene.has_census());
            // Right after each other, beside the same jobs.
            for census in [None].into_iter().chain(has_census.then_some(Some("names"))) {
                let id = if census.is_some() { WITH_CENSUS } else { tracer.id() };
                say(format_args!("{id}, {} jobs, {shape}, every {interval_s} s", jobs.count()));
                let taken = told(watch(place, *tracer, scene, census, settled));
                rows.push(Row { tracer: id, scene, taken });
            }
        }
    }
    charge_execs(&mut rows);
    Ok(rows)
}

fn watch(
    place: &Place,
    tracer: Tracer,
    scene: Scene,
    census: Option<&'static str>,
    settled: Duration,
) -> Result<Taken> {
    let slots = (scene.jobs > 200).then_some(MOST_SLOTS.min(scene.jobs + MORE_SLOTS));
    let hierarchy = (scene.shape == Shape::Unified).then_some("v2");
    let setting = Setting { interval_s: scene.interval_s, slots, hierarchy, census };
    let mut beside = tracer.start(place, setting)?;
    sleep(settled);
    // In the middle between two readings, so that the span has a whole number of them.
    let interval = Duration::from_secs(scene.interval_s);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let in_it = Duration::from_nanos((since.as_nanos() % interval.as_nanos()) as u64);
    sleep(interval + interval / 2 - in_it);
    let attached = &mut beside.attached;
    let (begin, cpu_before) = (Instant::now(), read_cpu(attached.process())?);
    sleep(Duration::from_secs(scene.span_s));
    let (span, cpu) = (begin.elapsed(), read_cpu(attached.process())?);
    attached.look();
    let said = match tracer {
        Tracer::Agent => {
            let lines = lines(&beside.folder.path().join("spool/outbox"))?;
            // Figures of a census that sees nothing would flatter.
            let is_seen = lines.lines().any(|line| line.starts_with("job_software,"));
            ensure!(is_seen == census.is_some(), "whether software is told of is not as asked");
            Some(said(&lines, scene)?)
        }
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
///
/// # Errors
/// When it cannot be read.
pub fn lines(outbox: &Path) -> Result<String> {
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

/// What begins a line on the agent itself.
pub const OWN: &str = "jobtrace_self,";

fn said(lines: &str, scene: Scene) -> Result<Said> {
    // Others' jobs may be there too.
    let counted = values(lines, OWN, "jobs").last().copied().unwrap_or(0);
    ensure!(counted >= scene.jobs as u64, "the agent counted {counted} jobs of {}", scene.jobs);
    let late = values(lines, OWN, "late_intervals").iter().sum();
    let dropped: u64 = values(lines, OWN, "dropped_slot").iter().sum();
    ensure!(dropped == 0, "{dropped} cgroups found no slot");
    let mut drains = values(lines, OWN, "drain_ns");
    drains.sort_unstable();
    let execs: u64 = values(lines, "job_sched,", "execs").iter().sum();
    let spans_ns: u64 = values(lines, "job_sched,", "interval_ns").iter().sum();
    let jobs_span_s = spans_ns as f64 / 1e9 / scene.jobs as f64;
    let least_drain_ns = *drains.first().context("the agent told of no drain")?;
    Ok(Said {
        drain_ns: drains[drains.len() / 2],
        least_drain_ns,
        // Jobs that sleep are not told of.
        execs_per_s: if execs == 0 { 0.0 } else { execs as f64 / jobs_span_s },
        exec_ns: None,
        late,
    })
}

/// The values of an integer field, in the order of `lines`: of the agent's own, or of the bench's jobs.
pub fn values(lines: &str, measurement: &str, field: &str) -> Vec<u64> {
    let of_jobs = format!(",job={JOB_DIGITS}");
    let is_own = |line: &&str| {
        line.starts_with(measurement) && (measurement == OWN || line.contains(&of_jobs))
    };
    let value = |line: &str| {
        let mut fields = line.split(' ').nth(1)?.split(',').filter_map(|pair| pair.split_once('='));
        fields.find(|(name, _)| *name == field)?.1.strip_suffix('i')?.parse().ok()
    };
    lines.lines().filter(is_own).filter_map(value).collect()
}

/// Something that keeps each CPU busy; it ends with the value.
struct Busy(Vec<Child>);

impl Busy {
    fn start() -> Result<Self> {
        let mut busy = Self(Vec::new());
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            let hog = Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
            busy.0.push(hog.context("start what keeps a CPU busy")?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// Beside executing jobs the agent takes more than in its first scene: for each program so much.
fn charge_execs(rows: &mut [Row]) {
    let ratio = |row: &Row| row.taken.as_ref().ok().map(|taken| taken.core_ratio);
    for at in 0..rows.len() {
        let of_it = rows[..at].iter().find(|row| row.tracer == rows[at].tracer);
        let Some(usual) = of_it.and_then(ratio) else { continue };
        let Ok(Taken { core_ratio, said: Some(said), .. }) = &mut rows[at].taken else { continue };
        if said.execs_per_s > 1.0 {
            said.exec_ns = Some((*core_ratio - usual) * 1e9 / said.execs_per_s);
        }
    }
}

#[cfg(test)]
mod tests;
