//! What it costs to keep the state for the next agent (`pin`): its size, and the CPU time at each tick. No BPF, no root.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jobtrace::{
    commands::agent::{
        details::Details,
        state::{AgentState, Keeper, KnownJob},
    },
    model::{
        group::{Group, follow_all},
        job::{Job, Losses},
        lease::Lease,
        snapshot::Snapshot,
    },
    probes::Carried,
    resolve::Resolver,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use xtask::markdown::Table;

use super::record::{INTERVAL_NS, interval};
use crate::process::say;

/// Jobs on the node, all of them at work, and how much of a core they may take where that is a goal.
const JOBS: [(u64, Option<f64>); 2] = [(100, Some(0.001)), (1_000, None)];
/// A day of each job's, so that its timeline is full.
const INTERVALS: u64 = 8_640;
/// Ticks that are timed; the median counts.
const TICKS: u64 = 9;

/// One row.
pub struct Row {
    jobs: u64,
    most_share: Option<f64>,
    bytes: u64,
    tick_ns: u64,
}

impl Row {
    fn share(&self) -> f64 {
        self.tick_ns as f64 / INTERVAL_NS as f64
    }
}

/// Measures all.
///
/// # Errors
/// When the state cannot be written.
pub fn measure() -> Result<Vec<Row>> {
    let row = |(jobs, most_share)| {
        say(format_args!("the state of {jobs} jobs"));
        of(jobs, most_share, INTERVALS)
    };
    JOBS.into_iter().map(row).collect()
}

/// As a part of docs/SIZING.md.
pub fn document(rows: &[Row]) -> String {
    let mut table = Table::new("jobs | >state | >CPU time at a tick | >of a core, every 10 s");
    for row in rows {
        let tick = Duration::from_nanos(row.tick_ns);
        table.row([
            &row.jobs as &dyn std::fmt::Display,
            &format_args!("{:.2} MB", row.bytes as f64 / 1e6),
            &format_args!("{:.1} ms", tick.as_secs_f64() * 1e3),
            &format_args!("{:.2} %", row.share() * 100.0),
        ]);
    }
    table.to_string()
}

/// # Errors
/// When one takes more of a core than its goal.
pub fn check(rows: &[Row]) -> Result<()> {
    for row in rows {
        let (jobs, share) = (row.jobs, row.share());
        ensure!(
            row.most_share.is_none_or(|most| share <= most),
            "the state of {jobs} jobs takes {:.2} % of a core",
            share * 1e2
        );
    }
    Ok(())
}

fn of(jobs: u64, most_share: Option<f64>, intervals: u64) -> Result<Row> {
    // As the state's own folder, /run/jobtrace: in memory.
    let folder = tempfile::tempdir_in("/dev/shm").context("cannot make a folder in /dev/shm")?;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let all: Vec<Vec<Group>> = (0..64).map(|_| interval(&mut random)).collect();
    let mut node = Node::after(intervals, jobs, &all)?;
    let mut keeper = Keeper::new(folder.path());
    let mut ticks = Vec::new();
    for number in 0..TICKS {
        node.tick(&all[number as usize]);
        let begin_ns = thread_ns();
        keeper.commit(node.state())?;
        ticks.push(thread_ns() - begin_ns);
    }
    ticks.sort_unstable();
    let bytes = std::fs::metadata(folder.path().join("state.json"))?.len();
    Ok(Row { jobs, most_share, bytes, tick_ns: ticks[ticks.len() / 2] })
}

/// CPU time of this thread: what else runs is no part of it.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What an agent holds of a node whose jobs all do the same.
struct Node {
    jobs: Vec<(Job, Details)>,
    reported: Snapshot,
    carried: Carried,
}

impl Node {
    /// After so many intervals, in which each of `jobs` jobs did `all`, one after the other.
    fn after(intervals: u64, jobs: u64, all: &[Vec<Group>]) -> Result<Self> {
        let answer = Resolver::new(&[])?.path("/slurm/uid_1000/job_4711");
        let mut first = Details::new(&answer, INTERVAL_NS, 0);
        let mut groups = Vec::new();
        for (number, interval) in (1..=intervals).zip(all.iter().cycle()) {
            first.add(&mut interval.clone(), &Losses::default(), (number + 1) * INTERVAL_NS);
            follow_all(&mut groups, interval);
        }
        let job = |number: u64| Job {
            job: (4711 + number).to_string(),
            manager: "slurm".into(),
            user: "ada".into(),
            ..Job::default()
        };
        let details = || Details::resumed(first.info.clone(), Some(1000), None, first.counted());
        let slots = (0..jobs).map(|number| (number as Lease, groups.clone())).collect();
        let monotonic_ns = (intervals + 1) * INTERVAL_NS;
        let carried = json!({
            "set": "0123456789abcdef", "states": [], "unknown": [],
            "reported": {"ns": {}, "charged_ns": {}, "uncharged_ns": {}},
            "no_room": 0, "waits": {},
        });
        Ok(Self {
            jobs: (0..jobs).map(|number| (job(number), details())).collect(),
            reported: Snapshot { monotonic_ns, slots, ..Snapshot::default() },
            carried: serde_json::from_value(carried)?,
        })
    }

    /// Each job did `interval`.
    fn tick(&mut self, interval: &[Group]) {
        self.reported.monotonic_ns += INTERVAL_NS;
        for (_, details) in &mut self.jobs {
            details.add(&mut interval.to_vec(), &Losses::default(), self.reported.monotonic_ns);
        }
        for groups in self.reported.slots.values_mut() {
            follow_all(groups, interval);
        }
    }

    /// As the agent makes it.
    fn state(&self) -> AgentState {
        let known = |(lease, (job, details)): (Lease, &(Job, Details))| KnownJob {
            job: job.clone(),
            names: vec![job.clone()],
            lease: Some(lease),
            root: format!("/slurm/uid_1000/job_{}", job.job).into(),
            info: details.info.clone(),
            uid: details.uid,
            is_released: false,
            ended_ns: None,
            ended: details.end(),
            known: true,
            counted: details.counted(),
            gpus: None,
        };
        let jobs = (0..).zip(&self.jobs);
        let owners = jobs.clone().map(|(lease, (job, _))| (lease, job.clone())).collect();
        let (reported, carried) = (self.reported.clone(), self.carried.clone());
        AgentState::new(None, 1, reported, carried, jobs.map(known).collect(), owners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_few_jobs_is_measured() {
        let row = of(3, None, 300).unwrap();
        assert!(row.tick_ns > 0 && (3_000..300_000).contains(&row.bytes), "{}", row.bytes);
        assert!(document(&[row]).lines().any(|line| line.starts_with("| 3 |")));
        let costly = Row { jobs: 7, most_share: Some(0.9), bytes: 1, tick_ns: INTERVAL_NS };
        assert!(check(&[costly]).unwrap_err().to_string().starts_with("the state of 7 jobs"));
    }
}
