//! What users, accounts, nodes held and used, from heads alone. Sums of parts are added to each other, so that several
//! threads read; what is held is a few bytes for each job.

mod measures;
mod nodes;
pub mod policies;
mod spread;
mod table;

pub use table::{csv, table};

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Deref,
};

use clap::ValueEnum;
use serde::Serialize;

use self::{nodes::Nodes, spread::Circle};
use crate::record::head::Head;

const HOUR_NS: u64 = 3_600_000_000_000;
/// Rows whose jobs are noted in one word.
const ROWS_A_WORD: usize = 32;

/// What the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Owners.
    User,
    /// Accounts or projects.
    Account,
    /// Partitions or queues.
    Partition,
    /// Nodes.
    Node,
    /// Hours of the day, UTC.
    Hour,
    /// Days of the week, UTC.
    Weekday,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Whose it is; empty: unknown.
    pub key: String,
    /// Jobs: ids by scheduler.
    pub jobs: u64,
    /// Core hours held.
    pub core_hours_held: f64,
    /// Core hours on CPU.
    pub core_hours_used: f64,
    /// GPU hours held.
    pub gpu_hours_held: f64,
    /// GPU hours in which a kernel ran.
    pub gpu_hours_used: f64,
    /// Memory allowed times the time, GiB hours, of jobs with a limit.
    pub memory_gib_hours_held: f64,
    /// The most memory that those jobs needed times the time.
    pub memory_gib_hours_used: f64,
    /// Core hours held by jobs without GPUs on nodes on which others held some.
    pub cpu_only_core_hours: f64,
    /// Those of them in which no other job was on the node, so that nobody was kept waiting.
    pub cpu_only_alone_core_hours: f64,
    /// Records that lack what they held or used: not in the sums.
    pub unknown: u64,
    /// The site's policies that it is over.
    pub policies: Vec<String>,
}

impl Row {
    /// Core hours held and not used.
    pub fn idle_core_hours(&self) -> f64 {
        (self.core_hours_held - self.core_hours_used).max(0.0)
    }

    /// GPU hours held in which no kernel ran.
    pub fn idle_gpu_hours(&self) -> f64 {
        (self.gpu_hours_held - self.gpu_hours_used).max(0.0)
    }

    /// Adds the sums of `more`; the jobs of both may be the same ones.
    fn add(&mut self, more: &Self) {
        self.core_hours_held += more.core_hours_held;
        self.core_hours_used += more.core_hours_used;
        self.gpu_hours_held += more.gpu_hours_held;
        self.gpu_hours_used += more.gpu_hours_used;
        self.memory_gib_hours_held += more.memory_gib_hours_held;
        self.memory_gib_hours_used += more.memory_gib_hours_used;
        self.unknown += more.unknown;
    }
}

/// Sums that heads are added to.
#[derive(Debug)]
pub struct Usage {
    by: By,
    /// The rows; of times all that there are.
    rows: Vec<Row>,
    /// Where a key's row is.
    places: HashMap<String, usize>,
    /// The rows of each job: of its number and the rows from a multiple of [`ROWS_A_WORD`] on, a bit each.
    jobs: HashMap<(u64, usize), u32>,
    nodes: Nodes,
}

impl Usage {
    /// Empty sums.
    pub fn new(by: By) -> Self {
        let mut usage = Self {
            by,
            rows: vec![],
            places: HashMap::new(),
            jobs: HashMap::new(),
            nodes: Nodes::default(),
        };
        for key in usage.circle().into_iter().flat_map(Circle::keys) {
            usage.place(&key);
        }
        usage
    }

    /// The parts of the day or week that the rows are, if they are.
    fn circle(&self) -> Option<Circle> {
        match self.by {
            By::Hour => Some(Circle::Day),
            By::Weekday => Some(Circle::Week),
            By::User | By::Account | By::Partition | By::Node => None,
        }
    }

