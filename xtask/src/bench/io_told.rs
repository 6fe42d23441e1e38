//! What each counter of calls tells of one run of a job whose calls are known: how many files it opened, how many reads
//! it made, and of how many bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use xtask::markdown::{Table, or_dash, thousands};

use super::darshan::Darshan;
use crate::process::find;

/// What one of them tells of a run; nothing of what it does not count.
#[derive(Debug, Default, PartialEq)]
pub struct Told {
    pub opens: Option<u64>,
    pub reads: Option<u64>,
    pub read_bytes: Option<u64>,
    /// Whether it says itself that something is missing.
    pub is_incomplete: bool,
}

/// Has `run` done with each of them before its command; a row each, after what it did (`truth`) itself.
///
/// # Errors
/// When a run fails, or is not told of.
pub fn add(
    table: &mut Table,
    job: &str,
    truth: Told,
    [jobtrace, scratch]: [&Path; 2],
    darshan: Option<&Darshan>,
    run: impl Fn(&[&str]) -> Result<f64>,
) -> Result<()> {
    let told = scratch.join("told");
    let path = told.to_str().context("a path that is no text")?;
    let read = || fs::read_to_string(&told).context("nothing was told of a run");
    row(table, job, "what the job did, on its files", &truth);

    let program = jobtrace.to_str().context("a path that is no text")?;
    run(&[program, "run", "--io", "--quiet", "--json", path, "--"])?;
    row(table, job, "`jobtrace run --io`", &of_json(&read()?)?);

    if find("strace").is_some() {
        run(&["strace", "-f", "-c", "-U", "calls,name", "-o", path])?;
        row(table, job, "`strace -f -c`", &of_strace(&read()?));
    }
    if let Some(darshan) = darshan {
        run(&darshan.before()?.each_ref().map(String::as_str))?;
        if let Some(told) = darshan.told()? {
            row(table, job, "Darshan", &told);
        }
    }
    Ok(())
}

fn row(table: &mut Table, job: &str, by: &str, told: &Told) {
    let word =
        if told.is_incomplete { format!("{by} (“incomplete data”)") } else { by.to_owned() };
    let [opens, reads, bytes] =
        [told.opens, told.reads, told.read_bytes].map(|count| or_dash(count, thousands));
    table.row([&job, &word, &opens, &reads, &bytes]);
}

/// A table for [`add`].
pub fn table() -> Table {
    Table::new("job | told by | >opens | >reads | >bytes read")
}

/// All operations of a run in jobtrace's own document.
fn of_json(text: &str) -> Result<Told> {
    let json: Value = serde_json::from_str(text).context("jobtrace wrote no JSON")?;
    let groups = json["io"].as_array().context("jobtrace counted no operations")?;
    let sum = |op: &str, field: &str| {
        let of_op = groups.iter().filter(|group| group["op"] == op);
        Some(of_op.filter_map(|group| group[field].as_u64()).sum())
    };
    Ok(Told {
        opens: sum("open", "ops"),
        reads: sum("read", "ops"),
        read_bytes: sum("read", "bytes"),
        is_incomplete: false,
    })
}

/// All calls in a table of strace's, of two columns.
fn of_strace(text: &str) -> Told {
    let mut calls = BTreeMap::new();
    for line in text.lines() {
        if let Some((count, name)) = line.trim().split_once(char::is_whitespace)
            && let Ok(count) = count.parse::<u64>()
        {
            calls.insert(name.trim(), count);
        }
    }
    let sum = |names: &[&str]| Some(names.iter().filter_map(|name| calls.get(name)).sum());
    Told {
        opens: sum(&["open", "openat", "openat2", "creat"]),
        reads: sum(&["read", "readv", "pread64", "preadv", "preadv2"]),
        ..Told::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ones_words_become_the_same_numbers() {
        let json = r#"{"io": [{"op": "open", "ops": 2}, {"op": "read", "ops": 3, "bytes": 4096},
                              {"op": "read", "ops": 1, "bytes": 4}, {"op": "stat", "ops": 9}]}"#;
        let ours = of_json(json).expect("a document");
        assert_eq!((ours.opens, ours.reads, ours.read_bytes), (Some(2), Some(4), Some(4_100)));
        assert!(of_json(r#"{"sched": {}}"#).is_err(), "a run without --io");
        let strace = "    calls syscall\n--------- ----------------\n       40 openat\n        3 read\n\
                      \x20       1 pread64\n--------- ----------------\n       44 total\n";
        let theirs = of_strace(strace);
        assert_eq!((theirs.opens, theirs.reads, theirs.read_bytes), (Some(40), Some(4), None));
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut all = table();
        let told = Told { opens: Some(8_192), is_incomplete: true, ..Told::default() };
        row(&mut all, "files", "Darshan", &told);
        let text = all.to_string();
        assert!(text.contains("| files | Darshan (“incomplete data”) | 8,192 | – | – |"), "{text}");
    }
}
