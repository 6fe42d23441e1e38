//! Live ring: operations on files of programs that are not ours, against `strace -c` and against /proc/PID/io. All are
//! exact.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use jobtrace_tests::{
    agree::{Agreement, tried_again},
    io_account::IoAccount,
    operations::{groups, sum, text},
    rig::mount::Tmpfs,
    strace,
    traced::{Traced, program},
};

const IO_ACCOUNT: &str = env!("CARGO_BIN_EXE_io_account");
const MIB: u64 = 1 << 20;
/// A tree of many small files that all machines with a compiler have.
const TREE: &str = "/usr/include/linux";
/// Python's modules are searched for in an order that is the same each time.
const ENVIRONMENT: [(&str, &str); 2] = [("PYTHONHASHSEED", "0"), ("PYTHONDONTWRITEBYTECODE", "1")];

/// A folder for a program to work in, the same for each of its runs, and empty at its begin.
struct Place {
    disk: Tmpfs,
}

impl Place {
    fn new() -> Self {
        Self { disk: Tmpfs::mount(256 * MIB).unwrap() }
    }

    /// The path of `name`, which is kept from run to run.
    fn kept(&self, name: &str) -> String {
        self.disk.path().join(name).to_str().unwrap().to_owned()
    }

    /// The folder.
    fn work(&self) -> String {
        self.kept("work")
    }

    /// Empties it.
    fn begin(&self) {
        let _ = fs::remove_dir_all(self.work());
        fs::create_dir(self.work()).unwrap();
    }
}

