//! JSON, line protocol and summary of one recording: all tell the recording's own numbers.

use std::collections::BTreeMap;

use influxdb_line_protocol::{FieldValue, parse_lines};
use jobtrace::{
    model::{snapshot::Interval, source::Source, tables},
    replay::Replay,
};
use serde_json::Value;
use tracer_ebpf::table::Kind;

use super::program::{RECORDINGS, numbers_of, recording, replay};

/// Series (measurement and its own tags) and field.
type Key = (String, Vec<String>, String);

/// Counters, and counts and sums of histograms.
type Sums = BTreeMap<Key, u64>;

fn is_sum(table: &str, field: &str) -> bool {
    let of = |kind: &dyn Fn(Kind) -> bool, name: &str| {
        let tables = tables::ALL.iter().filter(|found| found.name == table);
        tables.flat_map(|found| found.fields).any(|found| found.name == name && kind(found.kind))
    };
    let histogram = field.strip_suffix("_count").or(field.strip_suffix("_sum"));
    of(&|kind| kind == Kind::Counter, field)
        || histogram.is_some_and(|name| of(&|kind| kind == Kind::Histogram, name))
}

/// What the lines' intervals add up to, without zeros.
fn sums_of_lines(lines: &[String]) -> Sums {
    let mut sums = Sums::new();
    for line in parse_lines(&lines.join("\n")) {
        let line = line.expect("line protocol");
        let name = line.series.measurement.to_string();
        let Some(table) = tables::ALL.iter().find(|table| table.name == name) else { continue };
        let tags = table.tags.iter().map(|tag| line.tag_value(tag).expect(tag).to_string());
        let tags: Vec<String> = tags.collect();
        for (field, value) in &line.field_set {
            if let (true, FieldValue::I64(number)) = (is_sum(&name, field), value) {
                let key = (name.clone(), tags.clone(), field.to_string());
                *sums.entry(key).or_default() += number.unsigned_abs();
            }
        }
    }
    sums.retain(|_, sum| *sum > 0);
    sums
}

/// The same of the JSON, whose numbers are totals.
fn sums_of_json(json: &Value) -> Sums {
    let mut sums = Sums::new();
    for table in tables::ALL {
        let groups = match &json[table.key] {
            Value::Array(groups) => groups.clone(),
            Value::Null => continue,
            group => vec![group.clone()],
        };
        for group in groups {
            let tags: Vec<String> =
                table.tags.iter().map(|tag| group[tag].as_str().unwrap().to_owned()).collect();
            let mut add = |field: String, value: &Value| {
                if let (true, Some(number)) = (is_sum(table.name, &field), value.as_u64()) {
                    sums.insert((table.name.to_owned(), tags.clone(), field), number);
                }
            };
            for (field, value) in group.as_object().unwrap() {
                add(field.clone(), value);
                add(format!("{field}_count"), &value["count"]);
                add(format!("{field}_sum"), &value["sum"]);
            }
        }
    }
    sums.retain(|_, sum| *sum > 0);
    sums
}

/// The last snapshot of a recording less the first.
fn whole(name: &str) -> Interval {
    let mut recording = Replay::open(&recording(name)).unwrap();
    let first = recording.snapshot().unwrap().expect("a snapshot");
    let mut last = first.clone();
    while let Some(snapshot) = recording.snapshot().unwrap() {
        last = snapshot;
    }
    last.since(&first)
}

#[test]
fn json_and_line_protocol_tell_the_recordings_numbers() {
    for name in RECORDINGS {
        let (json, lines) = numbers_of(&recording(name));
        let (of_json, of_lines) = (sums_of_json(&json), sums_of_lines(&lines));
        assert!(of_json.len() > 10, "{name}: {of_json:?}");
        assert_eq!(of_json, of_lines, "{name}");
        let whole = whole(name);
        assert_eq!(json["elapsed_ns"], whole.span_ns, "{name}");
        let sched = whole.slots[&1].iter().find(|group| group.is(&tables::SCHED)).unwrap();
        for field in [
            tables::Sched::on_cpu_ns,
            tables::Sched::switches_voluntary,
            tables::Sched::forks,
            tables::Sched::execs,
        ] {
            let told = json["sched"][field.field().name].as_u64();
            assert_eq!(told, sched.number(field), "{name}: {field:?}");
        }
        let waits = sched.hist(tables::Sched::run_queue_wait_ns).unwrap();
        let told = &json["sched"]["run_queue_wait_ns"];
        assert_eq!(told["count"], waits.count(), "{name}");
        assert_eq!(told["sum"], waits.sum, "{name}");
    }
}

