//! A shell with job control on a terminal of its own, and a hand that types.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::process::CommandExt,
    },
    process::{Child, Command, Stdio},
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, channel},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use crate::program::{PATIENCE, program};

/// Two numbers of descriptors: the hand's end and the shell's.
fn open_terminal() -> (File, File) {
    let (mut master, mut slave) = (0, 0);
    let size = libc::winsize { ws_row: 50, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the two numbers are written and the size is read; the rest may be null.
    let rc = unsafe { libc::openpty(&mut master, &mut slave, ptr::null_mut(), ptr::null(), &size) };
    assert_eq!(rc, 0, "openpty: {}", io::Error::last_os_error());
    // SAFETY: fcntl takes any numbers; both descriptors were just opened and are nobody else's.
    unsafe {
        libc::fcntl(master, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::fcntl(slave, libc::F_SETFD, libc::FD_CLOEXEC);
        (File::from_raw_fd(master), File::from_raw_fd(slave))
    }
}

/// Whether there is something to read, or will be in a moment.
fn is_readable(file: &File) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let moment = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&moment)).unwrap() > 0
}

/// An interactive bash that leads a session on a terminal.
pub struct Shell {
    /// Until it is closed.
    master: Option<File>,
    shell: Child,
    reader: Option<JoinHandle<()>>,
    is_read: Arc<AtomicBool>,
    printed: Receiver<String>,
    /// Printed, and not waited for yet.
    rest: String,
}

impl Shell {
    pub fn start() -> Self {
        let (master, slave) = open_terminal();
        let stream = || Stdio::from(slave.try_clone().unwrap());
        let mut bash = Command::new("bash");
        bash.args(["--norc", "--noprofile", "--noediting", "-i"]);
        bash.env("J", program()).env("TERM", "dumb").env("PS1", "$ ").env("LANG", "C.UTF-8");
        bash.stdin(stream()).stdout(stream()).stderr(stream());
        // SAFETY: setsid and ioctl are async-signal-safe; descriptor 0 is the terminal.
        unsafe {
            bash.pre_exec(|| {
                libc::setsid();
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            })
        };
        let shell = bash.spawn().unwrap();
        let (sender, printed) = channel();
        let mut from = master.try_clone().unwrap();
        let is_read = Arc::new(AtomicBool::new(true));
        let go_on = Arc::clone(&is_read);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while go_on.load(Relaxed) {
                if !is_readable(&from) {
                    continue;
                }
                // The end of the last process reads as an error (EIO).
                let Ok(length @ 1..) = from.read(&mut bytes) else { break };
                if sender.send(String::from_utf8_lossy(&bytes[..length]).into_owned()).is_err() {
                    break;
                }
            }
        });
        let (master, reader) = (Some(master), Some(reader));
        Self { master, shell, reader, is_read, printed, rest: String::new() }
    }

    /// Closes the terminal's other end.
    pub fn hang_up(&mut self) {
        self.is_read.store(false, Relaxed);
        self.reader.take().unwrap().join().unwrap();
        self.master = None;
    }

    /// From now on nobody takes what is printed: as Ctrl-S does, where that is no key.
    pub fn hold(&self) {
        let own = File::open(format!("/proc/{}/fd/0", self.shell.id())).unwrap();
        // SAFETY: the descriptor is open; the number is no address.
        assert_eq!(unsafe { libc::tcflow(own.as_raw_fd(), libc::TCOOFF) }, 0);
    }

    /// The process that the shell runs.
    pub fn child(&self) -> i32 {
        let shell = self.shell.id();
        let children = format!("/proc/{shell}/task/{shell}/children");
        let children = std::fs::read_to_string(children).unwrap();
        children.split(' ').next().unwrap().parse().unwrap()
    }

    pub fn type_in(&mut self, text: &str) {
        self.master.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// What was printed since the last call, up to and with `end`.
    pub fn read_until(&mut self, end: &str) -> String {
        let start = Instant::now();
        loop {
            if let Some(at) = self.rest.find(end) {
                let rest = self.rest.split_off(at + end.len());
                return std::mem::replace(&mut self.rest, rest);
            }
            let left = PATIENCE.saturating_sub(start.elapsed());
            match self.printed.recv_timeout(left) {
                Ok(text) => self.rest.push_str(&text),
                Err(error) => panic!("{error}: no {end:?} in {:?}", self.rest),
            }
        }
    }

    /// Asks the shell for the last status; the answer does not look like the question.
    pub fn status(&mut self) -> i32 {
        self.type_in("echo status=$?.\n");
        self.read_until("echo status=$?.");
        self.read_until("status=");
        self.read_until(".").trim_end_matches('.').parse().unwrap()
    }

    pub fn exit(mut self) {
        self.type_in("exit\n");
        self.shell.wait().unwrap();
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Where a test failed; what the terminal held gets a hang-up.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
