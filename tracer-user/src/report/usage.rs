//! What users, accounts, nodes held and used, from heads alone. Sums of parts are added to each other, so that several
//! threads read; what is held is a few bytes for each job.

mod measures;
mod nodes;
pub mod policies;
mod row;
mod spread;
mod table;

pub use row::Row;
pub use table::{csv, json, table};

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Deref,
};

use clap::ValueEnum;

use self::{nodes::Nodes, spread::Circle};
use super::idle::Cores;
use crate::{
    base::values::UtcOffset,
    record::{
        head::Head,
        select::{Stretch, whose},
    },
};

const HOUR_NS: u64 = 3_600_000_000_000;

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
    /// Hours of the day.
    Hour,
    /// Days of the week.
    Weekday,
}

/// A record's part of a job, to tell which of them are one run of it, and what that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// Whose it is, by a hash.
    whose: u64,
    stretch: Stretch,
    /// Where it ran, by a hash.
    host: u32,
    /// The row that it is in; of times a bit for each.
    rows: u32,
    /// Its begin and end.
    span: (u64, u64),
    cores: Cores,
}

/// Sums that heads are added to.
#[derive(Debug)]
pub struct Usage {
    by: By,
    /// Of the clocks that hours and days are told by.
    offset: UtcOffset,
    /// The rows; of times all that there are.
    rows: Vec<Row>,
    /// Where a key's row is.
    places: HashMap<String, usize>,
    parts: Vec<Part>,
    nodes: Nodes,
}

impl Usage {
    /// Empty sums; hours and days are told by clocks of this `offset`.
    pub fn new(by: By, offset: UtcOffset) -> Self {
        let mut usage = Self {
            by,
            offset,
            rows: vec![],
            places: HashMap::new(),
            parts: vec![],
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
    pub fn add<Text: Deref<Target = str>>(&mut self, head: &Head<Text>) {
        let whose = hashed(whose(head));
        let end = head.end.or(head.seen).unwrap_or(0);
        let span = (head.begin.or(head.start).unwrap_or(end), end);
        let span = (self.offset.shown_ns(span.0), self.offset.shown_ns(span.1));
        let circle = self.circle();
        let row = match self.by {
            By::User => self.place(head.user.as_deref().unwrap_or_default()),
            By::Account => self.place(head.account.as_deref().unwrap_or_default()),
            By::Partition => self.place(head.partition.as_deref().unwrap_or_default()),
            By::Node => self.place(head.host.as_deref().unwrap_or_default()),
            By::Hour | By::Weekday => 0,
        };
        let shares = shares(circle, row, span);
        let has_gpu = head.gpu_held_ns.is_some_and(|ns| ns > 0);
        let first = shares.first().map_or(0, |(row, _)| *row);
        let host = head.host.as_deref().unwrap_or_default();
        let core_ns = (!has_gpu).then_some(head.core_held_ns.unwrap_or(0));
        self.nodes.add(host, whose, first, span, core_ns);
        let rows = match circle {
            Some(_) => shares.iter().fold(0, |bits, (row, _)| bits | 1 << row),
            None => first as u32,
        };
        let (stretch, cores) = (Stretch::of(head), Cores::of(head));
        self.parts.push(Part { whose, stretch, host: hashed(host) as u32, rows, span, cores });
        for (row, share) in shares {
            self.rows[row].add_head(head, share);
        }
    }

    /// Adds sums of other heads.
    pub fn merge(&mut self, more: Self) {
        let places: Vec<usize> = more.rows.iter().map(|row| self.place(&row.key)).collect();
        for (at, row) in places.iter().zip(&more.rows) {
            self.rows[*at].add(row);
        }
        let is_circle = self.circle().is_some();
        let rows_here = |rows: u32| if is_circle { rows } else { places[rows as usize] as u32 };
        let parts = more.parts.into_iter();
        self.parts.extend(parts.map(|part| Part { rows: rows_here(part.rows), ..part }));
        self.nodes.merge(more.nodes, &places);
    }

    /// Counts in each row the runs that have a part in it, and adds what they left.
    fn add_runs(&mut self) {
        let mut parts = std::mem::take(&mut self.parts);
        parts.sort_unstable();
        let mut rest = &mut parts[..];
        while let Some(first) = rest.first() {
            let (whose, mut reach) = (first.whose, first.stretch);
            let mut is_same = |part: &&Part| part.whose == whose && reach.takes_in(part.stretch);
            let count = rest.iter().take_while(|part| is_same(part)).count();
            let (run, others) = std::mem::take(&mut rest).split_at_mut(count);
            self.count_job(run);
            run.sort_by_key(|part| part.host);
            run.chunk_by(|one, other| one.host == other.host).for_each(|of_node| {
                self.add_cores(of_node);
            });
            rest = others;
        }
    }

    /// Counts one job in each row that a part of it is in.
    fn count_job(&mut self, run: &[Part]) {
        let mut rows: Vec<usize> = match self.circle() {
            Some(_) => {
                let bits = run.iter().fold(0, |bits, part| bits | part.rows);
                (0..24).filter(|row| bits & (1 << row) != 0).collect()
            }
            None => run.iter().map(|part| part.rows as usize).collect(),
        };
        rows.sort_unstable();
        rows.dedup();
        rows.into_iter().for_each(|row| self.rows[row].jobs += 1);
    }

    /// Adds the cores of a run's parts on one node.
    fn add_cores(&mut self, parts: &[Part]) {
        let left_ns =
            parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.cores.left_ns()));
        let idle = Cores::idle_ns(parts.iter().map(|part| part.cores)).map(|idle| (idle, left_ns));
        for part in parts {
            for (row, share) in shares(self.circle(), part.rows as usize, part.span) {
                self.rows[row].add_cores(part.cores, idle, share);
            }
        }
    }

