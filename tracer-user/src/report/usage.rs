//! What users, accounts, nodes held and used, from heads alone: one at a time, so that years take no more memory than
//! there are users.

use std::collections::{BTreeMap, BTreeSet, HashSet, hash_map::DefaultHasher};
use std::hash::{Hash, Hasher};

use clap::ValueEnum;
use serde::Serialize;

use super::jobs::{columns, csv_line};
use crate::{
    base::{text::clean, units::percent},
    record::head::Head,
    view::Style,
};

const HOUR_NS: u64 = 3_600_000_000_000;
const DAY_NS: u64 = 24 * HOUR_NS;
/// 1970 began on a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

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
#[derive(Clone, Debug, Default, Serialize)]
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
    /// Records that lack what they held or used: not in the sums.
    pub unknown: u64,
}

impl Row {
    /// Core hours held and not used.
    pub fn idle_core_hours(&self) -> f64 {
        (self.core_hours_held - self.core_hours_used).max(0.0)
    }
}

/// Sums that heads are added to.
#[derive(Debug)]
pub struct Usage {
    by: By,
    rows: BTreeMap<String, (Row, HashSet<u64>)>,
    /// Core hours of jobs without GPUs, by node and row.
    cpu_only: BTreeMap<String, BTreeMap<String, f64>>,
    /// Nodes on which a job held a GPU.
    gpu_nodes: BTreeSet<String>,
}

impl Usage {
    /// Empty sums.
    pub fn new(by: By) -> Self {
        Self { by, rows: BTreeMap::new(), cpu_only: BTreeMap::new(), gpu_nodes: BTreeSet::new() }
    }

