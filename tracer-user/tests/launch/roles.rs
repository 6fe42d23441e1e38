//! What the processes of the cases do.

use std::{
    ffi::OsString,
    io::{self, Write},
    mem,
    process::ExitCode,
    ptr,
    time::Duration,
};

use jobtrace::{
    base::open_files::OpenFiles,
    launch::{command, signals::Signals},
};

/// What jobtrace does: starts the command, waits beside a timer, ends with its status. `before`: what
/// happens before the command starts.
pub fn run(command: &[OsString], before: impl Fn()) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let open_files = OpenFiles::raise();
        let signals = Signals::take().unwrap();
        before();
        let started = command::start(&command[0], &command[1..], None, None, signals, open_files);
        let mut running = match started {
            Ok(running) => running,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(error.status());
            }
        };
        let mut timer = tokio::time::interval(Duration::from_millis(2));
        loop {
            tokio::select! {
                ended = running.wait() => {
                    let ended = ended.unwrap();
                    assert!(ended.usage.minor_faults > 0, "{ended:?}");
                    drop(running.into_signals());
                    return ExitCode::from(ended.exit.status() as u8);
                }
                _ = timer.tick() => {}
            }
        }
    })
}

/// kill(2); 0 is the own group.
pub fn signal(pid: i32, signal: i32) {
    // SAFETY: kill(2) takes any numbers.
    unsafe { libc::kill(pid, signal) };
}

/// The signals that [`count`] counts.
pub fn counted() -> Vec<i32> {
    let mut signals = vec![libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGABRT, libc::SIGUSR1];
    signals.extend([libc::SIGUSR2, libc::SIGALRM, libc::SIGTERM, libc::SIGSTKFLT, libc::SIGURG]);
    signals.extend([libc::SIGXCPU, libc::SIGVTALRM, libc::SIGPROF, libc::SIGWINCH, libc::SIGIO]);
    signals.extend([libc::SIGPWR, libc::SIGSYS, libc::SIGRTMIN(), libc::SIGRTMIN() + 1]);
    signals.push(libc::SIGRTMAX());
    signals
}

/// [`count`] in a group of its own.
pub fn count_apart() -> ExitCode {
    // SAFETY: setpgid takes plain numbers.
    unsafe { libc::setpgid(0, 0) };
    count()
}

/// Prints `ready`, then `signal code` for each of [`counted`] until none has come for half a second after
/// the first.
pub fn count() -> ExitCode {
    // SAFETY: the set is initialised before use and all pointers live through the calls.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in counted() {
            libc::sigaddset(&mut set, signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut());
        println!("ready");
        let mut patience = libc::timespec { tv_sec: 10, tv_nsec: 0 };
        loop {
            let mut info: libc::siginfo_t = mem::zeroed();
            let signal = libc::sigtimedwait(&set, &mut info, &patience);
            if signal < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            if signal < 0 {
                break;
            }
            println!("{signal} {}", info.si_code);
            patience = libc::timespec { tv_sec: 0, tv_nsec: 500_000_000 };
        }
    }
    io::stdout().flush().unwrap();
    ExitCode::SUCCESS
}
