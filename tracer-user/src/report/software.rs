//! Which software jobs ran, from heads alone. What a text names is kept once, so that of ten thousand jobs that run the
//! same there is little more than one.

mod installed;
mod names;
mod row;
mod table;
mod together;

pub use installed::{Unused, parse as parse_installed, unused};
pub use row::{Companion, Row, Version};
pub use table::{csv, table, unused_csv, unused_table};

use std::{collections::BTreeSet, ops::Deref};

use clap::ValueEnum;

use self::{
    names::{NameId, Names, SetId},
    together::Together,
};
use crate::record::{
    head::Head,
    select::{Stretch, whose},
};

/// What the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Python packages.
    Package,
    /// What shared libraries belong to.
    Library,
    /// Programs.
    Program,
    /// Stacks, environments, containers.
    Stack,
    /// Versions of Python.
    Python,
}

/// What of a job's GPU is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Gpu {
    /// A library was loaded that computes on GPUs.
    library: bool,
    held_ns: u64,
    /// `None`: unknown.
    busy_ns: Option<u64>,
}

/// Whether somebody watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Watched {
    #[default]
    No,
    OptedOut,
    /// Its software was counted, and has no names.
    Counted,
    Partly,
    Yes,
}

/// A record's part of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// Whose it is, by a hash.
    whose: u64,
    stretch: Stretch,
    host: NameId,
    user: NameId,
    /// The array that it is of, by a hash; 0: none.
    array: u64,
    set: SetId,
    watched: Watched,
    core_ns: u64,
    gpu: Gpu,
    python_processes: u64,
    begin_ns: u64,
}

/// A run of a job, of its parts.
struct RunOf {
    /// Names with their versions.
    named: BTreeSet<(NameId, NameId)>,
    /// Whether it ran more of it than has names.
    has_more: bool,
    hosts: BTreeSet<NameId>,
    user: NameId,
    watched: Watched,
    core_ns: u64,
    gpu: Gpu,
    python_processes: u64,
    begin_ns: u64,
    /// What counts once where things are asked for that go together.
    group: (u64, u64),
}

/// Sums that heads are added to.
#[derive(Debug)]
pub struct Software {
    by: By,
    names: Names,
    parts: Vec<Part>,
    /// Nodes on which somebody held a GPU.
    gpu_hosts: BTreeSet<NameId>,
}

/// What is told of all jobs beside the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whole {
    /// All jobs.
    pub jobs: u64,
    /// Those that nobody watched.
    pub unknown: u64,
    /// Those that asked that nothing is told of them.
    pub opted_out: u64,
    /// Those of which numbers alone are told.
    pub counted: u64,
    /// Those that ran more of it than has names.
    pub more: u64,
    /// Those of which something is missing.
    pub partly: u64,
    /// Those that ran several Python processes at once.
    pub several_pythons: u64,
}

impl Whole {
    /// Those of which names are known.
    pub fn watched(&self) -> u64 {
        let nameless = [self.unknown, self.opted_out, self.counted];
        nameless.into_iter().fold(self.jobs, u64::saturating_sub)
    }
}

impl Software {
    /// Empty sums.
    pub fn new(by: By) -> Self {
        Self { by, names: Names::default(), parts: Vec::new(), gpu_hosts: BTreeSet::new() }
    }

    /// Notes of a head that is not asked for whether its node has GPUs.
    pub fn note_node<Text: Deref<Target = str>>(&mut self, head: &Head<Text>) {
        let has_gpu = head.gpu_held_ns.is_some_and(|ns| ns > 0);
        if let Some(host) = head.host.as_deref().filter(|_| has_gpu) {
            let host = self.names.name(host);
            self.gpu_hosts.insert(host);
        }
    }

