//! Jobs of Slurm's shape in cgroup v2, made and filled without a Slurm: for tests of what an agent writes
//! rather than of whom it finds.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, Result, ensure};

use crate::{
    account::Report,
    rig::{
        cgroups::{self, Shared},
        workload,
    },
};

/// A node's Slurm, as far as cgroups show it; removed with its value.
#[derive(Debug)]
pub struct Site {
    top: PathBuf,
    /// Begins the names of its jobs: those of other tests on this machine differ.
    prefix: String,
    _slice: Shared,
}

impl Site {
    /// One without jobs.
    ///
    /// # Errors
    /// When v2 is not mounted or this is not root.
    pub fn new() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let (slice, pid) = (cgroups::v2()?.join("system.slice"), std::process::id());
        let shared = Shared::make([slice.clone()])?;
        // A name by which the rig of Slurm finds what a killed test has left.
        let top = slice.join(format!("jobtrace{pid}n{}_slurmstepd.scope", 1000 + number));
        fs::create_dir(&top).with_context(|| format!("cannot make {}", top.display()))?;
        Ok(Self { top, prefix: format!("{pid}{number:02}"), _slice: shared })
    }

    /// The job's name that stands for `number` on this machine.
    pub fn job(&self, number: u32) -> String {
        format!("{}{number:03}", self.prefix)
    }

    /// The directory of the job's only task, made where it is absent.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn task(&self, number: u32) -> Result<PathBuf> {
        let task = self.top.join(format!("job_{}/step_0/user/task_0", self.job(number)));
        fs::create_dir_all(&task).with_context(|| format!("cannot make {}", task.display()))?;
        Ok(task)
    }

    /// A directory `name` below one `parent-…` of this site's, for rules of a test's own.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn odd(&self, parent: &str, name: &str) -> Result<PathBuf> {
        let directory = self.top.join(format!("{parent}-{}", self.prefix)).join(name);
        fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(directory)
    }

    /// Runs a workload in the cgroup of `directory` to its end; its report, empty where it writes none.
    ///
    /// # Errors
    /// When it fails.
    pub fn run_in(&self, directory: &Path, name: &str, words: &[&str]) -> Result<Report> {
        let mut command = Command::new(workload::workload(name)?);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped());
        enter(&mut command, directory);
        report(command.spawn().context("cannot start the workload")?)
    }

    /// A command of a workload (`src/bin`) that enters job `number` before it begins.
    ///
    /// # Errors
    /// When the workload is not built or the directory cannot be made.
    pub fn command(&self, number: u32, name: &str, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(workload::workload(name)?);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped());
        command.env("SLURM_JOB_ID", self.job(number));
        enter(&mut command, &self.task(number)?);
        Ok(command)
    }

    /// Starts a workload in job `number`.
    ///
    /// # Errors
    /// As [`Self::command`].
    pub fn spawn(&self, number: u32, name: &str, words: &[&str]) -> Result<Child> {
        self.command(number, name, words)?.spawn().context("cannot start the workload")
    }

    /// Runs a workload in job `number` to its end; its report, empty where it writes none.
    ///
    /// # Errors
    /// When it fails.
    pub fn run(&self, number: u32, name: &str, words: &[&str]) -> Result<Report> {
        report(self.spawn(number, name, words)?)
    }

    /// Forks so often in job `number`, one child after the other: an amount that must come out exactly.
    ///
    /// # Errors
    /// When it fails.
    pub fn fork(&self, number: u32, times: u32) -> Result<()> {
        self.run(number, "test_job", &["forks", &times.to_string()]).map(drop)
    }

    /// Ends what is in job `number`, and removes its directories.
    ///
    /// # Errors
    /// When something stays.
    pub fn end(&self, number: u32) -> Result<()> {
        cgroups::remove(&self.top.join(format!("job_{}", self.job(number))))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Err(error) = cgroups::remove(&self.top) {
            eprintln!("site: {error:#}");
        }
    }
}

/// Waits for a workload's end and gives its report.
///
/// # Errors
/// When it fails.
pub fn report(child: Child) -> Result<Report> {
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "the workload failed: {output:?}");
    if output.stdout.is_empty() {
        return Ok(Report::default());
    }
    workload::report(&String::from_utf8_lossy(&output.stdout))
}

/// Lets the command's process enter the cgroup of `directory` before it executes its program.
pub fn enter(command: &mut Command, directory: &Path) {
    let procs = directory.join("cgroup.procs");
    let enter = move || fs::write(&procs, "0");
    // SAFETY: the child opens and writes a file whose path was made before the fork; for a long path it
    // allocates a C string, which the C library allows after a fork.
    unsafe { command.pre_exec(enter) };
}
