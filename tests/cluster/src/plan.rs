//! What a cluster's users do in a day: which jobs come when, how long, how wide, of which kind.
//!
//! Pure. Arrivals are drawn one after the other, so that a year of them takes no memory.

use crate::{kinds::Kind, random::Random};

/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000_000_000;
/// Share of the cluster's cores that jobs hold on average, as long as the jobs asked for allow it.
pub const LOAD: f64 = 0.8;
/// Spread of the lengths' logarithm: many short jobs and a few long ones.
const SPREAD: f64 = 1.2;
/// Users of the cluster.
const USERS: u64 = 200;
/// Projects whose accounts they use.
const ACCOUNTS: u64 = 25;
/// Nodes of a job, and how often in a hundred.
const WIDTHS: [(u32, u32); 5] = [(1, 70), (2, 12), (4, 9), (8, 6), (16, 3)];
/// The part of each node that it holds, and how often in a hundred.
const SHARES: [(Share, u32); 4] =
    [(Share::Whole, 40), (Share::Half, 20), (Share::Quarter, 20), (Share::Eighth, 20)];
/// Its kind, and how often in a hundred.
const KINDS: [(Kind, u32); 5] = [
    (Kind::Compute, 45),
    (Kind::Memory, 20),
    (Kind::Disk, 15),
    (Kind::Forks, 10),
    (Kind::Idle, 10),
];

/// The part of a node that a job holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Share {
    /// All of it.
    Whole,
    /// A half.
    Half,
    /// A quarter.
    Quarter,
    /// An eighth.
    Eighth,
}

impl Share {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Whole, Self::Half, Self::Quarter, Self::Eighth];

    /// Cores of a node with `cores`; one at least.
    pub fn cores(self, cores: u32) -> u32 {
        let divisor = match self {
            Self::Whole => 1,
            Self::Half => 2,
            Self::Quarter => 4,
            Self::Eighth => 8,
        };
        (cores / divisor).max(1)
    }
}

/// A cluster and its time.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Compute nodes.
    pub nodes: u32,
    /// Cores of each.
    pub cores: u32,
    /// Jobs that are submitted in the whole time.
    pub jobs: u64,
    /// The whole time, seconds.
    pub span_s: u64,
    /// Time between two readings, seconds.
    pub interval_s: u64,
    /// Unix time of its begin, seconds; a multiple of the interval.
    pub start_s: u64,
    /// What chance begins with.
    pub seed: u64,
    /// Tag `cluster` of every line.
    pub cluster: String,
}

/// A job as it is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// Its owner's number.
    pub uid: u32,
    /// What it does.
    pub kind: Kind,
    /// The part of each of its nodes that it holds.
    pub share: Share,
    /// How many nodes that are.
    pub width: u32,
    /// When it was submitted, nanoseconds since the Unix epoch.
    pub arrival_ns: u64,
    /// How long it runs.
    pub length_ns: u64,
}

impl Job {
    /// Its owner's name.
    pub fn user(&self) -> String {
        format!("user{:03}", self.uid - 10_000)
    }

    /// The account that pays.
    pub fn account(&self) -> String {
        format!("project{:02}", u64::from(self.uid) % ACCOUNTS)
    }
}

impl Plan {
    /// Mean length of a job: so long that all together hold four fifths of the cluster; at least an
    /// interval, at most the whole time.
    pub fn mean_length_s(&self) -> f64 {
        let mean = |choices: &mut dyn Iterator<Item = (f64, u32)>| {
            choices.map(|(value, percent)| value * f64::from(percent) / 100.0).sum::<f64>()
        };
        let nodes = mean(&mut WIDTHS.iter().map(|(n, p)| (f64::from((*n).min(self.nodes)), *p)));
        let cores = mean(&mut SHARES.iter().map(|(s, p)| (f64::from(s.cores(self.cores)), *p)));
        let there = f64::from(self.nodes) * f64::from(self.cores) * self.span_s as f64;
        let each = LOAD * there / (self.jobs.max(1) as f64 * nodes * cores);
        each.clamp(self.interval_s as f64, self.span_s.max(self.interval_s) as f64)
    }

    /// Number of readings of each node.
    pub fn ticks(&self) -> u64 {
        self.span_s / self.interval_s
    }

    /// The jobs in the order in which they are submitted: exactly as many as planned, at moments as a
    /// Poisson process has them.
    pub fn arrivals(&self) -> Arrivals {
        let random = Random::new(self.seed, 0);
        Arrivals { plan: self.clone(), random, next: 0, at: 0.0, mean_s: self.mean_length_s() }
    }
}

/// The jobs, drawn one by one.
#[derive(Clone, Debug)]
pub struct Arrivals {
    plan: Plan,
    random: Random,
    next: u64,
    /// The last arrival, as a part of the whole time.
    at: f64,
    mean_s: f64,
}

impl Iterator for Arrivals {
    type Item = Job;

    fn next(&mut self) -> Option<Job> {
        let left = self.plan.jobs.checked_sub(self.next).filter(|left| *left > 0)?;
        let random = &mut self.random;
        // Given their number, the arrivals of a Poisson process are that many even draws; this is the
        // smallest of those that are left, without drawing the others.
        let gap = 1.0 - (1.0 - random.unit()).powf(1.0 / left as f64);
        self.at += (1.0 - self.at) * gap;
        let span_ns = self.plan.span_s * SECOND;
        let arrival_ns =
            self.plan.start_s * SECOND + ((self.at * span_ns as f64) as u64).min(span_ns - 1);
        self.next += 1;
        // A few users have most of the jobs.
        let user = (random.unit().powi(2) * USERS as f64) as u32;
        let length_s = random.log_normal(self.mean_s, SPREAD).clamp(1.0, 30.0 * 86_400.0);
        Some(Job {
            id: 100_000 + self.next,
            uid: 10_000 + user,
            kind: random.pick(&KINDS),
            share: random.pick(&SHARES),
            width: random.pick(&WIDTHS).min(self.plan.nodes),
            arrival_ns,
            length_ns: (length_s * SECOND as f64) as u64,
        })
    }
}
