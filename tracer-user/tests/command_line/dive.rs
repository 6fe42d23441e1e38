//! `jobtrace io` before agents that answer as scripted, or not at all.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    process::Stdio,
    thread,
};

use jobtrace::{
    model::{
        group::Group,
        info::JobInfo,
        job::Job,
        point::Origin,
        tables::{IO, Io},
    },
    record::{
        Record,
        running::{SoFar, answer_records, answer_so_far},
    },
};
use tempfile::TempDir;

use super::program::{Ended, end, jobtrace};

const SECOND: u64 = 1_000_000_000;

/// An agent that reads one question, checks it, and does `answer` with whoever asked.
struct Scripted {
    folder: TempDir,
    thread: thread::JoinHandle<()>,
}

impl Scripted {
    fn start(question: &'static str, answer: impl FnOnce(UnixStream) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("query.sock")).unwrap();
        let serve = move || {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            assert_eq!(line.trim_end(), question);
            answer(stream);
        };
        Self { folder, thread: thread::spawn(serve) }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("query.sock")
    }

    /// What `jobtrace io` with `arguments` says.
    fn asked(self, arguments: &[&str]) -> Ended {
        let ended = end(jobtrace().arg("io").args(arguments).arg("--socket").arg(self.socket()));
        self.thread.join().unwrap();
        ended
    }
}

/// Ten opens in twelve seconds.
fn record() -> Record {
    let job = Job { job: "4711".into(), user: "ada".into(), ..Job::default() };
    let info = JobInfo { start_wall_ns: 1_795_305_600 * SECOND, ..JobInfo::default() };
    let mut record = Record::new(&Origin::default(), job, info, 1_795_309_200 * SECOND);
    let mut opens = Group::unknown(&IO, ["ext4", "/data", "open"].map(str::to_owned).into());
    opens.set(Io::ops, 10);
    record.add(12 * SECOND, &[opens], &[]);
    record
}

fn tell(mut to: UnixStream) {
    to.write_all(&answer_so_far(SoFar { elapsed_ns: SECOND, ops: 4 }).unwrap()).unwrap();
    to.write_all(&answer_records(&[record()]).unwrap()).unwrap();
}

#[test]
fn what_the_agent_counted_is_shown() {
    const QUESTION: &str = r#"{"ask":"io","job":"4711","for_ns":90000000000}"#;
    let arguments = ["4711", "--for", "90s"];
    let ended = Scripted::start(QUESTION, tell).asked(&arguments);
    // No terminal: how far it is is nobody's concern.
    assert_eq!((ended.status, &*ended.stderr), (0, ""));
    let head = "4711 of ada file operations counted for 12.0 s of a job that has run for 1 h 0 min: what it did before is \
                not in these numbers ";
    let words: Vec<_> = ended.stdout.split_whitespace().collect();
    assert!(words.join(" ").starts_with(head), "{}", ended.stdout);
    assert!(ended.stdout.contains("open /data (ext4)"), "{}", ended.stdout);
    let ended = Scripted::start(QUESTION, tell).asked(&[&arguments[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (json["io"][0]["ops"].as_u64(), json["job"]["job"].as_str()),
        (Some(10), Some("4711"))
    );
}

#[test]
fn a_signal_ends_it_early_and_what_was_counted_is_shown() {
    let (has_asked, asked) = std::sync::mpsc::channel();
    let question = r#"{"ask":"io","job":"4711","for_ns":60000000000}"#;
    let agent = Scripted::start(question, move |mut stream| {
        has_asked.send(()).unwrap();
        // Until the client has seen enough.
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
        tell(stream);
    });
    let mut command = jobtrace();
    command.args(["io", "4711", "--socket"]).arg(agent.socket());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It has caught its signals before.
    asked.recv().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    agent.thread.join().unwrap();
    assert_eq!(output.status.code(), Some(128 + libc::SIGTERM), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("open /data (ext4)"));
}

#[test]
fn refusals_and_agents_that_end_are_told_in_their_words() {
    const QUESTION: &str = r#"{"ask":"io","job":"1","for_ns":60000000000}"#;
    let refuse = |mut stream: UnixStream| {
        stream.write_all(b"{\"error\":\"no job 1 of yours runs on this node\"}\n").unwrap();
    };
    let ended = Scripted::start(QUESTION, refuse).asked(&["1"]);
    let said = "jobtrace: the agent refuses: no job 1 of yours runs on this node\n";
    assert_eq!((ended.status, &*ended.stdout, &*ended.stderr), (2, "", said));
    let ended = Scripted::start(QUESTION, drop).asked(&["1"]);
    assert_eq!(ended.status, 2);
    let lost = "has ended meanwhile, and what it had counted is lost: ask again when it runs";
    assert!(ended.stderr.contains(lost), "{}", ended.stderr);
    let damaged = |mut stream: UnixStream| stream.write_all(b"\xff\n").unwrap();
    let ended = Scripted::start(QUESTION, damaged).asked(&["1"]);
    assert_eq!((ended.status, ended.stderr.contains("answer is damaged")), (2, true), "{ended:?}");
}

#[test]
fn without_an_agent_the_cure_is_named() {
    let ended = end(jobtrace().args(["io", "4711", "--socket", "/nowhere/query.sock"]));
    assert_eq!((ended.status, &*ended.stdout), (2, ""));
    let said = "jobtrace: nothing was counted: is the agent running (`systemctl status jobtrace`)? `jobtrace run --io` \
                needs none: cannot ask the agent at /nowhere/query.sock: ";
    assert!(ended.stderr.starts_with(said), "{}", ended.stderr);
}

#[test]
fn times_out_of_bounds_are_refused() {
    for (time, why) in [
        ("0.5", "shorter than a second (1s)"),
        ("61m", "longer than an hour (1h)"),
        ("x", "not a time"),
    ] {
        let ended = end(jobtrace().args(["io", "4711", "--for", time]));
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
    }
    assert_eq!(end(jobtrace().arg("io")).status, 2, "no job");
}

#[test]
fn an_empty_job_is_refused() {
    for job in ["", " "] {
        let ended = end(jobtrace().args(["io", job]));
        assert_eq!((ended.status, &*ended.stdout), (2, ""));
        let said = "the id of a job is empty: `jobtrace top --once` lists those that run";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}
