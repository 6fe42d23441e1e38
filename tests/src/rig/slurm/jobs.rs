//! Jobs of the private Slurm: handed in, looked at while they run, waited for, cancelled.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::{
    super::{cgroups, wait_for},
    Slurm,
};

/// How long a job of a test may take from its submission to its end.
const PATIENCE: Duration = Duration::from_secs(120);

/// A job's number; a task of an array has one of its own.
pub type JobId = u32;

/// What slurmctld knows of a job (`scontrol show job`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// `RUNNING`, `COMPLETED`, `CANCELLED`, `FAILED`, `OUT_OF_MEMORY`, …
    pub state: String,
    /// `ExitCode`: status and signal.
    pub exit: (i32, i32),
    /// All of it, key by key.
    pub all: BTreeMap<String, String>,
}

impl Job {
    /// Whether it waits, runs or is being tidied up.
    pub fn is_live(&self) -> bool {
        ["PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"]
            .contains(&self.state.as_str())
    }
}

/// A process of a job.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its id.
    pub pid: i32,
    /// The start of its command line.
    pub program: String,
    /// Where it is, hierarchy by hierarchy.
    pub places: Vec<cgroups::Place>,
}

/// What `sstat` says of a running step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepUse {
    /// `12.0`, `12.batch`, `12.extern`.
    pub step: String,
    /// CPU time of all tasks, user and system.
    pub cpu_s: u64,
    /// The largest resident set of a task as it was when asked, not the largest there ever was.
    pub max_rss_bytes: u64,
}

impl Slurm {
    /// Hands in a script for `/bin/sh`; `args` are sbatch's options. Its output: [`Self::output`].
    ///
    /// # Errors
    /// When Slurm refuses it.
    pub fn sbatch(&self, script: &str, args: &[&str]) -> Result<JobId> {
        let mut command = self.command("sbatch");
        command.args(["--parsable", "--output=%j.out"]).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start sbatch")?;
        let mut stdin = child.stdin.take().context("sbatch has no input")?;
        stdin.write_all(format!("#!/bin/sh\n{script}\n").as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        let id = String::from_utf8_lossy(&output.stdout).trim().parse();
        id.with_context(|| format!("sbatch refuses the job: {output:?}"))
    }

    /// Runs a command as a job of its own, to its end.
    ///
    /// # Errors
    /// When srun cannot be started.
    pub fn srun(&self, args: &[&str]) -> Result<Output> {
        self.command("srun").args(args).output().context("cannot start srun")
    }

    /// Cancels a job.
    ///
    /// # Errors
    /// When Slurm refuses.
    pub fn scancel(&self, job: JobId) -> Result<()> {
        super::run(self.command("scancel").arg(job.to_string())).map(|_| ())
    }

    /// What is known of a job; of an array, all jobs of it.
    ///
    /// # Errors
    /// When Slurm does not know it.
    pub fn jobs(&self, job: JobId) -> Result<Vec<Job>> {
        let mut command = self.command("scontrol");
        let output = super::run(command.args(["--oneliner", "show", "job", &job.to_string()]))?;
        String::from_utf8_lossy(&output.stdout).lines().map(parse_job).collect()
    }

    /// What is known of one job.
    ///
    /// # Errors
    /// When Slurm does not know it.
    pub fn job_state(&self, job: JobId) -> Result<Job> {
        let jobs = self.jobs(job)?;
        jobs.into_iter().find(|found| found.id == job).context("an array without its own job")
    }

    /// Waits until the job has ended, or all jobs of the array; gives them by their numbers.
    ///
    /// # Errors
    /// When it does not end in two minutes, or Slurm does not know it.
    pub fn wait(&self, job: JobId) -> Result<Vec<Job>> {
        let ended = || match self.jobs(job) {
            Ok(jobs) if jobs.iter().any(Job::is_live) => None,
            other => Some(other),
        };
        let mut jobs = wait_for(&format!("the end of job {job}"), PATIENCE, ended)??;
        jobs.sort_by_key(|job| job.id);
        Ok(jobs)
    }

    /// What the job's batch script and its steps have printed.
    ///
    /// # Errors
    /// When it has not begun, or was handed in with another `--output`.
    pub fn output(&self, job: JobId) -> Result<String> {
        let path = self.folder().join(format!("{job}.out"));
        fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))
    }

    /// The processes that are in the job's cgroups now, step daemons included where they are.
    pub fn tasks(&self, job: JobId) -> Vec<Task> {
        let part = format!("job_{job}");
        let is_its = |path: &str| {
            path.contains(self.node()) && path.split('/').any(|directory| directory == part)
        };
        let task = |(pid, places)| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let program = String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned();
            Task { pid, program, places }
        };
        cgroups::processes(is_its).into_iter().map(task).collect()
    }

    /// The job's directories that are there now, in all hierarchies.
    pub fn job_cgroups(&self, job: JobId) -> Vec<PathBuf> {
        let name = format!("job_{job}");
        let all = self.own_cgroups().iter().flat_map(|own| cgroups::tree(own));
        all.filter(|path| path.iter().any(|part| part == name.as_str())).collect()
    }

    /// CPU time of the job up to now by the kernel's own account of its directory, steps that have
    /// ended and on v2 the step daemons included; `None` once the directory is gone.
    pub fn usage_ns(&self, job: JobId) -> Option<u64> {
        let name = format!("job_{job}");
        let directories = self.job_cgroups(job).into_iter().filter(|path| path.ends_with(&name));
        directories.filter_map(|directory| read_usage_ns(&directory)).next()
    }

    /// What each step of a running job has used up to now. Slurm looks every other second and states
    /// whole seconds: good for an order of magnitude, not as the truth.
    ///
    /// # Errors
    /// When the job has ended: without a data base Slurm forgets it.
    pub fn sstat(&self, job: JobId) -> Result<Vec<StepUse>> {
        let mut command = self.command("sstat");
        command.args(["--allsteps", "--noheader", "--parsable2", "--noconvert"]);
        command.args(["--format=JobID,TRESUsageInTot,MaxRSS", "--jobs", &job.to_string()]);
        let output = super::run(&mut command)?;
        let uses: Result<Vec<_>> =
            String::from_utf8_lossy(&output.stdout).lines().map(parse_use).collect();
        let uses = uses?;
        ensure!(!uses.is_empty(), "sstat knows no step of job {job}: {output:?}");
        Ok(uses)
    }
}

