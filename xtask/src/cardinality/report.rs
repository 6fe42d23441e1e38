//! The measured numbers as Markdown, and what follows from them for clusters of other sizes.
//!
//! Pure.

use std::fmt::Write;

use super::measure::Measured;
use jobtrace::lines::profile::{BucketStyle, Profile};
use xtask::simulate::{
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
pub fn units(all: &[Measured], plan: &Plan) -> String {
    let mut text = String::from(
        "| profile | series of a job on a node | lines each interval | values | text | in the spool |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let mut row = |name: &str, unit: Unit, packing: f64| {
        let _ = writeln!(
            text,
            "| {name} | {:.0} | {:.1} | {:.0} | {:.0} B | {:.0} B |",
            unit.series,
            unit.lines,
            unit.fields,
            unit.bytes,
            unit.bytes * packing
        );
    };
    for measured in all {
        row(&name(measured), job(measured), packing(measured));
    }
    for measured in all.iter().filter(|measured| measured.case.style == BucketStyle::Le) {
        let name = format!("the node itself: {}", name(measured));
        row(&name, node(measured, plan), packing(measured));
    }
    text
}

/// What InfluxDB makes of them.
pub fn stored(all: &[Measured]) -> String {
    let mut text = String::from(
        "| profile | points | series | values, bytes a point | index, bytes a series | points/s taken | \
         memory, most | at the end |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for measured in all {
        let Some(stored) = &measured.stored else { continue };
        let points = measured.tally.all().lines;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.1} | {:.0} | {:.0} | {:.0} MiB | {:.0} MiB |",
            name(measured),
            thousands(points),
            thousands(stored.series),
            (stored.disk.values + stored.disk.wal) as f64 / points.max(1) as f64,
            stored.disk.index as f64 / stored.series.max(1) as f64,
            points as f64 / stored.busy.as_secs_f64().max(1e-9),
            mib(stored.most),
            mib(stored.anonymous),
        );
    }
    text
}

/// Clusters of other sizes, by multiplication.
pub fn clusters(all: &[Measured], plan: &Plan, width: f64) -> String {
    let mut text = String::from(
        "| nodes | jobs a day | profile | new series a day | lines/s | spool a day | InfluxDB a day |\n\
         | ---: | ---: | --- | ---: | ---: | ---: | ---: |\n",
    );
    for (nodes, jobs) in CLUSTERS {
        for measured in all {
            let Some(stored) = &measured.stored else { continue };
            let (job, node) = (job(measured), node(measured, plan));
            let tally = &measured.tally;
            // As many jobs at once as hold the planned share of the cores.
            let at_once = tally.job_intervals as f64 / tally.node_intervals.max(1) as f64;
            let held = at_once * LOAD / measured.held.max(1e-9);
            let (nodes, jobs) = (nodes as f64, jobs as f64);
            let series = jobs * width * job.series;
            let each_s = nodes / plan.interval_s as f64;
            let lines = each_s * (held * job.lines + node.lines);
            let bytes = each_s * (held * job.bytes + node.bytes) * DAY_S;
            let points = tally.all().lines.max(1) as f64;
            let value_bytes = (stored.disk.values + stored.disk.wal) as f64 / points;
            let index_bytes = stored.disk.index as f64 / stored.series.max(1) as f64;
            let day = lines * DAY_S * value_bytes + series * index_bytes;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {:.1} GB | {:.1} GB |",
                thousands(nodes as u64),
                thousands(jobs as u64),
                name(measured),
                thousands(series as u64),
                thousands(lines as u64),
                bytes * packing(measured) / 1e9,
                day / 1e9
            );
        }
    }
    text
}

/// With a comma before every three digits.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn a_unit_is_what_one_owner_has_each_interval() {
        let amount = Amount { lines: 60, bytes: 6000, fields: 600 };
        let unit = Unit::of(amount, 14, 2, 10);
        assert_eq!(unit, Unit { series: 7.0, lines: 6.0, fields: 60.0, bytes: 600.0 });
        assert_eq!(Unit::of(Amount::default(), 0, 0, 0), Unit::default());
    }
}
