//! Whether a signal was sent to jobtrace alone or to its whole process group: nothing in the signal tells.
//!
//! A process that does nothing sits in the group with all signals blocked. What was sent to the group is
//! pending there too, what was sent to jobtrace alone is not. The kernel begins with the group's newest
//! process, so the witness has a signal before jobtrace, which is older, can know of it.

use std::{
    ffi::CStr,
    io::{self, Read, Write},
    mem,
    net::Shutdown,
    ops::Range,
    os::{fd::AsRawFd, unix::net::UnixStream},
    ptr,
    time::Duration,
};

use anyhow::{Context, Result};
use procfs::process::Process;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Its name. Without jobtrace's in it: `pkill jobtrace` must not pass for a signal to the group.
const NAME: &CStr = c"group-witness";
/// The question that is no signal's number: all that is pending is thrown away.
const FORGET: u8 = 0;
/// Longest wait for an answer. It takes microseconds; a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(2);

/// The process, and the line to it. Dropped, it is ended.
pub(super) struct Witness {
    pid: Pid,
    line: UnixStream,
}

impl Witness {
    /// Starts it in jobtrace's group. Call it from a process of one thread, with all signals blocked that
    /// will be asked for.
    pub(super) fn start() -> Result<Self> {
        let (line, its_end) = UnixStream::pair().context("cannot create a pair of sockets")?;
        line.set_read_timeout(Some(PATIENCE)).context("cannot set a time limit")?;
        let arguments = arguments();
        // SAFETY: with one thread there is no lock that the child could find held.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error())
                .context("cannot start a process, raise the limit of processes"),
            0 => sit(&its_end, arguments),
            pid => Ok(Self { pid: Pid::from_raw(pid).context("fork gave no process")?, line }),
        }
    }

    /// Whether the group had `signal` since this was last asked; asking takes one of its kind away.
    pub(super) fn had(&self, signal: i32) -> bool {
        // Unknown where it is gone: then the command has a signal twice rather than never.
        u8::try_from(signal).is_ok_and(|signal| ask(self.pid, &self.line, signal).unwrap_or(false))
    }

    /// Makes it forget what the group has had so far. To be called in the forked child.
    pub(super) fn forgetting(&self) -> io::Result<impl Fn() + Send + Sync + use<>> {
        let (pid, line) = (self.pid, self.line.try_clone()?);
        Ok(move || drop(ask(pid, &line, FORGET)))
    }
}

/// One question and its answer; only async-signal-safe calls.
fn ask(witness: Pid, mut line: &UnixStream, question: u8) -> io::Result<bool> {
    // It may have been stopped with the group, and jobtrace continued alone.
    kill_process(witness, Signal::CONT)?;
    let mut answer = [0];
    line.write_all(&[question])?;
    let read = line.read_exact(&mut answer);
    if read.is_err() {
        // Nor is a late answer to be taken for the next one's.
        let _ = line.shutdown(Shutdown::Both);
    }
    read.map(|()| answer != [0])
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// Where the arguments lie that `ps` shows.
fn arguments() -> Option<Range<u64>> {
    let stat = Process::myself().and_then(|own| own.stat()).ok()?;
    Some(stat.arg_start?..stat.arg_end?)
}

/// The witness's life, until jobtrace's end of the line is closed.
fn sit(line: &UnixStream, arguments: Option<Range<u64>>) -> ! {
    // SAFETY: all pointers live through their calls. The kernel names the range as this process's own
    // arguments, which nobody reads any more; name and zeros stay inside it.
    unsafe {
        let all = all_signals();
        libc::sigprocmask(libc::SIG_BLOCK, &all, ptr::null_mut());
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        if let Some(Range { start, end }) = arguments {
            let length = end.saturating_sub(start) as usize;
            ptr::write_bytes(start as *mut u8, 0, length);
            let name = NAME.to_bytes();
            ptr::copy(name.as_ptr(), start as *mut u8, name.len().min(length.saturating_sub(1)));
        }
        // A reader of jobtrace's output must not wait for this process.
        libc::dup2(line.as_raw_fd(), 0);
        libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
        let mut byte = 0_u8;
        while libc::read(0, ptr::from_mut(&mut byte).cast(), 1) == 1 {
            byte = u8::from(take(byte, &all));
            if libc::write(0, ptr::from_ref(&byte).cast(), 1) != 1 {
                break;
            }
        }
        libc::_exit(0)
    }
}

/// Answers a question: takes one pending signal of its number, or all.
fn take(question: u8, all: &libc::sigset_t) -> bool {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both sets are initialised and live through the calls.
    unsafe {
        if question == FORGET {
            while libc::sigtimedwait(all, ptr::null_mut(), &now) > 0 {}
            return true;
        }
        let mut one: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut one);
        libc::sigaddset(&mut one, question.into());
        libc::sigtimedwait(&one, ptr::null_mut(), &now) > 0
    }
}

fn all_signals() -> libc::sigset_t {
    // SAFETY: sigfillset initialises the set.
    unsafe {
        let mut all = mem::zeroed();
        libc::sigfillset(&mut all);
        all
    }
}
