//! Whether an agent in a cgroup of its own, as its unit's, begins its intervals in time beside jobs that take all CPUs, by
//! the weight that the unit gives it (`CPUWeight=`), and what the jobs get done meanwhile.

use std::{
    fs,
    io::Read as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jobtrace::cgroup::hierarchies::Hierarchies;
use rustix::process::{Pid, Signal, kill_process};
use xtask::{
    machine,
    markdown::{Table, or_dash},
    sections,
};

use super::{
    footprint::{OWN, lines, values},
    jobs::{Activity, Jobs, Shape, remove},
    pairs::spread,
    tracers::{Place, Setting, Tracer},
};
use crate::process::say;

/// Of `cpu.weight`: a tenth of what a unit has where it says nothing, that, and ten times as much.
const WEIGHTS: [u64; 3] = [10, USUAL_WEIGHT, 1000];
const USUAL_WEIGHT: u64 = 100;
/// Tasks that do nothing but count, on each CPU, each in a cgroup of its own.
const HOGS_A_CPU: [usize; 2] = [1, 8];
/// Jobs that the agent reads each second, beside those.
const JOBS: usize = 100;
/// Times that each setting is watched, in turns, and how long.
const ROUNDS: usize = 3;
const SPAN: Duration = Duration::from_secs(12);
/// Until a job that has just begun counts at its pace.
const WARM: Duration = Duration::from_secs(2);
const COUNT: &str = "i=0; trap 'echo $i; exit' TERM; while :; do i=$((i+1)); done";

/// What was seen with one number of hogs and one weight, or without an agent.
#[derive(Default)]
struct Seen {
    intervals: u64,
    late: u64,
    /// Waited for a CPU while ready to run, all threads, a second.
    waited_ns_per_s: Vec<f64>,
    /// Counted by all hogs, a second.
    done_per_s: Vec<f64>,
}

/// Measures and prints it; into docs/OVERHEAD.md where `write`.
///
/// # Errors
/// When we are not root, there is no CPU controller, or something cannot be started.
pub fn run(place: &Place, write: bool) -> Result<()> {
    let mut table = Table::new(
        ">busy jobs on each CPU | >the agent's weight | >late | >of intervals | >waited for a CPU, ms a second | \
         >the jobs got more done by",
    );
    let jobs = Jobs::start(JOBS, Shape::Flat, Activity::Wakes)?;
    for hogs_a_cpu in HOGS_A_CPU {
        let mut without = Seen::default();
        let mut with = WEIGHTS.map(|weight| (weight, Seen::default()));
        for round in 1..=ROUNDS {
            say(format_args!("{hogs_a_cpu} busy jobs on each CPU, round {round} of {ROUNDS}"));
            watch(place, hogs_a_cpu, None, &mut without)?;
            for (weight, seen) in &mut with {
                watch(place, hogs_a_cpu, Some(*weight), seen)?;
            }
        }
        let usual = middle(&without.done_per_s);
        for (weight, Seen { intervals, late, waited_ns_per_s, done_per_s }) in with {
            let waited = format!("{:.1}", middle(&waited_ns_per_s) / 1e6);
            let more = spread(done_per_s.iter().map(|done| (done / usual - 1.0) * 100.0));
            let more = or_dash(more, |more| {
                format!("{:+.1} % ({:+.1} to {:+.1})", more.median, more.min, more.max)
            });
            table.row([&hogs_a_cpu, &weight, &late, &intervals, &waited, &more]);
        }
        let own = spread(without.done_per_s.iter().map(|done| (done / usual - 1.0) * 100.0));
        let own = or_dash(own, |own| format!("0 % ({:+.1} to {:+.1})", own.min, own.max));
        table.row([&hogs_a_cpu, &"no agent", &"–", &"–", &"–", &own]);
    }
    drop(jobs);
    let text = format!("{}.\n\n{table}", machine::describe()?);
    print!("{text}");
    if write { sections::write("docs/OVERHEAD.md", &[("late", text)]) } else { Ok(()) }
}

fn middle(figures: &[f64]) -> f64 {
    spread(figures.iter().copied()).map_or(0.0, |spread| spread.median)
}

/// Watches so many hogs, and the agent where it has a weight, once.
fn watch(place: &Place, hogs_a_cpu: usize, weight: Option<u64>, seen: &mut Seen) -> Result<()> {
    let cgroups = Cgroups::make()?;
    let agent = match weight {
        Some(weight) => {
            let beside =
                Tracer::Agent.start(place, Setting { interval_s: 1, ..Setting::default() })?;
            cgroups.add("agent", weight, beside.attached.process())?;
            Some(beside)
        }
        None => None,
    };
    let cpus = std::thread::available_parallelism().context("count CPUs")?.get();
    let hogs = Hogs::start(&cgroups, hogs_a_cpu * cpus)?;
    sleep(WARM);
    let waited_ns =
        || agent.as_ref().map_or(Ok(0), |of| read_waited_ns(of.attached.process().id()));
    let (begin, before_ns) = (Instant::now(), waited_ns()?);
    sleep(SPAN);
    let span_s = begin.elapsed().as_secs_f64();
    let waited_ns = waited_ns()? - before_ns;
    seen.done_per_s.push(hogs.end()?);
    let Some(beside) = agent else { return Ok(()) };
    let lines = lines(&beside.folder.path().join("spool/outbox"))?;
    let late = values(&lines, OWN, "late_intervals");
    // What is not told is not in time.
    ensure!(late.len() as u64 + 1 >= SPAN.as_secs(), "the agent told of {} intervals", late.len());
    seen.intervals += late.len() as u64;
    seen.late += late.iter().sum::<u64>();
    seen.waited_ns_per_s.push(waited_ns as f64 / span_s);
    beside.attached.end()
}

/// Ready to run and without a CPU so far: all threads of `pid`.
fn read_waited_ns(pid: u32) -> Result<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).context("read the agent's threads")?;
    let waited = threads.flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Ok(waited.sum())
}

