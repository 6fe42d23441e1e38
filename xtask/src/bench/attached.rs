//! A tracer that runs beside the workload: started, waited for until its programs are attached, and
//! ended, all seen from outside.

use super::watch::{Watch, read_cpu};
use crate::bpf;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a tracer may take until all its programs are attached.
const PATIENCE: Duration = Duration::from_secs(30);
/// One that holds no BPF program by then will not hold any.
const HOPELESS: Duration = Duration::from_secs(15);
/// A tracer that has been quiet so long is through with its start.
const QUIET: Duration = Duration::from_millis(150);
/// It may use so much of a CPU meanwhile.
const QUIET_CPU: Duration = Duration::from_millis(2);
const POLL: Duration = Duration::from_millis(10);
/// How long the kernel may take to free the programs of a tracer that ended.
const RELEASE: Duration = Duration::from_secs(5);

/// A running tracer; killed when dropped, which ends its programs too.
pub struct Attached {
    process: Child,
    /// What was seen of it.
    pub watch: Watch,
    errors: PathBuf,
}

impl Attached {
    /// Starts the command and waits until it holds BPF programs (where it `needs_programs`), opens
    /// no more files and hardly uses a CPU. What it says goes to a file in `folder`.
    ///
    /// # Errors
    /// When it ends before, with its own last words, or takes too long.
    pub fn start(command: Command, folder: &Path, needs_programs: bool) -> Result<Self> {
        let mut attached = Self::spawn(command, folder)?;
        attached.settle(needs_programs)?;
        Ok(attached)
    }

    fn spawn(mut command: Command, folder: &Path) -> Result<Self> {
        let errors = folder.join("errors");
        let file = File::create(&errors).context("make a file for a tracer's errors")?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        // It must not go on tracing when the comparison is killed.
        // SAFETY: between fork and exec it only makes one system call.
        unsafe {
            command.pre_exec(|| {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                Ok(())
            });
        }
        let process = command
            .spawn()
            .with_context(|| format!("start {}", command.get_program().to_string_lossy()))?;
        Ok(Self { process, watch: Watch::default(), errors })
    }

    fn settle(&mut self, needs_programs: bool) -> Result<()> {
        let begin = Instant::now();
        let mut quiet_since = (Instant::now(), 0, Duration::ZERO);
        loop {
            self.is_alive()?;
            self.watch.look(&self.process);
            let files = format!("/proc/{}/fd", self.process.id());
            let files = fs::read_dir(files).map_or(0, Iterator::count);
            // It may have ended since.
            let cpu = read_cpu(&self.process).unwrap_or_default();
            let used = cpu.saturating_sub(quiet_since.2);
            if files != quiet_since.1 || used > QUIET_CPU || !is_asleep(self.process.id()) {
                quiet_since = (Instant::now(), files, cpu);
            }
            let is_loaded = !needs_programs || !self.watch.is_empty();
            if is_loaded && quiet_since.0.elapsed() >= QUIET {
                // What was seen before may be this process's own, up to the exec, or closed since.
                self.watch = Watch::default();
                self.watch.look(&self.process);
                return Ok(());
            }
            if !is_loaded && begin.elapsed() > HOPELESS {
                bail!("holds no BPF program: {}", self.last_words());
            }
            if begin.elapsed() > PATIENCE {
                bail!("not ready after {} s: {}", PATIENCE.as_secs(), self.last_words());
            }
            sleep(POLL);
        }
    }

    /// The process.
    pub fn process(&self) -> &Child {
        &self.process
    }

    /// Looks at its memory and maps again.
    pub fn look(&mut self) {
        self.watch.look(&self.process);
    }

    /// Fails when it has ended, with its own words.
    ///
    /// # Errors
    /// Then.
    pub fn is_alive(&mut self) -> Result<()> {
        match self.process.try_wait().context("wait for a tracer")? {
            None => Ok(()),
            Some(status) => bail!("ended ({status}): {}", self.last_words()),
        }
    }

    /// Its programs with what they have run so far.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn read_programs(&self) -> Result<Vec<bpf::Program>> {
        self.watch.programs.programs()
    }

    fn last_words(&self) -> String {
        last_words(&fs::read_to_string(&self.errors).unwrap_or_default())
    }

    /// Ends it, and waits until the kernel has freed its programs.
    ///
    /// # Errors
    /// When it had ended before, or programs stay.
    pub fn end(mut self) -> Result<()> {
        self.is_alive()?;
        // Others may load theirs meanwhile: only its own count.
        let own = self.watch.programs.ids();
        drop(self);
        let begin = Instant::now();
        loop {
            let left: Vec<_> = bpf::programs()?.into_keys().filter(|id| own.contains(id)).collect();
            if left.is_empty() {
                return Ok(());
            }
            ensure!(
                begin.elapsed() < RELEASE,
                "BPF programs {left:?} stay loaded: they would be measured with the next tracer"
            );
            sleep(POLL);
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.watch = Watch::default();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether all its threads sleep: one that waits for a CPU or a disk uses none, but has more to do.
fn is_asleep(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let states = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    states.into_iter().all(|stat| state(&stat) == Some('S'))
}

/// The third field of proc(5)'s stat; the second may hold blanks but ends with ')'.
fn state(stat: &str) -> Option<char> {
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// The line that tells most of an error: the last that is not blank, a mark below a column or
/// advice.
fn last_words(text: &str) -> String {
    let tells =
        |line: &&str| line.chars().any(char::is_alphanumeric) && !line.contains("RLIMIT_MEMLOCK");
    let is_error = |line: &&str| {
        let line = line.to_lowercase();
        line.contains("error") || line.contains("failed")
    };
    let mut lines = text.lines().map(str::trim).filter(tells);
    let mut errors = lines.clone().filter(is_error);
    errors.next_back().or(lines.next_back()).unwrap_or("it said nothing").replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_read_behind_a_name_with_blanks() {
        assert_eq!(state("12 (a ) R b) S 1 12"), Some('S'));
        assert_eq!(state("12 (a) R 1 12"), Some('R'));
        assert_eq!(state(""), None);
    }

    #[test]
    fn last_words_are_the_error() {
        let text = "ERROR: couldn't set RLIMIT_MEMLOCK\n\
                    stdin:1:1-38: ERROR: tracepoint not found: a:b\na:b { }\n~~~~~\n\n";
        assert_eq!(last_words(text), "stdin:1:1-38: ERROR: tracepoint not found: a:b");
        assert_eq!(last_words("failed | to load\n"), "failed / to load");
        assert_eq!(last_words("\n"), "it said nothing");
    }

    #[test]
    fn a_tracer_that_ends_at_once_is_refused_with_its_own_words() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'error: no such thing' >&2; exit 3"]);
        let mut ended = Attached::spawn(command, folder.path()).expect("a shell");
        let error = ended.settle(true).expect_err("it ended");
        assert!(
            format!("{error:#}").ends_with("exit status: 3): error: no such thing"),
            "{error:#}"
        );
    }

    #[test]
    fn a_quiet_process_is_ready_where_no_program_is_needed() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let mut command = Command::new("sleep");
        command.arg("60");
        let mut quiet = Attached::spawn(command, folder.path()).expect("sleep");
        quiet.settle(false).expect("it is quiet");
        quiet.is_alive().expect("it sleeps on");
    }
}
