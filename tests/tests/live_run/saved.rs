//! `--save`: the record of a run that is ended by a signal, and of one whose jobtrace is killed.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Stdio},
};

use jobtrace::{
    model::{
        info::Exit,
        tables::{FAULT, SCHED, Sched, fact},
    },
    record::Record,
};
use jobtrace_tests::agent::records;
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    killed::Outliving,
    program::{cgroups_of, end, jobtrace, run, wait_for},
};

/// A run of `script`, whose record goes into `folder`, once the command has said its process id.
fn started(folder: &Path, script: &str) -> (Child, String) {
    let mut command = jobtrace();
    command.arg("--save").arg(folder).args(["--quiet", "--", "sh", "-c", script]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line)
}

fn only(folder: &Path) -> Record {
    let mut records = records(folder).unwrap();
    assert_eq!(records.len(), 1, "{records:?}");
    records.remove(0)
}

#[test]
fn a_run_that_a_signal_ends_has_a_record_of_its_end() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = tempfile::tempdir().unwrap();
        let (child, _) = started(folder.path(), "/bin/false; echo $$; exec sleep 100");
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(end(child).status, 128 + signal.as_raw());
        let record = only(folder.path());
        let ended = Exit { code: None, signal: Some(signal.as_raw()) };
        assert_eq!(record.totals.exit, Some(ended));
        let exit = record.facts.number(const { fact("exit") });
        assert_eq!(exit, Some(128 + signal.as_raw() as u64));
        assert!(record.facts.has(const { fact("end") }));
        let sched = record.totals.stats.group(&SCHED).unwrap();
        let exits = [Sched::exits, Sched::exits_failed, Sched::exits_killed];
        assert_eq!(exits.map(|field| sched.number(field)), [Some(2), Some(1), Some(1)]);
        assert!(record.totals.stats.group(&FAULT).is_some());
    }
}

#[test]
fn a_run_whose_jobtrace_is_killed_has_a_record_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, line) = started(folder.path(), "echo $$; exec sleep 100");
    let command = Outliving::parse(&line);
    let saved = || records(folder.path()).ok().filter(|records| !records.is_empty());
    wait_for("a record", saved);
    child.kill().unwrap();
    child.wait().unwrap();
    let record = only(folder.path());
    assert_eq!(record.totals.exit, None);
    assert!(!record.facts.has(const { fact("end") }));
    let elapsed_s = record.totals.elapsed_ns as f64 / 1e9;
    assert!((9.9..80.0).contains(&elapsed_s), "{elapsed_s} s");
    command.end(&cgroups_of(child.id()));
    // The next run removes what it left.
    assert_eq!(run(["--quiet", "--", "true"]).status, 0);
    assert!(cgroups_of(child.id()).is_empty());
}

/// The modes of all that is in `folder`, which must be files and folders, with their names.
fn modes(folder: &Path) -> Vec<(String, u32)> {
    let mut modes = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let metadata = entry.metadata().unwrap();
        assert!(metadata.is_dir() || metadata.is_file(), "{entry:?}");
        let name = entry.path().display().to_string();
        modes.push((name, metadata.permissions().mode() & 0o7777));
        if metadata.is_dir() {
            modes.extend(self::modes(&entry.path()));
        }
    }
    modes
}

/// A user's own records are as open as all that he makes.
#[test]
fn who_may_read_a_saved_run_is_up_to_the_umask() {
    for (umask, folder_mode, file_mode) in [(0o077, 0o700, 0o600), (0o027, 0o750, 0o640)] {
        let top = tempfile::tempdir().unwrap();
        let saved = top.path().join("runs");
        let mut command = jobtrace();
        command.arg("--save").arg(&saved).args(["--quiet", "--", "true"]);
        // SAFETY: umask is async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                libc::umask(umask);
                Ok(())
            });
        }
        assert!(command.status().unwrap().success());
        only(&saved);
        let modes = modes(top.path());
        // The folder, the owner's, his tmp, the day with the record and its head.
        assert_eq!(modes.len(), 6, "{modes:?}");
        for (name, mode) in modes {
            let is_file = name.ends_with(".json.gz") || name.ends_with(".jsonl");
            let expected = if is_file { file_mode } else { folder_mode };
            assert_eq!(mode, expected, "{name}: {mode:o} with umask {umask:o}");
        }
    }
}
