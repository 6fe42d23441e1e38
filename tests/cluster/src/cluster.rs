//! The cluster while its time passes: which job has which nodes, and what each node's agent has to tell
//! at each reading.
//!
//! Pure. It holds what runs now and what waits, never what was: a day of a thousand nodes takes as much
//! memory as an hour.

use std::collections::VecDeque;

use anyhow::{Context, Result};
use jobtrace::{
    commands::agent::details::Details,
    lines::{backlog::Pending, spool::name::SetName},
    model::{
        job::{Job as Tags, JobStats, Losses},
        point::Origin,
        tables::Own,
    },
    resolve::{Resolver, facts::JobFacts},
};

use crate::{
    kinds::Kinds,
    plan::{Arrivals, Job, Plan, SECOND},
    random::Random,
};

/// Jobs that may wait for nodes; more are submitted when there is room.
const LONGEST_QUEUE: usize = 10_000;
/// Waiting jobs that are tried before those behind them: a scheduler's backfill.
const BACKFILL: usize = 32;
/// How long after its moment a reading is on the disk.
const WRITTEN_AFTER_NS: u64 = 20_000_000;

/// What a node's agent writes at one reading.
pub struct NodeTick<'a> {
    /// The node and its cluster.
    pub origin: &'a Origin,
    /// Under which name.
    pub set: SetName,
    /// The interval.
    pub pending: Pending,
    /// Jobs that have ended: nothing more comes of them on this node.
    pub ended: Vec<Tags>,
}

/// What became of the jobs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Readings of each node.
    pub ticks: u64,
    /// Jobs that began.
    pub begun: u64,
    /// Nodes of these, added up.
    pub nodes_given: u64,
    /// Jobs that ended.
    pub ended: u64,
    /// Core seconds that jobs held.
    pub core_seconds: u64,
}

struct Running {
    job: Job,
    tags: Tags,
    details: Details,
    phase: u64,
    ticks: u64,
    end_ns: u64,
    /// Whether it stands for the job in counts of jobs.
    is_first: bool,
}

struct Node {
    origin: Origin,
    boot: u32,
    booted_ns: u64,
    phase: u64,
    free: u32,
    jobs: Vec<Running>,
}

/// The cluster.
pub struct Cluster {
    plan: Plan,
    kinds: Kinds,
    arrivals: std::iter::Peekable<Arrivals>,
    waiting: VecDeque<Job>,
    nodes: Vec<Node>,
    resolver: Resolver,
    /// Where the search for free nodes begins, so that all get their share.
    cursor: usize,
    progress: Progress,
}

impl Cluster {
    /// The cluster before its first reading.
    ///
    /// # Errors
    /// When a recording cannot be read.
    pub fn new(plan: &Plan) -> Result<Self> {
        let node = |number: u32| {
            let mut random = Random::new(plan.seed, 1 << 32 | u64::from(number));
            let host = format!("n{:04}", number + 1);
            Node {
                origin: Origin { cluster: plan.cluster.clone(), host },
                boot: random.number() as u32,
                booted_ns: plan.start_s * SECOND - (1 + random.below(60 * 86_400)) * SECOND,
                phase: random.number() >> 1,
                free: plan.cores,
                jobs: Vec::new(),
            }
        };
        Ok(Self {
            kinds: Kinds::load(plan.interval_s, plan.cores)?,
            arrivals: plan.arrivals().peekable(),
            waiting: VecDeque::new(),
            nodes: (0..plan.nodes).map(node).collect(),
            resolver: Resolver::new(&[])?,
            cursor: 0,
            progress: Progress::default(),
            plan: plan.clone(),
        })
    }

    /// What became of the jobs so far.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Jobs that wait for nodes now.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Lets an interval pass and gives what each node tells of it to `take`. Gives whether there was one.
    ///
    /// # Errors
    /// What `take` says.
    pub fn tick(&mut self, mut take: impl FnMut(NodeTick) -> Result<()>) -> Result<bool> {
        if self.progress.ticks >= self.plan.ticks() {
            return Ok(false);
        }
        self.progress.ticks += 1;
        let span_ns = self.plan.interval_s * SECOND;
        let stamp_ns = self.plan.start_s * SECOND + self.progress.ticks * span_ns;
        self.begin_jobs(stamp_ns)?;
        for node in &mut self.nodes {
            let tick = node.tick(&self.kinds, self.progress.ticks, stamp_ns, span_ns);
            take(tick)?;
            let held = u64::from(self.plan.cores - node.free);
            self.progress.core_seconds += held * self.plan.interval_s;
            for running in node.jobs.extract_if(.., |running| running.end_ns <= stamp_ns) {
                let cores = running.job.share.cores(self.plan.cores);
                node.free += cores;
                self.progress.ended += u64::from(running.is_first);
            }
        }
        Ok(true)
    }

