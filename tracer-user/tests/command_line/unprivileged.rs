//! A user without privileges: the cure is named, nothing is run.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::Command,
};

use super::program::{end, jobtrace};

/// Gives up root where the tests have it.
fn as_nobody(command: &mut Command) -> &mut Command {
    let is_root = rustix::process::geteuid().is_root();
    let drop_root = move || {
        if is_root {
            // SAFETY: all three are system calls that take plain numbers.
            let failed = unsafe {
                libc::setgroups(0, std::ptr::null()) != 0
                    || libc::setgid(65534) != 0
                    || libc::setuid(65534) != 0
            };
            if failed {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: it makes system calls only.
    unsafe { command.pre_exec(drop_root) }
}

fn open_to_all() -> tempfile::TempDir {
    let tmp = tempfile::tempdir().unwrap();
    fs::set_permissions(tmp.path(), fs::Permissions::from_mode(0o777)).unwrap();
    tmp
}

#[test]
fn run_names_the_cure_and_runs_nothing() {
    let tmp = open_to_all();
    let (marker, json) = (tmp.path().join("ran"), tmp.path().join("json"));
    let mut command = jobtrace();
    command.args(["run", "--json"]).arg(&json).args(["--", "touch"]).arg(&marker);
    let ended = end(as_nobody(&mut command));
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.starts_with("jobtrace: ") && ended.stderr.contains("run as root"));
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(!marker.exists() && !json.exists());
}

#[test]
fn doctor_says_what_is_missing_and_how_to_get_it() {
    let ended = end(as_nobody(jobtrace().arg("doctor")));
    assert_eq!((ended.status, ended.stderr.as_str()), (1, ""), "{ended:?}");
    assert!(ended.stdout.contains("FATAL") && ended.stdout.contains("run as root"));
    assert!(ended.stdout.ends_with("jobtrace run does not work here.\n"), "{}", ended.stdout);
    let ended = end(as_nobody(jobtrace().args(["doctor", "--json"])));
    assert_eq!(ended.status, 1);
    let findings: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let fatal: Vec<_> =
        findings.as_array().unwrap().iter().filter(|found| found["state"] == "fatal").collect();
    assert!(!fatal.is_empty());
    for found in fatal {
        assert!(!found["cure"].as_str().unwrap_or_default().is_empty(), "{found}");
    }
}

#[test]
fn a_replay_needs_no_privileges() {
    let file = fs::File::open(super::program::recording("disk")).unwrap();
    let tmp = open_to_all();
    let json = tmp.path().join("json");
    let mut command = jobtrace();
    command.args(["run", "--replay", "/dev/stdin", "--json"]).arg(&json).stdin(file);
    let ended = end(as_nobody(&mut command));
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(fs::read_to_string(json).unwrap().starts_with("{\"schema\":1,"));
}
