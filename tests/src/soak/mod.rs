//! Everything on, for as long as asked for: jobs of known amounts come and go while the agent (pinned,
//! all faults timed, every bucket written) is killed and ended again and again. In the end the sums of all
//! that was written are the kernel's, nothing has grown, and nothing is left. How near the sums must be,
//! and why: docs/TESTING.md.

mod jobs;
mod totals;
mod verdict;
mod watch;

use std::{
    fs,
    ops::RangeInclusive,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, sleep},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jobtrace::{base::clock::monotonic_ns, cgroup::hierarchies::Hierarchies};
use tracer_ebpf::ids::MOST_SLOTS;

use crate::{
    account::Node,
    agree::Agreement,
    daemon::{Agent, Setup, kernel::Held},
    disk::RamDisk,
    rig::shaped::Shaped,
    rig::{
        bpffs::{Bpffs, PINS},
        churn::Churn,
        wait_for,
    },
};
use jobs::{Crew, Done};
use totals::Totals;
use watch::{Sizes, Watch};

/// An agent lives so long where the whole is long enough.
const LIFE: Duration = Duration::from_secs(20);
/// Of the whole, in which agents come and go; in the rest one stays, whose growth is looked at.
const RESTLESS_RATIO: f64 = 0.6;
/// Between two looks at the agent that stays.
const PACE: Duration = Duration::from_millis(500);
/// Bytes of the disk of the direct reads and writes.
const DISK_BYTES: u64 = 16 << 20;
/// Cgroups a second that nobody owns, each with a task.
const CHURN_PER_S: u32 = 2;

/// What was seen, for the verdict.
#[derive(Debug)]
struct Seen {
    /// What the jobs did, by the kernel.
    done: Vec<Done>,
    /// Cgroups of nobody's that came and went.
    churned: u64,
    /// The node's own totals before the first agent, when it traced, before its last one ended, and after.
    node: [Node; 4],
    /// Agents after the first.
    restarts: u64,
    /// How often one was killed.
    kills: u64,
    /// Sizes of the agent that stayed.
    watch: Watch,
    /// What each agent said.
    words: Vec<String>,
    /// Begin to end.
    span: Duration,
    /// From the first agent's begin to the last one's end, at least and at most.
    traced_ns: RangeInclusive<u64>,
    /// The disk of the direct transfers.
    device: String,
}

/// Runs it for `span`, and says what it compares.
///
/// # Errors
/// When the agent cannot start or end, or a workload fails.
///
/// # Panics
/// When something does not agree, with all comparisons.
pub fn run(span: Duration) -> Result<()> {
    let _bpffs = Bpffs::mount();
    let setup = Setup::new(&format!(
        "pin = true\nfaults = \"full\"\nslots = {MOST_SLOTS}\nspare_slots = 120\n\
             spool.max_files = 1000000\nexport.profile = \"full\"\nexport.hlog = true\n\
             overhead.max_ratio = 1.0\n"
    ))?;
    let seen = soak(&setup, span);
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => {
            let _ = unpin(&setup);
            return Err(error);
        }
    };
    unpin(&setup)?;
    let totals = Totals::read(&setup.outbox(), &seen.device)?;
    let mut agree = Agreement::new();
    verdict::compare(&mut agree, &seen, &totals);
    let left = fs::read_dir(setup.tmp())?.count() as u64;
    agree.exact("half-written files", left, 0);
    agree.end();
    Ok(())
}

