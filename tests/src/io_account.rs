//! What the kernel counts that processes read and write by calls (/proc/PID/io), and what of it no call of theirs did.

use std::{
    fs, io,
    ops::{Add, Sub},
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

/// Bytes and calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoAccount {
    /// `rchar`, bytes.
    pub read_bytes: u64,
    /// `wchar`, bytes.
    pub written_bytes: u64,
    /// `syscr`.
    pub reads: u64,
    /// `syscw`.
    pub writes: u64,
}

impl IoAccount {
    /// Of a text of /proc/PID/io.
    ///
    /// # Panics
    /// When a line is missing.
    pub fn of(text: &str) -> Self {
        let number = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
            line.unwrap_or_else(|| panic!("no {key} in {text}")).parse().expect("a number")
        };
        Self {
            read_bytes: number("rchar"),
            written_bytes: number("wchar"),
            reads: number("syscr"),
            writes: number("syscw"),
        }
    }

    /// What the kernel itself reads to execute the file `program`, which counts for who executes it: that of a process
    /// that has done nothing else, stopped before its first instruction.
    ///
    /// # Panics
    /// When it cannot be executed or traced.
    pub fn of_exec(program: &str) -> Self {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // SAFETY: one call, of which the child is stopped at its exec.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
        let (pid, mut status) = (child.id() as i32, 0);
        // SAFETY: room for the status.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(libc::WIFSTOPPED(status), "{program} is not stopped at its exec: {status:#x}");
        let text = fs::read_to_string(format!("/proc/{pid}/io")).expect("it is there, stopped");
        child.kill().and_then(|()| child.wait()).expect("it ends");
        Self::of(&text)
    }
}

impl Add for IoAccount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
        }
    }
}

impl Sub for IoAccount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            read_bytes: self.read_bytes - other.read_bytes,
            written_bytes: self.written_bytes - other.written_bytes,
            reads: self.reads - other.reads,
            writes: self.writes - other.writes,
        }
    }
}
