//! Where output goes and cannot go, and how the summary looks.

use std::{
    fs::{self, File},
    process::Stdio,
};

use super::program::{end, jobtrace, recording, replay};

#[test]
fn output_that_cannot_be_written_is_refused_with_a_cure() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("file");
    fs::write(&file, "kept").unwrap();
    let below = file.join("below");
    for (option, path, cure) in [
        ("--json", &below, "name a file you may write"),
        ("--json", &tmp.path().to_owned(), "name a file you may write"),
        ("--out", &file, "name a folder you may write to"),
        ("--out", &below, "name a folder you may write to"),
    ] {
        let ended = replay(&recording("forks"), &[option.as_ref(), path.as_ref()]);
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains(cure), "{ended:?}");
        assert!(ended.stderr.contains(path.to_str().unwrap()), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "no summary: {ended:?}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
}

#[test]
fn json_does_not_overwrite_the_recording() {
    let tmp = tempfile::tempdir().unwrap();
    let (file, link, new) = (tmp.path().join("r.gz"), tmp.path().join("l"), tmp.path().join("new"));
    fs::copy(recording("forks"), &file).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for json in [&file, &link] {
        let ended = replay(&file, &["--json".as_ref(), json.as_ref()]);
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains("would overwrite the recording"), "{ended:?}");
    }
    assert_eq!(fs::read(&file).unwrap(), fs::read(recording("forks")).unwrap());
    let mut command = jobtrace();
    command.args(["run", "--record"]).arg(&new).arg("--json").arg(&new).args(["--", "true"]);
    let ended = end(&mut command);
    assert!(ended.status == 2 && ended.stderr.contains("name another file"), "{ended:?}");
    assert!(!new.exists());
    let ended = replay(&file, &["--json".as_ref(), "/dev/null".as_ref()]);
    assert_eq!(ended.status, 0, "{ended:?}");
}

#[test]
fn json_lost_at_the_end_is_status_1_and_the_summary_is_told_all_the_same() {
    let ended = replay(&recording("forks"), &["--json".as_ref(), "/dev/full".as_ref()]);
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(ended.stderr.contains("cannot write /dev/full: free space there"), "{ended:?}");
    assert!(ended.stderr.contains("on CPU"), "{ended:?}");
}

#[test]
fn json_goes_through_a_pipe_alone() {
    let ended = replay(&recording("disk"), &["--json".as_ref(), "/dev/stdout".as_ref()]);
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((json["schema"].as_u64(), ended.status), (Some(1), 0));
    let quiet = replay(&recording("disk"), &["--quiet".as_ref()]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str(), quiet.status), ("", "", 0));
}

#[test]
fn a_standard_error_that_takes_nothing_is_no_trouble() {
    for (arguments, expected) in [
        (vec!["run", "--replay", "RECORDING"], 0),
        (vec!["run", "--replay", "RECORDING", "--json", "/dev/full"], 1),
        (vec!["run", "--replay", "/nonexistent"], 2),
    ] {
        let recording = recording("forks");
        let word = |word: &&str| match *word {
            "RECORDING" => recording.clone().into_os_string(),
            word => word.into(),
        };
        let arguments: Vec<_> = arguments.iter().map(word).collect();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let status = jobtrace().args(&arguments).stderr(full).status().unwrap();
        assert_eq!(status.code(), Some(expected), "{arguments:?}");
        // A pipe whose reader has gone.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = jobtrace().args(&arguments).stderr(Stdio::from(writer)).status().unwrap();
        assert_eq!(status.code(), Some(expected), "{arguments:?}");
    }
}

#[test]
fn findings_read_in_part_are_no_trouble() {
    for arguments in [&["doctor"][..], &["doctor", "--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut child =
            jobtrace().args(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let status = child.wait().unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "{status}");
    }
}

#[test]
fn no_colour_where_nobody_sees_it() {
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "xterm-256color"), ("CLICOLOR_FORCE", "1")] {
        let file = recording("disk");
        let ended = end(jobtrace().args(["run", "--replay"]).arg(file).env(name, value));
        assert!(!ended.stderr.contains('\u{1b}'), "{name}: {}", ended.stderr);
    }
}

#[test]
fn the_summary_keeps_to_its_columns() {
    for columns in [1, 20, 40, 60, 80, 100, 200] {
        for name in super::program::RECORDINGS {
            let mut command = jobtrace();
            command.args(["run", "--replay"]).arg(recording(name));
            let ended = end(command.env("COLUMNS", columns.to_string()));
            assert_eq!(ended.status, 0);
            let widest = ended.stderr.lines().map(unicode_width::UnicodeWidthStr::width).max();
            // Below 40 nothing fits.
            assert!(widest.unwrap() <= columns.max(40), "{columns}:\n{}", ended.stderr);
        }
    }
}

#[test]
fn a_terminal_without_utf8_gets_ascii() {
    let mut command = jobtrace();
    command.args(["run", "--replay"]).arg(recording("disk")).env("LC_ALL", "C");
    let ended = end(&mut command);
    assert!(ended.stderr.is_ascii(), "{}", ended.stderr);
}
