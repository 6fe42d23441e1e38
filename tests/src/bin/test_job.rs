//! What the commands traced by the live ring do; the first argument says which.

use std::{
    fs,
    io::{self, Write},
    mem, process, ptr,
    time::{Duration, Instant},
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["forks", count] => forks(count.parse().expect("a number")),
        ["signals"] => signals(),
        ["renamed"] => renamed(),
        ["naps"] => naps(),
        ["execs", per_second] => execs(per_second.parse().expect("a number")),
        _ => panic!("forks N, signals, renamed, naps or execs N, not {arguments:?}"),
    }
}

/// So many children, one after the other.
fn forks(count: u32) {
    for _ in 0..count {
        // SAFETY: the child does nothing but end, the parent nothing but wait for it.
        unsafe {
            match libc::fork() {
                0 => libc::_exit(0),
                child => assert_eq!(libc::waitpid(child, ptr::null_mut(), 0), child),
            }
        }
    }
}

/// Prints `ready`, then the number of each SIGINT, SIGTERM, SIGUSR1 and the second real-time one, until none has come for half a
/// second after the first; ends by the first.
fn signals() {
    // SAFETY: the set is initialised before use and all pointers live through the calls.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1, libc::SIGRTMIN() + 1] {
            libc::sigaddset(&mut set, signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut());
        say("ready");
        let first = next_signal(&set, Duration::from_secs(60)).expect("a signal");
        say(&format!("had {first}"));
        while let Some(signal) = next_signal(&set, Duration::from_millis(500)) {
            say(&format!("had {signal}"));
        }
        libc::raise(first);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
    }
}

fn next_signal(set: &libc::sigset_t, patience: Duration) -> Option<i32> {
    let time = libc::timespec {
        tv_sec: patience.as_secs() as libc::time_t,
        tv_nsec: patience.subsec_nanos().into(),
    };
    loop {
        // SAFETY: both are initialised; no information is asked for.
        match unsafe { libc::sigtimedwait(set, ptr::null_mut(), &time) } {
            // Stopped and continued meanwhile.
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            signal => return (signal > 0).then_some(signal),
        }
    }
}

fn say(text: &str) {
    let mut out = io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).expect("standard output");
}

/// Takes a name that no terminal should see, and has a child under it.
fn renamed() {
    fs::write("/proc/self/comm", b"\x1b[31m\na,b=\\\"").expect("a name of its own");
    forks(1);
    process::exit(0);
}

/// On a CPU for a moment twenty times a second, for ten minutes at most; executes nothing.
fn naps() {
    for _ in 0..12_000 {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Executes so many programs a second that do nothing, for ten minutes at most.
fn execs(per_second: u32) {
    let begin = Instant::now();
    for number in 1..=per_second * 600 {
        process::Command::new("true").status().expect("a program that does nothing");
        let due = Duration::from_secs(1) * number / per_second;
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
    }
}
