//! The signals that jobtrace takes while a command runs, and which of them it hands on.
//!
//! The command stays in jobtrace's process group, so that the terminal's Ctrl-C, Ctrl-Z and Ctrl-\
//! reach it directly and a shell's job control works as for `time CMD`. Stopping and continuing are
//! left to the kernel: SIGTSTP and SIGCONT keep their default effect on jobtrace.
//!
//! A signal that another process sends to the whole group cannot be told from one sent to jobtrace
//! alone, so it is handed on and the command has it twice; only the terminal's are known.

use std::{
    fs, io, mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr,
};

use anyhow::{Context, Result};
use tokio::io::{Interest, unix::AsyncFd};

/// What would end or disturb jobtrace, and is meant for the command.
const TAKEN: [i32; 9] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGXCPU,
    libc::SIGWINCH,
];
/// `si_code` of what the kernel itself sends.
const FROM_KERNEL: i32 = 0x80;

/// A signal that jobtrace was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub signal: i32,
    /// `si_code`: 0x80 for the kernel, 0 for kill(2).
    pub code: i32,
    /// Who sent it; 0 for the kernel and for a process of an outer namespace.
    pub sender: u32,
}

/// Signal state that the command is to have, as jobtrace found it.
#[derive(Clone, Copy)]
pub(super) struct Inherited {
    mask: libc::sigset_t,
    ignores_sigchld: bool,
    ignores_sigxfsz: bool,
}

/// Holds the signals back from jobtrace, to be read one by one. Dropped, it throws away what is
/// pending and lets them through again.
pub struct Signals {
    fd: AsyncFd<OwnedFd>,
    pub(super) inherited: Inherited,
    leads_session: bool,
}

impl Signals {
    /// Takes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU and SIGWINCH, and
    /// sees to it that ended children can be waited for and that SIGXFSZ ends nothing. Call it in a tokio runtime, before anything
    /// that a signal must not cut short, and before any other thread exists: a thread that does not
    /// block them would take them instead.
    ///
    /// # Errors
    /// When the kernel has no signalfd left to give.
    pub fn take() -> Result<Self> {
        let taken = set_of(&TAKEN);
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
        // A parent that ignores SIGCHLD passes that on, and children would vanish unwaited.
        // SAFETY: SIG_DFL is a valid disposition of SIGCHLD.
        let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        let ignores_sigchld = before == libc::SIG_IGN;
        // Output past the limit of file sizes is an error to be told, not the end of the tracing.
        // SAFETY: SIG_IGN is a valid disposition of SIGXFSZ.
        let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        let ignores_sigxfsz = before == libc::SIG_IGN;
        let inherited = Inherited { mask, ignores_sigchld, ignores_sigxfsz };
        // Not rustix's, which takes the leader for a process: it is 0 where a namespace hides it.
        // SAFETY: both take and give plain numbers.
        let leads_session = unsafe { libc::getsid(0) == libc::getpid() };
        Ok(Self { fd, inherited, leads_session })
    }

    /// The next signal. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// When the signals cannot be read.
    pub async fn next(&self) -> io::Result<Received> {
        loop {
            let mut ready = self.fd.readable().await?;
            if let Ok(received) = ready.try_io(|fd| read_one(fd.get_ref())) {
                return received;
            }
        }
    }

    /// A signal that has come already, if any.
    pub fn pending(&self) -> Option<Received> {
        read_one(self.fd.get_ref()).ok()
    }

    /// Whether `received` has to be sent on to the command `child`, because it has not had it.
    pub(super) fn is_for(&self, child: u32, received: Received) -> bool {
        !has_had(received, self.leads_session)
            && !descends_from(received.sender, child, read_parent)
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

impl Inherited {
    /// Puts the state back, in the forked child; only async-signal-safe calls.
    pub fn restore(&self) {
        // SAFETY: all calls are async-signal-safe; SIGPIPE, which Rust ignores from its start on,
        // gets the disposition that programs expect.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            if self.ignores_sigchld {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            }
            if !self.ignores_sigxfsz {
                libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
            }
        }
        set_mask(&self.mask);
    }
}

/// Whether the command has had the signal from the kernel, as a member of the terminal's group. Of a
/// hang-up the kernel tells the leader of the session alone.
fn has_had(received: Received, leads_session: bool) -> bool {
    let from_terminal = match received.signal {
        libc::SIGINT | libc::SIGQUIT | libc::SIGWINCH => true,
        libc::SIGHUP => !leads_session,
        _ => false,
    };
    received.code == FROM_KERNEL && from_terminal
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
    Ok(Received { signal: info.ssi_signo as i32, code: info.ssi_code, sender: info.ssi_pid })
}

/// Makes the runtime watch `fd` until it can be read.
pub(super) fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an OwnedFd is open, stays so while it lives, and never changes its number.
    let watched = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    watched.map_err(io::Error::from)
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set; the numbers are valid signals.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, *signal);
        }
        set
    }
}

fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: the mask came from the kernel; the old one is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_terminals_signals_have_been_had() {
        let received = |signal, code| Received { signal, code, sender: 0 };
        for (signal, code, leads, had) in [
            (libc::SIGINT, FROM_KERNEL, false, true),
            (libc::SIGQUIT, FROM_KERNEL, false, true),
            (libc::SIGWINCH, FROM_KERNEL, true, true),
            (libc::SIGINT, libc::SI_USER, false, false),
            (libc::SIGTERM, libc::SI_USER, false, false),
            (libc::SIGHUP, FROM_KERNEL, false, true),
            (libc::SIGHUP, FROM_KERNEL, true, false),
            (libc::SIGALRM, FROM_KERNEL, false, false), // alarm(2) before the exec of jobtrace
            (libc::SIGINT, libc::SI_TKILL, false, false),
        ] {
            assert_eq!(has_had(received(signal, code), leads), had, "{signal} {code:x} {leads}");
        }
    }

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
