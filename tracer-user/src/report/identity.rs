//! Which job it is, where and when it ran, how it ended.

use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use crate::{
    base::{text::clean, units::long_duration},
    model::tables::{Fact, fact},
    record::Record,
    view::{facts::Facts, headline, line::Tone},
};

/// Nodes that are named; of more the first, the last and their number are.
const MOST_NODES: usize = 4;
pub(super) const SUBMITTED: &Fact = fact("submitted");

/// Who, when, where.
#[derive(Clone, Debug, Serialize)]
pub struct Who {
    /// The job's id.
    pub job: String,
    /// The scheduler.
    pub manager: String,
    /// Its name; its id where it has none.
    pub name: String,
    /// Its owner; empty where unknown, as the texts below.
    pub user: String,
    /// Account or project.
    pub account: String,
    /// Partition or queue.
    pub partition: String,
    /// The command (`run`).
    pub command: String,
    /// How it ended, if it has.
    pub state: String,
    #[serde(skip)]
    pub(crate) tone: Tone,
    /// Its nodes that there are records of.
    pub nodes: Vec<String>,
    /// How many nodes its scheduler gave it, if that is known.
    pub nodes_given: Option<u64>,
    /// When it was handed in, nanoseconds since the Unix epoch, as the times below; where the record or its scheduler
    /// tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted: Option<u64>,
    /// How long it waited in the queue from then on, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_ns: Option<u64>,
    /// Start.
    pub start: u64,
    /// End, or when it was last seen.
    pub end: u64,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Time for which it was counted, ns.
    pub elapsed_ns: u64,
    /// Time that it took, counted or not, ns.
    pub took_ns: u64,
    /// From when on it was counted, where that is later than its start.
    pub counted_from: Option<u64>,
}

impl Who {
    pub(super) fn of(record: &Record, facts: &Facts) -> Self {
        let text =
            |row: &'static Fact| clean(record.facts.text(row), facts.unicode).trim().to_owned();
        let (job, info) = (record.job(), &record.totals.info);
        let shown = |text: &str| clean(text, facts.unicode).trim().to_owned();
        let (tone, state) = headline::state(facts);
        let number = |row: &'static Fact| record.facts.number(row);
        let name = shown(&info.name);
        let user = if job.user.is_empty() { &info.user } else { &job.user };
        Self {
            job: shown(&job.job),
            manager: shown(&job.manager),
            name: if name.is_empty() { format!("job {}", shown(&job.job)) } else { name },
            user: shown(user),
            account: text(const { fact("account") }),
            partition: text(const { fact("partition") }),
            command: shown(&info.command),
            state,
            tone,
            nodes: record.hosts.iter().map(|host| shown(host)).collect(),
            nodes_given: number(const { fact("node_count") }),
            submitted: number(SUBMITTED),
            queued_ns: queued_ns(record),
            start: number(const { fact("start") }).unwrap_or(record.timeline.begin_ns()),
            end: number(const { fact("end") }).unwrap_or(record.timeline.end_ns()),
            has_ended: facts.request.has_ended,
            elapsed_ns: record.totals.elapsed_ns,
            took_ns: facts.request.took_ns,
            counted_from: number(const { fact("counted_from") }),
        }
    }

    /// `slurm job 4711 of ada, account physics, partition batch`.
    pub fn in_words(&self) -> String {
        let mut words = format!("{} job {}", self.manager, self.job);
        for (what, text) in
            [("of", &self.user), (", account", &self.account), (", partition", &self.partition)]
        {
            if !text.is_empty() {
                let space = if what.starts_with(',') { "" } else { " " };
                words += &format!("{space}{what} {text}");
            }
        }
        words
    }

    /// `on 64 nodes: n0001, n0002, … n0064`.
    pub fn place(&self) -> String {
        let nodes = match &*self.nodes {
            [one] => format!("on {one}"),
            some if some.len() <= MOST_NODES => {
                format!("on {} nodes: {}", some.len(), some.join(", "))
            }
            [first, .., last] => format!("on {} nodes, {first} to {last}", self.nodes.len()),
            [] => "on unknown nodes".to_owned(),
        };
        match self.nodes_given {
            Some(given) if given > self.nodes.len() as u64 => {
                format!("{nodes} of {given}: there are no records of the others")
            }
            _ => nodes,
        }
    }

    /// `handed in 2026-11-22 17:01:10 UTC, waited 3 h 0 min in the queue`.
    pub fn queue(&self) -> Option<String> {
        let handed_in = format!("handed in {} UTC", moment(self.submitted?));
        Some(match self.queued_ns {
            Some(ns) => format!("{handed_in}, waited {} in the queue", long_duration(ns)),
            None => handed_in,
        })
    }

    /// `2 h 5 min`, or `2 h 5 min, of which 1 min 0 s was counted`.
    pub fn took(&self) -> String {
        let counted = long_duration(self.elapsed_ns);
        let took = long_duration(self.took_ns);
        if took == counted { took } else { format!("{took}, of which {counted} was counted") }
    }

    /// Whether its end is earlier than its start.
    pub(super) fn is_set_back(&self) -> bool {
        self.has_ended && self.end < self.start
    }

    /// `2026-11-22 20:01:10 to 22:06:10 UTC`.
    pub fn times(&self) -> String {
        let (start, end) = (moment(self.start), moment(self.end));
        let (day, of_end) = (&start[..10], end.strip_prefix(&start[..10]).unwrap_or(&end));
        let end = if of_end.len() < end.len() { of_end.trim() } else { &end };
        let mut words = match self.has_ended {
            true if self.is_set_back() => {
                format!("since {start} UTC, until {end} UTC by a clock that was set back meanwhile")
            }
            true => format!("{start} to {end} UTC"),
            false => format!("since {start}, last seen {end} UTC"),
        };
        if let Some(from) = self.counted_from {
            let from = moment(from);
            words += &format!("; counted from {}", from.strip_prefix(day).unwrap_or(&from).trim());
        }
        words
    }
}

/// How long the job of `record` waited in the queue; `None` where that is not known, or a clock was set.
pub(super) fn queued_ns(record: &Record) -> Option<u64> {
    let start_ns = record.facts.number(const { fact("start") })?;
    start_ns.checked_sub(record.facts.number(SUBMITTED)?)
}

/// Wall time as `2026-11-22 20:01:10`, UTC.
pub fn moment(wall_ns: u64) -> String {
    let moment = UNIX_EPOCH + Duration::from_nanos(wall_ns);
    let text = humantime::format_rfc3339_seconds(moment).to_string();
    text.replace('T', " ").trim_end_matches('Z').to_owned()
}
