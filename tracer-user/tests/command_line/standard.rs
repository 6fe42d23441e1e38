//! `-`: standard output, and standard input of a recording.

use std::{
    fs::File,
    process::{Command, Stdio},
};

use super::program::{end, jobtrace, recording, replay};

/// All names of standard output.
const NAMES: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// A replay in an empty folder; nothing may be made there.
fn in_empty_folder(arguments: &[&str], stdin: Stdio) -> super::program::Ended {
    let tmp = tempfile::tempdir().unwrap();
    let mut command = jobtrace();
    command.arg("run").args(arguments).current_dir(tmp.path()).stdin(stdin);
    let ended = end(&mut command);
    assert_eq!(tmp.path().read_dir().unwrap().count(), 0, "{ended:?}");
    ended
}

#[test]
fn json_goes_to_standard_output_alone() {
    let file = recording("disk");
    for output in NAMES {
        let ended =
            in_empty_folder(&["--replay", file.to_str().unwrap(), "--json", output], Stdio::null());
        let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((json["schema"].as_u64(), ended.status), (Some(1), 0));
        assert!(ended.stderr.contains("Where the time went"), "{ended:?}");
    }
    let quiet = replay(&recording("disk"), &["--quiet".as_ref()]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str(), quiet.status), ("", "", 0));
}

#[test]
fn a_recording_comes_from_standard_input() {
    let stdin = File::open(recording("forks")).unwrap();
    let ended = in_empty_folder(&["--replay", "-"], stdin.into());
    assert_eq!(ended, replay(&recording("forks"), &[]));
    let ended = in_empty_folder(&["--replay", "-"], Stdio::null());
    assert_eq!(ended.status, 2);
    assert!(ended.stderr.contains("standard input is not a recording"), "{ended:?}");
}

#[test]
fn two_outputs_do_not_share_it() {
    let arguments = ["--json", "-", "--record", "-", "--", "echo", "ran"];
    let ended = in_empty_folder(&arguments, Stdio::null());
    assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{ended:?}");
    assert!(ended.stderr.contains("name another file"), "{ended:?}");
}

#[test]
fn what_it_holds_already_stays() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("log");
    for name in NAMES {
        std::fs::write(&path, "kept\n").unwrap();
        let mut command = jobtrace();
        command.args(["run", "--quiet", "--json", name, "--replay"]).arg(recording("forks"));
        let log = File::options().append(true).open(&path).unwrap();
        assert!(command.stdout(log).status().unwrap().success());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("kept\n{\"schema\":1,"), "{name}: {text}");
    }
}

#[test]
fn a_closed_one_is_refused_and_the_null_device_is_not() {
    for option in ["--json", "--record"] {
        for name in NAMES {
            let tmp = tempfile::tempdir().unwrap();
            let mut command = Command::new("sh");
            command.args(["-c", "exec \"$@\" >&-", "sh", env!("CARGO_BIN_EXE_jobtrace")]);
            command.args(["run", option, name, "--", "touch", "ran"]).current_dir(tmp.path());
            let ended = end(&mut command);
            assert_eq!(ended.status, 2, "{option} {name}: {ended:?}");
            let expected = "jobtrace: cannot write to standard output, which is closed: ";
            assert!(ended.stderr.starts_with(expected), "{option} {name}: {ended:?}");
            assert_eq!(tmp.path().read_dir().unwrap().count(), 0);
        }
    }
    let mut command = jobtrace();
    command.args(["run", "--quiet", "--json", "-", "--replay"]).arg(recording("forks"));
    // As a daemon has it, and as Rust's runtime puts it in place of a closed one.
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    assert!(command.stdout(null).status().unwrap().success());
}

#[test]
fn a_reader_that_has_gone_is_told_of_and_no_full_disk() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = jobtrace();
    command.args(["run", "--quiet", "--json", "-", "--replay"]).arg(recording("disk"));
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = "jobtrace: cannot write standard output: keep its reader running: Broken pipe";
    assert!(stderr.starts_with(expected) && stderr.lines().count() == 1, "{stderr}");
}
