//! The files in a real VictoriaMetrics: every number of every point comes back.

use std::collections::{BTreeMap, BTreeSet};

use jobtrace_tests::{
    daemon::{
        Setup,
        files::{self, Value},
        site::Site,
    },
    rig::victoria::{Name, Victoria},
};

use super::pushed::{numbers, push_copy};

#[test]
fn every_number_of_an_agents_spool_comes_back_from_victoriametrics() {
    let metrics = Victoria::start().unwrap();
    let more = "cluster = 'c l,u=s\"t\\er \u{e9}'\n[export]\nprofile = \"histogram\"\nbucket_style = \"vmrange\"\n";
    let setup = Setup::new(more).unwrap();
    let site = Site::new().unwrap();
    let mut agent = setup.start().unwrap();
    site.fork(0, 50).unwrap();
    site.fork(1, 20).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    agent.end_well().unwrap();
    let points = files::points(&setup.outbox()).unwrap();
    let expected: BTreeMap<(Name, i64), f64> = numbers(&points)
        .into_iter()
        .map(|((measurement, tags, stamp), field, value)| {
            let mut name: Name = tags.clone();
            name.insert("__name__".into(), format!("{measurement}_{field}"));
            ((name, stamp / 1_000_000), value)
        })
        .collect();
    // VictoriaMetrics stores a number for each text too, such as the name that another job on this machine has.
    let texts: BTreeSet<(Name, i64)> = points
        .iter()
        .flat_map(|((measurement, tags, stamp), fields)| {
            let texts = fields.iter().filter(|(_, value)| matches!(value, Value::Text(_)));
            texts.map(move |(field, _)| {
                let mut name: Name = tags.clone();
                name.insert("__name__".into(), format!("{measurement}_{field}"));
                (name, stamp / 1_000_000)
            })
        })
        .collect();
    assert!(expected.len() > 200, "{}", expected.len());
    for times in 1..=2 {
        push_copy(&setup.outbox(), &["--url", &metrics.url(), "--api", "victoria"]);
        let found = metrics.all().unwrap();
        for (series, value) in &expected {
            let stored = found.get(series).unwrap_or_else(|| panic!("no {series:?}"));
            // What is sent again is stored again, with the same value, which no query tells apart. Its
            // numbers are decimals of some fifteen digits.
            let is_it = |found: &f64| (found - value).abs() <= value.abs() * 1e-14;
            assert!(stored.iter().all(is_it), "{series:?}: {stored:?} instead of {value:?}");
            assert!((1..=times).contains(&stored.len()), "{series:?}: {stored:?}");
        }
        let besides: Vec<_> = found
            .keys()
            .filter(|series| !expected.contains_key(series) && !texts.contains(series))
            .collect();
        assert!(besides.is_empty(), "nobody wrote {besides:?}");
    }
    eprintln!("{} numbers of {} points", expected.len(), points.len());
}