/// cpuacct's file of v1, or cpu.stat, which every directory of v2 has.
fn read_usage_ns(directory: &Path) -> Option<u64> {
    if let Ok(text) = fs::read_to_string(directory.join("cpuacct.usage")) {
        return text.trim().parse().ok();
    }
    let text = fs::read_to_string(directory.join("cpu.stat")).ok()?;
    let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(usage.parse::<u64>().ok()? * 1000)
}

/// `JobId=12 JobName=…`: words, of which some have spaces in their value.
fn parse_job(line: &str) -> Result<Job> {
    let mut all = BTreeMap::new();
    for word in line.split_whitespace() {
        if let Some((key, value)) = word.split_once('=') {
            all.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    let get = |key: &str| all.get(key).with_context(|| format!("no {key} in {line}"));
    let (status, signal) = get("ExitCode")?.split_once(':').context("ExitCode without a colon")?;
    let exit = (status.parse()?, signal.parse()?);
    Ok(Job { id: get("JobId")?.parse()?, state: get("JobState")?.clone(), exit, all })
}

/// `12.0|cpu=00:00:02,energy=0,mem=1024|220000`
fn parse_use(line: &str) -> Result<StepUse> {
    let parse = || {
        let mut parts = line.split('|');
        let (step, usage, rss) = (parts.next()?, parts.next()?, parts.next()?);
        let time = usage.split(',').find_map(|item| item.strip_prefix("cpu="))?;
        let cpu_s = seconds(time)?;
        Some(StepUse { step: step.to_owned(), cpu_s, max_rss_bytes: rss.parse().ok()? })
    };
    parse().with_context(|| format!("cannot read sstat's {line:?}"))
}

/// `[days-]hours:minutes:seconds`
fn seconds(text: &str) -> Option<u64> {
    let numbers: Option<Vec<u64>> = text.rsplit(['-', ':']).map(|part| part.parse().ok()).collect();
    Some(numbers?.iter().zip([1, 60, 3600, 86400]).map(|(number, unit)| number * unit).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_scontrol() {
        let line =
            "JobId=6 ArrayJobId=3 ArrayTaskId=1 JobName=a b JobState=CANCELLED ExitCode=0:15";
        let job = parse_job(line).expect("a job");
        assert_eq!((job.id, job.state.as_str(), job.exit), (6, "CANCELLED", (0, 15)));
        assert_eq!(job.all["ArrayTaskId"], "1");
        assert!(!job.is_live());
        assert!(parse_job("JobId=6").is_err());
    }

    #[test]
    fn a_line_of_sstat() {
        let used = parse_use("12.batch|cpu=1-02:00:03,energy=0|4096").expect("a step");
        let expected = StepUse { step: "12.batch".into(), cpu_s: 93_603, max_rss_bytes: 4096 };
        assert_eq!(used, expected);
        assert!(parse_use("12.batch||").is_err());
    }
}
