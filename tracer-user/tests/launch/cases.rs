//! The cases.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::terminal::Terminal;

pub const ALL: [(&str, fn()); 12] = [
    ("the_status_is_the_commands", the_status_is_the_commands),
    ("what_cannot_start_is_126_or_127", what_cannot_start_is_126_or_127),
    ("a_signal_shows_as_128_more", a_signal_shows_as_128_more),
    ("signal_state_is_as_without_jobtrace", signal_state_is_as_without_jobtrace),
    ("an_ignored_sigchld_hides_no_end", an_ignored_sigchld_hides_no_end),
    ("a_signal_to_jobtrace_is_handed_on", a_signal_to_jobtrace_is_handed_on),
    ("ctrl_c_arrives_once", ctrl_c_arrives_once),
    ("a_closed_terminal_reaches_the_command", a_closed_terminal_reaches_the_command),
    ("a_job_that_signals_its_group_hears_it_once", a_job_that_signals_its_group_hears_it_once),
    ("stopping_and_continuing_is_the_shells", stopping_and_continuing_is_the_shells),
    ("an_early_interrupt_starts_nothing", an_early_interrupt_starts_nothing),
    ("killed_outright_the_command_goes_on", killed_outright_the_command_goes_on),
];

fn itself() -> String {
    std::env::current_exe().unwrap().to_str().unwrap().to_owned()
}

fn role(role: &str, command: &[&str]) -> Command {
    let mut process = Command::new(itself());
    process.arg(role).args(command);
    process
}

fn status(command: &[&str]) -> i32 {
    role("run", command).stderr(Stdio::null()).status().unwrap().code().unwrap()
}

fn output(process: &mut Command) -> String {
    String::from_utf8(process.output().unwrap().stdout).unwrap()
}

fn send(pid: i32, signal: i32) {
    // SAFETY: kill(2) takes any numbers; the process is ours and not waited for yet.
    let rc = unsafe { libc::kill(pid, signal) };
    assert_eq!(rc, 0, "kill {pid}: {}", io::Error::last_os_error());
}

/// Starts `process` with its output piped and reads the first line.
fn started(process: &mut Command) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = process.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    (child, lines)
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "never: {what}");
        sleep(Duration::from_millis(5));
    }
}

fn the_status_is_the_commands() {
    assert_eq!(status(&["true"]), 0);
    assert_eq!(status(&["sh", "-c", "exit 7"]), 7);
    assert_eq!(output(&mut role("run", &["echo", "a b", ""])), "a b \n");
}

fn what_cannot_start_is_126_or_127() {
    assert_eq!(status(&["jobtrace-no-such-program"]), 127);
    assert_eq!(status(&["/no/such/program"]), 127);
    assert_eq!(status(&["/"]), 126);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plain");
    fs::write(&path, "#!/bin/sh\nexit 3\n").unwrap();
    assert_eq!(status(&[path.to_str().unwrap()]), 126);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(status(&[path.to_str().unwrap()]), 3);
}

fn a_signal_shows_as_128_more() {
    assert_eq!(status(&["sh", "-c", "kill -KILL $$"]), 137);
    assert_eq!(status(&["sh", "-c", "kill -TERM $$"]), 143);
}

fn signal_state_is_as_without_jobtrace() {
    let show = ["awk", "/^Sig(Blk|Ign)/{print $2}", "/proc/self/status"];
    let plain = || {
        let mut process = Command::new(show[0]);
        process.args(&show[1..]);
        process
    };
    assert_eq!(output(&mut role("run", &show)), output(&mut plain()));
    assert_eq!(status(&["sh", "-c", "kill -PIPE $$"]), 141);
    let disturbed = |mut process: Command| {
        // SAFETY: all calls are async-signal-safe, the set is initialised first.
        unsafe {
            process.pre_exec(|| {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
                libc::signal(libc::SIGHUP, libc::SIG_IGN);
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, libc::SIGUSR1);
                libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
                Ok(())
            })
        };
        output(&mut process)
    };
    let expected = disturbed(plain());
    assert!(expected.starts_with("0000000000000200\n") && expected.ends_with("10001\n"));
    assert_eq!(disturbed(role("run", &show)), expected);
}

