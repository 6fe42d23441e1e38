//! The PromQL edition on a real VictoriaMetrics.

use jobtrace_tests::rig::victoria::Victoria;
use serde_json::Value as Json;
use xtask::grafana::{self, spec::What};

use super::{
    data::Data,
    expand::{expected_sum, is_near, questions, variables},
    influxql::{choices, filled, missing},
};

/// Sum of the values of all series, and how many there are.
fn sum(series: &[Json]) -> (f64, usize) {
    let number = |pair: &Json| pair[1].as_str().and_then(|text| text.parse::<f64>().ok());
    let values = series.iter().flat_map(|one| {
        let many = one["values"].as_array().into_iter().flatten();
        many.chain(one.get("value")).filter_map(number).collect::<Vec<_>>()
    });
    values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1))
}

/// The parts of `label_values(selector, label)`.
fn parts(query: &str) -> (&str, &str) {
    let inside = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
    inside.and_then(|inside| inside.rsplit_once(", ")).unwrap_or_else(|| panic!("{query}"))
}

#[test]
fn every_query_in_promql_is_answered() {
    let data = Data::get();
    let victoria = Victoria::start().unwrap();
    victoria.write_lp(data.lines.as_bytes()).unwrap();
    let influx = filled(data);
    let all = grafana::all().unwrap();
    let edition = |key: &str| {
        let is_it = |w: &&grafana::Written| w.edition.key == key && w.dashboard.title == "Job";
        all.iter().find(is_it).unwrap()
    };
    let written = edition("promql");
    let missing = missing(written, data);
    let choices = choices(&influx, edition("influxql"), data);
    for variable in variables(&written.json) {
        let name = variable["name"].as_str().unwrap();
        for choice in &choices {
            let (_, wanted) = choice.values.iter().find(|(known, _)| known == name).unwrap();
            let query = choice.promql(variable["query"].as_str().unwrap());
            let (selector, label) = parts(&query);
            let found = victoria.label_values(selector, label, choice.range_ms).unwrap();
            let has = |value: &String| found.iter().any(|found| found == value.as_str());
            assert!(wanted.iter().all(has), "{wanted:?} is not in {found:?}: {query}");
        }
    }
    let (mut count, mut summed) = (0, 0);
    for (panel, _, ask, target) in questions(written) {
        let expr = target["expr"].as_str().unwrap();
        let mut told = false;
        for choice in &choices {
            let query = choice.promql(expr);
            let step = (!matches!(ask.what, What::Whole(..))).then_some(choice.step_ms);
            let found = victoria.query(&query, choice.range_ms, step).unwrap();
            let (sum, values) = sum(&found);
            told |= values > 0;
            if let Some(expected) = expected_sum(ask, data, choice.one("job").unwrap()) {
                assert!(is_near(sum, expected), "{sum} is not {expected}: {query}");
                summed += usize::from(expected > 0.0);
            }
        }
        let unknown = missing.iter().any(|(_, field)| expr.contains(field));
        assert!(told || unknown, "{} answers nothing: {expr}", panel.title);
        count += usize::from(told);
    }
    eprintln!("{count} queries told something, {summed} sums are those of the files");
    assert!(count > 40 && summed > 20, "{count} queries told something, {summed} sums");
}
