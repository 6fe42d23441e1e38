//! Starts jobtrace, and sees that it leaves nothing behind when it has ended.

use std::{
    ffi::OsStr,
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use flate2::read::MultiGzDecoder;
use jobtrace::cgroup::hierarchies::Hierarchies;
use serde_json::Value;

/// What the traced commands do; see its file.
pub const JOB: &str = env!("CARGO_BIN_EXE_test_job");

/// Long enough for a busy machine, short enough for a test that hangs.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// The program under test.
pub fn program() -> PathBuf {
    let program = std::env::var_os("JOBTRACE_BIN");
    program.expect("JOBTRACE_BIN names the program: use `cargo xtask test --live`").into()
}

/// `jobtrace run`, its streams piped.
pub fn jobtrace() -> Command {
    let mut command = Command::new(program());
    command.arg("run").env("LANG", "C.UTF-8").env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A jobtrace that has ended.
#[derive(Debug)]
pub struct Ended {
    pub pid: u32,
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// Runs `jobtrace run` with these arguments to its end; nothing may be left.
pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    end(jobtrace().args(arguments).spawn().unwrap())
}

/// Waits for a jobtrace; nothing may be left.
pub fn end(child: Child) -> Ended {
    let ended = end_with_leftovers(child);
    let left = cgroups_of(ended.pid);
    assert!(left.is_empty(), "{left:?} of {ended:?}");
    ended
}

/// Waits for a jobtrace whose command left processes behind.
pub fn end_with_leftovers(child: Child) -> Ended {
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).expect("UTF-8 on standard error");
    let status = output.status.code().unwrap_or_else(|| panic!("{}: {stderr}", output.status));
    assert!(!stderr.contains("panicked"), "{stderr}");
    Ended { pid, status, stdout: output.stdout, stderr }
}

/// The directories of the run of jobtrace `pid`, in all hierarchies.
pub fn cgroups_of(pid: u32) -> Vec<PathBuf> {
    let hierarchies = Hierarchies::read().unwrap();
    let parents = hierarchies.v2.iter().chain(&hierarchies.v1).map(|found| &found.own);
    let entries = parents.flat_map(|parent| fs::read_dir(parent).unwrap().flatten());
    let prefix = format!("jobtrace-run-{pid}-");
    let is_its = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&prefix);
    entries.filter(is_its).map(|entry| entry.path()).collect()
}

/// Looks until there is something.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a file has a whole line, and gives it.
pub fn line_of(path: &Path) -> String {
    wait_for(&path.display().to_string(), || {
        let text = fs::read_to_string(path).ok()?;
        Some(text.split_once('\n')?.0.to_owned())
    })
}

/// The numbers of `--json FILE`.
pub fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Text of all files of `--out DIR`; nothing else may be there.
pub fn line_protocol(out: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(out).unwrap() {
        let path = entry.unwrap().path();
        assert!(path.to_str().unwrap().ends_with(".lp.gz"), "{}", path.display());
        MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    }
    text
}
