//! The record of a job: all that is known of it on a node, in one gzip JSON file of some kB that stays readable
//! (docs/RECORD.md). What the summary, `--json` and the files under `records/` are made of.
//!
//! Pure but for `store.rs`, which writes, `find.rs` and `days.rs`, which read, and `running.rs`, which asks the agent.
//! Not to be mixed up with a recording (`replay`): that holds every reading, to be computed anew; a record holds what
//! came of them.

pub mod days;
pub mod document;
pub mod file;
pub mod find;
pub mod folders;
pub mod head;
mod merge;
pub mod name;
mod packed;
mod parse;
mod peaks;
mod rounded;
pub mod running;
pub mod schema;
pub mod select;
pub mod series;
pub mod store;
pub mod timeline;
pub mod words;

pub use merge::merge;
pub use parse::parse;

use timeline::Timeline;

use crate::model::{
    end_reason::ended_for_memory,
    gaps::{Gap, NO_AGENT, NO_SLOT},
    group::Group,
    info::{Facts, JobInfo},
    job::Job,
    needed::Needed,
    point::Origin,
    tables::{FAULT, Fault, MEMORY, fact},
    totals::RunTotals,
};

/// Everything known of a job on a node, or on all of its nodes where [`merge()`] made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Name of the cluster; empty for none.
    pub cluster: String,
    /// The nodes that it tells of, in their order.
    pub hosts: Vec<String>,
    /// What is told of the job besides its values. `end` is known once the job has ended, `counted_from` where
    /// values lack from before.
    pub facts: Facts,
    /// Its values, added up.
    pub totals: RunTotals,
    /// Its values over time.
    pub timeline: Timeline,
}

impl Record {
    /// Of a job that is counted from `wall_ns` on.
    pub fn new(origin: &Origin, job: Job, info: JobInfo, wall_ns: u64) -> Self {
        Self {
            cluster: origin.cluster.clone(),
            hosts: vec![origin.host.clone()],
            facts: info.facts(),
            totals: RunTotals::new(job, info),
            timeline: Timeline::new(wall_ns),
        }
    }

    /// Adds an interval of `span_ns`, which began where the one before ended: the job did `groups`, and the
    /// tracing `own`.
    pub fn add(&mut self, span_ns: u64, groups: &[Group], own: &[Group]) {
        let begin_ns = self.timeline.end_ns();
        self.timeline.add_after(&self.totals.stats.groups, span_ns, groups);
        self.totals.add(begin_ns, span_ns, groups, own);
    }

    /// How long the job took; where all of it was counted that is what was counted, by a clock that nobody sets.
    pub fn took_ns(&self) -> u64 {
        let start_ns = self.facts.number(const { fact("start") });
        let end_ns = self.facts.number(const { fact("end") });
        let not_at_all = |gap: &Gap| [NO_AGENT, NO_SLOT].contains(&&*gap.what);
        let is_part = self.facts.has(const { fact("counted_from") })
            || self.totals.gaps.iter().any(not_at_all);
        let counted_ns = self.totals.elapsed_ns;
        if !is_part {
            return counted_ns;
        }
        let end_ns = end_ns.unwrap_or(self.timeline.end_ns());
        end_ns.saturating_sub(start_ns.unwrap_or(self.timeline.begin_ns())).max(counted_ns)
    }

    /// Whether it ended when the kernel killed a process of it for lack of memory.
    pub fn ended_for_memory(&self) -> bool {
        let kills =
            self.totals.stats.group(&FAULT).and_then(|fault| fault.number(Fault::oom_kills));
        let has_failed = self.totals.exit.is_some_and(|exit| exit.status() != 0);
        ended_for_memory(self.facts.text(const { fact("end_reason") }), has_failed, kills)
    }

    /// Memory needed at its peak, without file cache, on its node.
    pub fn memory_needed(&self) -> Option<Needed> {
        Needed::of(self.totals.stats.group(&MEMORY)?, self.ended_for_memory())
    }

    /// Whose it is.
    pub fn job(&self) -> &Job {
        &self.totals.stats.job
    }
}
