//! The measured numbers as Markdown, and what follows from them for clusters of other sizes.
//!
//! Pure.

use super::measure::{Measured, Stored};
use jobtrace::lines::profile::{BucketStyle, Profile};
use xtask::markdown::{Table, mib, thousands};

use crate::{
    plan::{LOAD, Plan},
    tally::Amount,
};

/// Clusters of the second table: nodes and jobs a day.
const CLUSTERS: [(u64, u64); 4] = [(100, 2_000), (1_000, 5_000), (1_000, 20_000), (5_000, 100_000)];
const DAY_S: f64 = 86_400.0;

/// What one job on one node, or one node, costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Unit {
    series: f64,
    lines: f64,
    fields: f64,
    bytes: f64,
}

impl Unit {
    fn of(amount: Amount, series: u64, owners: u64, intervals: u64) -> Self {
        let each = |value: u64| value as f64 / intervals.max(1) as f64;
        Self {
            series: series as f64 / owners.max(1) as f64,
            lines: each(amount.lines),
            fields: each(amount.fields),
            bytes: each(amount.bytes),
        }
    }
}

fn job(measured: &Measured) -> Unit {
    let tally = &measured.tally;
    Unit::of(tally.jobs(), tally.job_series, tally.job_nodes, tally.job_intervals)
}

fn node(measured: &Measured, plan: &Plan) -> Unit {
    let tally = &measured.tally;
    Unit::of(tally.nodes(), tally.node_series, u64::from(plan.nodes), tally.node_intervals)
}

/// Packed bytes for each byte of text in the spool's files.
fn packing(measured: &Measured) -> f64 {
    measured.packed.0 as f64 / measured.packed.1.max(1) as f64
}

fn name(measured: &Measured) -> String {
    let profile = format!("{:?}", measured.case.profile).to_lowercase();
    match measured.case.profile {
        Profile::Summary => profile,
        _ => {
            let style = format!("{:?}", measured.case.style).to_lowercase();
            format!("{profile}, `{style}`")
        }
    }
}

/// Lines and bytes by profile.
pub fn units(all: &[Measured], plan: &Plan) -> Table {
    let mut table = Table::new(
        "profile | >series of a job on a node | >lines each interval | >values | >text | >in the spool",
    );
    let mut row = |name: &str, unit: Unit, packing: f64| {
        table.row([
            &name,
            &format_args!("{:.0}", unit.series),
            &format_args!("{:.1}", unit.lines),
            &format_args!("{:.0}", unit.fields),
            &format_args!("{:.0} B", unit.bytes),
            &format_args!("{:.0} B", unit.bytes * packing),
        ]);
    };
    for measured in all {
        row(&name(measured), job(measured), packing(measured));
    }
    for measured in all.iter().filter(|measured| measured.case.style == BucketStyle::Le) {
        let name = format!("the node itself: {}", name(measured));
        row(&name, node(measured, plan), packing(measured));
    }
    table
}

/// Bytes on the disk of a point's values, and of a series in the index.
fn disk(measured: &Measured, stored: &Stored) -> (f64, f64) {
    let values = stored.disk.values + stored.disk.wal;
    let points = measured.tally.all().lines.max(1) as f64;
    (values as f64 / points, stored.disk.index as f64 / stored.series.max(1) as f64)
}

/// What InfluxDB makes of them.
pub fn stored(all: &[Measured]) -> Table {
    let mut table = Table::new(
        "profile | >points | >series | >values, bytes a point | >index, bytes a series | \
         >points/s taken | >memory, most | >at the end",
    );
    for measured in all {
        let Some(stored) = &measured.stored else { continue };
        let (points, (value, index)) = (measured.tally.all().lines, disk(measured, stored));
        table.row([
            &name(measured),
            &thousands(points),
            &thousands(stored.series),
            &format_args!("{value:.1}"),
            &format_args!("{index:.0}"),
            &format_args!("{:.0}", points as f64 / stored.busy.as_secs_f64().max(1e-9)),
            &format_args!("{:.0} MiB", mib(stored.most)),
            &format_args!("{:.0} MiB", mib(stored.anonymous)),
        ]);
    }
    table
}

/// Clusters of other sizes, by multiplication.
pub fn clusters(all: &[Measured], plan: &Plan, width: f64) -> Table {
    let mut table = Table::new(
        ">nodes | >jobs a day | profile | >new series a day | >lines/s | >spool a day | >InfluxDB a day",
    );
    for (nodes, jobs) in CLUSTERS {
        for measured in all {
            let Some(stored) = &measured.stored else { continue };
            let (job, node) = (job(measured), node(measured, plan));
            let tally = &measured.tally;
            // As many jobs at once as hold the planned share of the cores.
            let at_once = tally.job_intervals as f64 / tally.node_intervals.max(1) as f64;
            let held = at_once * LOAD / measured.held.max(1e-9);
            let series = jobs as f64 * width * job.series;
            let each_s = nodes as f64 / plan.interval_s as f64;
            let lines = each_s * (held * job.lines + node.lines);
            let bytes = each_s * (held * job.bytes + node.bytes) * DAY_S;
            let (value, index) = disk(measured, stored);
            table.row([
                &thousands(nodes),
                &thousands(jobs),
                &name(measured),
                &thousands(series as u64),
                &thousands(lines as u64),
                &format_args!("{:.1} GB", bytes * packing(measured) / 1e9),
                &format_args!("{:.1} GB", (lines * DAY_S * value + series * index) / 1e9),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_what_one_owner_has_each_interval() {
        let amount = Amount { lines: 60, bytes: 6000, fields: 600 };
        let unit = Unit::of(amount, 14, 2, 10);
        assert_eq!(unit, Unit { series: 7.0, lines: 6.0, fields: 60.0, bytes: 600.0 });
        assert_eq!(Unit::of(Amount::default(), 0, 0, 0), Unit::default());
    }
}
