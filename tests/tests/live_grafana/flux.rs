//! The Flux edition, by Flux's own type checker: there is no InfluxDB 2 to ask.

use std::fs;

use jobtrace_tests::rig::scripts;
use serde_json::json;
use xtask::grafana::{self, flux};

use super::{
    expand::{Choice, questions, variables},
    well,
};

#[test]
fn every_query_in_flux_is_well_typed() {
    let values = [("job", vec!["71"]), ("host", vec!["node1", "node-2.site"]), ("user", vec!["a"])];
    let values = values.map(|(name, all)| {
        (name.to_owned(), all.into_iter().map(str::to_owned).collect::<Vec<_>>())
    });
    let choice = Choice { values: values.into(), range_ms: (0, 1000), step_ms: 1000 };
    let mut queries = Vec::new();
    for written in grafana::all().unwrap() {
        match written.edition.key {
            "flux" => {}
            // Questions of dashboards that have no edition in Flux, all the same.
            "influxql" => {
                for (panel, _, ask, _) in questions(&written) {
                    let query = choice.flux(&flux::query(ask, written.dashboard.scope));
                    let name =
                        format!("{}, {}, {}", written.dashboard.title, panel.title, ask.legend);
                    queries.push(json!({ "name": name, "query": query }));
                }
                continue;
            }
            _ => continue,
        }
        for (panel, _, ask, target) in questions(&written) {
            let query = choice.flux(target["query"].as_str().unwrap());
            queries.push(
                json!({ "name": format!("{}, {}", panel.title, ask.legend), "query": query }),
            );
        }
        for variable in variables(&written.json) {
            let query = choice.flux(variable["query"].as_str().unwrap());
            queries.push(json!({ "name": variable["name"], "query": query }));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queries.json");
    fs::write(&file, serde_json::to_vec(&queries).unwrap()).unwrap();
    eprint!("{}", well(&scripts::node("flux.js", &[&file]).unwrap()));
}
