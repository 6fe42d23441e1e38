//! What the processes of the cases do.

use std::{
    ffi::OsString,
    io::{self, Write},
    mem,
    process::ExitCode,
    ptr,
    time::Duration,
};

use jobtrace::launch::{command, signals::Signals};

/// What jobtrace does: starts the command, waits beside a timer, ends with its status. `interrupted`:
/// is told to end before the command starts.
pub fn run(command: &[OsString], interrupted: bool) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let signals = Signals::take().unwrap();
        if interrupted {
            // SAFETY: raise(3) takes any number.
            unsafe { libc::raise(libc::SIGINT) };
        }
        let mut running = match command::start(&command[0], &command[1..], None, signals) {
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

/// Prints `ready`, then `signal code` for each SIGINT, SIGTERM and SIGUSR1 until none has come for
/// half a second after the first.
pub fn count() -> ExitCode {
    // SAFETY: the set is initialised before use and all pointers live through the calls.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1] {
            libc::sigaddset(&mut set, signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut());
        println!("ready");
        let mut patience = libc::timespec { tv_sec: 10, tv_nsec: 0 };
        loop {
            let mut info: libc::siginfo_t = mem::zeroed();
            let signal = libc::sigtimedwait(&set, &mut info, &patience);
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
