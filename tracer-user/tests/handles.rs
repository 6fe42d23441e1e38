//! Fields and the code that knows them: whatever the user side is to read, some reader sets.

use std::{
    fs,
    path::{Path, PathBuf},
};

use jobtrace::model::{
    group::Group,
    tables::{self, FACTS, Fault, SCHED},
};
use tracer_ebpf::table::Place;

/// The types of the handles, as the sources write them, in the order of the tables.
const HANDLES: [&str; 14] = [
    "Sched",
    "Fault",
    "Block",
    "Wait",
    "Io",
    "IoError",
    "NodeMount",
    "Net",
    "Memory",
    "Cpu",
    "Gpu",
    "Xid",
    "NodeNet",
    "Own",
];

/// What reads the kernel, its files and devices, and computes. What shows values reads fields and sets none.
const READERS: [&str; 7] =
    ["cgroup", "commands/agent", "commands/run", "gpu", "io", "model", "probes"];

/// The sources in `folder`, the tests in them left out, with single spaces.
fn sources(folder: &Path) -> String {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.retain(|path| path.file_name().is_none_or(|name| name != "tests.rs"));
    let text = entries.iter().map(|path| {
        if path.is_dir() {
            return sources(path);
        }
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    text.collect::<Vec<_>>().join("\n")
}

fn own(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder)
}

/// Whether `text` hands `handle` on to be set: neither to be read, nor to say that it is unknown or zero.
fn sets(text: &str, handle: &str) -> bool {
    text.match_indices(handle).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + handle.len()..]);
        let is_whole = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_read = [".number(", ".hist("].iter().any(|read| before.ends_with(read));
        let is_cleared = [", None)", ", 0)"].iter().any(|value| after.starts_with(value));
        is_whole && !is_read && !is_cleared
    })
}

#[test]
fn every_field_of_the_user_side_is_set_by_a_reader() {
    let readers = READERS.map(|room| sources(&own(room))).join("\n");
    assert_eq!(HANDLES.len(), tables::ALL.len(), "a table whose handles this test does not know");
    let mut forgotten = Vec::new();
    for (table, handles) in tables::ALL.iter().zip(HANDLES) {
        for field in table.fields.iter().filter(|field| field.place == Place::Agent) {
            let handle = format!("{handles}::{}", field.name);
            if !sets(&readers, &handle) {
                forgotten.push(handle);
            }
        }
    }
    assert!(forgotten.is_empty(), "in a table and set nowhere: {forgotten:?}");
}

#[test]
fn every_fact_is_told_of_some_job() {
    let all = [sources(&own("commands")), sources(&own("model"))].join("\n");
    let is_told = |name: &str| all.contains(&format!("fact(\"{name}\")"));
    let forgotten: Vec<_> = FACTS.iter().map(|fact| fact.name).filter(|n| !is_told(n)).collect();
    assert!(forgotten.is_empty(), "in the table and told nowhere: {forgotten:?}");
}

#[test]
fn what_is_read_cleared_or_only_begins_alike_is_not_set() {
    for (text, expected) in [
        ("own.set(Own::jobs, live)", true),
        ("[(Family::Sched, Own::jobs), (", true),
        ("own.number(Own::jobs)", false),
        ("own.set(Own::jobs, None)", false),
        ("own.set(Own::jobs, 0)", false),
        ("own.set(Own::jobs_now, live)", false),
    ] {
        assert_eq!(sets(text, "Own::jobs"), expected, "{text}");
    }
}

#[test]
#[should_panic(expected = "job_sched has no job_fault.minor")]
fn a_handle_of_another_measurement_is_refused() {
    Group::unknown(&SCHED, Vec::new()).set(Fault::minor, 1);
}
