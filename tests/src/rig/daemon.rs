//! A server of a rig: in the foreground, its words in a log file, dead with the thread that started it.

use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};

use super::wait_for;

/// How long a server may take to end when told to, before it is killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of the log, in an error's message.
const LINES: usize = 8;

/// A process under our eyes.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts `command`, which must stay in the foreground; `log` takes what it prints.
    ///
    /// # Errors
    /// When it cannot be started or the log cannot be made.
    pub fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let file = File::create(log).with_context(|| format!("cannot make {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        die_with_us(command);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Its status, once it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits until `ready` gives a value.
    ///
    /// # Errors
    /// When the server ends before, or `patience` does; the last lines of its log are in the message.
    pub fn wait_until<T>(
        &mut self,
        what: &str,
        patience: Duration,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<T> {
        let found = wait_for(what, patience, || match self.ended() {
            Some(status) => Some(Err(status)),
            None => ready().map(Ok),
        });
        match found {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(status)) => Err(anyhow::anyhow!("{what}: it ended, {status}")),
            Err(error) => Err(error),
        }
        .with_context(|| self.last_lines())
    }

    /// The end of its log.
    pub fn last_lines(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
        format!("{} ends with: {last}", self.log.display())
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: a child that we have not reaped, so the id is its.
        unsafe { libc::kill(self.pid(), signal) };
    }

    /// Ends it, as politely as it lets us. Does nothing once it has ended.
    pub fn stop(&mut self) {
        if self.ended().is_some() {
            return;
        }
        self.signal(libc::SIGTERM);
        if wait_for("the end", PATIENCE, || self.ended()).is_err() {
            eprintln!("{} does not end by SIGTERM: killed", self.log.display());
            self.kill();
        }
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Has the kernel kill the command's process when the calling thread ends.
pub fn die_with_us(command: &mut Command) {
    let parent = std::process::id() as i32;
    let ask = move || {
        // SAFETY: no pointers. The parent may have died before the request was made.
        let orphaned = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 || libc::getppid() != parent
        };
        if orphaned { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
    };
    // SAFETY: two system calls and no allocation.
    unsafe { command.pre_exec(ask) };
}
