//! The rows of `jobtrace usage` as a table, as CSV and as JSON.

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::Value;

use super::{By, Row};
use crate::{
    base::{
        text::clean,
        units::{counted, percent},
        values::UtcOffset,
    },
    report::{
        json::lines,
        list::{self, Column, columns},
        text::hours_shown,
    },
    view::Style,
};

static COLUMNS: [Column<Row>; 15] = [
    ("key", |row| row.key.clone()),
    ("jobs", |row| row.jobs.to_string()),
    ("core_hours_held", |row| of(row.core_hours_held, row.core_hours_held)),
    ("core_hours_used", |row| of(row.core_hours_held, row.core_hours_used)),
    ("gpu_hours_held", |row| of(row.gpu_hours_held, row.gpu_hours_held)),
    ("gpu_hours_used", |row| of(row.gpu_hours_held, row.gpu_hours_used)),
    ("memory_gib_hours_held", |row| of(row.memory_gib_hours_held, row.memory_gib_hours_held)),
    ("memory_gib_hours_used", |row| of(row.memory_gib_hours_held, row.memory_gib_hours_used)),
    ("cpu_only_core_hours", |row| of(row.cpu_only_core_hours, row.cpu_only_core_hours)),
    ("unknown", |row| row.unknown.to_string()),
    ("cpu_only_alone_core_hours", |row| of(row.cpu_only_core_hours, row.cpu_only_alone_core_hours)),
    ("idle_core_hours", |row| of(row.core_hours_held, row.idle_core_hours)),
    ("idle_gpu_hours", |row| of(row.gpu_hours_held, row.idle_gpu_hours)),
    ("policies", |row| row.policies.join(" ")),
    ("not_counted_core_hours", |row| of(row.not_counted_core_hours, row.not_counted_core_hours)),
];

/// Hours of those held; where none are known to be held, how many were used is unknown too.
fn of(held: f64, hours: f64) -> String {
    if held > 0.0 { format!("{hours:.3}") } else { String::new() }
}

/// The rows as CSV, with a line of names.
pub fn csv(rows: &[Row]) -> String {
    list::csv(&COLUMNS, rows)
}

/// Columns in which none is known to be none, and not unknown: CSV leaves them empty to be read.
const NONE_IS_KNOWN: [&str; 3] =
    ["cpu_only_core_hours", "cpu_only_alone_core_hours", "not_counted_core_hours"];

/// The rows as JSON, one a line; hours that are not known, which CSV leaves empty, are null.
///
/// # Errors
/// None that its input could cause.
pub fn json(rows: &[Row]) -> Result<String> {
    let known = |row: &Row| {
        let mut value = serde_json::to_value(row).context("cannot write a row as json")?;
        for (name, cell) in COLUMNS.iter().filter(|(name, _)| !NONE_IS_KNOWN.contains(name)) {
            if let Some(number) = value.get_mut(name).filter(|value| value.is_number())
                && cell(row).is_empty()
            {
                *number = Value::Null;
            }
        }
        Ok(value)
    };
    lines(&rows.iter().map(known).collect::<Result<Vec<_>>>()?)
}

/// The rows for a terminal.
pub fn table(rows: &[Row], by: By, offset: UtcOffset, style: &Style) -> String {
    let name = by.to_possible_value().map_or_else(String::new, |by| by.get_name().to_uppercase());
    let name = match by {
        By::Hour | By::Weekday => format!("{name} (UTC{offset})"),
        By::User | By::Account | By::Partition | By::Node => name,
    };
    let head = [
        &*name,
        "JOBS",
        "CORE H",
        "USED",
        "IDLE CORE H",
        "GPU H",
        "USED",
        "IDLE GPU H",
        "GIB H",
        "NEEDED",
        "CPU ONLY",
        "ALONE",
    ];
    let share = |used: f64, held: f64| {
        if held > 0.0 { percent(used / held) } else { String::new() }
    };
    let hours = |hours: f64| if hours > 0.0 { hours_shown(hours) } else { String::new() };
    let cells = |row: &Row| {
        let key = if row.key.is_empty() { "unknown" } else { &row.key };
        vec![
            clean(key, style.unicode),
            row.jobs.to_string(),
            hours(row.core_hours_held),
            share(row.core_hours_used, row.core_hours_held),
            hours(row.idle_core_hours),
            hours(row.gpu_hours_held),
            share(row.gpu_hours_used, row.gpu_hours_held),
            hours(row.idle_gpu_hours),
            hours(row.memory_gib_hours_held),
            share(row.memory_gib_hours_used, row.memory_gib_hours_held),
            hours(row.cpu_only_core_hours),
            share(row.cpu_only_alone_core_hours, row.cpu_only_core_hours),
        ]
    };
    let cells: Vec<_> = rows.iter().map(cells).collect();
    let mut text = columns(&head, &cells, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], style);
    let unknown: u64 = rows.iter().map(|row| row.unknown).sum();
    if unknown > 0 {
        let records = counted(unknown, "record");
        text += &format!("not in these sums: {records} without what was held or used\n");
    }
    let not_counted: f64 = rows.iter().map(|row| row.not_counted_core_hours).sum();
    if not_counted > 0.0 {
        let hours = hours_shown(not_counted);
        text += &format!(
            "not in these sums: {hours} core hours held while agents had detached what counts their use\n"
        );
    }
    text
}
