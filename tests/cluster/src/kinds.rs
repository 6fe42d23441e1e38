//! What jobs do: intervals cut out of recordings of real ones, and added up for as many cores as a job
//! holds.
//!
//! Reads the recordings beside it (`recordings/record.sh` makes them) and makes up no number: what is
//! not in a recording is not told of the simulated job either. An interval of ten seconds is ten
//! recorded ones, a job of eight cores the same two CPUs at four moments.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context, Result, ensure};
use jobtrace::{
    model::{
        group::{Group, follow_all, merge_all},
        job::attribute,
        source::Source,
        tables::{CPU, Cpu, MEMORY, Memory},
    },
    replay::Replay,
};

use crate::plan::{SECOND, Share};
use xtask::root;

/// CPUs that the recorded jobs had.
const RECORDED_CPUS: u32 = 2;
/// Memory that a scheduler grants with each core.
const MEMORY_PER_CORE: u64 = 4 << 30;
/// Seconds between the moments of one recording that are added up: a prime, so that they differ.
const APART: usize = 7;

/// What a job does, by the name of its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Arithmetic between barriers.
    Compute,
    /// First touches of much memory.
    Memory,
    /// Small reads and writes past the page cache.
    Disk,
    /// A build: processes come and go.
    Forks,
    /// A notebook: asleep, now and then a second's work.
    Idle,
}

impl Kind {
    /// All there are.
    pub const ALL: [Self; 5] = [Self::Compute, Self::Memory, Self::Disk, Self::Forks, Self::Idle];

    /// The recording's name, and the job's.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Forks => "forks",
            Self::Idle => "idle",
        }
    }
}

/// Intervals one after the other, taken up again from the begin at the end.
#[derive(Clone, Debug)]
pub struct Cycle(Vec<Vec<Group>>);

impl Cycle {
    /// The interval number `tick` of one that began at `phase`.
    pub fn at(&self, phase: u64, tick: u64) -> &[Group] {
        &self.0[((phase.wrapping_add(tick)) % self.0.len() as u64) as usize]
    }
}

/// All that nodes and their jobs do.
#[derive(Clone, Debug)]
pub struct Kinds {
    jobs: BTreeMap<(Kind, Share), Cycle>,
    /// The rest of a node.
    pub system: Cycle,
    /// What the tracing itself costs.
    pub own: Cycle,
}

impl Kinds {
    /// Reads the recordings, for intervals of `interval_s` and nodes of `cores`.
    ///
    /// # Errors
    /// When one is missing, damaged or short.
    pub fn load(interval_s: u64, cores: u32) -> Result<Self> {
        let mut jobs = BTreeMap::new();
        for kind in Kind::ALL {
            let (seconds, _) = read(kind.name())?;
            for share in Share::ALL {
                jobs.insert((kind, share), of_cores(&seconds, interval_s, share.cores(cores)));
            }
        }
        let (seconds, own) = read("daemons")?;
        // The agent reads no files of cgroups for what is no job.
        let is_probed = |group: &Group| !(group.is(&MEMORY) || group.is(&CPU));
        let system = cycle(&seconds, interval_s)
            .map(|groups| groups.into_iter().filter(is_probed).collect())
            .collect();
        let own = cycle(&own, interval_s).map(of_agent).collect();
        Ok(Self { jobs, system: Cycle(system), own: Cycle(own) })
    }

    /// What a job of this kind does on a node of which it holds `share`.
    pub fn of(&self, kind: Kind, share: Share) -> &Cycle {
        &self.jobs[&(kind, share)]
    }
}

/// What came in each second.
type Seconds = Vec<Vec<Group>>;

/// The recorded job second by second, and the tracing's own cost.
fn read(name: &str) -> Result<(Seconds, Seconds)> {
    let path: PathBuf = root().join("tests/cluster/recordings").join(format!("{name}.jobtrace.gz"));
    let mut replay = Replay::open(&path)?;
    let owners = replay.header().jobs.clone();
    let recorded = owners.values().next().context("the recording names no job")?.clone();
    let (mut jobs, mut own, mut previous) = (Vec::new(), Vec::new(), None);
    while let Some(snapshot) = replay.snapshot()? {
        if let Some(previous) = &previous {
            let interval = snapshot.since(previous);
            // The last reading comes when the command ends, not a second after the one before.
            if (SECOND * 9 / 10..SECOND * 11 / 10).contains(&interval.span_ns) {
                let stats = attribute(interval.slots, |lease| owners.get(&lease));
                jobs.extend(stats.into_iter().find(|s| s.job == recorded).map(|s| s.groups));
                own.push(interval.own);
            }
        }
        previous = Some(snapshot);
    }
    let path = path.display();
    ensure!(jobs.len() >= 15, "{path} has {} whole seconds: record it anew", jobs.len());
    Ok((jobs, own))
}

/// Intervals of `interval_s` from each second of `seconds` on: one after the other where their number
/// and the interval have no common divisor, and all of them in any case.
fn cycle(seconds: &[Vec<Group>], interval_s: u64) -> impl Iterator<Item = Vec<Group>> {
    let count = seconds.len() as u64;
    (0..count).map(move |number| {
        let mut groups = Vec::new();
        for second in 0..interval_s {
            follow_all(&mut groups, &seconds[((number * interval_s + second) % count) as usize]);
        }
        groups
    })
}

/// The same of a job that holds `cores`.
fn of_cores(seconds: &[Vec<Group>], interval_s: u64, cores: u32) -> Cycle {
    let single: Vec<_> = cycle(seconds, interval_s).collect();
    let times = (cores / RECORDED_CPUS).max(1) as usize;
    let mut all: Vec<Vec<Group>> = (0..single.len())
        .map(|number| {
            let mut groups = Vec::new();
            for more in 0..times {
                merge_all(&mut groups, &single[(number + more * APART) % single.len()]);
            }
            groups
        })
        .collect();
    let memory = |group: &&Group| group.is(&MEMORY);
    let current =
        all.iter().flatten().filter(memory).filter_map(|g| g.number(Memory::current_bytes));
    let peak = current.max();
    for group in all.iter_mut().flatten() {
        if group.is(&MEMORY) {
            group.set(Memory::peak_bytes, peak);
            group.set(Memory::limit_bytes, u64::from(cores) * MEMORY_PER_CORE);
        } else if group.is(&CPU) {
            group.set(Cpu::cores_held, u64::from(cores) * 1000);
        }
    }
    Cycle(all)
}

/// `jobtrace_self` as the agent writes it: fields that `run` does not have are there, and zero.
fn of_agent(mut groups: Vec<Group>) -> Vec<Group> {
    const NEEDS_STATISTICS: [&str; 2] = ["bpf_ns", "bpf_runs"];
    for group in &mut groups {
        let fields = group.measurement.fields;
        for (field, value) in fields.iter().zip(&mut group.values) {
            if value.is_none() && !NEEDS_STATISTICS.contains(&field.name) {
                *value = Some(jobtrace::model::group::Value::Number(0));
            }
        }
    }
    groups
}
