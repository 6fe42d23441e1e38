//! Every figure has its row.

use super::super::{events, jobs::Shape, shares};
use super::*;
use std::time::Duration;

fn found<T>(tracer: &'static str, figure: Result<T, String>) -> Found<T> {
    Found { workload: "pipe", tracer, figure }
}

#[test]
fn every_figure_has_its_row_and_so_has_every_failure() {
    let mut pairs = Pairs::default();
    [4.0, 5.0, 6.0].iter().for_each(|slower| pairs.add(100.0, 100.0 + slower));
    let program = |name: &str, empty_ns| events::ProgramCost {
        name: name.to_owned(),
        runs: 1000,
        gross_ns: 90.0,
        empty_ns,
    };
    let programs = vec![program("sched_switch", Some(50.0)), program("sys_enter", None)];
    let median = events::Cost { events: 1000, gross_ns: 90.0, empty_ns: 50.0, programs };
    let taken = footprint::Taken {
        span: Duration::from_millis(10_004),
        core_ratio: 0.001_5,
        rss_bytes: 20 << 20,
        peak_rss_bytes: 30 << 20,
        map_bytes: 6 << 20,
        said: Some(footprint::Said {
            drain_ns: 1_234_000,
            least_drain_ns: 900_000,
            execs_per_s: 980.2,
            exec_ns: Some(2_340.0),
            late: 3,
        }),
    };
    let silent = footprint::Taken { said: None, ..taken.clone() };
    let scene = footprint::Scene::of(100, Shape::Nested, footprint::Load::Busy, 10, 60);
    let footprint = |tracer, taken| footprint::Row { tracer, scene, taken };
    let seen = roll::Seen { programs: vec!["a".into(), "b".into()], map_bytes: 3 << 19 };
    let entry = |id, seen| roll::Entry { id, tells: "all", version: "1.0".to_owned(), seen };
    let share = shares::Share { programs_ns: 100_000, runs: 900, job_ns: 1_000_000_000 };
    let report = Report {
        machine: "2 CPUs".to_owned(),
        roll: vec![entry("x", Ok(seen)), entry("y", Err("missing: get it".to_owned()))],
        workloads: vec![("pipe", "a pipe")],
        events: vec![
            found("x", Ok(Costs { median, net_ns: vec![38.0, 40.0, 47.5] })),
            found("y", Err("no".to_owned())),
        ],
        memory: Memory { map_bytes: 6 << 20, peak_rss_bytes: 21 << 20 },
        slowdowns: vec![found("x", Ok(pairs)), found("y", Err("ended".to_owned()))],
        shares: vec![found(
            "x",
            Ok(Shares { median: share, least_and_greatest: [0.000_05, 0.000_2] }),
        )],
        footprints: vec![
            footprint("x", Ok(taken)),
            footprint("y", Ok(silent)),
            footprint("z", Err("ended".to_owned())),
        ],
        sizes: None,
        goals: vec![Goal { verdict: Verdict::Met, text: "g".into(), found: "f".into() }],
        agent_goals: vec![Goal { verdict: Verdict::Open, text: "a".into(), found: "b".into() }],
    };
    let sections = report.sections();
    let text: String = sections.iter().map(|(_, text)| text.as_str()).collect();
    for row in [
        "- [x] **met**: g: f",
        "- [ ] **not shown**: a: b",
        "| x | all | 1.0 | a, b | 1.5 MiB |",
        "| y | all | 1.0 | skipped: missing: get it | – |",
        "| pipe | a pipe |",
        "| pipe | x | 1000 | 90.0 | 50.0 | **40.0** (38.0 to 47.5) |",
        "| pipe | y | failed: no | – | – | – |",
        "| pipe | x | `sched_switch` | 1000 | 90.0 | 50.0 | 40.0 |",
        "| pipe | x | `sys_enter` | 1000 | 90.0 | – | – |",
        "| 6.0 MiB | 21.0 MiB |",
        "| pipe | x | 100 ns | +5.00 % (3 pairs) | +4.0 to +6.0 % |",
        "| pipe | y | – | failed: ended | – |",
        "| pipe | 1000 ms | 900 | 0.010 % | 0.005 to 0.020 % |",
        "| x | 100 | nested | wake, beside busy CPUs | 10 s | 10 s | 0.150 % | 20.0 MiB | 30.0 MiB | 6.0 MiB | 1.23 ms (0.90) | 3 | 980 | 2.3 µs |",
        "| y | 100 | nested | wake, beside busy CPUs | 10 s | 10 s | 0.150 % | 20.0 MiB | 30.0 MiB | 6.0 MiB | – | – | – | – |",
        "| z | 100 | nested | wake, beside busy CPUs | 10 s | failed: ended | – | – | – | – | – | – | – | – |",
    ] {
        assert!(text.contains(row), "{row}\n{text}");
    }
    assert_eq!(sections.len(), 11);
    assert!(Report::default().sections().is_empty());
}
