//! The agent's files in ClusterCockpit's flavour, as its metric store reads them: each line a known
//! metric with one number, of this node, in seconds, and never twice.

use std::{
    collections::BTreeSet,
    time::{SystemTime, UNIX_EPOCH},
};

use influxdb_line_protocol::{FieldValue, parse_lines};
use jobtrace::lines::clustercockpit::METRICS;
use jobtrace_tests::{
    daemon::{PATIENCE, Setup, files, site::Site},
    rig::wait_for,
};

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

#[test]
fn the_metric_store_gets_one_number_a_line_in_seconds() {
    let setup = Setup::new("cluster = \"c1\"\n[export]\nstyle = \"clustercockpit\"\n");
    let (setup, site) = (setup.unwrap(), Site::new().unwrap());
    let (begin_s, mut agent) = (now_s(), setup.start().unwrap());
    let intervals = |count: usize| {
        let written = || files::list(&setup.outbox()).unwrap().len();
        let before = written();
        wait_for("intervals", PATIENCE, || (written() >= before + count).then_some(())).unwrap();
    };
    intervals(1);
    let job = site.spawn(0, "spin", &["crowd", "2", "700"]).unwrap();
    site.fork(0, 50).unwrap();
    jobtrace_tests::daemon::site::report(job).unwrap();
    intervals(2);
    agent.end_well().unwrap();

    let (mut seen, mut names, mut forks, mut most_jobs) =
        (BTreeSet::new(), BTreeSet::new(), 0.0, 0.0);
    let mut used = Vec::new();
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    for file in files::list(&setup.outbox()).unwrap() {
        let text = files::text(&file).unwrap();
        for line in parse_lines(&text) {
            let line = line.unwrap();
            let name = line.series.measurement.as_str();
            let metric = METRICS.iter().find(|metric| metric.name == name);
            let metric = metric.unwrap_or_else(|| panic!("unknown metric: {line}"));
            let tags = line.series.tag_set.iter().flatten();
            let tags: Vec<_> =
                tags.map(|(key, value)| (key.to_string(), value.to_string())).collect();
            let expected = [("cluster", "c1"), ("hostname", "node1"), ("type", "node")];
            // GPUs that this machine may have are told by their index.
            if !metric.is_accelerators() {
                assert_eq!(tags, expected.map(|(k, v)| (k.to_owned(), v.to_owned())), "{line}");
            }
            let [(key, FieldValue::F64(value))] = line.field_set.as_slice() else {
                panic!("not one float: {line}")
            };
            assert_eq!(key.as_str(), "value", "{line}");
            let stamp = line.timestamp.unwrap();
            assert!((begin_s..=now_s() + 1).contains(&stamp), "{line}");
            assert!(seen.insert((name.to_owned(), tags, stamp)), "twice: {line}");
            names.insert(name.to_owned());
            match name {
                "jobtrace_forks" => forks += value,
                "jobtrace_jobs" => most_jobs = value.max(most_jobs),
                "jobtrace_cpu_used" => used.push((stamp, *value)),
                _ => assert!(*value >= 0.0, "{line}"),
            }
        }
    }
    // A rate over the longest interval, which is a second and a tenth unless it is said.
    let words = agent.words();
    let said = words.split("this interval is ").skip(1);
    let said = said.filter_map(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    let longest_s = said.fold(1.1, |longest: f64, said| longest.max(said + 0.05));
    assert!(forks * longest_s >= 50.0, "{forks} forks a second, at most {longest_s} s: {words}");
    // What runs at a reading is known by the wall clock, and that is off by milliseconds of a CPU however short
    // the interval: the first and the last may be of a few. One after a late one is as much shorter.
    used.sort_by_key(|(stamp, _)| *stamp);
    let shortest_s = (2.1 - longest_s).max(0.1);
    assert!(used.len() >= 3, "{used:?}");
    for (_, value) in &used[1..used.len() - 1] {
        assert!((0.0..=cpus * (1.0 + 0.1 / shortest_s)).contains(value), "{used:?}: {words}");
    }
    assert!(used.iter().all(|(_, value)| *value >= 0.0), "{used:?}");
    assert!(most_jobs >= 1.0, "{most_jobs} jobs");
    for name in ["jobtrace_cpu_used", "jobtrace_cpu_wait_p99", "jobtrace_context_switches"] {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
}