    /// Begins the jobs that came before `stamp_ns`, where there is room.
    fn begin_jobs(&mut self, stamp_ns: u64) -> Result<()> {
        let is_new = |job: &Job| job.arrival_ns < stamp_ns;
        while self.waiting.len() < LONGEST_QUEUE
            && let Some(job) = self.arrivals.next_if(is_new)
        {
            self.waiting.push_back(job);
        }
        let mut at = 0;
        while at < self.waiting.len().min(BACKFILL) {
            match self.find_nodes(&self.waiting[at]) {
                Some(nodes) => {
                    let job =
                        self.waiting.remove(at).context("the queue is shorter than it was")?;
                    self.begin(&job, &nodes, stamp_ns)?;
                }
                None => at += 1,
            }
        }
        Ok(())
    }

    fn find_nodes(&self, job: &Job) -> Option<Vec<usize>> {
        let cores = job.share.cores(self.plan.cores);
        let all = (0..self.nodes.len()).map(|n| (n + self.cursor) % self.nodes.len());
        let nodes: Vec<_> =
            all.filter(|node| self.nodes[*node].free >= cores).take(job.width as usize).collect();
        (nodes.len() == job.width as usize).then_some(nodes)
    }

    fn begin(&mut self, job: &Job, nodes: &[usize], stamp_ns: u64) -> Result<()> {
        // Who had to wait begins with the interval.
        let start_ns = job.arrival_ns.max(stamp_ns - self.plan.interval_s * SECOND);
        let end_ns = start_ns.saturating_add(job.length_ns);
        let (id, user) = (job.id.to_string(), job.user());
        let path = format!("/system.slice/slurmstepd.scope/job_{id}");
        let answer = self.resolver.path(&path);
        let tags = Tags {
            job: id,
            manager: answer.manager.clone(),
            user: user.clone(),
            ..Tags::default()
        };
        let cores = job.share.cores(self.plan.cores);
        let hosts: Vec<_> =
            nodes.iter().map(|node| self.nodes[*node].origin.host.as_str()).collect();
        let facts = JobFacts {
            name: Some(format!("{}-{}", job.kind.name(), job.id % 97)),
            user: Some(user),
            uid: Some(job.uid),
            account: Some(job.account()),
            queue: Some(if job.width > 4 { "large" } else { "batch" }.to_owned()),
            nodes: Some(hosts.join(",")),
            node_count: Some(u64::from(job.width)),
            tasks: Some(u64::from(job.width * cores)),
            cores: Some(u64::from(cores)),
            start_s: Some(start_ns / SECOND),
            end_s: Some((start_ns + job.length_ns * 2) / SECOND),
            ..JobFacts::default()
        };
        for number in nodes {
            let mut random = Random::new(self.plan.seed ^ job.id, 2 << 32 | *number as u64);
            let mut details = Details::new(&answer, start_ns, 0);
            details.learn(&facts);
            let node = &mut self.nodes[*number];
            node.free -= cores;
            node.jobs.push(Running {
                job: job.clone(),
                tags: tags.clone(),
                details,
                phase: random.number() >> 1,
                ticks: 0,
                end_ns,
                is_first: *number == nodes[0],
            });
        }
        self.cursor = nodes.last().map_or(0, |last| last + 1);
        self.progress.begun += 1;
        self.progress.nodes_given += u64::from(job.width);
        Ok(())
    }
}

impl Node {
    /// What this node's agent tells of the interval that ends at `stamp_ns`.
    fn tick(&mut self, kinds: &Kinds, number: u64, stamp_ns: u64, span_ns: u64) -> NodeTick<'_> {
        let mut system = kinds.system.at(self.phase, number).to_vec();
        let mut own = kinds.own.at(self.phase, number).to_vec();
        own.iter_mut().for_each(|group| group.set(Own::jobs, self.jobs.len() as u64));
        system.extend(own);
        let mut jobs = vec![JobStats { job: Tags::system(), groups: system }];
        let (mut facts, mut ended) = (Vec::new(), Vec::new());
        for running in &mut self.jobs {
            let groups =
                kinds.of(running.job.kind, running.job.share).at(running.phase, running.ticks);
            running.ticks += 1;
            let mut groups = groups.to_vec();
            running.details.add(&mut groups, &Losses::default(), stamp_ns);
            if running.end_ns <= stamp_ns {
                running.details.set_ended(running.end_ns);
                ended.push(running.tags.clone());
            }
            jobs.push(JobStats { job: running.tags.clone(), groups });
            facts.extend(running.details.due_info(&self.origin, &running.tags, stamp_ns, false));
        }
        let sequence = stamp_ns + WRITTEN_AFTER_NS - self.booted_ns;
        let set = SetName { boot: self.boot, sequence, start_ns: stamp_ns - span_ns };
        let pending = Pending { stamp_ns, span_ns, jobs, facts };
        NodeTick { origin: &self.origin, set, pending, ended }
    }
}
