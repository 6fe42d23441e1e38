//! The live ring: built as the user, run as root, one test at a time, because each loads BPF
//! programs and makes cgroups; but those that mostly wait run beside the others of their program.
//!
//! The tests find the program to run in `JOBTRACE_BIN` and, where one is to replace the embedded
//! one, the BPF object in `JOBTRACE_BPF_OBJECT`; both are absolute paths.

use super::hostile::Hostility;
use super::tally::{self, Tally};
use crate::process::{as_root, build_jobtrace, cargo, output};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use xtask::root;

/// All tests. The programs that tests start (`tests/src/bin`) are built as such alone: they hold no tests, and one
/// without Rust's start-up would run in place of its tests.
const ALL: [&str; 3] = ["--lib", "--test", "*"];
const PROGRAM: &str = "JOBTRACE_BIN";
const OBJECT: &str = "JOBTRACE_BPF_OBJECT";
/// Programs with tests that mostly wait, and how many of their tests run at a time; those that do not wait take turns
/// (`tests/src/turns.rs`).
const WAITING: [(&str, u32); 3] =
    [("live_faults-", 5), ("live_findings-", 3), ("live_gpu_agent-", 3)];

/// Builds jobtrace and the tests, and runs the tests with the embedded object or with `object`, and, if it is
/// to be `hostile`, with a cold page cache and one CPU busy.
///
/// # Errors
/// When they do not build, `object` is not there, or the page cache cannot be emptied.
pub fn run(object: Option<&Path>, hostile: bool) -> Result<(Tally, bool)> {
    let jobtrace = build_jobtrace(false)?;
    let hostility = if hostile { Some(Hostility::begin()?) } else { None };
    let mut sum = Tally::default();
    let mut well = true;
    for program in programs(&ALL)? {
        let mut command = as_root(&program, &[PROGRAM, OBJECT]);
        let threads = format!("--test-threads={}", at_a_time(&program));
        command.arg(threads).current_dir(root().join("tests"));
        command.env(PROGRAM, &jobtrace);
        match object {
            Some(object) => command.env(OBJECT, absolute(object)?),
            None => command.env_remove(OBJECT),
        };
        let (tally, ended_well) = tally::run(&mut command)?;
        sum += tally;
        well &= ended_well;
    }
    hostility.map_or(Ok(()), Hostility::end)?;
    Ok((sum, well))
}

/// How many of a program's tests run at a time.
fn at_a_time(program: &Path) -> u32 {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let waiting = WAITING.iter().find(|(program, _)| name.starts_with(program));
    waiting.map_or(1, |(_, threads)| *threads)
}

fn absolute(object: &Path) -> Result<PathBuf> {
    if !object.is_file() {
        bail!("{} is not there: build it with `cargo xtask ebpf --out FILE`", object.display());
    }
    std::path::absolute(object).with_context(|| format!("find {}", object.display()))
}

/// Builds the test programs of the live ring, of these options of cargo; gives their files.
///
/// # Errors
/// When they do not build.
pub fn programs(options: &[&str]) -> Result<Vec<PathBuf>> {
    let mut command = cargo();
    command.args(["test", "--package", "jobtrace-tests", "--no-run"]).args(options);
    Ok(executables(&output(command.args(["--message-format", "json-render-diagnostics"]))?))
}

/// The test programs that cargo names in its JSON lines.
fn executables(messages: &str) -> Vec<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["profile"]["test"] == true)
        .filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_run_one_at_a_time_but_where_they_mostly_wait() {
        let of = |name: &str| at_a_time(&Path::new("/t/deps").join(name));
        assert_eq!((of("live_agent-1f"), of("live_findings-2e")), (1, 3));
    }

    #[test]
    fn what_tests_start_holds_no_tests() {
        let with_tests = |path: &Path| std::fs::read_to_string(path).unwrap().contains("#[test]");
        let mut folders = vec![root().join("tests/src/bin")];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    seen += 1;
                    assert!(!with_tests(&path), "nobody runs the tests in {}", path.display());
                }
            }
        }
        assert!(seen > 20, "{seen}");
    }

    #[test]
    fn only_test_programs_are_run() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","profile":{"test":false},"executable":"/t/jobtrace"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","profile":{"test":true},"executable":"/t/deps/live-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","profile":{"test":true},"executable":null}"#,
            "\nnot json\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        assert_eq!(executables(messages), [PathBuf::from("/t/deps/live-1")]);
    }
}
