//! The tables of a report.

use crate::{
    base::units::{bytes, count, duration, long_duration, percent},
    report::{Device, Node, PartRow, Report},
    view::{
        Style, heading,
        line::{Line, Tone},
        table::table,
    },
};

/// Rows of nodes or tasks: the busiest and the least busy.
const ROWS: usize = 8;

/// Nothing where it is unknown.
fn cell(value: Option<u64>, show: fn(u64) -> String) -> String {
    value.map_or(String::new(), show)
}

/// Disks and file systems, a row each.
pub fn devices(report: &Report, style: &Style) -> Vec<Line> {
    if report.devices.is_empty() {
        return Vec::new();
    }
    let rows: Vec<_> = report.devices.iter().map(device_cells).collect();
    let mut lines = vec![Line::new().strong("Disks and file systems")];
    let head = ["", "moved", "number", "mean", "p50", "p99", "max"];
    lines.extend(table(&head, &rows, style));
    lines.extend(more_devices(report).map(|more| Line::new().faint(format!("  {more}"))));
    for of in &report.devices {
        if let Some(errors) = of.errors {
            let text = format!("  {} of the requests of {} failed", count(errors), of.name);
            lines.push(Line::new().with(Tone::Bad, text));
        }
    }
    lines
}

/// How many devices have no row, where some have none.
pub fn more_devices(report: &Report) -> Option<String> {
    let more = report.more_devices;
    (more > 0).then(|| format!("… {more} more, which took less time"))
}

/// The busiest and the least busy nodes.
pub fn nodes(report: &Report, style: &Style) -> Vec<Line> {
    let nodes = &report.nodes;
    if nodes.is_empty() {
        return Vec::new();
    }
    let rows = ends(nodes.iter().map(node_cells).collect());
    let mut lines = heading("Nodes", report.balance.as_deref().unwrap_or_default(), style);
    let head = ["", "on CPU", "cores", "blocked", "memory", "GPUs"];
    lines.extend(table(&head, &rows, style));
    lines
}

/// The busiest and the least busy steps and tasks.
pub fn parts(report: &Report, style: &Style) -> Vec<Line> {
    if report.parts.is_empty() {
        return Vec::new();
    }
    let rows = ends(report.parts.iter().map(part_cells).collect());
    let balance = report.parts_balance.as_deref().unwrap_or_default();
    let mut lines = heading("Steps and tasks", balance, style);
    lines.extend(table(&["", "on CPU", "memory", "disk", "took"], &rows, style));
    lines
}

/// The first and the last rows; of those between, how many there are.
fn ends(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let hidden = rows.len().saturating_sub(ROWS);
    if hidden > 0 {
        let mut gap = vec![format!("… {hidden} more")];
        gap.resize(rows[0].len(), String::new());
        rows.splice(ROWS / 2..rows.len() - ROWS / 2, [gap]);
    }
    rows
}

/// Name, moved, number, mean size, p50, p99 and longest.
pub fn device_cells(of: &Device) -> Vec<String> {
    let time = |at: usize| cell(of.latency_ns.map(|times| times[at]), duration);
    vec![
        of.name.clone(),
        cell(of.bytes.filter(|moved| *moved > 0), bytes),
        count(of.count),
        cell(of.mean_bytes, bytes),
        time(0),
        time(2),
        time(3),
    ]
}

/// Name, time on CPU, its share of what was held, time blocked, memory, GPUs.
pub fn node_cells(of: &Node) -> Vec<String> {
    vec![
        of.name.clone(),
        cell(of.on_cpu_ns, duration),
        of.cores_share.map_or(String::new(), percent),
        cell(of.blocked_ns, duration),
        cell(of.memory_bytes, bytes),
        of.gpu_share.map_or(String::new(), percent),
    ]
}

/// Name, time on CPU, memory, disk, elapsed time.
pub fn part_cells(of: &PartRow) -> Vec<String> {
    vec![
        of.name.clone(),
        cell(of.on_cpu_ns, duration),
        cell(of.memory_peak_bytes, bytes),
        cell(of.disk_bytes, bytes),
        long_duration(of.elapsed_ns),
    ]
}