    /// The rows: those with the most hours idle first, a GPU hour counting as 16 core hours; of times in their order.
    pub fn rows(mut self) -> Vec<Row> {
        self.add_runs();
        let circle = self.circle();
        self.nodes.cpu_only(|row, span, core_ns, is_alone| {
            let mut give = |row: usize, share: f64| {
                let (row, hours) = (&mut self.rows[row], core_ns / HOUR_NS as f64 * share);
                row.cpu_only_core_hours += hours;
                row.cpu_only_alone_core_hours += if is_alone { hours } else { 0.0 };
            };
            shares(circle, row, span).into_iter().for_each(|(row, share)| give(row, share));
        });
        let mut rows = self.rows;
        rows.retain(|row| row.jobs > 0);
        if circle.is_none() {
            let order = |a: &Row, b: &Row| b.waste().total_cmp(&a.waste());
            rows.sort_by(|a, b| order(a, b).then_with(|| a.key.cmp(&b.key)));
        }
        rows
    }
}

/// The rows that `span` lies in, each with its share: of times those of the circle, else `row` alone.
fn shares(circle: Option<Circle>, row: usize, span: (u64, u64)) -> Vec<(usize, f64)> {
    circle.map_or_else(|| vec![(row, 1.0)], |circle| circle.spread(span))
}

fn hashed(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
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
        rows_at(by, "+0")
    }

    /// By clocks of that offset from UTC.
    fn rows_at(by: By, offset: &str) -> Vec<Row> {
        let mut usage = Usage::new(by, offset.parse().unwrap());
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
    fn a_limit_that_was_lowered_had_been_what_was_used() {
        let mut usage = Usage::new(By::User, "+0".parse().unwrap());
        usage.add(&Head { memory_limit_bytes: Some(1 << 30), ..head("a", "n1", false) });
        let rows = usage.rows();
        assert_eq!((rows[0].memory_gib_hours_held, rows[0].memory_gib_hours_used), (4.0, 4.0));
    }

    #[test]
    fn memory_is_held_as_the_limit_was_over_time() {
        let mut usage = Usage::new(By::User, "+0".parse().unwrap());
        // 8 GiB for the first hour, 2 for the second.
        let memory_held_byte_s = Some((10 * 3600) << 30);
        usage.add(&Head { memory_held_byte_s, ..head("a", "n1", false) });
        let rows = usage.rows();
        assert_eq!((rows[0].memory_gib_hours_held, rows[0].memory_gib_hours_used), (10.0, 4.0));
    }

    #[test]
    fn hours_and_days_have_their_shares() {
        let by_hour = rows(By::Hour);
        let shown: Vec<_> = by_hour.iter().map(|row| (&*row.key, row.core_hours_held)).collect();
        assert_eq!(shown, [("00:00", 24.0), ("23:00", 24.0)]);
        let by_day = rows(By::Weekday);
        let shown: Vec<_> = by_day.iter().map(|row| (&*row.key, row.core_hours_held)).collect();
        assert_eq!(shown, [("Thu", 24.0), ("Fri", 24.0)]);
        let by_hour = rows_at(By::Hour, "+05:30");
        let shown: Vec<_> = by_hour.iter().map(|row| (&*row.key, row.core_hours_held)).collect();
        assert_eq!(shown, [("04:00", 12.0), ("05:00", 24.0), ("06:00", 12.0)]);
        assert_eq!(rows_at(By::Weekday, "-02:00").len(), 1);
    }

    #[test]
    fn what_is_unknown_is_in_no_sum_and_counted() {
        let mut usage = Usage::new(By::Node, UtcOffset::default());
        usage.add(&Head { core_held_ns: None, ..head("a", "n1", false) });
        let rows = usage.rows();
        assert_eq!((rows[0].unknown, rows[0].core_hours_used), (1, 0.0));
        let style = crate::view::Style { width: 80, color: false, unicode: true };
        assert!(
            table(&rows, By::Node, UtcOffset::default(), &style)
                .contains("not in these sums: 1 record without what was held or used")
        );
    }
}
