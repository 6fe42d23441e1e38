//! Where output goes and cannot go, and how the summary looks.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use jobtrace::{
    record::{document::document, head::Head, store},
    view::{Style, render},
};

use super::program::{end, jobtrace, recording, replay};

#[test]
fn output_that_cannot_be_written_is_refused_with_a_cure() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("file");
    fs::write(&file, "kept").unwrap();
    let below = file.join("below");
    for (option, path, cure) in [
        ("--json", &below, "name a file that you may write"),
        ("--json", &tmp.path().to_owned(), "name a file that you may write"),
        ("--out", &file, "name a folder you may write to"),
        ("--out", &below, "name a folder you may write to"),
        ("--save", &file, "remove the file that is in the way or name another folder"),
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
fn json_lost_at_the_end_is_status_1_and_the_summary_is_told_all_the_same() {
    let ended = replay(&recording("forks"), &["--json".as_ref(), "/dev/full".as_ref()]);
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(ended.stderr.contains("cannot write /dev/full: free space there"), "{ended:?}");
    assert!(ended.stderr.contains("on CPU"), "{ended:?}");
}

#[test]
fn a_summary_that_is_lost_is_status_1_and_one_that_nobody_reads_is_no_trouble() {
    for (arguments, full, unread) in [
        (vec!["run", "--replay", "RECORDING"], 1, 0),
        (vec!["run", "--quiet", "--replay", "RECORDING"], 0, 0),
        (vec!["run", "--replay", "RECORDING", "--json", "/dev/full"], 1, 1),
        (vec!["run", "--replay", "/nonexistent"], 2, 2),
    ] {
        let recording = recording("forks");
        let word = |word: &&str| match *word {
            "RECORDING" => recording.clone().into_os_string(),
            word => word.into(),
        };
        let arguments: Vec<_> = arguments.iter().map(word).collect();
        let stderr = File::options().write(true).open("/dev/full").unwrap();
        let status = jobtrace().args(&arguments).stderr(stderr).status().unwrap();
        assert_eq!(status.code(), Some(full), "{arguments:?}");
        // A pipe whose reader has gone.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = jobtrace().args(&arguments).stderr(Stdio::from(writer)).status().unwrap();
        assert_eq!(status.code(), Some(unread), "{arguments:?}");
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_no_full_disk() {
    let tmp = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    command.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_jobtrace"), "run", "--json", "f"]);
    command.arg("--replay").arg(recording("disk")).current_dir(tmp.path());
    let ended = end(&mut command);
    assert_eq!(ended.status, 1, "{ended:?}");
    let expected = "cannot write f: raise the limit on the size of a file (ulimit -f): ";
    assert!(ended.stderr.contains(expected), "{ended:?}");
}

#[test]
fn findings_read_in_part_are_no_trouble() {
    for arguments in [
        &["doctor"][..],
        &["doctor", "--json"],
        &["resolve", "/slurm/job_1"],
        &["agent", "--print-config"],
        &["push", "--url", "http://localhost:1", "--print-config"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child =
            jobtrace().args(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}: {output:?}");
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

#[test]
fn the_saved_record_is_the_json_and_the_summary_is_made_of_it() {
    let tmp = tempfile::tempdir().unwrap();
    let (json, saved) = (tmp.path().join("run.json"), tmp.path().join("runs"));
    let arguments = ["--json".as_ref(), json.as_path(), "--save".as_ref(), saved.as_path()];
    let ended = replay(&recording("disk"), &arguments.map(|word| word.as_os_str()));
    assert_eq!(ended.status, 0, "{ended:?}");
    let found = store::read_heads(&saved, |_| true).unwrap();
    assert_eq!(found.damaged, Vec::<String>::new());
    let [(folder, head)] = &found.heads[..] else { panic!("{found:?}") };
    let record = store::read(&folder.join(head.file.as_ref().unwrap())).unwrap();
    assert_eq!(document(&record).unwrap(), fs::read_to_string(json).unwrap());
    assert_eq!(head, &Head::from(&record));
    assert!(head.on_cpu_ns > Some(0) && head.end.is_some() && head.exit == Some(0), "{head:?}");
    let style = Style { width: 80, color: false, unicode: false };
    let summary = render(&record.totals, &style);
    let plain = |text: &str| text.chars().filter(|c| c.is_ascii_alphanumeric()).collect::<String>();
    assert_eq!(plain(&ended.stderr), plain(&summary));
    assert_eq!(unfinished(&saved), 0);
}

#[test]
fn a_record_that_cannot_be_saved_is_status_1() {
    let tmp = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    // The folder's probe fits into a block, the record of a run with disks does not.
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    command.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_jobtrace"), "run", "--save", "runs"]);
    command.arg("--replay").arg(recording("disk")).current_dir(tmp.path());
    let ended = end(&mut command);
    assert_eq!(ended.status, 1, "{ended:?}");
    let expected =
        "cannot save a record in runs: raise the limit on the size of a file (ulimit -f)";
    assert!(ended.stderr.contains(expected), "{ended:?}");
    assert_eq!(unfinished(&tmp.path().join("runs")), 0);
}

/// Files that are not yet whole, of all owners of records in `dir`.
fn unfinished(dir: &Path) -> usize {
    let owners = fs::read_dir(dir).unwrap().map(|owner| owner.unwrap().path().join("tmp"));
    let folders: Vec<_> = owners.filter(|tmp| tmp.exists()).collect();
    assert!(!folders.is_empty(), "somebody saves");
    folders.iter().map(|tmp| fs::read_dir(tmp).unwrap().count()).sum()
}
