//! Spools for the tests, and the program at work on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};
use tempfile::TempDir;

/// The begin of every file, as jobtrace writes it.
pub const PREAMBLE: &str = "# DML\n# CONTEXT-DATABASE: jobtrace\n";

/// A folder with an outbox.
pub struct Spool {
    dir: TempDir,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    pub status: i32,
    pub stdout: String,
    pub words: String,
}

impl Spool {
    /// With `files` files of `lines` lines each, no two lines alike.
    pub fn new(files: usize, lines: usize) -> Self {
        let spool = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(spool.outbox()).unwrap();
        (0..files).for_each(|file| spool.add(file, lines));
        spool
    }

    pub fn add(&self, file: usize, lines: usize) {
        let text: String = (0..lines).map(|line| point(file, line)).collect();
        self.write(&name(file), &format!("{PREAMBLE}{text}"));
    }

    /// As the agent does: it appears whole.
    pub fn write(&self, name: &str, text: &str) {
        let mut bytes = text.as_bytes().to_vec();
        if name.ends_with(".gz") {
            let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
            gz.write_all(&bytes).unwrap();
            bytes = gz.finish().unwrap();
        }
        let tmp = self.path().join(name);
        fs::write(&tmp, bytes).unwrap();
        fs::rename(tmp, self.outbox().join(name)).unwrap();
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn outbox(&self) -> PathBuf {
        self.path().join("outbox")
    }

    pub fn failed(&self) -> PathBuf {
        self.path().join("failed")
    }

    /// `jobtrace push` of this spool, without anything of this environment that it listens to.
    pub fn command(&self, url: &str) -> Command {
        let mut command = push();
        command.arg("--spool").arg(self.path()).args(["--url", url]);
        command
    }

    pub fn push(&self, url: &str, options: &[&str]) -> Ended {
        end(self.command(url).args(options))
    }

    /// The program in the background; killed when the value goes.
    pub fn follow(&self, url: &str, options: &[&str]) -> Running {
        let mut command = self.command(url);
        command.args(["--follow", "--every", "1s"]).args(options);
        let log = self.path().join("log");
        command.stderr(fs::File::create(&log).unwrap()).stdout(Stdio::null());
        Running { child: command.spawn().unwrap(), log }
    }
}

pub struct Running {
    pub child: Child,
    log: PathBuf,
}

impl Running {
    pub fn words(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Sends SIGTERM; the status and how long it took.
    pub fn end(mut self) -> (Option<i32>, Duration) {
        let begin = Instant::now();
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        (status.code(), begin.elapsed())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn push() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jobtrace"));
    command.arg("push").env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    for name in ["JOBTRACE_PUSH_TOKEN", "JOBTRACE_PUSH_PASSWORD", "NOTIFY_SOCKET", "SSL_CERT_FILE"]
    {
        command.env_remove(name);
    }
    command
}

pub fn end(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let status = status.code().unwrap_or_else(|| panic!("{status}"));
    Ended { status, stdout: text(stdout), words: text(stderr) }
}

pub fn name(file: usize) -> String {
    format!("n1-0a0b0c0d-{file:018}-1700000000000000000.lp.gz")
}

pub fn point(file: usize, line: usize) -> String {
    let time = 1_700_000_000_000_000_000 + file as u64;
    format!("job_sched,host=n1,job={line} forks={file}i {time}\n")
}

/// Lines of points of `files` files with `lines` lines each.
pub fn points(files: impl IntoIterator<Item = usize>, lines: usize) -> BTreeSet<String> {
    let of_file = |file| (0..lines).map(move |line| point(file, line).trim_end().to_owned());
    files.into_iter().flat_map(of_file).collect()
}

/// Names in a folder; empty where it is absent.
pub fn names(dir: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(dir) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Lines of points in all files of a folder.
pub fn lines_in(dir: &Path) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for name in names(dir).iter().filter(|name| name.ends_with(".lp.gz")) {
        let mut text = String::new();
        let file = fs::File::open(dir.join(name)).unwrap();
        MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
        lines.extend(text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned));
    }
    lines
}

/// The lines stored, each exactly once.
pub fn once(stored: &BTreeMap<String, usize>) -> BTreeSet<String> {
    let twice: Vec<_> = stored.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    stored.keys().cloned().collect()
}

/// Waits until `what` is so.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// `text` as a path's or an option's.
pub fn os(text: &impl AsRef<OsStr>) -> &str {
    text.as_ref().to_str().unwrap()
}
