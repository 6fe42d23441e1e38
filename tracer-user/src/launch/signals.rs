//! The signals that jobtrace takes while a command runs, and which of them it hands on.
//!
//! The command stays in jobtrace's process group, so that the terminal's Ctrl-C, Ctrl-Z and Ctrl-\
//! reach it directly and a shell's job control works as for `time CMD`. Stopping and continuing are
//! left to the kernel: SIGTSTP and SIGCONT keep their default effect on jobtrace.
//!
//! What was sent to the whole group the command has had, by the terminal or by `kill -- -PGID`; what was
//! sent to jobtrace alone is handed on. A witness in the group tells which it was (`witness.rs`).

use std::{
    fs, io, mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr, thread,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::Pid;
use tokio::io::{Interest, unix::AsyncFd};

use super::{
    inherited::{Inherited, is_ignored, set_mask, was_sigpipe_ignored},
    witness::Witness,
};

/// What would end or disturb jobtrace, and is meant for the command; the real-time ones besides. Left out
/// are what cannot be taken (KILL, STOP), what stops and continues (TSTP, TTIN, TTOU, CONT), what jobtrace's
/// own doings bring (CHLD, PIPE, XFSZ) and a CPU's errors (ILL, TRAP, BUS, FPE, SEGV).
const TAKEN: [i32; 17] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGABRT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGSTKFLT,
    libc::SIGURG,
    libc::SIGXCPU,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGWINCH,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSYS,
];

/// Those of [`TAKEN`] whose default effect is none.
const HARMLESS: [i32; 2] = [libc::SIGURG, libc::SIGWINCH];

/// timeout(1) signals its child and then its group, some schedulers all processes one by one: within this
/// time all of them have it. Without jobtrace, two in so short a time are mostly one, still pending.
const MOMENT: Duration = Duration::from_millis(10);

/// A signal that jobtrace was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub signal: i32,
    /// Who sent it; 0 for the kernel and for a process of an outer namespace.
    pub sender: u32,
}

/// Holds the signals back from jobtrace, to be read one by one. Dropped, it throws away what is
/// pending and lets them through again.
pub struct Signals {
    fd: AsyncFd<OwnedFd>,
    pub(super) inherited: Inherited,
    pub(super) witness: Witness,
}