    /// The row of `key`, empty if there was none.
    fn place(&mut self, key: &str) -> usize {
        if let Some(at) = self.places.get(key) {
            return *at;
        }
        self.rows.push(Row { key: key.to_owned(), ..Row::default() });
        self.places.insert(key.to_owned(), self.rows.len() - 1);
        self.rows.len() - 1
    }

    /// Adds a head, the last one of its record.
    pub fn add<Text: Deref<Target = str> + Hash>(&mut self, head: &Head<Text>) {
        let mut hasher = DefaultHasher::new();
        (&head.cluster, &head.manager, &head.job).hash(&mut hasher);
        let job = hasher.finish();
        let end = head.end.or(head.seen).unwrap_or(0);
        let span = (head.begin.or(head.start).unwrap_or(end), end);
        let shares = match self.circle() {
            Some(circle) => circle.spread(span),
            None => {
                let key = match self.by {
                    By::Account => &head.account,
                    By::Partition => &head.partition,
                    By::Node => &head.host,
                    _ => &head.user,
                };
                vec![(self.place(key.as_deref().unwrap_or_default()), 1.0)]
            }
        };
        let has_gpu = head.gpu_held_ns.is_some_and(|ns| ns > 0);
        let row = shares.first().map_or(0, |(row, _)| *row);
        let host = head.host.as_deref().unwrap_or_default();
        self.nodes.add(host, job, row, span, (!has_gpu).then_some(head.core_held_ns.unwrap_or(0)));
        for (at, share) in &shares {
            let hours = |ns: Option<u64>| ns.unwrap_or(0) as f64 / HOUR_NS as f64 * share;
            *self.jobs.entry((job, at / ROWS_A_WORD)).or_default() |= 1 << (at % ROWS_A_WORD);
            let row = &mut self.rows[*at];
            if head.core_held_ns.is_some() && head.on_cpu_ns.is_some() {
                row.core_hours_held += hours(head.core_held_ns);
                row.core_hours_used += hours(head.on_cpu_ns);
            } else {
                row.unknown += 1;
            }
            if head.gpu_busy_ns.is_some() {
                row.gpu_hours_held += hours(head.gpu_held_ns);
                row.gpu_hours_used += hours(head.gpu_busy_ns);
            }
            if let Some((limit, used)) = head.memory_limit_bytes.zip(head.memory_used_peak_bytes) {
                let gib_hours =
                    |bytes: u64| bytes as f64 / (1u64 << 30) as f64 * hours(head.elapsed_ns);
                row.memory_gib_hours_held += gib_hours(limit);
                row.memory_gib_hours_used += gib_hours(used);
            }
        }
    }

    /// Adds sums of other heads.
    pub fn merge(&mut self, more: Self) {
        let places: Vec<usize> = more.rows.iter().map(|row| self.place(&row.key)).collect();
        for (at, row) in places.iter().zip(&more.rows) {
            self.rows[*at].add(row);
        }
        let is_same = places.iter().enumerate().all(|(here, there)| here == *there);
        for ((job, word), bits) in more.jobs {
            if is_same {
                *self.jobs.entry((job, word)).or_default() |= bits;
                continue;
            }
            for at in rows_of(word, bits).map(|row| places[row]) {
                *self.jobs.entry((job, at / ROWS_A_WORD)).or_default() |= 1 << (at % ROWS_A_WORD);
            }
        }
        self.nodes.merge(more.nodes, &places);
    }

