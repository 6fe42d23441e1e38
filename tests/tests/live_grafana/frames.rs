//! What Grafana makes of a live InfluxDB's answers, by its own frame code: joined and sorted heatmaps, tables
//! after their transformations, names in legends.

use std::fs;

use jobtrace_tests::rig::{influx::Influx, scripts};
use serde_json::{Value as Json, json};
use xtask::grafana;

use super::{
    data::Data,
    expand::{Choice, questions},
    influxql::{DB, choices, filled, missing},
    well,
};

/// The series of a query as the server sends them to Grafana, times in milliseconds.
fn series(influx: &Influx, query: &str) -> Json {
    let url = format!("{}/query", influx.url());
    let mut answer = ureq::get(&url)
        .query("db", DB)
        .query("epoch", "ms")
        .query("q", query)
        .call()
        .unwrap_or_else(|error| panic!("{query}: {error}"));
    let text = answer.body_mut().with_config().limit(1 << 28).read_to_string().unwrap();
    let mut answer: Json = serde_json::from_str(&text).unwrap();
    match answer["results"][0]["series"].take() {
        Json::Null => json!([]),
        series => series,
    }
}

/// A panel's file with its answers, of the choice that is answered at most length.
fn answered(influx: &Influx, panel: &Json, title: &str, choices: &[Choice]) -> Json {
    let targets = panel["targets"].as_array().unwrap();
    let of = |choice: &Choice| -> Vec<Json> {
        let asked = targets.iter().map(|target| {
            let mut target = target.clone();
            target["series"] = series(influx, &choice.influxql(target["query"].as_str().unwrap()));
            target
        });
        asked.collect()
    };
    let answers = choices.iter().map(of);
    let told =
        |answers: &Vec<Json>| answers.iter().map(|t| t["series"].to_string().len()).sum::<usize>();
    let best = answers.max_by_key(told).unwrap();
    let mut panel = panel.clone();
    panel["targets"] = json!(best);
    panel["dashboard"] = json!(title);
    panel
}

#[test]
fn grafanas_own_code_draws_the_answers() {
    let data = Data::get();
    let influx = filled(data);
    let mut panels: Vec<Json> = Vec::new();
    for written in grafana::all().unwrap() {
        if written.edition.key != "influxql" {
            continue;
        }
        let choices = choices(&influx, &written, data);
        let missing = missing(&written, data);
        let mut seen = Vec::new();
        for (panel, shown, ..) in questions(&written) {
            if seen.contains(&panel.title) {
                continue;
            }
            seen.push(panel.title);
            let mut shown = answered(&influx, shown, written.dashboard.title, &choices);
            let targets = shown["targets"].to_string();
            let empty =
                missing.iter().any(|(_, field)| targets.contains(&format!("\\\"{field}\\\"")));
            shown["mayBeEmpty"] = json!(empty);
            panels.push(shown);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answers.json");
    fs::write(&file, serde_json::to_vec(&json!({ "panels": panels })).unwrap()).unwrap();
    eprint!("{}", well(&scripts::node("frames.js", &[&file]).unwrap()));
}