#[test]
fn buckets_add_up_to_their_counts() {
    for name in RECORDINGS {
        let (json, lines) = numbers_of(&recording(name));
        let told = json["sched"]["on_cpu_slice_ns"]["count"].as_u64().unwrap();
        let buckets = json["sched"]["on_cpu_slice_ns"]["buckets"].as_array().unwrap();
        assert_eq!(buckets.iter().map(|pair| pair[1].as_u64().unwrap()).sum::<u64>(), told);
        let text = lines.join("\n");
        let lines = parse_lines(&text).map(Result::unwrap).filter(|line| {
            line.series.measurement == "job_hist"
                && line
                    .tag_value("metric")
                    .is_some_and(|metric| metric.as_str() == "sched.on_cpu_slice_ns")
        });
        let counts = lines.map(|line| match line.field_value("n") {
            Some(FieldValue::I64(n)) => n.unsigned_abs(),
            other => panic!("{other:?}"),
        });
        assert_eq!(counts.sum::<u64>(), told, "{name}");
    }
}

#[test]
fn a_recording_replayed_twice_gives_the_same() {
    for name in RECORDINGS {
        let file = recording(name);
        let (json, mut lines) = numbers_of(&file);
        let (again, mut lines_again) = numbers_of(&file);
        assert_eq!(json, again);
        lines.sort();
        lines_again.sort();
        assert_eq!(lines, lines_again);
        assert_eq!(replay(&file, &[]), replay(&file, &[]));
    }
}

#[test]
fn the_summary_tells_of_the_same_run() {
    let summary = replay(&recording("forks"), &[]).stderr;
    assert!(
        summary.contains("a \"quoted\" name") && summary.contains("exit status 3"),
        "{summary}"
    );
    let summary = replay(&recording("killed"), &[]).stderr;
    assert!(summary.contains("signal 15") || summary.contains("SIGTERM"), "{summary}");
    let summary = replay(&recording("disk"), &[]).stderr;
    // 16 writes of 256 KiB.
    let line = summary.lines().find(|line| line.contains("write")).unwrap_or_default();
    assert!(line.contains("4 MiB") || line.contains("4.0"), "{summary}");
}

#[test]
fn json_and_lines_name_the_run_alike() {
    let (json, lines) = numbers_of(&recording("disk"));
    assert_eq!(json["exit"], serde_json::json!({"code": 0, "signal": null}));
    let job = json["job"]["job"].as_str().unwrap();
    for line in parse_lines(&lines.join("\n")) {
        let line = line.unwrap();
        let tag = |name: &str| line.tag_value(name).map(ToString::to_string);
        assert_eq!(tag("job").as_deref(), Some(job));
        assert_eq!(tag("cluster").as_deref(), Some("testbed"));
        assert_eq!(tag("manager").as_deref(), Some("run"));
    }
    let (json, _) = numbers_of(&recording("killed"));
    assert_eq!(json["exit"], serde_json::json!({"code": null, "signal": 15}));
}

/// What the header says is told once, also by a replay.
#[test]
fn notes_are_told_once() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("x.jsonl");
    let text = super::damaged::text("forks");
    let (header, rest) = text.split_once('\n').unwrap();
    let mut header: Value = serde_json::from_str(header).unwrap();
    header["notes"] = serde_json::json!(["said at the start"]);
    let rest = rest.replace("\"notes\":[]}}", "\"notes\":[\"said at the end\"]}}");
    std::fs::write(&file, format!("{header}\n{rest}")).unwrap();
    let (json, _) = numbers_of(&file);
    assert_eq!(json["notes"], serde_json::json!(["said at the start", "said at the end"]));
}
