//! `jobtrace agent` as an administrator tries it: checking and printing the configuration.

use std::fs;

use super::program::{end, jobtrace};

#[test]
fn what_is_printed_is_a_configuration_of_the_same_meaning() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first.toml"), dir.path().join("second.toml"));
    fs::write(&first, "slots = 99\n[export.by_job]\n4242 = \"full\"\n").unwrap();
    let print = |file, options: &[&str]| {
        let mut command = jobtrace();
        end(command.args(["agent", "--print-config", "--config"]).arg(file).args(options))
    };
    let printed = print(&first, &["--interval", "1m", "--pin"]);
    assert_eq!((printed.status, printed.stderr.as_str()), (0, ""));
    for line in ["slots = 99", "4242 = \"full\"", "interval = \"1m\"", "pin = true"] {
        assert!(printed.stdout.lines().any(|l| l == line), "{line}\n{}", printed.stdout);
    }
    fs::write(&second, &printed.stdout).unwrap();
    assert_eq!(print(&second, &[]), printed);
    assert!(print(&second, &["--no-pin"]).stdout.contains("\npin = false\n"));
}

#[test]
fn a_good_configuration_is_status_0_and_tells_what_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.toml");
    let state = dir.path().join("state");
    let records = dir.path().join("records");
    fs::write(&file, format!("[state]\ndir = {state:?}\n[records]\ndir = {records:?}\n")).unwrap();
    let mut command = jobtrace();
    command.args(["agent", "--check", "--interval", "30s", "--config"]).arg(&file);
    let ended = end(command.arg("--spool").arg(dir.path()));
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    assert!(ended.stdout.contains("every 30s"), "{}", ended.stdout);
    assert!(ended.stdout.contains("/records, at a job's end and every 15m"), "{}", ended.stdout);
    assert!(!state.exists() && !records.exists(), "a check makes nothing");
}

#[test]
fn a_bad_one_is_status_2_and_names_line_and_cure() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.toml");
    fs::write(&file, "slots = 4\nspare_slots = 0\nintervall = \"10s\"\n").unwrap();
    for what in ["--check", "--print-config"] {
        let ended = end(jobtrace().args(["agent", what, "--config"]).arg(&file));
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""));
        let said = format!(
            "jobtrace: {}:3:1: unknown key `intervall`, did you mean `interval`?\n",
            file.display()
        );
        assert_eq!(ended.stderr, said);
    }
}

#[test]
fn a_spool_that_cannot_be_written_is_status_2() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("a.toml");
    fs::write(&config, format!("[state]\ndir = {:?}\n", dir.path().to_str().unwrap())).unwrap();
    let mut command = jobtrace();
    command.args(["agent", "--check", "--config"]).arg(&config);
    let ended = end(command.arg("--spool").arg(file.path()));
    assert_eq!(ended.status, 2);
    assert!(ended.stderr.contains("`spool.dir`: cannot write in"), "{}", ended.stderr);
}
