//! What comparing needs of a run: its size, its time, what it did.

use serde::Serialize;

use crate::{
    base::{text::clean, units::long_duration},
    model::tables::{Cpu, Fact, GPU, fact},
    report::{Whole, facts, identity::queued_ns, whole::number},
    view::{details, facts::Facts, file_wait::Part, headline},
};

/// What the size of a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The cores that it might use.
    #[default]
    Allocated,
    /// The cores that were busy at its busiest moment; figures within 5 % are one size.
    Used,
}

impl By {
    /// `cores allocated`.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Allocated => "cores allocated",
            Self::Used => "cores used",
        }
    }
}

/// A run; texts are made harmless.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The job's id.
    pub job: String,
    /// When it was counted first, nanoseconds since the Unix epoch.
    pub begin_ns: u64,
    /// Its name, its owner and, of `run`, its command; empty where unknown.
    pub name: String,
    /// Its owner.
    pub user: String,
    /// Its command.
    pub command: String,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// CPUs of each of these, where known.
    pub node_cores: Option<u64>,
    /// GPUs of its.
    pub gpus: usize,
    /// Cores allocated.
    pub allocated: Option<f64>,
    /// Cores busy at the busiest moment.
    pub busiest: Option<f64>,
    /// Time that it took.
    pub elapsed_ns: u64,
    /// Time from its submission to its start, where that is known.
    pub queued_ns: Option<u64>,
    /// Core time held.
    pub held_ns: Option<u64>,
    /// Time on CPU, all tasks.
    pub on_cpu_ns: Option<u64>,
    /// What it did not get of the core time that it could have used, as a share of that.
    pub missed: Option<f64>,
    /// Readings of it.
    pub readings: u64,
    /// Time of tasks by what they waited for, that for a CPU included; nothing where that is unknown.
    pub waits: Vec<Part>,
    /// Read from local disks.
    pub read_bytes: Option<u64>,
    /// Written to local disks.
    pub written_bytes: Option<u64>,
    /// Why its time is not that of the whole work, where it is not.
    pub incomplete: Option<String>,
}

impl Measured {
    /// Of a run, for readers who can be shown more than ASCII, or not.
    pub fn of(whole: &Whole, unicode: bool) -> Self {
        let facts = facts(whole, unicode);
        let record = &whole.record;
        let text = |text: &str| clean(text, unicode).trim().to_owned();
        let (job, info) = (record.job(), &record.totals.info);
        let user = if job.user.is_empty() { &info.user } else { &job.user };
        let cores = |millicores: u64| millicores as f64 / 1000.0;
        let disk = |op: &str| {
            let disks = facts.disks.iter().filter(|disk| disk.op == op);
            (!facts.is_unknown("block"))
                .then(|| disks.filter_map(|disk| disk.bytes).fold(0, u64::saturating_add))
        };
        // Those of several nodes are busiest at different moments: this is their sum at most.
        let peaks = whole.nodes.iter().map(|node| node.totals.peaks.millicores);
        let number_of = |row: &'static Fact| record.facts.number(row);
        Self {
            job: text(&job.job),
            begin_ns: record.timeline.begin_ns(),
            name: text(&info.name),
            user: text(user),
            command: text(&info.command),
            nodes: record.hosts.iter().map(|host| text(host)).collect(),
            node_cores: number_of(const { fact("node_cores") }),
            gpus: record.totals.stats.groups(&GPU).count(),
            allocated: facts.number(Cpu::cores_held).filter(|held| *held > 0).map(cores),
            busiest: Some(peaks.fold(0, u64::saturating_add)).filter(|peak| *peak > 0).map(cores),
            elapsed_ns: record.totals.elapsed_ns,
            queued_ns: queued_ns(record),
            held_ns: number(record, Cpu::held_ns)
                .filter(|ns| *ns > 0)
                .or_else(|| facts.core_held_ns()),
            on_cpu_ns: facts.on_cpu_ns,
            missed: facts
                .demand
                .map(|demand| demand.missed_ns as f64 / demand.wanted_ns.max(1) as f64),
            readings: record.totals.intervals,
            waits: waits(&facts),
            read_bytes: disk("read"),
            written_bytes: disk("write"),
            incomplete: incomplete(&facts, number_of(const { fact("counted_from") }).is_some()),
        }
    }

    /// Its size; `None` where it is unknown.
    pub fn cores(&self, by: By) -> Option<f64> {
        match by {
            By::Allocated => self.allocated,
            // A task that sleeps now and then is still one.
            By::Used => self.busiest.map(|cores| cores.max(1.0)),
        }
    }

    /// Whether both are of one size: what is allocated is exact, what was used is measured.
    pub fn is_as_large(&self, other: &Self, by: By) -> bool {
        const SPREAD: f64 = 0.05;
        let sizes = self.cores(by).zip(other.cores(by));
        sizes.is_some_and(|(one, other)| match by {
            By::Allocated => one == other,
            By::Used => (one - other).abs() <= SPREAD * one.min(other),
        })
    }
}

fn waits(facts: &Facts) -> Vec<Part> {
    let queue =
        facts.waiting_ns.map(|ns| Part { what: "waiting for a CPU".to_owned(), ns }).into_iter();
    queue.chain(details::causes(facts)).collect()
}

fn incomplete(facts: &Facts, is_late: bool) -> Option<String> {
    let (_, state) = headline::state(facts);
    let has_failed = facts.totals.exit.is_some_and(|exit| exit.code != Some(0));
    if !facts.request.has_ended {
        Some("has not ended".to_owned())
    } else if has_failed || !facts.request.end_reason.is_empty() {
        Some(state)
    } else if facts.counted_ns() < facts.totals.elapsed_ns {
        let time = long_duration(facts.totals.elapsed_ns - facts.counted_ns());
        Some(format!("was not counted for {time}, in which the agent had detached its probes"))
    } else if is_late {
        Some(format!("was counted for its last {} only", long_duration(facts.totals.elapsed_ns)))
    } else {
        None
    }
}
