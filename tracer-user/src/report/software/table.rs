//! The rows of `jobtrace software` as a table and as CSV.

use clap::ValueEnum;

use super::{By, Row, Unused, Whole};
use crate::{
    base::{
        text::{clean, truncate},
        units::{count, percent},
    },
    report::{
        list::{self, Column, columns},
        text::hours_shown,
    },
    view::Style,
};

/// Versions, and what goes with it, in a table.
const MOST_VERSIONS: usize = 3;
/// Columns of a name.
const LONGEST_NAME: usize = 40;

static COLUMNS: [Column<Row>; 21] = [
    ("name", |row| row.name.clone()),
    ("jobs", |row| row.jobs.to_string()),
    ("users", |row| row.users.to_string()),
    ("core_hours", |row| format!("{:.3}", row.core_hours)),
    ("gpu_hours", |row| format!("{:.3}", row.gpu_hours)),
    ("gpu_hours_busy", |row| format!("{:.3}", row.gpu_hours_busy)),
    ("gpu_busy_ratio", |row| row.gpu_busy_ratio.map_or(String::new(), |of| format!("{of:.4}"))),
    ("gpu_idle_jobs", |row| row.gpu_idle_jobs.to_string()),
    ("gpu_not_held_jobs", |row| row.gpu_not_held_jobs.to_string()),
    ("gpu_nodes_cpu_only_jobs", |row| row.gpu_nodes_cpu_only_jobs.to_string()),
    ("nodes_p50", |row| row.nodes_p50.to_string()),
    ("nodes_p90", |row| row.nodes_p90.to_string()),
    ("several_pythons_jobs", |row| row.several_pythons_jobs.to_string()),
    ("versions", versions_csv),
    ("jobs_earlier", |row| row.jobs_earlier.to_string()),
    ("jobs_later", |row| row.jobs_later.to_string()),
    ("with", |row| with(row, " ")),
    ("jobs_watched", |row| row.jobs_watched.to_string()),
    ("jobs_unknown", |row| row.jobs_unknown.to_string()),
    ("jobs_opted_out", |row| row.jobs_opted_out.to_string()),
    ("jobs_counted", |row| row.jobs_counted.to_string()),
];

/// `2.4.6:12 1.26.4:3`, without a version `:2`.
fn versions_csv(row: &Row) -> String {
    let versions = row.versions.iter().map(|of| format!("{}:{}", of.version, of.jobs));
    versions.collect::<Vec<_>>().join(" ")
}

fn with(row: &Row, between: &str) -> String {
    let of = row.with.iter().map(|of| format!("{}×{:.1}", of.name, of.lift));
    of.collect::<Vec<_>>().join(between)
}

/// The rows as CSV, with a line of names.
pub fn csv(rows: &[Row]) -> String {
    list::csv(&COLUMNS, rows)
}

/// The rows for a terminal, and what is to be known of them.
pub fn table(rows: &[Row], by: By, whole: &Whole, style: &Style) -> String {
    let name = by.to_possible_value().map_or_else(String::new, |by| by.get_name().to_uppercase());
    let head = [
        &*name,
        "JOBS",
        "USERS",
        "CORE H",
        "GPU H",
        "BUSY",
        "NO GPU",
        "NODES",
        "TREND",
        "VERSIONS",
        "GOES WITH",
    ];
    let hours = |hours: f64| if hours > 0.0 { hours_shown(hours) } else { String::new() };
    let cells = |row: &Row| {
        let no_gpu = row.gpu_idle_jobs + row.gpu_not_held_jobs;
        vec![
            truncate(&clean(&row.name, style.unicode), LONGEST_NAME),
            row.jobs.to_string(),
            row.users.to_string(),
            hours(row.core_hours),
            hours(row.gpu_hours),
            row.gpu_busy_ratio.map_or_else(String::new, percent),
            if no_gpu > 0 { no_gpu.to_string() } else { String::new() },
            format!("{}/{}", row.nodes_p50, row.nodes_p90),
            trend(row),
            clean(&versions(row), style.unicode),
            clean(&with(row, ", "), style.unicode),
        ]
    };
    let cells: Vec<_> = rows.iter().map(cells).collect();
    columns(&head, &cells, &[1, 2, 3, 4, 5, 6, 7, 8], style) + &words(whole)
}

fn trend(row: &Row) -> String {
    match row.trend() {
        _ if row.jobs < 4 => String::new(),
        None => "new".to_owned(),
        Some(change) if change.abs() < 0.005 => "0 %".to_owned(),
        Some(change) if change < 0.0 => format!("-{}", percent(-change)),
        Some(change) => format!("+{}", percent(change)),
    }
}

fn versions(row: &Row) -> String {
    let known = row.versions.iter().filter(|of| !of.version.is_empty());
    let shown: Vec<_> = known.clone().take(MOST_VERSIONS).map(|of| of.version.as_str()).collect();
    match known.count().saturating_sub(MOST_VERSIONS) {
        0 => shown.join(", "),
        more => format!("{}, +{more}", shown.join(", ")),
    }
}

/// What is not in the rows, and what they do not say.
fn words(whole: &Whole) -> String {
    let mut text = String::new();
    if whole.unknown > 0 {
        let share = percent(whole.unknown as f64 / whole.jobs.max(1) as f64);
        let (unknown, all) = (count(whole.unknown), jobs_in_words(whole.jobs));
        text += &format!("unknown: {unknown} of {all} ({share}), which nobody watched\n");
    }
    for (jobs, what) in [
        (whole.opted_out, "asked that nothing is told of them"),
        (
            whole.counted,
            "told of in numbers alone: `counts`, or nobody could ask whether they mind",
        ),
        (whole.partly, "seen in part"),
        (whole.several_pythons, "with several Python processes at once on a node"),
    ] {
        if jobs > 0 {
            text += &format!("{}: {what}\n", jobs_in_words(jobs));
        }
    }
    text + "what was loaded was not necessarily used\n"
}

fn jobs_in_words(jobs: u64) -> String {
    format!("{} job{}", count(jobs), if jobs == 1 { "" } else { "s" })
}

static UNUSED: [Column<Unused>; 3] = [
    ("name", |of| of.name.clone()),
    ("version", |of| of.version.clone().unwrap_or_default()),
    ("other_versions", |of| of.other_versions.join(" ")),
];

/// What is installed and unused, as CSV.
pub fn unused_csv(rows: &[Unused]) -> String {
    list::csv(&UNUSED, rows)
}

/// The same for a terminal.
pub fn unused_table(rows: &[Unused], installed: usize, whole: &Whole, style: &Style) -> String {
    let cells = |of: &Unused| {
        vec![
            truncate(&clean(&of.name, style.unicode), LONGEST_NAME),
            clean(of.version.as_deref().unwrap_or_default(), style.unicode),
            clean(&of.other_versions.join(", "), style.unicode),
        ]
    };
    let cells: Vec<_> = rows.iter().map(cells).collect();
    let head = ["NOT LOADED", "VERSION", "LOADED IN VERSIONS"];
    let text = columns(&head, &cells, &[], style);
    let (unused, watched) = (rows.len(), jobs_in_words(whole.watched()));
    let mut said =
        format!("{unused} of {installed} that are installed were not loaded by {watched}\n");
    if whole.more > 0 {
        // What a site denies, or has no room for, has no name in what jobs tell.
        let jobs = jobs_in_words(whole.more);
        said += &format!("{jobs} of these loaded things without a name, which may be among them\n");
    }
    text + &said + &words(whole)
}
