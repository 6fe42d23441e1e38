//! Names that would like to draw on the terminal or break a line.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

use influxdb_line_protocol::parse_lines;

use crate::program::{JOB, end, jobtrace, json, line_protocol};

const NASTY: &str = "x\n\u{1b}[31m,a=b \"c\\";

/// Runs with all outputs and looks at each.
fn look(name: Option<&str>, command: &[&OsStr], status: i32) {
    let tmp = tempfile::tempdir().unwrap();
    let (out, file) = (tmp.path().join("out"), tmp.path().join("json"));
    let mut jobtrace = jobtrace();
    jobtrace.arg("--out").arg(&out).arg("--json").arg(&file);
    if let Some(name) = name {
        jobtrace.args(["--name", name, "--cluster", name]);
    }
    let ended = end(jobtrace.arg("--").args(command).spawn().unwrap());
    assert_eq!(ended.status, status, "{}", ended.stderr);
    assert!(ended.stderr.contains("Where the time went"), "{}", ended.stderr);
    let is_bad = |c: char| c.is_control() && c != '\n';
    assert!(!ended.stderr.contains(is_bad), "{:?}", ended.stderr);
    assert!(ended.stderr.lines().all(|line| line.chars().count() <= 80), "{}", ended.stderr);
    let numbers = json(&file);
    assert!(numbers["job"]["name"].is_string());
    if let Some(name) = name {
        assert_eq!(numbers["job"]["name"], name, "JSON can tell it as it is");
    }
    let text = line_protocol(&out);
    let points = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let mut count = 0;
    for line in parse_lines(&points) {
        let line = line.expect("line protocol");
        let name = line.series.measurement.to_string();
        assert!(name.starts_with("job"), "{name}");
        count += 1;
    }
    assert_eq!(count, points.lines().count());
}

#[test]
fn names_and_clusters_with_control_characters() {
    look(Some(NASTY), &["true".as_ref()], 0);
    look(Some("\u{202e}evil\u{0}".trim_end_matches('\0')), &["true".as_ref()], 0);
    look(Some("größe 大きさ"), &["true".as_ref()], 0);
    look(Some(" "), &["true".as_ref()], 0);
}

#[test]
fn a_name_of_ten_kibibytes() {
    look(Some(&"long,".repeat(2048)), &["true".as_ref()], 0);
}

#[test]
fn a_program_with_a_nasty_name() {
    let tmp = tempfile::tempdir().unwrap();
    let program = tmp.path().join(NASTY);
    fs::copy("/bin/sh", &program).unwrap();
    look(None, &[program.as_os_str(), "-c".as_ref(), "exit 3".as_ref()], 3);
}

#[test]
fn arguments_that_are_no_utf8() {
    let bytes = OsStr::from_bytes(b"\xff\xfe\x1b]0;title\x07\n\r");
    look(None, &["sh".as_ref(), "-c".as_ref(), "exit 4".as_ref(), bytes], 4);
}

#[test]
fn a_process_that_renames_itself() {
    look(None, &[JOB.as_ref(), "renamed".as_ref()], 0);
}
