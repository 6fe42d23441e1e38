//! Waits for a started command, handing signals on meanwhile.

use std::{
    io, mem,
    os::fd::{AsRawFd, OwnedFd},
    ptr,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};
use tokio::io::unix::AsyncFd;

use super::signals::{Signals, watch};
use crate::model::info::Exit;

/// What the kernel counted for the command and those of its descendants that were waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Time in user mode.
    pub user_ns: u64,
    /// Time in the kernel.
    pub system_ns: u64,
    /// Page faults without I/O (`ru_minflt`).
    pub minor_faults: u64,
    /// Page faults with I/O (`ru_majflt`).
    pub major_faults: u64,
    /// Bytes that it made to be written to storage, when they were changed in memory (`ru_oublock`).
    pub written_bytes: u64,
    /// Switches because it waited (`ru_nvcsw`).
    pub switches_voluntary: u64,
    /// Switches because another ran (`ru_nivcsw`).
    pub switches_involuntary: u64,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its status or signal.
    pub exit: Exit,
    /// Its resource usage.
    pub usage: Usage,
}

/// A command that runs, with the signals that are handed on to it.
pub struct Running {
    pid: Pid,
    pidfd: AsyncFd<OwnedFd>,
    signals: Signals,
    started_ns: u64,
}

impl Running {
    /// Watches the child `pid`, which nobody else waits for. Where that fails, it is ended: nothing
    /// would hand it its signals.
    pub(super) fn new(pid: u32, started_ns: u64, signals: Signals) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let pidfd = pidfd_open(pid, PidfdFlags::NONBLOCK)
            .or_else(|error| match error {
                // Before 5.10 there is no such flag; epoll does not need it.
                Errno::INVAL => pidfd_open(pid, PidfdFlags::empty()),
                other => Err(other),
            })
            .map_err(io::Error::from)
            .and_then(watch);
        match pidfd {
            Ok(pidfd) => Ok(Self { pid, pidfd, signals, started_ns }),
            Err(error) => {
                let _ = kill_process(pid, Signal::KILL);
                let _ = wait(pid, 0);
                Err(error)
            }
        }
    }

    /// When it was in its cgroup and about to exec, by CLOCK_MONOTONIC.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// The command's process.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// The signals, to be kept back from jobtrace until its work is done.
    pub fn into_signals(self) -> Signals {
        self.signals
    }

    /// Waits for the command's end; stopping is no end. The future may be dropped and made anew, as
    /// in `select!`: nothing is lost. After it has given an end, do not call it again.
    ///
    /// # Errors
    /// When the child was waited for by somebody else, or signals cannot be read.
    pub async fn wait(&mut self) -> Result<Ended> {
        loop {
            tokio::select! {
                // The end first: a signal to a command that has ended is late.
                biased;
                ready = self.pidfd.readable() => {
                    let mut ready = ready.context("cannot watch the command")?;
                    let ended = wait(self.pid, libc::WNOHANG);
                    if let Some(ended) = ended.context("cannot wait for the command")? {
                        return Ok(ended);
                    }
                    ready.clear_ready();
                }
                come = self.signals.come() => {
                    come.context("cannot read signals")?;
                    while let Some(received) = self.signals.pending() {
                        if self.signals.is_for(self.pid, received) {
                            self.send(received.signal);
                        }
                    }
                }
            }
        }
    }

    fn send(&self, signal: i32) {
        let none = ptr::null::<libc::siginfo_t>();
        let fd = self.pidfd.as_raw_fd();
        // rustix's has no real-time signals. It may have become another user's (EPERM) or be ending
        // (ESRCH): the kernel's word.
        // SAFETY: the descriptor is open; no information goes along.
        let _ = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, none, 0) };
    }
}

/// wait4(2) on a child; `None` where it still runs.
fn wait(pid: Pid, options: i32) -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: the structure is plain numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    loop {
        // SAFETY: both results live through the call.
        let found =
            unsafe { libc::wait4(pid.as_raw_nonzero().get(), &mut status, options, &mut usage) };
        match found {
            0 => return Ok(None),
            1.. => return Ok(Some(Ended { exit: exit_of(status), usage: usage_of(&usage) })),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}

fn exit_of(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit { code: None, signal: Some(libc::WTERMSIG(status)) }
    } else {
        Exit { code: Some(libc::WEXITSTATUS(status)), signal: None }
    }
}

fn usage_of(usage: &libc::rusage) -> Usage {
    let ns = |time: libc::timeval| {
        let duration = Duration::from_secs(time.tv_sec.unsigned_abs())
            + Duration::from_micros(time.tv_usec.unsigned_abs());
        u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
    };
    Usage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        minor_faults: usage.ru_minflt.unsigned_abs(),
        major_faults: usage.ru_majflt.unsigned_abs(),
        written_bytes: usage.ru_oublock.unsigned_abs() * 512,
        switches_voluntary: usage.ru_nvcsw.unsigned_abs(),
        switches_involuntary: usage.ru_nivcsw.unsigned_abs(),
    }
}