fn an_ignored_sigchld_hides_no_end() {
    let mut ignoring = role("run", &["sh", "-c", "exit 7"]);
    // SAFETY: signal(2) is async-signal-safe.
    unsafe {
        ignoring.pre_exec(|| {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            Ok(())
        })
    };
    assert_eq!(ignoring.status().unwrap().code(), Some(7));
}

fn a_signal_to_jobtrace_is_handed_on() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1] {
        let (mut child, mut lines) = started(&mut role("run", &[&itself(), "count"]));
        send(child.id() as i32, signal);
        let mut seen = String::new();
        lines.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, format!("{signal} 0\n"));
        assert!(child.wait().unwrap().success());
    }
    let (mut child, _lines) = started(&mut role("run", &["sh", "-c", "echo; exec sleep 30"]));
    send(child.id() as i32, libc::SIGHUP);
    assert_eq!(child.wait().unwrap().code(), Some(129));
}

fn ctrl_c_arrives_once() {
    let mut terminal = Terminal::start(&mut role("run", &[&itself(), "count"]));
    terminal.read_until("ready");
    // One sent twice is seen as one where the command is slow to take the first: so, several.
    for _ in 0..10 {
        terminal.type_in(b"\x03");
        sleep(Duration::from_millis(30));
    }
    let seen = terminal.read_until("");
    let signals: Vec<_> = seen.lines().map(|line| line.trim_start_matches("^C")).collect();
    assert!(signals.contains(&"2 128"), "{seen:?}");
    assert!(!signals.contains(&"2 0"), "{seen:?}");
    assert!(terminal.child.wait().unwrap().success());
}

fn a_closed_terminal_reaches_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hangup");
    // jobtrace leads the session here: the kernel tells nobody else.
    let script = format!(
        "trap 'echo hup > {}; exit 0' HUP; echo ready; for i in $(seq 500); do sleep 0.02; done",
        path.display()
    );
    let mut terminal = Terminal::start(&mut role("run", &["sh", "-c", &script]));
    terminal.read_until("ready");
    let mut child = terminal.hang_up();
    eventually("the trap's file", || path.exists());
    child.wait().unwrap();
}

fn a_job_that_signals_its_group_hears_it_once() {
    let script =
        "trap 'echo got' TERM; for i in 1 2 3 4 5 6 7 8; do kill -TERM 0; sleep 0.05; done; exit 5";
    let output = role("run", &["sh", "-c", script]).process_group(0).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "got\n".repeat(8));
    assert_eq!(output.status.code(), Some(5));
}

fn stopping_and_continuing_is_the_shells() {
    let state = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.chars().next())
    };
    let mut run = role("run", &["sh", "-c", "echo $$; read line; exit 4"]);
    let mut child =
        run.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (own, command) = (child.id() as i32, line.trim().parse::<i32>().unwrap());
    send(-own, libc::SIGTSTP);
    eventually("both stopped", || state(own) == Some('T') && state(command) == Some('T'));
    sleep(Duration::from_millis(50));
    assert_eq!((state(own), state(command)), (Some('T'), Some('T')));
    send(-own, libc::SIGCONT);
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

fn an_early_interrupt_starts_nothing() {
    let output = role("early", &["echo", "started"]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0));
}

fn killed_outright_the_command_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("alive");
    let script = format!("echo ready; sleep 0.2; echo > {}", path.display());
    let (mut child, _lines) = started(&mut role("run", &["sh", "-c", &script]));
    send(child.id() as i32, libc::SIGKILL);
    child.wait().unwrap();
    eventually("the command's file", || path.exists());
}
