//! The cases.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{roles::counted, terminal::Terminal};

pub const ALL: [(&str, fn()); 23] = [
    ("the_status_is_the_commands", the_status_is_the_commands),
    ("what_cannot_start_is_126_or_127", what_cannot_start_is_126_or_127),
    ("a_signal_shows_as_128_more", a_signal_shows_as_128_more),
    ("signal_state_is_as_without_jobtrace", signal_state_is_as_without_jobtrace),
    (
        "the_limit_of_open_files_is_as_without_jobtrace",
        the_limit_of_open_files_is_as_without_jobtrace,
    ),
    ("an_ignored_sigchld_hides_no_end", an_ignored_sigchld_hides_no_end),
    ("a_signal_to_jobtrace_is_handed_on", a_signal_to_jobtrace_is_handed_on),
    ("a_signal_to_the_group_arrives_once", a_signal_to_the_group_arrives_once),
    (
        "one_to_jobtrace_and_at_once_to_the_group_is_one",
        one_to_jobtrace_and_at_once_to_the_group_is_one,
    ),
    ("each_of_many_real_time_signals_arrives_once", each_of_many_real_time_signals_arrives_once),
    ("a_command_that_left_the_group_is_reached", a_command_that_left_the_group_is_reached),
    (
        "what_came_before_the_command_counts_for_nothing",
        what_came_before_the_command_counts_for_nothing,
    ),
    (
        "a_group_stopped_and_continued_in_part_goes_on",
        a_group_stopped_and_continued_in_part_goes_on,
    ),
    ("the_witness_has_another_name_and_ends", the_witness_has_another_name_and_ends),
    ("ctrl_c_arrives_once", ctrl_c_arrives_once),
    ("a_closed_terminal_reaches_the_command", a_closed_terminal_reaches_the_command),
    ("a_job_that_signals_its_group_hears_it_once", a_job_that_signals_its_group_hears_it_once),
    ("stopping_and_continuing_is_the_shells", stopping_and_continuing_is_the_shells),
    ("an_early_signal_starts_nothing", an_early_signal_starts_nothing),
    ("an_early_signal_that_is_ignored_ends_nothing", an_early_signal_that_is_ignored_ends_nothing),
    ("an_early_signal_that_is_blocked_waits", an_early_signal_that_is_blocked_waits),
    ("an_early_signal_without_effect_has_none", an_early_signal_without_effect_has_none),
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
fn started(process: &mut Command) -> (Child, BufReader<ChildStdout>) {
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

fn the_limit_of_open_files_is_as_without_jobtrace() {
    let limits = "ulimit -Sn; ulimit -Hn; grep 'open files' /proc/$PPID/limits";
    let script = format!(
        "ulimit -Sn 70; ulimit -Hn 300; exec \"$0\" run sh -c \"{}\"",
        limits.replace('$', "\\$")
    );
    let text = output(Command::new("sh").args(["-c", &script, &itself()]));
    let words: Vec<_> = text.split_whitespace().collect();
    // The command's, and what jobtrace has meanwhile.
    assert_eq!(words, ["70", "300", "Max", "open", "files", "300", "300", "files"], "{text}");
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
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
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
    assert!(expected.starts_with("0000000000000200\n") && expected.ends_with("11001\n"));
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

/// `jobtrace run count`, in a group of its own, once the command waits for signals.
fn counting() -> (Child, BufReader<ChildStdout>) {
    started(role("run", &[&itself(), "count"]).process_group(0))
}

/// What the command saw until it ended.
fn seen((mut child, mut lines): (Child, BufReader<ChildStdout>)) -> String {
    let mut seen = String::new();
    lines.read_to_string(&mut seen).unwrap();
    assert!(child.wait().unwrap().success());
    seen
}

/// Sends each signal to a run of its own, and looks at what each command saw.
fn each_arrives_once(send_to: impl Fn(i32, i32)) {
    let runs: Vec<_> = counted().into_iter().map(|signal| (signal, counting())).collect();
    for (signal, (child, _)) in &runs {
        send_to(child.id() as i32, *signal);
    }
    for (signal, run) in runs {
        assert_eq!(seen(run), format!("{signal} 0\n"));
    }
}

fn a_signal_to_jobtrace_is_handed_on() {
    each_arrives_once(send);
}

fn a_signal_to_the_group_arrives_once() {
    each_arrives_once(|pid, signal| send(-pid, signal));
}

fn one_to_jobtrace_and_at_once_to_the_group_is_one() {
    // As timeout(1) does.
    let run = counting();
    send(run.0.id() as i32, libc::SIGUSR1);
    send(-(run.0.id() as i32), libc::SIGUSR1);
    assert_eq!(seen(run), format!("{} 0\n", libc::SIGUSR1));
}

fn each_of_many_real_time_signals_arrives_once() {
    let signal = libc::SIGRTMIN() + 1;
    let run = counting();
    let pid = run.0.id() as i32;
    for to in [pid, -pid, -pid, pid, -pid].repeat(10) {
        send(to, signal);
    }
    assert_eq!(seen(run), format!("{signal} 0\n").repeat(50));
}

fn a_command_that_left_the_group_is_reached() {
    for to_group in [false, true] {
        let run = started(role("run", &[&itself(), "count-apart"]).process_group(0));
        let pid = run.0.id() as i32;
        send(if to_group { -pid } else { pid }, libc::SIGTERM);
        assert_eq!(seen(run), format!("{} 0\n", libc::SIGTERM), "{to_group}");
    }
}

fn what_came_before_the_command_counts_for_nothing() {
    let run = started(role("after-urg", &[&itself(), "count"]).process_group(0));
    send(run.0.id() as i32, libc::SIGURG);
    assert_eq!(seen(run), format!("{} 0\n", libc::SIGURG));
}

fn a_group_stopped_and_continued_in_part_goes_on() {
    let run = counting();
    let pid = run.0.id() as i32;
    send(-pid, libc::SIGSTOP);
    eventually("all stopped", || children(pid).iter().all(|pid| state(*pid) == Some('T')));
    send(pid, libc::SIGUSR1);
    children(pid)
        .into_iter()
        .filter(|pid| name(*pid) != WITNESS)
        .for_each(|pid| send(pid, libc::SIGCONT));
    send(pid, libc::SIGCONT);
    assert_eq!(seen(run), format!("{} 0\n", libc::SIGUSR1));
}

fn the_witness_has_another_name_and_ends() {
    let run = counting();
    let pid = run.0.id() as i32;
    let witness = children(pid).into_iter().find(|pid| name(*pid) == WITNESS).unwrap();
    let line = fs::read_to_string(format!("/proc/{witness}/cmdline")).unwrap();
    assert_eq!(line.trim_end_matches('\0'), WITNESS);
    assert_eq!(fs::read_dir(format!("/proc/{witness}/fd")).unwrap().count(), 1);
    send(pid, libc::SIGTERM);
    seen(run);
    assert!(!Path::new(&format!("/proc/{witness}")).exists());
}

const WITNESS: &str = "group-witness";

fn children(pid: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next())
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

/// `command` after an early `signal`, started by somebody who did `before` in between.
fn early(signal: i32, command: &[&str], before: fn(i32)) -> (Option<i32>, String) {
    let number = signal.to_string();
    let mut run = role("early", &[&[number.as_str()], command].concat());
    // SAFETY: the callers' are async-signal-safe.
    unsafe {
        run.pre_exec(move || {
            before(signal);
            Ok(())
        })
    };
    let output = run.output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn an_early_signal_starts_nothing() {
    let of_all = counted().into_iter().filter(|signal| !WITHOUT_EFFECT.contains(signal));
    for signal in of_all {
        let ended = early(signal, &["echo", "started"], |_| {});
        assert_eq!(ended, (Some(128 + signal), String::new()), "{signal}");
    }
}

const WITHOUT_EFFECT: [i32; 2] = [libc::SIGURG, libc::SIGWINCH];

fn an_early_signal_without_effect_has_none() {
    for signal in WITHOUT_EFFECT {
        let ended = early(signal, &["echo", "started"], |_| {});
        assert_eq!(ended, (Some(0), "started\n".into()), "{signal}");
    }
}

fn an_early_signal_that_is_ignored_ends_nothing() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGRTMIN()] {
        // SAFETY: signal(2) is async-signal-safe and takes any number.
        let ignore = |signal| unsafe { _ = libc::signal(signal, libc::SIG_IGN) };
        let ended = early(signal, &["echo", "started"], ignore);
        assert_eq!(ended, (Some(0), "started\n".into()), "{signal}");
    }
}

fn an_early_signal_that_is_blocked_waits() {
    for signal in [libc::SIGTERM, libc::SIGUSR1, libc::SIGRTMIN()] {
        // SAFETY: both calls are async-signal-safe, the set is initialised first.
        let block = |signal| unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, signal);
            libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        };
        let ended = early(signal, &[&itself(), "count"], block);
        assert_eq!(ended, (Some(0), format!("ready\n{signal} 0\n")), "{signal}");
    }
}

fn killed_outright_the_command_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("alive");
    let script = format!("echo ready; sleep 0.2; echo > {}", path.display());
    let (mut child, _lines) = started(&mut role("run", &["sh", "-c", &script]));
    let pid = child.id() as i32;
    let witness = children(pid).into_iter().find(|pid| name(*pid) == WITNESS).unwrap();
    send(pid, libc::SIGKILL);
    child.wait().unwrap();
    eventually("the command's file", || path.exists());
    eventually("the witness's end", || name(witness) != WITNESS);
}
