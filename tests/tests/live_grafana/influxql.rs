//! The InfluxQL editions on a real InfluxDB.

use std::collections::BTreeSet;

use jobtrace_tests::rig::influx::{Influx, Row};
use serde_json::Value as Json;
use xtask::grafana::{self, Written, names};

use super::{
    data::{Data, STEP_MS},
    expand::{Choice, expected_sum, is_near, questions, variables},
};

pub const DB: &str = "jobtrace";

/// Fields that a kernel may be unable to tell: stall times need PSI and cgroup v2, throttling a quota's
/// controller, segments sent again jobs that are told apart by cgroup v2.
const KERNELS: [&str; 7] = [
    "cpu_some_stall_ns",
    "memory_some_stall_ns",
    "io_some_stall_ns",
    "throttled_ns",
    "queue_latency_ns_sum",
    "swap_bytes",
    "retransmits",
];

/// The server with all lines, and what was put into it.
pub fn filled(data: &Data) -> Influx {
    let influx = Influx::start().unwrap();
    influx.create_db(DB).unwrap();
    let answer = influx.write_lp(DB, data.lines.as_bytes(), true).unwrap();
    assert_eq!(answer.status, 204, "{answer:?}");
    influx
}

/// Columns that are no values.
const NAMES: [&str; 13] = [
    "time",
    "measurement",
    "job",
    "host",
    "user",
    "device",
    "op",
    "gpu",
    "le",
    "call",
    "fs",
    "mount",
    "family",
];

/// Whether a row says anything besides when and of what.
fn tells(row: &Row) -> bool {
    row.iter().any(|(key, value)| !NAMES.contains(&key.as_str()) && !value.is_null())
}

/// What a variable of the dashboard offers.
fn offered(influx: &Influx, variable: &Json, choice: &Choice) -> Vec<String> {
    let name = variable["name"].as_str().unwrap();
    let query = choice.influxql(variable["query"].as_str().unwrap());
    let rows = influx.query(DB, &query).unwrap();
    let values: BTreeSet<String> =
        rows.iter().filter_map(|row| Some(row.get(name)?.as_str()?.to_owned())).collect();
    assert!(!values.is_empty(), "{name} offers nothing: {query}");
    values.into_iter().collect()
}

/// All choices that a reader may make: of a variable of one value each, of one of many all.
pub fn choices(influx: &Influx, written: &Written, data: &Data) -> Vec<Choice> {
    let range_ms = data.range_ms();
    let mut all = vec![Choice { values: Vec::new(), range_ms, step_ms: STEP_MS }];
    for variable in variables(&written.json) {
        let name = variable["name"].as_str().unwrap().to_owned();
        let many = variable["multi"] == true;
        let mut next = Vec::new();
        for choice in &all {
            let mut values = offered(influx, variable, choice);
            values.retain(|value| name != "job" || !data.is_strange(value));
            let chosen =
                if many { vec![values] } else { values.into_iter().map(|v| vec![v]).collect() };
            next.extend(chosen.into_iter().map(|chosen| {
                let mut choice = choice.clone();
                choice.values.push((name.clone(), chosen));
                choice
            }));
        }
        all = next;
    }
    all
}

/// Fields of a dashboard's queries that nobody has written, each with its measurement.
pub fn missing(written: &Written, data: &Data) -> BTreeSet<(&'static str, &'static str)> {
    let fields = data.fields();
    let asks = written.dashboard.rows.iter().flat_map(|row| &row.panels).flat_map(|p| &p.asks);
    let terms = asks.filter_map(names::term_of);
    terms
        .flat_map(|term| term.value.fields().into_iter().map(move |field| (term.of, field)))
        .filter(|(of, field)| !fields.get(of).is_some_and(|known| known.contains(field)))
        .collect()
}

/// Sum of the values of all rows: what is no tag and no time.
fn sum(rows: &[Row]) -> f64 {
    let values = rows.iter().flat_map(|row| row.iter());
    values.filter(|(key, _)| !NAMES.contains(&key.as_str())).filter_map(|(_, v)| v.as_f64()).sum()
}

#[test]
fn every_query_is_answered_with_data_of_real_runs() {
    let data = Data::get();
    let influx = filled(data);
    let (mut count, mut summed) = (0, 0);
    for written in grafana::all().unwrap() {
        if written.edition.key != "influxql" {
            continue;
        }
        let title = written.dashboard.title;
        let choices = choices(&influx, &written, data);
        let missing = missing(&written, data);
        // Devices that carry nothing meanwhile write nothing.
        let known = |(of, field): &(&str, &str)| *of == "node_net" || KERNELS.contains(field);
        assert!(missing.iter().all(known), "{title}: nobody wrote one of {missing:?}");
        for (panel, _, ask, target) in questions(&written) {
            let query = target["query"].as_str().unwrap();
            let mut told = false;
            for choice in &choices {
                let query = choice.influxql(query);
                let rows = influx.query(DB, &query).unwrap();
                told |= rows.iter().any(tells);
                let Some(job) = choice.one("job") else { continue };
                if let Some(expected) = expected_sum(ask, data, job) {
                    let found = sum(&rows);
                    assert!(is_near(found, expected), "{found} is not {expected}: {query}");
                    summed += usize::from(expected > 0.0);
                }
            }
            let unknown = missing.iter().any(|(of, field)| {
                [of, field].iter().all(|name| query.contains(&format!("\"{name}\"")))
            });
            assert!(told || unknown, "{title}: {} answers nothing: {query}", panel.title);
            count += usize::from(told);
        }
    }
    eprintln!("{count} queries told something, {summed} sums are those of the files");
    assert!(count > 80 && summed > 20, "{count} queries told something, {summed} sums");
}
