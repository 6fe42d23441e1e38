//! The rows of `jobtrace jobs` as a table and as CSV.

use super::Row;
use crate::{
    base::{
        text::{clean, truncate},
        units::{UNKNOWN, duration, percent},
    },
    report::{
        list::{self, Column, columns, number},
        moment,
        text::hours_shown,
    },
    view::Style,
};

/// All columns of the CSV.
static COLUMNS: [Column<Row>; 28] = [
    ("job", |row| row.job.clone()),
    ("manager", |row| row.manager.clone()),
    ("user", |row| row.user.clone()),
    ("account", |row| row.account.clone()),
    ("partition", |row| row.partition.clone()),
    ("name", |row| row.name.clone()),
    ("state", |row| row.state.to_owned()),
    ("nodes", |row| row.nodes.to_string()),
    ("start", |row| row.start.to_string()),
    ("end", |row| number(row.end)),
    ("seen", |row| row.seen.to_string()),
    ("elapsed_ns", |row| row.elapsed_ns.to_string()),
    ("took_ns", |row| row.took_ns.to_string()),
    ("on_cpu_ns", |row| number(row.on_cpu_ns)),
    ("run_queue_wait_ns", |row| number(row.run_queue_wait_ns)),
    ("blocked_ns", |row| number(row.blocked_ns)),
    ("millicores_held", |row| number(row.millicores_held)),
    ("core_held_ns", |row| number(row.core_held_ns)),
    ("memory_used_peak_bytes", |row| number(row.memory_used_peak_bytes)),
    ("memory_used_most_bytes", |row| number(row.memory_used_most_bytes)),
    ("memory_limit_bytes", |row| number(row.memory_limit_bytes)),
    ("gpu_held_ns", |row| number(row.gpu_held_ns)),
    ("gpu_busy_ns", |row| number(row.gpu_busy_ns)),
    ("disk_bytes", |row| number(row.disk_bytes)),
    ("net_bytes", |row| number(row.net_bytes)),
    ("idle_core_ns", |row| row.idle_core_ns.to_string()),
    ("idle_gpu_ns", |row| row.idle_gpu_ns.to_string()),
    ("core_counted_ns", |row| number(row.core_counted_ns)),
];

/// The rows as CSV, with a line of names.
pub fn csv(rows: &[Row]) -> String {
    list::csv(&COLUMNS, rows)
}

const HOUR_NS: f64 = 3.6e12;
/// Room for a name on a terminal.
const NAME_COLUMNS: usize = 40;

/// The rows for a terminal.
pub fn table(rows: &[Row], style: &Style) -> String {
    let head = [
        "JOB",
        "USER",
        "STATE",
        "START (UTC)",
        "TOOK",
        "NODES",
        "CORES",
        "MEMORY",
        "GPUS",
        "IDLE CORE H",
        "IDLE GPU H",
        "NAME",
    ];
    let share = |used: Option<u64>, held: Option<u64>| match used.zip(held.filter(|held| *held > 0))
    {
        Some((used, held)) => percent(used as f64 / held as f64),
        None => UNKNOWN.to_owned(),
    };
    let cells = |row: &Row| {
        let gpus = match row.gpu_held_ns.filter(|ns| *ns > 0) {
            Some(held) => share(row.gpu_busy_ns, Some(held)),
            None => String::new(),
        };
        vec![
            clean(&row.job, style.unicode),
            clean(&row.user, style.unicode),
            row.state.replace('_', " "),
            moment(row.start)[..16].to_owned(),
            duration(row.took_ns),
            row.nodes.to_string(),
            share(row.on_cpu_ns, row.core_counted_ns),
            row.memory_shown(style.unicode),
            gpus,
            hours_shown(row.idle_core_ns as f64 / HOUR_NS),
            row.gpu_held_ns
                .filter(|ns| *ns > 0)
                .map_or(String::new(), |_| hours_shown(row.idle_gpu_ns as f64 / HOUR_NS)),
            truncate(&clean(&row.name, style.unicode), NAME_COLUMNS),
        ]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    columns(&head, &rows, &[4, 5, 6, 7, 8, 9, 10], style)
}
