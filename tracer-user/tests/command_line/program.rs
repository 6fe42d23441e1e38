//! Runs the program and looks at what came out of it.

use std::{
    ffi::OsStr,
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use flate2::read::MultiGzDecoder;
use serde_json::Value;

/// The committed recordings; tests/data/record.sh made them.
pub const RECORDINGS: [&str; 3] = ["forks", "disk", "killed"];

pub fn recording(name: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    data.join(format!("{name}.jobtrace.gz"))
}

/// The program, with nothing of this environment that it listens to.
pub fn jobtrace() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jobtrace"));
    for name in ["NO_COLOR", "COLUMNS", "LC_ALL", "LC_CTYPE", "JOBTRACE_BPF_LOG"] {
        command.env_remove(name);
    }
    command.env("LANG", "C.UTF-8").env("RUST_BACKTRACE", "0");
    command
}

/// A program that has ended.
#[derive(Debug, PartialEq)]
pub struct Ended {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

pub fn end(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("whatever comes in, UTF-8 comes out");
    let status = status.code().unwrap_or_else(|| panic!("{status}"));
    Ended { status, stdout: text(stdout), stderr: text(stderr) }
}

pub fn replay(file: &Path, options: &[&OsStr]) -> Ended {
    end(jobtrace().args(["run", "--replay"]).arg(file).args(options))
}

/// The JSON and the lines of line protocol of a replay.
pub fn numbers_of(file: &Path) -> (Value, Vec<String>) {
    let tmp = tempfile::tempdir().unwrap();
    let (json, out) = (tmp.path().join("x.json"), tmp.path().join("out"));
    let ended = replay(file, &["--json".as_ref(), json.as_ref(), "--out".as_ref(), out.as_ref()]);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let text = fs::read_to_string(json).unwrap();
    (serde_json::from_str(&text).unwrap(), lines(&out))
}

/// Lines of points of all files in `out`, which holds nothing else.
pub fn lines(out: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(out).unwrap() {
        let path = entry.unwrap().path();
        assert!(path.to_str().unwrap().ends_with(".lp.gz"), "{}", path.display());
        let mut text = String::new();
        MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
        let points = text.lines().filter(|line| !line.starts_with('#'));
        lines.extend(points.map(str::to_owned));
    }
    lines
}