/// The file of the program that `asked` prints.
fn file_of(asked: &[&str]) -> String {
    let output = Command::new(asked[0]).args(&asked[1..]).output().unwrap();
    assert!(output.status.success(), "{asked:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// The file of a program on the search path.
fn file(name: &str) -> String {
    file_of(&["sh", "-c", &format!("command -v {name}")])
}

/// Programs of one process each, whose work in `place` is the same each time.
fn programs(place: &Place) -> Vec<(&'static str, Vec<String>)> {
    let work = place.work();
    let rows: String = (0..100).map(|row| format!("insert into t values({row});")).collect();
    let repository = repository(place);
    let words = |program: String, rest: &[&str]| {
        std::iter::once(program).chain(rest.iter().map(|word| (*word).to_owned())).collect()
    };
    let python = file_of(&["python3", "-c", "import sys; print(sys.executable)"]);
    vec![
        ("cp", words(file("cp"), &["-r", TREE, &format!("{work}/copy")])),
        ("tar", words(file("tar"), &["-cf", &format!("{work}/tar"), "-C", TREE, "."])),
        (
            "sqlite3",
            words(
                file("sqlite3"),
                &[
                    &format!("{work}/db"),
                    &format!("create table t(n); {rows} select sum(n) from t;"),
                ],
            ),
        ),
        ("python", words(python, &["-c", "import json, email, http.server, xml.dom.minidom"])),
        (
            "git",
            words(
                file("git"),
                &["-C", &repository, "archive", "-o", &format!("{work}/tar"), "HEAD"],
            ),
        ),
    ]
}

/// A repository with the tree in it.
fn repository(place: &Place) -> String {
    let repository = place.kept("repository");
    if !Path::new(&repository).exists() {
        let script = format!(
            "set -e; git init -q {repository}; cp -r {TREE} {repository}/linux; cd {repository}; git add .; \
             git -c user.name=a -c user.email=a@b commit -q -m one"
        );
        let done = Command::new("sh").args(["-c", &script]).status().unwrap();
        assert!(done.success(), "cannot make a repository");
    }
    repository
}

/// The command `words` under `jobtrace run --io`.
fn traced(words: &[&str]) -> Traced {
    let mut start = Command::new(program().unwrap());
    start.envs(ENVIRONMENT);
    let job = Traced::run_by(start, &["--io"], words);
    assert!(job.output.status.success(), "{words:?}: {:?}", job.output);
    job
}

/// Calls and errors of each operation but those of `left_out`, in a run under strace and in one under jobtrace.
fn agree_with_strace(name: &str, words: &[&str], place: &Place, left_out: &[&str]) {
    // The first finds nothing in the caches of the C library and the like.
    let [_, theirs] = [(); 2].map(|()| {
        place.begin();
        strace::counted(words, &ENVIRONMENT)
    });
    place.begin();
    let job = traced(words);
    let mut agree = Agreement::new();
    strace::agree(&mut agree, name, &job.json, &theirs, left_out);
    agree.between(&format!("{name}: files opened"), theirs["openat"][0], 5..=100_000);
    agree.end();
}

#[test]
fn real_programs_calls_are_what_strace_counts() {
    let place = Place::new();
    for (name, words) in programs(&place) {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        agree_with_strace(name, &words, &place, &[]);
    }
}

#[test]
fn a_copied_and_removed_tree_is_what_strace_counts() {
    let place = Place::new();
    let copy = format!("{}/copy", place.work());
    let script = format!("cp -r {TREE} {copy} && rm -r {copy}");
    agree_with_strace("cp, rm", &["sh", "-c", &script], &place, &[]);
}

/// Several processes that talk by pipes: how often one reads or writes there is up to who comes first, and so is
/// whether a signal of a child's end comes between.
#[test]
fn a_clones_files_are_what_strace_counts() {
    let place = Place::new();
    let (repository, copy) = (repository(&place), format!("{}/copy", place.work()));
    let words = ["git", "clone", "-q", "--no-hardlinks", &repository, &copy];
    agree_with_strace("git clone", &words, &place, &["read", "write", "close"]);
}

/// What all tasks of the job read and wrote on all mounts, pipes and the like too, is what the kernel says that its
/// first process and its child did.
#[test]
fn real_programs_bytes_are_those_of_proc_pid_io() {
    let place = Place::new();
    // What the dynamic loader reads: this job's first program does so before its first word.
    let alone = Command::new(IO_ACCOUNT).stdin(Stdio::null()).output().unwrap();
    let alone = String::from_utf8(alone.stdout).unwrap();
    let loader = IoAccount::of(&alone) - IoAccount::of_exec(IO_ACCOUNT);
    for (name, words) in programs(&place) {
        let own: Vec<_> =
            [IO_ACCOUNT].into_iter().chain(words.iter().map(String::as_str)).collect();
        // Python's modules and the like are then where they will be.
        place.begin();
        assert!(Command::new(own[0]).args(&own[1..]).envs(ENVIRONMENT).output().is_ok());
        place.begin();
        let job = traced(&own);
        assert_eq!(job.number("sched", "execs"), 2, "{name}");
        let printed = String::from_utf8(job.output.stdout.clone()).unwrap();
        let (_, end) = printed.split_at(printed.rfind("rchar").unwrap());
        let answered = IoAccount {
            read_bytes: end.len() as u64,
            written_bytes: printed.len() as u64,
            reads: 1,
            writes: 1,
        };
        let during = IoAccount::of(end) - IoAccount::of(&printed);
        let truth = loader + during + answered - IoAccount::of_exec(&words[0]);
        compare(name, &job, truth);
    }
}

fn compare(name: &str, job: &Traced, truth: IoAccount) {
    let of = |op: &'static str| {
        groups(&job.json, "io").iter().filter(move |group| text(group, "op") == op)
    };
    // The kernel does not count the calls that it refuses at once.
    let refused = |op: &str, errors: &[&str]| {
        let own = groups(&job.json, "io_error").iter().filter(|group| text(group, "op") == op);
        sum(own.filter(|group| errors.contains(&text(group, "error"))), "ops")
    };
    let done = |op: &'static str| sum(of(op), "ops") - sum(of(op), "errors");
    let copied: u64 =
        ["copy_file_range", "sendfile"].into_iter().map(|op| sum(of(op), "bytes")).sum();
    let copies = done("copy_file_range") + done("sendfile");
    let mut agree = Agreement::new();
    let mut exact =
        |what: &str, ours, theirs| agree.exact(&format!("{name}: {what}"), ours, theirs);
    exact("rchar", sum(of("read"), "bytes") + copied, truth.read_bytes);
    exact("wchar", sum(of("write"), "bytes") + copied, truth.written_bytes);
    exact("syscr", sum(of("read"), "ops") - refused("read", &["EBADF"]) + copies, truth.reads);
    exact("syscw", sum(of("write"), "ops") - refused("write", &["EBADF"]) + copies, truth.writes);
    agree.between(&format!("{name}: bytes"), truth.read_bytes, 4_000..=1 << 30);
    agree.end();
}

/// What no program tells at a call's end, or is on no file: each as strace has it, or a clock.
#[test]
fn interrupted_calls_keep_their_time_and_pipes_and_devices_are_no_files() {
    tried_again(interrupted_calls_pipes_and_devices);
}

fn interrupted_calls_pipes_and_devices() {
    const SCRIPT: &str = "
import ctypes, fcntl, mmap, os, signal, sys, threading, time
folder = sys.argv[1]
# A lock that another process holds for half a second, while a timer interrupts who waits for it.
holder = os.fork()
if holder == 0:
    file = open(folder + '/lock', 'w')
    fcntl.flock(file, fcntl.LOCK_EX)
    open(folder + '/held', 'w').close()
    time.sleep(0.5)
    os._exit(0)
while not os.path.exists(folder + '/held'):
    time.sleep(0.001)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
file = open(folder + '/lock', 'w')
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
begin = time.monotonic()
fcntl.flock(file, fcntl.LOCK_EX)
waited = time.monotonic() - begin
signal.setitimer(signal.ITIMER_REAL, 0)
os.waitpid(holder, 0)
# A mapping that is stored ten times.
with open(folder + '/mapped', 'w+b') as file:
    file.truncate(1 << 16)
    with mmap.mmap(file.fileno(), 1 << 16) as memory:
        for number in range(10):
            memory[number] = 1
            memory.flush()
# A pipe with a name, and two devices.
os.mkfifo(folder + '/pipe')
def later():
    time.sleep(0.2)
    with open(folder + '/pipe', 'wb') as pipe:
        pipe.write(b'x' * 100)
thread = threading.Thread(target=later)
thread.start()
with open(folder + '/pipe', 'rb') as pipe:
    pipe.read()
thread.join()
with open('/dev/zero', 'rb', 0) as zero, open('/dev/null', 'wb', 0) as null:
    null.write(zero.read(12345))
print(int(waited * 1e9))
";
    let disk = Tmpfs::mount(4 * MIB).unwrap();
    let folder = disk.path().to_str().unwrap();
    let job = Traced::run(&["--io"], &["python3", "-c", SCRIPT, folder]);
    assert!(job.output.status.success(), "{:?}", job.output);
    let waited: u64 = String::from_utf8_lossy(&job.output.stdout).trim().parse().unwrap();
    let io = groups(&job.json, "io");
    let of = |fs: &str, op: &str, field: &str| -> u64 {
        let rows = io.iter().filter(|row| text(row, "fs") == fs && text(row, "op") == op);
        rows.map(|row| row[field].as_u64().unwrap_or(0)).sum()
    };
    let took = |fs: &str, op: &str| -> u64 {
        let rows = io.iter().filter(|row| text(row, "fs") == fs && text(row, "op") == op);
        rows.map(|row| row["latency_ns"]["sum"].as_u64().unwrap_or(0)).sum()
    };
    let mut agree = Agreement::new();
    // A lock that is held, one that is waited for, and at least five interruptions on the slowest machine.
    agree.between("locks", of("tmpfs", "lock", "ops"), 7..=60);
    agree.exact("failed locks", of("tmpfs", "lock", "errors"), of("tmpfs", "lock", "ops") - 2);
    agree.between("time of locks", took("tmpfs", "lock"), waited / 10 * 8..=waited / 10 * 11);
    agree.exact("stored mappings", of("unknown", "fsync", "ops"), 10);
    // Those of jobtrace that tell the job to begin besides.
    agree.between("reads of the pipe", of("pipefs", "read", "bytes"), 100..=4_096);
    agree.between("opens of the pipe", took("pipefs", "open"), 150_000_000..=60_000_000_000);
    agree.exact("read of the device", of("chardev", "read", "bytes"), 12_345);
    agree.between("written to devices", of("chardev", "write", "bytes"), 12_345..=12_345 + 4_096);
    agree.exact("written to files", of("tmpfs", "write", "bytes"), 0);
    agree.end();
}
