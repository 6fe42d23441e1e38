//! A user without privileges: the cure is named, nothing is run.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::Command,
};

use jobtrace::base::open_files::{needed, needed_with_gpus};

use super::program::{Ended, end, jobtrace};

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

/// `jobtrace` as the root of a user namespace.
fn as_root_of_a_namespace(arguments: &[&str]) -> Ended {
    let mut unshare = Command::new("unshare");
    let program = jobtrace().get_program().to_owned();
    unshare.args(["--user", "--map-root-user"]).arg(program).args(arguments);
    end(&mut unshare)
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
    let (cure, reasons) = ended.stderr.split_once('\n').unwrap();
    assert!(cure.starts_with("jobtrace: needs root: sudo jobtrace run -- CMD; or "), "{cure}");
    assert!(reasons.contains("(Permission denied"), "{reasons}");
    assert!(reasons.lines().all(|line| line.starts_with("  /") && line.len() < 160), "{reasons}");
    assert!(!marker.exists() && !json.exists());
}

#[test]
fn top_without_a_terminal_runs_nothing() {
    let tmp = open_to_all();
    let marker = tmp.path().join("ran");
    let ended = end(jobtrace().args(["run", "--top", "--", "touch"]).arg(&marker));
    let expected = "jobtrace: --top needs a terminal: leave it out, and the summary comes at the end: neither standard \
                    output nor standard error is a terminal\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (2, expected), "{ended:?}");
    assert!(!marker.exists());
    let ended = end(jobtrace().args(["run", "--top", "--replay", "none.jobtrace"]));
    assert!(ended.status == 2 && ended.stderr.contains("cannot be used with"), "{ended:?}");
}

#[test]
fn a_run_that_does_not_start_leaves_files_as_they_were() {
    let tmp = open_to_all();
    for option in ["--json", "--record"] {
        let (kept, marker) = (tmp.path().join(option), tmp.path().join("ran"));
        fs::write(&kept, "kept").unwrap();
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o666)).unwrap();
        let mut command = jobtrace();
        command.args(["run", option]).arg(&kept).args(["--", "touch"]).arg(&marker);
        assert_eq!(end(as_nobody(&mut command)).status, 2);
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept", "{option}");
        assert!(!marker.exists());
    }
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

#[test]
fn the_root_of_a_user_namespace_is_told_that_it_is_none() {
    let tmp = open_to_all();
    let marker = tmp.path().join("ran");
    let spool = tmp.path().to_str().unwrap();
    for arguments in
        [&["run", "--", "touch", marker.to_str().unwrap()][..], &["agent", "--spool", spool]]
    {
        let ended = as_root_of_a_namespace(arguments);
        assert_eq!((ended.status, ended.stderr.lines().count()), (2, 1), "{ended:?}");
        for word in ["from a user namespace", "run jobtrace outside"] {
            assert!(ended.stderr.contains(word), "{ended:?}");
        }
    }
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
    let ended = as_root_of_a_namespace(&["doctor", "--json"]);
    assert_eq!(ended.status, 1, "{ended:?}");
    let findings: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let of = |subject: &str| {
        let found = findings.as_array().unwrap().iter().find(|found| found["subject"] == subject);
        found.unwrap_or_else(|| panic!("{subject}: {findings:#}")).clone()
    };
    assert_eq!(of("privileges")["state"], "fatal");
    for subject in ["privileges", "probes"] {
        let detail = of(subject)["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("user namespace"), "{detail}");
    }
    assert!(of("privileges")["cure"].as_str().unwrap().contains("leave the user namespace"));
}

/// `jobtrace` as nobody, under a limit of open files.
fn limited(limit: &str, arguments: &[&str]) -> Ended {
    let program = jobtrace().get_program().to_owned();
    let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).arg(program).args(arguments).env("RUST_BACKTRACE", "0");
    end(as_nobody(&mut shell))
}

#[test]
fn doctor_tells_of_too_few_open_files() {
    let open_files = |limit: &str| {
        let ended = limited(limit, &["doctor", "--json"]);
        let findings: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let mut found = findings.as_array().unwrap().clone();
        found.retain(|found| found["subject"] == "open files");
        assert_eq!(found.len(), 1, "{findings:#}");
        found.remove(0)
    };
    let cpus = aya::util::online_cpus().unwrap().len() as u64;
    let (needed, with_gpus) = (needed(cpus), needed_with_gpus(cpus));
    let few = open_files(&format!("-n {}", needed - 1));
    assert_eq!(few["state"], "fatal", "{few}");
    assert!(few["cure"].as_str().unwrap().contains(&format!("ulimit -Hn {needed} ")), "{few}");
    let some = open_files(&format!("-n {needed}"));
    assert_eq!(some["state"], "missing", "{some}");
    assert!(some["cure"].as_str().unwrap().contains(&format!("ulimit -Hn {with_gpus} ")), "{some}");
    assert_eq!(open_files(&format!("-n {with_gpus}"))["state"], "ok");
    // A soft limit is raised.
    assert_eq!(open_files("-Sn 60")["state"], "ok");
}

#[test]
fn too_few_open_files_are_the_first_thing_told() {
    let tmp = open_to_all();
    let spool = tmp.path().to_str().unwrap();
    for few in [8, 16, 40, 64] {
        for arguments in [&["run", "--", "true"][..], &["agent", "--spool", spool]] {
            let ended = limited(&format!("-n {few}"), arguments);
            assert_eq!((ended.status, ended.stderr.lines().count()), (2, 1), "{ended:?}");
            let told = format!("at most {few} files may be open");
            assert!(ended.stderr.contains(&told), "{ended:?}");
            assert!(ended.stderr.contains("raise the hard limit: ulimit -Hn "), "{ended:?}");
        }
    }
    // Enough for the programs, and for some of the slots.
    for few in [needed(aya::util::online_cpus().unwrap().len() as u64), 300] {
        let ended = limited(&format!("-n {few}"), &["agent", "--spool", spool]);
        assert_eq!((ended.status, ended.stderr.lines().count()), (2, 1), "{ended:?}");
        let told = format!("at most {few} files may be open, but this node's CPUs and the agent's");
        assert!(ended.stderr.contains(&told), "{ended:?}");
        assert!(ended.stderr.contains("LimitNOFILE="), "{ended:?}");
    }
    assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
    // The soft limit is raised before anything is opened.
    let ended = limited("-Sn 8", &["run", "--", "true"]);
    assert!(ended.stderr.starts_with("jobtrace: needs root"), "{ended:?}");
}