impl Signals {
    /// Takes the signals that are handed on, and sees to it that ended children can be waited for and that
    /// SIGXFSZ ends nothing. Call it in a tokio runtime, before anything that a signal must not cut short,
    /// and before any other thread exists: a thread that does not block them would take them instead.
    ///
    /// # Errors
    /// When the kernel has no signalfd or no process left to give.
    pub fn take() -> Result<Self> {
        let taken = taken();
        // SAFETY: both sets are initialised and live through the call.
        let mask = unsafe {
            let mut mask = mem::zeroed();
            let error = libc::pthread_sigmask(libc::SIG_BLOCK, &taken, &mut mask);
            anyhow::ensure!(
                error == 0,
                "cannot block signals: {}",
                io::Error::from_raw_os_error(error)
            );
            mask
        };
        // SAFETY: `taken` is initialised; the descriptor returned is ours alone.
        let fd = unsafe {
            let fd = libc::signalfd(-1, &taken, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
        };
        let fd = fd.and_then(watch).inspect_err(|_| set_mask(&mask));
        let fd = fd.context("cannot read signals, raise the limit of open files")?;
        let witness = Witness::start().inspect_err(|_| set_mask(&mask))?;
        // A parent that ignores SIGCHLD passes that on, and children would vanish unwaited.
        // SAFETY: SIG_DFL is a valid disposition of SIGCHLD.
        let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        let ignores_sigchld = before == libc::SIG_IGN;
        // Output past the limit of file sizes is an error to be told, not the end of the tracing.
        // SAFETY: SIG_IGN is a valid disposition of SIGXFSZ.
        let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        let ignores_sigxfsz = before == libc::SIG_IGN;
        let ignores_sigpipe = was_sigpipe_ignored();
        let inherited = Inherited { mask, ignores_sigpipe, ignores_sigchld, ignores_sigxfsz };
        Ok(Self { fd, inherited, witness })
    }

    /// Waits until signals have come, and a moment more; then read all [`Self::pending`]. Nothing is lost
    /// when the future is dropped.
    ///
    /// # Errors
    /// When the signals cannot be watched.
    pub async fn come(&self) -> io::Result<()> {
        self.fd.readable().await?.clear_ready();
        // Not tokio's, which begins anew when the future is dropped for the next tick.
        thread::sleep(MOMENT);
        Ok(())
    }

    /// A signal that has come already, if any.
    pub fn pending(&self) -> Option<Received> {
        read_one(self.fd.get_ref()).ok()
    }

    /// A signal that ends what runs in the command's place before it does: one whose default effect that is,
    /// not ignored by whoever started jobtrace. What is without effect goes, and what they block stays
    /// pending for the command, as over any exec.
    pub fn told_to_end(&self) -> Option<i32> {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let heard = self.inherited.unblocked(taken());
        // SAFETY: the set is initialised; no information is asked for.
        let next = || Some(unsafe { libc::sigtimedwait(&heard, ptr::null_mut(), &now) });
        std::iter::from_fn(next)
            .take_while(|signal| *signal > 0)
            .find(|signal| !HARMLESS.contains(signal) && !is_ignored(*signal))
    }

    /// Whether `received` has to be sent on to the command `child`, because it has not had it.
    pub(super) fn is_for(&self, child: Pid, received: Received) -> bool {
        // Asked in any case: what the witness keeps would count for a later signal.
        let group_had = self.witness.had(received.signal);
        // A command may leave the group, as timeout(1) does. jobtrace then stands for it there.
        let child = child.as_raw_nonzero().get();
        // Not rustix's, which takes no 0: so it is where the group's leader is outside the pid namespace.
        // SAFETY: neither call has memory to touch.
        let in_group = unsafe { libc::getpgid(child) == libc::getpgrp() };
        let child = child.unsigned_abs();
        let has_had = group_had && in_group;
        !has_had && !descends_from(received.sender, child, read_parent)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        while self.pending().is_some() {}
        set_mask(&self.inherited.mask);
        if self.inherited.ignores_sigchld {
            // SAFETY: SIG_IGN is a valid disposition of SIGCHLD.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        }
        if !self.inherited.ignores_sigxfsz {
            // SAFETY: SIG_DFL is a valid disposition of SIGXFSZ.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
        }
    }
}

/// Whether process `pid` is `ancestor` or below it. What a job signals to its own group, as scripts
/// do with `kill 0`, must not come back to it. `parent_of` gives a process's parent.
fn descends_from(pid: u32, ancestor: u32, parent_of: impl Fn(u32) -> Option<u32>) -> bool {
    let mut next = Some(pid).filter(|pid| *pid > 0);
    // Bounded: the tree changes while it is read.
    for _ in 0..256 {
        match next {
            Some(pid) if pid == ancestor => return true,
            Some(pid) => next = parent_of(pid).filter(|parent| *parent > 1),
            None => return false,
        }
    }
    false
}

fn read_parent(pid: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    // A process's name may be any bytes.
    parent_in(&String::from_utf8_lossy(&status))
}

/// The parent's id in the text of a /proc/PID/status.
pub(crate) fn parent_in(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn read_one(fd: &OwnedFd) -> io::Result<Received> {
    // SAFETY: the structure is plain numbers, for which zero is valid.
    let mut info: libc::signalfd_siginfo = unsafe { mem::zeroed() };
    let size = size_of_val(&info);
    // SAFETY: the kernel writes at most `size` bytes, which is the structure's size.
    let read = unsafe { libc::read(fd.as_raw_fd(), ptr::from_mut(&mut info).cast(), size) };
    if read != size as isize {
        return Err(io::Error::last_os_error());
    }
    Ok(Received { signal: info.ssi_signo as i32, sender: info.ssi_pid })
}

/// Makes the runtime watch `fd` until it can be read.
pub(super) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is open, stays so while it lives, and never changes its number.
    let watched = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    watched.map_err(io::Error::from)
}

/// The signals that are handed on.
fn taken() -> libc::sigset_t {
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    // SAFETY: sigemptyset initialises the set; the numbers are valid signals.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in TAKEN.into_iter().chain(real_time) {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_process_of_any_name_is_known() {
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt, process::Command};
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(OsStr::from_bytes(b"\xff\nPPid:\t7"));
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let mut child = Command::new(&program).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let parent = read_parent(child.id());
        child.kill().and_then(|()| child.wait()).unwrap();
        assert_eq!(parent, Some(std::process::id()));
    }

    #[test]
    fn a_job_does_not_hear_itself() {
        let parent_of = |pid| match pid {
            30 => Some(20),
            20 => Some(10),
            10 => Some(1),
            77 => Some(77),
            _ => None,
        };
        assert!(descends_from(30, 10, parent_of) && descends_from(10, 10, parent_of));
        assert!(!descends_from(10, 30, parent_of), "jobtrace's own side of the tree");
        assert!(!descends_from(0, 10, parent_of) && !descends_from(5, 10, parent_of));
        assert!(!descends_from(77, 10, parent_of), "a loop ends");
    }
}