    /// Adds a head, the last one of its record.
    pub fn add<Text: Deref<Target = str>>(&mut self, head: &Head<Text>) {
        let text = match self.by {
            By::Package => &head.packages,
            By::Library => &head.libraries,
            By::Program => &head.programs,
            By::Stack => &head.stacks,
            By::Python => &head.python,
        };
        let watched = match head.software.as_deref() {
            None => Watched::No,
            Some("opted_out") => Watched::OptedOut,
            Some("counts") => Watched::Counted,
            Some(_) if head.software_partial == Some(1) => Watched::Partly,
            Some(_) => Watched::Yes,
        };
        self.note_node(head);
        let [cluster, manager, _, user] = whose(head);
        let array = head.array_job.as_deref();
        let array = array.map_or(0, |array| names::hashed((cluster, manager, user, array)));
        self.parts.push(Part {
            whose: names::hashed(whose(head)),
            stretch: Stretch::of(head),
            host: self.names.name(head.host.as_deref().unwrap_or_default()),
            user: self.names.name(head.user.as_deref().unwrap_or_default()),
            array,
            set: self.names.set(text.as_deref().unwrap_or_default()),
            watched,
            core_ns: head.core_held_ns.unwrap_or(0),
            gpu: Gpu {
                library: head.gpu_library == Some(1),
                held_ns: head.gpu_held_ns.unwrap_or(0),
                busy_ns: head.gpu_busy_ns,
            },
            python_processes: head.python_processes_most.unwrap_or(0),
            begin_ns: head.begin.or(head.start).unwrap_or(0),
        });
    }

    /// Adds sums of other heads.
    pub fn merge(&mut self, more: Self) {
        let places = self.names.merge(more.names);
        self.gpu_hosts.extend(more.gpu_hosts.into_iter().map(|host| places.name(host)));
        self.parts.extend(more.parts.into_iter().map(|part| Part {
            host: places.name(part.host),
            user: places.name(part.user),
            set: places.set(part.set),
            ..part
        }));
    }

    /// The rows, those of most jobs first, and what is told of all jobs.
    pub fn rows(mut self) -> (Vec<Row>, Whole) {
        let parts = std::mem::take(&mut self.parts);
        let runs = self.runs(parts);
        let mut whole = Whole { jobs: runs.len() as u64, ..Whole::default() };
        for run in &runs {
            match run.watched {
                Watched::No => whole.unknown += 1,
                Watched::OptedOut => whole.opted_out += 1,
                Watched::Counted => whole.counted += 1,
                Watched::Partly => whole.partly += 1,
                Watched::Yes => {}
            }
            whole.several_pythons += u64::from(run.python_processes > 1);
            whole.more += u64::from(run.watched > Watched::Counted && run.has_more);
        }
        let runs: Vec<_> = runs.into_iter().filter(|run| run.watched > Watched::Counted).collect();
        let together = Together::of(&runs);
        let rows = row::rows(&runs, &self.names, &self.gpu_hosts, &together, whole);
        (rows, whole)
    }

    /// The runs that the parts are of.
    fn runs(&self, mut parts: Vec<Part>) -> Vec<RunOf> {
        parts.sort_unstable();
        let mut runs = Vec::new();
        let mut rest = &parts[..];
        while let Some(first) = rest.first() {
            let (whose, mut reach) = (first.whose, first.stretch);
            let mut is_same = |part: &&Part| part.whose == whose && reach.takes_in(part.stretch);
            let count = rest.iter().take_while(|part| is_same(part)).count();
            let (of_run, others) = rest.split_at(count);
            runs.push(self.run(of_run));
            rest = others;
        }
        runs
    }

    fn run(&self, parts: &[Part]) -> RunOf {
        let first = &parts[0];
        let mut run = RunOf {
            named: BTreeSet::new(),
            has_more: false,
            hosts: BTreeSet::new(),
            user: first.user,
            watched: Watched::No,
            core_ns: 0,
            gpu: Gpu::default(),
            python_processes: 0,
            begin_ns: first.begin_ns,
            group: match first.array {
                0 => (first.whose, first.begin_ns),
                array => (array, 0),
            },
        };
        for part in parts {
            run.named.extend(self.names.of_set(part.set));
            run.has_more |= self.names.has_more(part.set);
            run.hosts.insert(part.host);
            run.watched = match (run.watched, part.watched) {
                // Silence on one node is silence.
                (Watched::OptedOut, _) | (_, Watched::OptedOut) => Watched::OptedOut,
                // Names on one node alone are not all.
                (Watched::Partly | Watched::Counted, Watched::Partly | Watched::Yes)
                | (Watched::Yes, Watched::Partly | Watched::Counted) => Watched::Partly,
                (one, other) => one.max(other),
            };
            run.core_ns = run.core_ns.saturating_add(part.core_ns);
            run.gpu.library |= part.gpu.library;
            run.gpu.held_ns = run.gpu.held_ns.saturating_add(part.gpu.held_ns);
            let busy = run.gpu.busy_ns.into_iter().chain(part.gpu.busy_ns);
            run.gpu.busy_ns = busy.reduce(u64::saturating_add);
            run.python_processes = run.python_processes.max(part.python_processes);
        }
        run
    }
}

#[cfg(test)]
mod tests;