    /// Adds a head, the last one of its record.
    pub fn add(&mut self, head: &Head) {
        let host = head.host.clone().unwrap_or_default();
        let has_gpu = head.gpu_held_ns.is_some_and(|ns| ns > 0);
        if has_gpu {
            self.gpu_nodes.insert(host.clone());
        }
        let mut hasher = DefaultHasher::new();
        (&head.cluster, &head.manager, &head.job).hash(&mut hasher);
        let id = hasher.finish();
        for (key, share) in self.shares(head) {
            let hours = |ns: Option<u64>| ns.unwrap_or(0) as f64 / HOUR_NS as f64 * share;
            if !has_gpu {
                let of_host = self.cpu_only.entry(host.clone()).or_default();
                *of_host.entry(key.clone()).or_default() += hours(head.core_held_ns);
            }
            let (row, ids) = self.rows.entry(key).or_default();
            ids.insert(id);
            let known = head.core_held_ns.is_some() && head.on_cpu_ns.is_some();
            row.unknown += u64::from(!known);
            if known {
                row.core_hours_held += hours(head.core_held_ns);
                row.core_hours_used += hours(head.on_cpu_ns);
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

    /// The rows that `head` belongs to, each with its share of it.
    fn shares(&self, head: &Head) -> Vec<(String, f64)> {
        let whole = |text: &Option<String>| vec![(text.clone().unwrap_or_default(), 1.0)];
        let span = || {
            let end = head.end.or(head.seen).unwrap_or(0);
            (head.begin.or(head.start).unwrap_or(end), end)
        };
        match self.by {
            By::User => whole(&head.user),
            By::Account => whole(&head.account),
            By::Partition => whole(&head.partition),
            By::Node => whole(&head.host),
            By::Hour => {
                let named = |(at, share)| (format!("{at:02}:00"), share);
                spread(span(), HOUR_NS, 24).into_iter().map(named).collect()
            }
            By::Weekday => {
                let named = |(at, share): (usize, f64)| (WEEKDAYS[at].to_owned(), share);
                spread(span(), DAY_NS, 7).into_iter().map(named).collect()
            }
        }
    }

    /// The rows: those with the most core hours idle first; of times in their order.
    pub fn rows(self) -> Vec<Row> {
        let (cpu_only, gpu_nodes) = (self.cpu_only, self.gpu_nodes);
        let of_gpu_nodes = |key: &str| -> f64 {
            let nodes = gpu_nodes.iter().filter_map(|node| cpu_only.get(node)?.get(key));
            // The sum of none is -0.
            nodes.fold(0.0, |sum, hours| sum + hours)
        };
        let mut rows: Vec<Row> = self
            .rows
            .into_iter()
            .map(|(key, (row, ids))| Row {
                jobs: ids.len() as u64,
                cpu_only_core_hours: of_gpu_nodes(&key),
                key,
                ..row
            })
            .collect();
        match self.by {
            By::Hour => {}
            // Monday comes first.
            By::Weekday => rows.sort_by_key(|row| {
                WEEKDAYS.iter().position(|day| *day == row.key).map(|day| (day + 3) % 7)
            }),
            _ => rows.sort_by(|a, b| b.idle_core_hours().total_cmp(&a.idle_core_hours())),
        }
        rows
    }
}

/// The shares of a span of time in a circle of `count` parts of `part_ns`.
fn spread((begin, end): (u64, u64), part_ns: u64, count: u64) -> Vec<(usize, f64)> {
    let circle_ns = part_ns * count;
    let (span, rest) = (end.saturating_sub(begin), end.saturating_sub(begin) % circle_ns);
    if span == 0 {
        return vec![((begin / part_ns % count) as usize, 1.0)];
    }
    let mut ns = vec![span / circle_ns * part_ns; count as usize];
    let mut at = begin;
    while at < begin + rest {
        let until = ((at / part_ns + 1) * part_ns).min(begin + rest);
        ns[(at / part_ns % count) as usize] += until - at;
        at = until;
    }
    let parts = ns.into_iter().enumerate().filter(|(_, ns)| *ns > 0);
    parts.map(|(at, ns)| (at, ns as f64 / span as f64)).collect()
}

type Column = (&'static str, fn(&Row) -> String);

static COLUMNS: [Column; 10] = [
    ("key", |row| row.key.clone()),
    ("jobs", |row| row.jobs.to_string()),
    ("core_hours_held", |row| format!("{:.3}", row.core_hours_held)),
    ("core_hours_used", |row| format!("{:.3}", row.core_hours_used)),
    ("gpu_hours_held", |row| format!("{:.3}", row.gpu_hours_held)),
    ("gpu_hours_used", |row| format!("{:.3}", row.gpu_hours_used)),
    ("memory_gib_hours_held", |row| format!("{:.3}", row.memory_gib_hours_held)),
    ("memory_gib_hours_used", |row| format!("{:.3}", row.memory_gib_hours_used)),
    ("cpu_only_core_hours", |row| format!("{:.3}", row.cpu_only_core_hours)),
    ("unknown", |row| row.unknown.to_string()),
];

/// The rows as CSV, with a line of names.
pub fn csv(rows: &[Row]) -> String {
    let head: Vec<_> = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let cells = |row: &Row| COLUMNS.iter().map(|(_, of)| of(row)).collect::<Vec<_>>();
    std::iter::once(head).chain(rows.iter().map(cells)).map(|cells| csv_line(&cells)).collect()
}

/// The rows for a terminal.
pub fn table(rows: &[Row], by: By, style: &Style) -> String {
    let name = by.to_possible_value().map_or_else(String::new, |by| by.get_name().to_uppercase());
    let head = [
        &*name,
        "JOBS",
        "CORE H",
        "USED",
        "IDLE CORE H",
        "GPU H",
        "USED",
        "GIB H",
        "NEEDED",
        "CPU ONLY",
    ];
    let share = |used: f64, held: f64| {
        if held > 0.0 { percent(used / held) } else { String::new() }
    };
    let hours =
        |hours: f64| if hours > 0.0 { super::text::hours_shown(hours) } else { String::new() };
    let cells = |row: &Row| {
        let key = if row.key.is_empty() { "unknown" } else { &row.key };
        vec![
            clean(key, style.unicode),
            row.jobs.to_string(),
            hours(row.core_hours_held),
            share(row.core_hours_used, row.core_hours_held),
            hours(row.idle_core_hours()),
            hours(row.gpu_hours_held),
            share(row.gpu_hours_used, row.gpu_hours_held),
            hours(row.memory_gib_hours_held),
            share(row.memory_gib_hours_used, row.memory_gib_hours_held),
            hours(row.cpu_only_core_hours),
        ]
    };
    let cells: Vec<_> = rows.iter().map(cells).collect();
    let mut text = columns(&head, &cells, &[1, 2, 3, 4, 5, 6, 7, 8, 9], style);
    let unknown: u64 = rows.iter().map(|row| row.unknown).sum();
    if unknown > 0 {
        text += &format!("not in these sums: {unknown} records that lack what was held or used\n");
    }
    text
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
    }

    #[test]
    fn hours_and_days_have_their_shares() {
        let by_hour = rows(By::Hour);
        let shown: Vec<_> = by_hour.iter().map(|row| (&*row.key, row.core_hours_held)).collect();
        assert_eq!(shown, [("00:00", 24.0), ("23:00", 24.0)]);
        let by_day = rows(By::Weekday);
        let shown: Vec<_> = by_day.iter().map(|row| (&*row.key, row.core_hours_held)).collect();
        assert_eq!(shown, [("Thu", 24.0), ("Fri", 24.0)]);
        let sum =
            |(begin, end)| spread((begin, end), HOUR_NS, 24).iter().map(|(_, s)| s).sum::<f64>();
        for span in [(5, 5), (0, 1), (7, 100 * DAY_NS + 3), (HOUR_NS - 1, 26 * HOUR_NS)] {
            assert!((sum(span) - 1.0).abs() < 1e-9, "{span:?}");
        }
    }

    #[test]
    fn what_is_unknown_is_in_no_sum_and_counted() {
        let mut usage = Usage::new(By::Node);
        usage.add(&Head { core_held_ns: None, ..head("a", "n1", false) });
        let rows = usage.rows();
        assert_eq!((rows[0].unknown, rows[0].core_hours_used), (1, 0.0));
        let style = Style { width: 80, color: false, unicode: true };
        assert!(table(&rows, By::Node, &style).contains("not in these sums: 1 records"));
    }
}