fn soak(setup: &Setup, span: Duration) -> Result<Seen> {
    let disk = RamDisk::new(DISK_BYTES);
    let shaped = Shaped::make(&controllers()?);
    let (stop, begin) = (AtomicBool::new(false), Instant::now());
    let before = Node::read("");
    let before_ns = monotonic_ns();
    let mut agent = setup.start()?;
    let begun_ns = monotonic_ns();
    let traced = Node::read("");
    let (crew, device) = (Crew::new(&shaped, disk.path()), disk.name());
    let life = LIFE.min(span / 6);
    let (mut words, mut watch) = (Vec::new(), Watch::default());
    let (mut restarts, mut kills) = (0, 0);
    let (done, churned) = thread::scope(|scope| -> Result<_> {
        let stopping = Stop(&stop);
        let crews: Vec<_> = (0..Crew::AT_ONCE)
            .map(|n| {
                scope.spawn({
                    let (crew, stop) = (&crew, &stop);
                    move || crew.work(n, stop)
                })
            })
            .collect();
        let churn = scope.spawn(|| churn(&stop));
        while begin.elapsed() < span.mul_f64(RESTLESS_RATIO) {
            sleep(life);
            let kill = restarts % 2 == 0;
            end(&mut agent, kill, &mut words)?;
            kills += u64::from(kill);
            // What happens now is the next one's to tell.
            sleep(Duration::from_millis(restarts * 173 % 900));
            agent = setup.start().with_context(|| words.last().cloned().unwrap_or_default())?;
            restarts += 1;
        }
        while begin.elapsed() < span {
            watch.look(Sizes::of(agent.pid(), &setup.state())?);
            sleep(PACE);
        }
        drop(stopping);
        let joined = |text: &'static str| move |_| anyhow::anyhow!("{text} panicked");
        let churned = churn.join().map_err(joined("the churn"))??;
        let mut done = Vec::new();
        for crew in crews {
            done.extend(crew.join().map_err(joined("a crew"))??);
        }
        Ok((done, churned))
    })?;
    // Two ticks, so that the last job's end has been read.
    sleep(Duration::from_millis(2500));
    let held = Held::by(agent.pid())?;
    let ending = Node::read("");
    let ending_ns = monotonic_ns();
    end(&mut agent, false, &mut words)?;
    let traced_ns = ending_ns - begun_ns..=monotonic_ns() - before_ns;
    let after = Node::read("");
    drop(shaped);
    unpin(setup)?;
    let left = held.left_in_the_end();
    ensure!(left == Held::default(), "left in the kernel: {left:?}");
    let node = [before, traced, ending, after];
    let span = begin.elapsed();
    Ok(Seen { done, churned, node, restarts, kills, watch, words, span, traced_ns, device })
}

/// Where jobs have directories: v2, by which the agent tells them apart, and what counts their CPU time
/// and transfers.
fn controllers() -> Result<Vec<&'static str>> {
    let found = Hierarchies::read()?;
    ensure!(found.v2.is_some(), "cgroup v2 is not mounted");
    let v1 = ["blkio", "cpuacct"].into_iter().filter(|name| found.v1(name).is_some());
    Ok([""].into_iter().chain(v1).collect())
}

/// Cgroups of no job, until told to stop.
fn churn(stop: &AtomicBool) -> Result<u64> {
    let mut made = 0;
    while !stop.load(Ordering::Relaxed) {
        let count = u64::from(CHURN_PER_S) * 2;
        let per_second = Some(CHURN_PER_S);
        made += Churn { count, per_second, with_task: true, ..Churn::default() }.run()?.made;
    }
    Ok(made)
}

/// Ends the agent, by SIGKILL or as an administrator would, and keeps what it said.
fn end(agent: &mut Agent, kill: bool, words: &mut Vec<String>) -> Result<()> {
    if kill {
        agent.end_by(libc::SIGKILL)?;
    } else {
        agent.end_well()?;
    }
    words.push(agent.words());
    Ok(())
}

/// Takes the programs away; nothing stays in bpffs.
fn unpin(setup: &Setup) -> Result<()> {
    let output = setup.command(&["--unpin"])?.output()?;
    ensure!(output.status.success(), "--unpin failed: {output:?}");
    if !Path::new(PINS).exists() {
        return Ok(());
    }
    wait_for("an empty bpffs", crate::daemon::PATIENCE, || fs::remove_dir(PINS).ok())
}

/// Raises the flag when it goes: the threads of a scope must end also where its body fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
