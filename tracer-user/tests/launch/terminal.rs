//! A terminal for a process: what Ctrl-C goes through.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{fd::FromRawFd, unix::process::CommandExt},
    process::{Child, Command, Stdio},
    ptr,
};

/// A process that leads a session of its own on a terminal; this is the terminal's other end.
pub struct Terminal {
    master: File,
    pub child: Child,
}

impl Terminal {
    /// One that does not say how large it is.
    pub fn start(command: &mut Command) -> Self {
        Self::start_sized(command, 0, 0)
    }

    /// One of so many rows and columns.
    pub fn start_sized(command: &mut Command, ws_row: u16, ws_col: u16) -> Self {
        let (mut master, mut slave) = (0, 0);
        let size = libc::winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the two numbers are written, the size is read; the rest may be null.
        let rc = unsafe {
            let none = ptr::null_mut();
            libc::openpty(&mut master, &mut slave, none, ptr::null(), &size)
        };
        assert_eq!(rc, 0, "openpty: {}", io::Error::last_os_error());
        // SAFETY: fcntl takes any numbers. The child must not hold the other end open.
        unsafe { libc::fcntl(master, libc::F_SETFD, libc::FD_CLOEXEC) };
        // SAFETY: both descriptors were just opened and belong to nobody else.
        let (master, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
        let stream = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(stream()).stdout(stream()).stderr(stream());
        // SAFETY: setsid and ioctl are async-signal-safe; descriptor 0 is the terminal.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            })
        };
        let child = command.spawn().unwrap();
        Self { master, child }
    }

    /// Makes it another size, of which its processes are told by SIGWINCH.
    pub fn resize(&self, ws_row: u16, ws_col: u16) {
        let size = rustix::termios::Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.master, size).unwrap();
    }

    /// Another handle, for who reads while others type.
    pub fn reader(&self) -> File {
        self.master.try_clone().unwrap()
    }

    /// Types `text`.
    pub fn type_in(&mut self, text: &[u8]) {
        self.master.write_all(text).unwrap();
    }

    /// Closes the terminal.
    pub fn hang_up(self) -> Child {
        self.child
    }

    /// What is printed up to `end`, or until everybody has closed the terminal.
    pub fn read_until(&mut self, end: &str) -> String {
        let (mut text, mut bytes) = (String::new(), [0; 256]);
        while end.is_empty() || !text.contains(end) {
            // The end of the last process reads as an error (EIO).
            let Ok(length) = self.master.read(&mut bytes) else { break };
            text.push_str(&String::from_utf8_lossy(&bytes[..length]));
        }
        text
    }
}
