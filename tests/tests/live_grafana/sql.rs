//! The SQL edition, by the engine of InfluxDB 3 over the same points: there is no InfluxDB 3 to ask.

use std::{collections::BTreeMap, fs};

use jobtrace_tests::{agent::Value, rig::scripts};
use serde_json::{Value as Json, json};
use xtask::grafana::{self, sql};

use super::{
    data::Data,
    expand::{Choice, expected_sum, questions, variables},
    influxql::{choices, filled, missing},
    well,
};

fn tables(data: &Data) -> BTreeMap<&str, Vec<Json>> {
    let mut tables: BTreeMap<&str, Vec<Json>> = BTreeMap::new();
    for point in data.points() {
        let fields: BTreeMap<_, Json> = point
            .fields
            .iter()
            .map(|(key, value)| match value {
                Value::Integer(number) => (key, json!(number)),
                Value::Float(number) => (key, json!(number)),
                Value::Text(text) => (key, json!(text)),
            })
            .collect();
        let row = json!({ "time_ns": point.time_ns, "tags": point.tags, "fields": fields });
        tables.entry(&point.measurement).or_default().push(row);
    }
    tables
}

#[test]
fn every_query_in_sql_is_answered() {
    let data = Data::get();
    let influx = filled(data);
    let all = grafana::all().unwrap();
    let edition = |key: &str| {
        let is_it = |w: &&grafana::Written| w.edition.key == key && w.dashboard.title == "Job";
        all.iter().find(is_it).unwrap()
    };
    let written = edition("sql");
    let unknown = missing(written, data);
    let mut queries = Vec::new();
    for choice in choices(&influx, edition("influxql"), data) {
        for variable in variables(&written.json) {
            let query = choice.sql(variable["query"].as_str().unwrap());
            // Texts: an error is all that can be found.
            queries.push(json!({
                "name": variable["name"], "query": query, "may_be_empty": true, "sum": null,
            }));
        }
        for (panel, _, ask, target) in questions(written) {
            let query = target["rawSql"].as_str().unwrap();
            // A column that nobody has written does not exist.
            if unknown.iter().any(|(_, field)| query.contains(&format!("\"{field}\""))) {
                continue;
            }
            queries.push(asked(
                panel.title,
                query,
                &choice,
                expected_sum(ask, data, choice.one("job").unwrap()),
            ));
        }
    }
    // Questions of dashboards that have no edition in SQL, all the same.
    for other in all.iter().filter(|w| w.edition.key == "influxql" && w.dashboard.title != "Job") {
        let missing = missing(other, data);
        for choice in choices(&influx, other, data) {
            for (panel, _, ask, _) in questions(other) {
                let query = sql::query(ask, other.dashboard.scope);
                if !missing.iter().any(|(_, field)| query.contains(&format!("\"{field}\""))) {
                    queries.push(asked(panel.title, &query, &choice, None));
                }
            }
        }
    }
    assert!(queries.len() > 60, "{} queries", queries.len());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("asked.json");
    let given = json!({ "points": tables(data), "queries": queries });
    fs::write(&file, serde_json::to_vec(&given).unwrap()).unwrap();
    eprint!("{}", well(&scripts::python("query_sql.py", &[file]).unwrap()));
}

/// One job has what another lacks: only an answer that must have a sum may not be empty.
fn asked(title: &str, query: &str, choice: &Choice, sum: Option<f64>) -> Json {
    let may_be_empty = sum.is_none_or(|sum| sum == 0.0);
    json!({ "name": title, "query": choice.sql(query), "may_be_empty": may_be_empty, "sum": sum })
}
