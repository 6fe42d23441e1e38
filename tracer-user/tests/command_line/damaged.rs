//! Recordings that are none, or not whole: refused with their place and a cure, or told as far as
//! they go.

use std::{fs, io::Read, path::Path};

use flate2::read::MultiGzDecoder;

use super::program::{Ended, recording, replay};

/// A committed recording as text.
pub fn text(name: &str) -> String {
    let mut text = String::new();
    let file = fs::File::open(recording(name)).unwrap();
    MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// Replays `bytes` from a file of this name, with output asked for: none may be left by a failure.
fn replay_bytes(name: &str, bytes: &[u8]) -> (Ended, String) {
    let tmp = tempfile::tempdir().unwrap();
    let (file, json, out) = (tmp.path().join(name), tmp.path().join("j"), tmp.path().join("o"));
    fs::write(&file, bytes).unwrap();
    let ended = replay(&file, &["--json".as_ref(), json.as_ref(), "--out".as_ref(), out.as_ref()]);
    let left = |path: &Path| path.is_dir() && fs::read_dir(path).unwrap().next().is_some();
    if ended.status == 2 {
        assert!(!json.exists() && !left(&out), "{ended:?}");
    }
    (ended, file.display().to_string())
}

#[test]
fn garbage_is_refused_by_file_and_line_with_a_cure() {
    let whole = text("forks");
    let lines: Vec<&str> = whole.lines().collect();
    let with = |index: usize, line: &str| {
        let mut lines = lines.clone();
        lines[index] = line;
        lines.join("\n") + "\n"
    };
    let version = lines[0].replace("\"jobtrace_recording\":1", "\"jobtrace_recording\":9");
    assert_ne!(version, lines[0]);
    for (line, text, why) in [
        (1, "#!/bin/sh\necho hello\n".to_owned(), "not a recording's header"),
        (1, "{\"metrics\":[]}\n".to_owned(), "not a recording's header"),
        (1, with(0, &version), "replay it with the jobtrace that made it"),
        (3, with(2, "{}"), "missing field"),
        (3, with(2, "\u{1b}[2J"), "expected value"),
        (3, with(2, lines[1].replace("wall_ns", "wall").as_str()), "unknown field"),
        (lines.len() + 1, whole.clone() + "more\n", "there is data after the recording's end"),
    ] {
        let (ended, file) = replay_bytes("x.jsonl", text.as_bytes());
        assert_eq!(ended.status, 2, "{ended:?}");
        let place = format!(
            "jobtrace: {file}, line {line}: damaged or not a recording, record the run again"
        );
        assert!(ended.stderr.starts_with(&place), "{place}: {ended:?}");
        assert!(ended.stderr.contains(why) && ended.stderr.lines().count() == 1, "{ended:?}");
        assert!(!ended.stderr.contains('\u{1b}'), "{ended:?}");
    }
}

#[test]
fn damaged_compression_is_refused() {
    let mut bytes = fs::read(recording("disk")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20].fill(0xaa);
    let (ended, file) = replay_bytes("x.gz", &bytes);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.starts_with(&format!("jobtrace: {file}, line ")), "{ended:?}");
}

#[test]
fn what_ends_before_its_header_is_no_recording() {
    for bytes in [&b""[..], b"{\"jobtrace_rec", b"\x1f", b"\x1f\x8b\x08"] {
        let (ended, file) = replay_bytes("x.jobtrace.gz", bytes);
        assert_eq!(ended.status, 2, "{ended:?}");
        let expected = format!("jobtrace: {file} is not a recording: it ends within");
        assert!(ended.stderr.starts_with(&expected), "{ended:?}");
    }
}

/// As a killed jobtrace leaves it.
#[test]
fn a_cut_recording_is_told_as_far_as_it_goes_with_status_1() {
    let whole = fs::read(recording("killed")).unwrap();
    let (ended, _) = replay_bytes("x.gz", &whole[..whole.len() * 3 / 4]);
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(ended.stderr.contains("is cut short at line"), "{}", ended.stderr);
    assert!(ended.stderr.contains("on CPU"), "{}", ended.stderr);
}

#[test]
fn a_recording_is_known_by_its_content_not_its_name() {
    let whole = fs::read(recording("disk")).unwrap();
    assert_eq!(replay_bytes("compressed", &whole).0.status, 0);
    assert_eq!(replay_bytes("plain.gz", text("disk").as_bytes()).0.status, 0);
}

#[test]
fn an_absent_recording_is_named() {
    for (file, why) in [("/nonexistent/x.gz", "No such file"), ("/", "directory")] {
        let ended = replay(Path::new(file), &[]);
        assert_eq!(ended.status, 2);
        assert!(ended.stderr.contains(file) && ended.stderr.contains(why), "{ended:?}");
    }
}
