//! What holds for every dashboard, without a server.

use std::collections::BTreeSet;

use super::*;
use crate::grafana::{
    compose::{over_time, term},
    names::check_ask,
    spec::{Value, What},
};

#[test]
fn every_panel_has_an_id_of_its_own_a_text_and_a_question() {
    let all = all().unwrap();
    let mut uids = BTreeSet::new();
    for Written { file, json, .. } in &all {
        let uid = json["uid"].as_str().unwrap();
        assert!(uids.insert(uid.to_owned()), "{uid} is there twice");
        assert!(uid.len() <= 40, "{uid} is longer than Grafana takes");
        assert!(json.get("id").is_none(), "{file}: an id belongs to one server");
        let (mut ids, mut titles) = (BTreeSet::new(), BTreeSet::new());
        for panel in json["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{file}: {panel}");
            if panel["type"] == "row" {
                continue;
            }
            let title = panel["title"].as_str().unwrap();
            assert!(titles.insert(title.to_owned()), "{file}: two panels {title}");
            let help = panel["description"].as_str().unwrap();
            assert!(help.len() > 30 && help.ends_with('.'), "{file}: {help}");
            assert_eq!(panel["datasource"]["uid"], "${datasource}");
            let targets = panel["targets"].as_array().unwrap();
            assert!(!targets.is_empty(), "{file}: {panel}");
            assert!(targets.iter().all(|t| t["datasource"]["uid"] == "${datasource}"));
        }
    }
}

/// Names within `${…}`, and after a `$` alone.
fn named(text: &str) -> BTreeSet<String> {
    let name = |rest: &str| {
        let rest = rest.strip_prefix('{').unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.');
        rest[..end.unwrap_or(rest.len())].to_owned()
    };
    let names = text.split('$').skip(1).map(name);
    names
        .filter(|name| !name.is_empty() && !name.starts_with("__") && name != "timeFilter")
        .collect()
}

#[test]
fn no_variable_is_named_that_is_not_offered() {
    for Written { file, json, .. } in all().unwrap() {
        let list = json["templating"]["list"].as_array().unwrap();
        let offered: BTreeSet<&str> = list.iter().map(|v| v["name"].as_str().unwrap()).collect();
        let panels = serde_json::to_string(&json["panels"]).unwrap();
        for name in named(&panels).iter().filter(|name| !name.starts_with("tag_")) {
            assert!(offered.contains(name.as_str()), "{file}: {name} of {offered:?}");
        }
        assert!(named(&panels).contains("step"), "the search finds names");
    }
}

#[test]
fn unknown_names_are_refused() {
    let bad = [
        over_time("x", term("job_shed", Value::Rate("on_cpu_ns")), &[]),
        over_time("x", term("job_sched", Value::Rate("on_cpu")), &[]),
        over_time("x", term("job_sched", Value::Largest("run_queue_wait_ns")), &[]),
        over_time("x", term("job_sched", Value::Largest("run_queue_wait_ns_p95")), &[]),
        over_time("x", term("job_sched", Value::Rate("on_cpu_ns")), &["device"]),
        over_time("{host}", term("job_sched", Value::Rate("on_cpu_ns")), &["job"]),
        over_time("x", term("job_sched", Value::Rate("on_cpu_ns")).only(&[("op", "read")]), &[]),
        over_time("x", term("jobtrace_self", Value::Rate("overhead_ratio")), &[]),
        Ask { legend: "x", what: What::Buckets("sched.on_cpu_ns") },
        Ask { legend: "x", what: What::Buckets("run_queue_wait_ns") },
    ];
    for ask in bad {
        assert!(check_ask(&ask, &[]).is_err(), "{}", influxql::query(&ask, &[]));
    }
    let good = over_time("x", term("job_block", Value::Largest("device_latency_ns_p99")), &["op"]);
    check_ask(&good, &[Scope::One("job")]).unwrap();
    assert!(check_ask(&good, &[Scope::One("metric")]).is_err());
}

#[test]
fn facts_are_known_or_totals_by_the_tables() {
    let facts = |fields, computed| {
        let facts = spec::Facts { fields, ended: true, newest: None, computed };
        check_ask(&Ask { legend: "x", what: What::Facts(facts) }, &[])
    };
    facts(&[("name", "n", 1.0), ("sched_blocked_ns_sum", "b", 1.0)], &[]).unwrap();
    facts(&[("block_read_bytes", "n", 1.0)], &[("h", "cpu_cores_held * (end - start) / 3600")])
        .unwrap();
    assert!(facts(&[("sched_blocked_ns_p99", "b", 1.0)], &[]).is_err());
    assert!(facts(&[("block_bytes", "b", 1.0)], &[]).is_err());
    assert!(facts(&[], &[("h", "cpu_cores * 2")]).is_err());
}

#[test]
fn numbers_have_no_exponent() {
    assert_eq!(decimal(1e-9), "0.000000001");
    assert_eq!(decimal(8.0), "8.0");
    assert_eq!(words("a * (b - 2)", |word| format!("<{word}>")), "<a> * (<b> - 2)");
}

#[test]
fn every_file_is_of_a_description() {
    let known: BTreeSet<String> = all().unwrap().into_iter().map(|written| written.file).collect();
    for entry in std::fs::read_dir(crate::root().join(FOLDER)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".json") || known.contains(&name), "{name} is of no description");
    }
}

#[test]
fn each_language_has_a_data_source_to_copy() {
    let folder = crate::root().join(FOLDER).join("provisioning/datasources");
    for Written { edition, .. } in all().unwrap() {
        let text = std::fs::read_to_string(folder.join(format!("{}.yaml", edition.key))).unwrap();
        assert!(text.contains(&format!("type: {}\n", edition.source)), "{text}");
        assert!(text.contains(&format!("uid: jobtrace-{}\n", edition.key)), "{text}");
    }
}

#[test]
fn queries_read_as_expected() {
    let all = all().unwrap();
    let panels = all[0].json["panels"].as_array().unwrap();
    let of = |title: &str| {
        let panel = panels.iter().find(|panel| panel["title"] == title).unwrap();
        let targets = panel["targets"].as_array().unwrap();
        targets.iter().map(|t| t["query"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let scope = r#""job" =~ /^${job:regex}$/ AND "host" =~ /^${host:regex}$/"#;
    assert_eq!(
        of("What the job's tasks did")[0],
        format!(
            r#"SELECT sum("on_cpu_ns") / $__interval_ms / 1000000 AS "on CPU" FROM "job_sched" WHERE {scope} AND $timeFilter GROUP BY time($__interval) fill(null)"#
        )
    );
    assert_eq!(
        of("How long tasks waited for a CPU")[0],
        format!(
            r#"SELECT sum("n") FROM "job_hist" WHERE {scope} AND "metric" = 'sched.run_queue_wait_ns' AND $timeFilter GROUP BY time($__interval), "le" fill(0)"#
        )
    );
}