    /// The rows: those with the most core hours idle first; of times in their order.
    pub fn rows(mut self) -> Vec<Row> {
        for ((_, word), bits) in &self.jobs {
            rows_of(*word, *bits).for_each(|row| self.rows[row].jobs += 1);
        }
        let circle = self.circle();
        self.nodes.cpu_only(|row, span, core_ns, is_alone| {
            let mut give = |row: usize, share: f64| {
                let (row, hours) = (&mut self.rows[row], core_ns / HOUR_NS as f64 * share);
                row.cpu_only_core_hours += hours;
                row.cpu_only_alone_core_hours += if is_alone { hours } else { 0.0 };
            };
            match circle {
                None => give(row, 1.0),
                Some(circle) => {
                    circle.spread(span).iter().for_each(|(row, share)| give(*row, *share))
                }
            }
        });
        let mut rows = self.rows;
        rows.retain(|row| row.jobs > 0);
        if circle.is_none() {
            let order = |a: &Row, b: &Row| b.idle_core_hours().total_cmp(&a.idle_core_hours());
            rows.sort_by(|a, b| order(a, b).then_with(|| a.key.cmp(&b.key)));
        }
        rows
    }
}

/// The rows whose bits are set in a word.
fn rows_of(word: usize, bits: u32) -> impl Iterator<Item = usize> {
    (0..ROWS_A_WORD)
        .filter(move |bit| bits & (1 << bit) != 0)
        .map(move |bit| word * ROWS_A_WORD + bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(user: &str, host: &str, gpu: bool) -> Head {
        Head {
            manager: Some("slurm".into()),
            job: Some(format!("{user}{host}")),
            user: Some(user.into()),
            host: Some(host.into()),
            begin: Some(23 * HOUR_NS),
            seen: Some(25 * HOUR_NS),
            elapsed_ns: Some(2 * HOUR_NS),
            core_held_ns: Some(16 * HOUR_NS),
            on_cpu_ns: Some(4 * HOUR_NS),
            memory_limit_bytes: Some(8 << 30),
            memory_used_peak_bytes: Some(2 << 30),
            gpu_held_ns: gpu.then_some(2 * HOUR_NS),
            gpu_busy_ns: gpu.then_some(HOUR_NS),
            ..Head::default()
        }
    }

    fn rows(by: By) -> Vec<Row> {
        let mut usage = Usage::new(by);
        for (user, host, gpu) in [("a", "n1", true), ("a", "n2", false), ("b", "n1", false)] {
            usage.add(&head(user, host, gpu));
        }
        usage.rows()
    }

    #[test]
    fn what_was_held_and_used_is_added_up() {
        let rows = rows(By::User);
        let a = &rows[0];
        assert_eq!(
            (a.key.as_str(), a.jobs, a.core_hours_held, a.core_hours_used),
            ("a", 2, 32.0, 8.0)
        );
        assert_eq!((a.gpu_hours_held, a.gpu_hours_used), (2.0, 1.0));
        assert_eq!((a.memory_gib_hours_held, a.memory_gib_hours_used), (32.0, 8.0));
        // b had no GPU where a had one; a's own work without one was where nobody has any.
        assert_eq!((a.cpu_only_core_hours, rows[1].cpu_only_core_hours), (0.0, 16.0));
        assert_eq!(rows[1].cpu_only_alone_core_hours, 0.0, "at the same time");
    }

    #[test]
    fn hours_and_days_have_their_shares() {
        let by_hour = rows(By::Hour);
        let shown: Vec<_> = by_hour.iter().map(|row| (&*row.key, row.core_hours_held)).collect();
        assert_eq!(shown, [("00:00", 24.0), ("23:00", 24.0)]);
        let by_day = rows(By::Weekday);
        let shown: Vec<_> = by_day.iter().map(|row| (&*row.key, row.core_hours_held)).collect();
        assert_eq!(shown, [("Thu", 24.0), ("Fri", 24.0)]);
    }

    #[test]
    fn what_is_unknown_is_in_no_sum_and_counted() {
        let mut usage = Usage::new(By::Node);
        usage.add(&Head { core_held_ns: None, ..head("a", "n1", false) });
        let rows = usage.rows();
        assert_eq!((rows[0].unknown, rows[0].core_hours_used), (1, 0.0));
        let style = crate::view::Style { width: 80, color: false, unicode: true };
        assert!(table(&rows, By::Node, &style).contains("not in these sums: 1 records"));
    }
}
