//! What programs report of their own operations against what was counted of them.

use jobtrace::model::files::is_storage;
use serde_json::Value;
use tracer_ebpf::tables::io::OPS;

use crate::{account::Report, agree::Agreement, traced::count_and_sum};

/// The groups of `key`, as the JSON has them.
pub fn groups<'a>(json: &'a Value, key: &str) -> &'a [Value] {
    json[key].as_array().map_or(&[], Vec::as_slice)
}

/// A tag of a group.
pub fn text<'a>(group: &'a Value, tag: &str) -> &'a str {
    group[tag].as_str().unwrap_or_default()
}

/// The sum of a field.
pub fn sum<'a>(groups: impl Iterator<Item = &'a Value>, field: &str) -> u64 {
    groups.filter_map(|group| group[field].as_u64()).sum()
}

/// Every operation that was timed is in a column of time, but for those on what is no storage.
pub fn over_time(agree: &mut Agreement, json: &Value) {
    let columns = json["io_latency"]["columns"].as_array().map_or(&[][..], Vec::as_slice);
    let counts = columns.iter().flat_map(|column| column.as_array().unwrap());
    let timed = groups(json, "io").iter().filter(|group| is_storage(text(group, "fs")));
    let timed = timed.map(|group| count_and_sum(&group["latency_ns"]).0).sum();
    agree.exact("operations over time", counts.filter_map(Value::as_u64).sum(), timed);
    assert!(timed > 0, "{json}");
}

/// Every operation, error and byte of `report` is told of the mount `told` of type `fs`, and nothing else is.
///
/// # Panics
/// When an operation is told twice, or without its numbers.
pub fn agree(agree: &mut Agreement, json: &Value, [fs, told]: [&str; 2], report: &Report) {
    let mut seen = 0;
    for op in OPS {
        let of_mount = |group: &&Value| {
            text(group, "mount") == told && text(group, "fs") == fs && text(group, "op") == op
        };
        let on_mount: Vec<_> = groups(json, "io").iter().filter(of_mount).collect();
        assert!(on_mount.len() <= 1, "{op} twice: {on_mount:?}");
        let found = |field: &str| sum(on_mount.iter().copied(), field);
        let truth = |field: &str| report.facts.get(&format!("{op}.{field}")).copied().unwrap_or(0);
        for field in ["ops", "errors", "bytes"] {
            agree.exact(&format!("{op}: {field}"), found(field), truth(field));
        }
        seen += truth("ops");
        for group in &on_mount {
            let ops = group["ops"].as_u64().unwrap();
            agree.exact(&format!("{op}: latencies"), count_and_sum(&group["latency_ns"]).0, ops);
            agree.between(&format!("{op}: waited"), group["waited"].as_u64().unwrap(), 0..=ops);
            let (sized, bytes) = count_and_sum(&group["size_bytes"]);
            agree.exact(&format!("{op}: bytes by size"), bytes, truth("bytes"));
            let classes = group.as_object().unwrap().iter();
            let classed =
                classes.filter(|(key, _)| key.starts_with("size_") && *key != "size_bytes");
            let classed = classed.filter_map(|(_, value)| value.as_u64()).sum();
            agree.exact(&format!("{op}: accesses by class"), classed, sized);
        }
        let errors = groups(json, "io_error").iter().filter(of_mount);
        agree.exact(&format!("{op}: errors by number"), sum(errors, "ops"), truth("errors"));
    }
    over_time(agree, json);
    let missing = groups(json, "io_error").iter().filter(|group| {
        (text(group, "error"), text(group, "mount"), text(group, "op")) == ("ENOENT", told, "open")
    });
    agree.exact("missing files opened", sum(missing, "ops"), 71);
    agree.between("operations of the workload", seen, 3_000..=40_000);
}

/// Compares what was read of each file that `report` names by its bytes; none is told twice.
pub fn agree_by_name(agree: &mut Agreement, job: &Value, report: &Report) {
    for (name, bytes) in &report.facts {
        let path = format!("/{name}");
        // Who made it below an overlay did so by another file.
        let is_it = |row: &&Value| text(row, "path").ends_with(&path) && row["reads"] != 0;
        let own: Vec<_> = groups(job, "io_files").iter().filter(is_it).collect();
        agree.exact(&format!("{name}: rows"), own.len() as u64, 1);
        agree.exact(&format!("{name}: files"), sum(own.iter().copied(), "files"), 1);
        agree.exact(&format!("{name}: read_bytes"), sum(own.into_iter(), "read_bytes"), *bytes);
    }
}
