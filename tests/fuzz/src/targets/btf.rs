//! The kernel's type information, damaged or not: every question ends, soon, and a name that is told is
//! in the data. Which kinds of questions there are is what the probes ask.

use jobtrace::bpf::btf::Btf;

use crate::split::text;

/// What the probes ask, and the names in the corpus.
const MEMBERS: &[&str] = &[
    "task_struct.se.sum_exec_runtime",
    "task_struct.__state|task_struct.state",
    "task_struct.cgroups.dfl_cgrp.kn.id",
    "request.rq_disk|request.q.disk",
    "s.m",
    "s.a.b",
    "outer.inner.b",
    "outer.flag",
    "a.a",
    "a.",
    ".a",
    "a.b.c.d.e.f",
];

pub fn run(data: &[u8]) {
    let Ok(btf) = Btf::parse(data.to_vec()) else { return };
    for path in MEMBERS {
        let _ = btf.member(path);
    }
    for name in names(data) {
        for member in ["a", "m", "", "b.a"] {
            let _ = btf.member(&format!("{name}.{member}"));
        }
        if let Some(value) = btf.enum_value(&name, &name) {
            let found = data.windows(4).any(|four| four == value.to_ne_bytes());
            assert!(found, "{value} is not in the data");
        }
        for argument in btf.tracepoint(&name).into_iter().flatten() {
            let named = argument.strip_prefix('*').filter(|name| !name.is_empty());
            let is_there = |name: &str| text(data).contains(name);
            assert!(named.is_none_or(is_there), "{argument:?} is not in the data");
            assert!(named.is_some() || argument == "*" || argument == "scalar", "{argument:?}");
        }
        let _ = btf.has_function(&name);
    }
}

/// A few of the words in the data.
fn names(data: &[u8]) -> Vec<String> {
    let words = data.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    let words = words.filter(|word| !word.is_empty() && word.len() < 64);
    let mut words: Vec<String> = words.map(text).collect();
    words.reverse();
    words.truncate(8);
    let traced = |word: &String| word.strip_prefix("btf_trace_").map(str::to_owned);
    let tracepoints: Vec<String> = words.iter().filter_map(traced).collect();
    words.extend(tracepoints);
    words
}
