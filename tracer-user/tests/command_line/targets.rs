//! Files of a run: which may be one, what stays as it was, pipes without a reader.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use super::program::{end, jobtrace, recording, replay};

#[test]
fn json_does_not_overwrite_the_recording() {
    let tmp = tempfile::tempdir().unwrap();
    let (file, link) = (tmp.path().join("r.gz"), tmp.path().join("l"));
    fs::copy(recording("forks"), &file).unwrap();
    symlink(&file, &link).unwrap();
    for json in [&file, &link] {
        let ended = replay(&file, &["--json".as_ref(), json.as_ref()]);
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains("would overwrite the recording"), "{ended:?}");
    }
    assert_eq!(fs::read(&file).unwrap(), fs::read(recording("forks")).unwrap());
    let ended = replay(&file, &["--json".as_ref(), "/dev/null".as_ref()]);
    assert_eq!(ended.status, 0, "{ended:?}");
}

/// Names of what is in a folder, with the content of files.
fn content(folder: &Path) -> Vec<(String, Option<String>)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut content: Vec<_> = entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).ok())
        })
        .collect();
    content.sort();
    content
}

#[test]
fn two_outputs_are_not_one_file_whatever_way_leads_there() {
    let tmp = tempfile::tempdir().unwrap();
    let at = |name: &str| tmp.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    fs::write(at("old"), "kept").unwrap();
    symlink("old", at("link")).unwrap();
    symlink("new", at("nowhere")).unwrap();
    fs::hard_link(at("old"), at("second")).unwrap();
    let before = content(tmp.path());
    for (record, json) in [
        ("new", "new"),
        ("new", "./new"),
        ("new", "sub/../new"),
        ("new", "nowhere"),
        ("nowhere", "new"),
        ("old", "link"),
        ("old", "second"),
    ] {
        let mut command = jobtrace();
        command.args(["run", "--record", record, "--json", json, "--", "touch", "ran"]);
        let ended = end(command.current_dir(tmp.path()));
        assert_eq!(ended.status, 2, "{record} {json}: {ended:?}");
        assert!(ended.stderr.contains("would overwrite the recording"), "{ended:?}");
        assert_eq!(content(tmp.path()), before, "{record} {json}");
    }
}

#[test]
fn an_output_is_no_file_of_a_standard_stream() {
    let tmp = tempfile::tempdir().unwrap();
    let log = tmp.path().join("log");
    fs::write(&log, "kept").unwrap();
    symlink("log", tmp.path().join("link")).unwrap();
    let before = content(tmp.path());
    for option in ["--json", "--record"] {
        for (output, streams, told) in [
            ("log", [true, false], "standard output"),
            ("link", [true, false], "standard output"),
            ("log", [false, true], "standard error"),
            ("/dev/stderr", [false, true], "standard error"),
            ("-", [true, true], "standard error"),
            ("/dev/stdout", [true, true], "standard error"),
        ] {
            let open = |is_log| match is_log {
                true => File::options().append(true).open(&log).unwrap().into(),
                false => Stdio::null(),
            };
            let [stdout, stderr] = streams.map(open);
            let mut command = jobtrace();
            command.args(["run", "--out", "out", option, output, "--", "touch", "ran"]);
            command.current_dir(tmp.path()).stdout(stdout).stderr(stderr);
            let what = format!("{option} {output} {streams:?}");
            assert_eq!(command.status().unwrap().code(), Some(2), "{what}");
            let said = fs::read_to_string(&log).unwrap();
            if streams[1] {
                let expected =
                    format!("keptjobtrace: {option} {output} and {told} are the same file: ");
                assert!(said.starts_with(&expected) && said.lines().count() == 1, "{what}: {said}");
                fs::write(&log, "kept").unwrap();
            }
            assert_eq!(content(tmp.path()), before, "{what}");
        }
    }
}

#[test]
fn a_folder_and_a_file_of_one_name_are_refused() {
    let tmp = tempfile::tempdir().unwrap();
    for option in ["--json", "--record"] {
        let mut command = jobtrace();
        command.args(["run", "--out", "x", option, "x", "--", "touch", "ran"]);
        let ended = end(command.current_dir(tmp.path()));
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(
            ended.stderr.contains("cannot write x: name a file that you may write"),
            "{ended:?}"
        );
        assert!(!tmp.path().join("ran").exists());
    }
}

#[test]
fn a_recording_that_is_refused_leaves_the_file_as_it_was() {
    let tmp = tempfile::tempdir().unwrap();
    let (damaged, json) = (tmp.path().join("damaged"), tmp.path().join("json"));
    let text = super::damaged::text("forks");
    let (header, _) = text.split_once('\n').unwrap();
    fs::write(&damaged, format!("{header}\nno snapshot\n")).unwrap();
    fs::write(&json, "kept").unwrap();
    let ended = replay(&damaged, &["--json".as_ref(), json.as_ref()]);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert_eq!(fs::read_to_string(&json).unwrap(), "kept");
    fs::remove_file(&json).unwrap();
    assert_eq!(replay(&damaged, &["--json".as_ref(), json.as_ref()]).status, 2);
    assert!(!json.exists(), "an empty file passes for numbers");
    // What is shorter than what was there leaves nothing of it.
    fs::write(&json, "x".repeat(1 << 20)).unwrap();
    assert_eq!(replay(&recording("forks"), &["--json".as_ref(), json.as_ref()]).status, 0);
    assert!(serde_json::from_slice::<serde_json::Value>(&fs::read(&json).unwrap()).is_ok());
}

#[test]
fn a_recording_through_a_pipe_is_opened_once() {
    let tmp = tempfile::tempdir().unwrap();
    let (pipe, json) = (tmp.path().join("pipe"), tmp.path().join("json"));
    make_pipe(&pipe);
    let bytes = fs::read(recording("forks")).unwrap();
    let mut command = jobtrace();
    command.args(["run", "--quiet", "--replay"]).arg(&pipe).arg("--json").arg(&json);
    let mut child = command.spawn().unwrap();
    fs::write(&pipe, bytes).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(fs::read_to_string(json).unwrap().starts_with("{\"schema\":1,"));
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Waits until jobtrace says that it waits.
fn waiting(command: &mut Command) -> Child {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("jobtrace: waiting for a reader of "), "{line}");
    child
}

#[test]
fn a_pipe_that_nobody_reads_keeps_no_signal_off() {
    let tmp = tempfile::tempdir().unwrap();
    let (pipe, marker) = (tmp.path().join("pipe"), tmp.path().join("ran"));
    make_pipe(&pipe);
    for (option, signal) in
        [("--json", Signal::TERM), ("--json", Signal::INT), ("--record", Signal::TERM)]
    {
        let mut command = jobtrace();
        command.args(["run", option]).arg(&pipe).args(["--", "touch"]).arg(&marker);
        let mut child = waiting(&mut command);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + signal.as_raw()), "{option}");
        assert!(!marker.exists());
    }
}

#[test]
fn a_pipe_whose_reader_comes_late_is_written() {
    let tmp = tempfile::tempdir().unwrap();
    let pipe = tmp.path().join("pipe");
    make_pipe(&pipe);
    let mut command = jobtrace();
    command.args(["run", "--json"]).arg(&pipe).arg("--replay").arg(recording("disk"));
    let mut child = waiting(&mut command);
    let mut text = String::new();
    fs::File::open(&pipe).unwrap().read_to_string(&mut text).unwrap();
    assert!(text.starts_with("{\"schema\":1,"), "{text}");
    assert!(child.wait().unwrap().success());
}