/// Cgroups beside each other with the CPU controller, below one of this process; they go with the value.
struct Cgroups {
    top: PathBuf,
    is_v1: bool,
}

impl Cgroups {
    fn make() -> Result<Self> {
        let hierarchies = Hierarchies::read()?;
        let v1 = hierarchies.v1("cpu");
        let root = v1.or(hierarchies.v2.as_ref()).context("no cgroup hierarchy has cpu")?;
        let top = root.mount.join(format!("jobtrace-late-{}", std::process::id()));
        let made = Self { top, is_v1: v1.is_some() };
        fs::create_dir(&made.top).with_context(|| format!("make {}", made.top.display()))?;
        if !made.is_v1 {
            for folder in [&*root.mount, made.top.as_path()] {
                fs::write(folder.join("cgroup.subtree_control"), "+cpu")
                    .context("hand the CPU controller down")?;
            }
        }
        Ok(made)
    }

    /// Puts `process` into the cgroup `name`, made with `weight`, which is `cpu.weight`'s.
    fn add(&self, name: &str, weight: u64, process: &Child) -> Result<()> {
        let folder = self.top.join(name);
        fs::create_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
        let (file, weight) = match self.is_v1 {
            true => ("cpu.shares", weight * 1024 / USUAL_WEIGHT),
            false => ("cpu.weight", weight),
        };
        fs::write(folder.join(file), weight.to_string()).context("give a cgroup its weight")?;
        fs::write(folder.join("cgroup.procs"), process.id().to_string())
            .context("move a process into its cgroup")
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        let entries = fs::read_dir(&self.top).into_iter().flatten().flatten();
        let folders: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        for folder in folders.iter().chain([&self.top]) {
            if let Err(error) = remove(folder) {
                say(format_args!("cannot remove {}: {error}", folder.display()));
            }
        }
    }
}

/// Processes that count, each in a cgroup of its own; they end with the value.
struct Hogs(Vec<(Instant, Child)>);

impl Hogs {
    fn start(cgroups: &Cgroups, count: usize) -> Result<Self> {
        let mut hogs = Self(Vec::new());
        for number in 0..count {
            let child = Command::new("bash").args(["-c", COUNT]).stdout(Stdio::piped()).spawn();
            hogs.0.push((Instant::now(), child.context("start a job that counts")?));
            let process = &hogs.0[number].1;
            cgroups.add(&format!("job_{number}"), USUAL_WEIGHT, process)?;
        }
        Ok(hogs)
    }

    /// Ends them; what they all counted, a second.
    fn end(mut self) -> Result<f64> {
        let mut ended = Vec::new();
        for (begin, hog) in &self.0 {
            let pid = Pid::from_child(hog);
            kill_process(pid, Signal::TERM).context("end a job that counts")?;
            ended.push(begin.elapsed());
        }
        let mut per_s = 0.0;
        for ((_, hog), span) in self.0.iter_mut().zip(ended) {
            let mut text = String::new();
            let mut told = hog.stdout.take().context("the pipe of a job that counts")?;
            told.read_to_string(&mut text).context("read what a job counted")?;
            let counted: u64 = text.trim().parse().context("a job told no count")?;
            per_s += counted as f64 / span.as_secs_f64();
        }
        Ok(per_s)
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for (_, hog) in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_of_this_process_is_told_by_its_threads() {
        let before_ns = read_waited_ns(std::process::id()).expect("there are threads");
        assert!(read_waited_ns(std::process::id()).expect("there are threads") >= before_ns);
        assert!(read_waited_ns(u32::MAX).is_err());
    }
}
