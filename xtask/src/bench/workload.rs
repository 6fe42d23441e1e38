//! One workload: its command, alone or under `jobtrace run`, and how the time per operation is read from what
//! it prints, so that a tracer's own start does not count.

use crate::process::{in_words, output, target_dir};
use anyhow::{Context, Result, bail};
use jobtrace::cgroup::{hierarchies::Hierarchies, job::JobCgroup, place::Place};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Kind {
    /// Context switches: two processes and a pipe, and 80 threads
    Switch,
    /// Minor page faults
    Fault,
    /// 4 KiB O_DIRECT reads of a file, and of a device in RAM
    Block,
    /// Messages through a pair of unix sockets
    Message,
    /// gcc -O2
    Compile,
    /// A thread on each CPU and a barrier after each step: matrix products, steps of 50 µs and of 1 ms
    Compute,
    /// No workload: what the tracers themselves take of a node full of jobs
    Agent,
    /// No workload: how large each program of ours is
    Sizes,
    /// No workload: whether the agent is in time beside busy jobs, by its weight
    Late,
    /// Single calls on files, with and without `run --io`
    Io,
    /// Executions, reads and starts of Python, with and without `run --software`
    Census,
    /// No workload: adding up what a reading of a large node copies. Without root
    Merge,
    /// No workload: what the record of a job costs the agent. Without root
    Record,
    /// No workload: reading records. Without root
    Report,
}

/// How the time per operation is read from what a workload prints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Printed {
    /// The seconds that so many operations took, as `perf bench --format=simple` has it.
    SecondsOf(f64),
    /// The nanoseconds of one operation.
    Nanoseconds,
    /// fio's JSON: its own clock's run time over the number of reads.
    Fio,
}

/// One workload.
pub struct Workload {
    /// What tables call it.
    pub id: &'static str,
    /// What it is.
    pub name: &'static str,
    /// What it is made of.
    pub kind: Kind,
    /// How many events of its kind a run has at least, where they dominate it, so that the kernel's
    /// statistics say something of it. The others are jobs as users have them: pairs go on until the median
    /// slowdown is known to a fraction of the 0.3 % at stake.
    pub events: Option<u64>,
    /// The words of its command.
    pub command: Vec<OsString>,
    /// What it prints.
    pub printed: Printed,
}

impl Workload {
    /// The command that runs it under `jobtrace run --quiet`s, one in the other, the outermost first; alone
    /// where there are none.
    pub fn command(&self, jobtraces: &[&Path]) -> Command {
        let mut all: Vec<OsString> = Vec::new();
        for jobtrace in jobtraces {
            all.push(jobtrace.into());
            all.extend(["run", "--quiet", "--"].map(OsString::from));
        }
        all.extend(self.command.iter().cloned());
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Runs it once in cgroups as jobtrace makes them, but untraced by it; nanoseconds per operation.
    ///
    /// # Errors
    /// When it fails or prints something unexpected.
    pub fn run_plain(&self) -> Result<f64> {
        let mut command = self.command(&[]);
        // Cgroups of their own cost a workload something too.
        let _cgroup = inside(&mut command)?;
        self.time(&mut command)
    }

    /// Runs it once under `jobtrace run`; nanoseconds per operation.
    ///
    /// # Errors
    /// As [`Self::run_plain`].
    pub fn run_traced(&self) -> Result<f64> {
        self.time(&mut self.command(&[&jobtrace()]))
    }

    /// Runs this command of it; nanoseconds per operation.
    ///
    /// # Errors
    /// As [`Self::run_plain`].
    pub fn time(&self, command: &mut Command) -> Result<f64> {
        let printed = output(command)?;
        let understood = self.printed.parse(&printed);
        understood.with_context(|| format!("understand what `{}` printed", in_words(command)))
    }
}

/// This checkout's program.
pub fn jobtrace() -> PathBuf {
    target_dir().join("release/jobtrace")
}

/// Has `command` run in cgroups as `jobtrace run` makes them; they go with the value.
fn inside(command: &mut Command) -> Result<JobCgroup> {
    let cgroup = JobCgroup::create(&Hierarchies::read()?, "bench-plain")?;
    let open =
        |place: &Place| File::options().write(true).open(place.directory.join("cgroup.procs"));
    let files: Result<Vec<_>, _> = cgroup.places().own().map(open).collect();
    let mut files = files.context("open the workload's cgroup")?;
    let join = move || files.iter_mut().try_for_each(|file| file.write_all(b"0"));
    // SAFETY: between fork and exec it only writes to open files.
    unsafe { command.pre_exec(join) };
    Ok(cgroup)
}

impl Printed {
    /// Nanoseconds per operation.
    fn parse(self, printed: &str) -> Result<f64> {
        let number = |text: &str| text.trim().parse().with_context(|| format!("read `{text}`"));
        let ns: f64 = match self {
            Self::SecondsOf(operations) => number(printed)? * 1e9 / operations,
            Self::Nanoseconds => number(printed)?,
            Self::Fio => {
                // Notes, such as one on the size of a file, come before the JSON.
                let json = &printed[printed.find('{').unwrap_or(0)..];
                let result: Value = serde_json::from_str(json).context("read fio's JSON")?;
                let read = &result["jobs"][0]["read"];
                let time_ms = read["runtime"].as_f64().context("fio states no run time")?;
                time_ms * 1e6 / read["total_ios"].as_f64().context("fio counts no reads")?
            }
        };
        if ns.is_finite() && ns > 0.0 { Ok(ns) } else { bail!("`{printed}` is no time") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_per_operation() {
        let seconds = Printed::SecondsOf(300_000.0);
        assert_eq!(seconds.parse("1.500\n").expect("seconds"), 5000.0);
        assert_eq!(Printed::Nanoseconds.parse("1510.2\n").expect("nanoseconds"), 1510.2);
        assert!(Printed::Nanoseconds.parse("0").is_err());
        let fio = |reads: u32| {
            let json = format!(r#"{{"jobs":[{{"read":{{"runtime":2000,"total_ios":{reads}}}}}]}}"#);
            Printed::Fio.parse(&format!("note: so\n{json}"))
        };
        assert_eq!(fio(20_000).expect("fio's"), 100_000.0);
        assert!(fio(0).is_err() && Printed::Fio.parse("fio: no such file").is_err());
    }

    #[test]
    fn jobtraces_wrap_the_same_command() {
        let workload = Workload {
            id: "w",
            name: "w",
            kind: Kind::Switch,
            events: None,
            command: ["a", "b"].map(OsString::from).into(),
            printed: Printed::Nanoseconds,
        };
        assert_eq!(in_words(&workload.command(&[])), "a b");
        let wrapped = workload.command(&[Path::new("/o"), Path::new("/i")]);
        assert_eq!(in_words(&wrapped), "/o run --quiet -- /i run --quiet -- a b");
    }
}
