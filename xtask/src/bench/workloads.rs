//! The workloads: how each is started, and how the time per operation is read from what it prints,
//! so that jobtrace's own start does not count.

use super::ram_disk::fill;
use crate::process::{in_words, target_dir};
use anyhow::{Context, Result, bail};
use jobtrace::cgroup::{hierarchies::Hierarchies, job::JobCgroup, place::Place};
use serde_json::Value;
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Round trips of `perf bench sched pipe`: about two seconds.
const ROUND_TRIPS: u32 = 300_000;
/// Rounds of the page-fault loop, of 4,096 pages each.
const FAULT_ROUNDS: u32 = 150;
/// Seconds of each fio run.
const FIO_SECONDS: u32 = 2;
/// Size of the file that fio reads.
const FILE_BYTES: u64 = 128 << 20;

/// Whether jobtrace traces the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracing {
    /// `jobtrace run --quiet -- WORKLOAD`.
    On,
    /// The workload in a cgroup as jobtrace makes it, but untraced.
    Off,
}

/// What a workload is mostly made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Context switches.
    Switch,
    /// Page faults.
    Fault,
    /// Block I/O.
    Block,
    /// No workload: `jobtrace agent` itself, beside jobs that hardly do anything.
    Agent,
    /// No workload: how large each program is.
    Sizes,
    /// No workload: adding up what a reading of a large node copies. Without root.
    Merge,
}

/// How the time per operation is read from what a workload prints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Printed {
    /// The seconds that so many operations took, as `perf bench --format=simple` has it.
    SecondsOf {
        /// Number of operations.
        operations: f64,
    },
    /// The nanoseconds of one operation.
    Nanoseconds,
    /// fio's JSON: its own clock's run time over the number of reads.
    Fio,
}

/// One workload.
pub struct Workload {
    /// What it is called in the report.
    pub name: &'static str,
    command: Vec<OsString>,
    printed: Printed,
}

/// Those of `cargo xtask bench`: context switches, page faults, a file in `scratch`, the RAM-backed
/// `device`.
///
/// # Errors
/// When the file cannot be written or our own program is not found.
pub fn all(scratch: &Path, device: &Path) -> Result<Vec<(Kind, Workload)>> {
    let file = scratch.join("file");
    fill(&file, FILE_BYTES)?;
    Ok(vec![
        (Kind::Switch, pipe(ROUND_TRIPS)?),
        (Kind::Fault, faults(FAULT_ROUNDS)?),
        (
            Kind::Block,
            Workload::new(
                "fio, 4 KiB O_DIRECT random reads of a file",
                fio(&file, FIO_SECONDS),
                Printed::Fio,
            ),
        ),
        (
            Kind::Block,
            device_reads("the same of a loop device in RAM, one CPU", device, FIO_SECONDS)?,
        ),
    ])
}

/// `perf bench sched pipe` on one CPU, where each round trip is two switches.
///
/// # Errors
/// When no CPU is found to pin it to.
pub fn pipe(round_trips: u32) -> Result<Workload> {
    let mut command = on_last_cpu()?;
    command.extend(words(&format!("perf bench --format=simple sched pipe -l {round_trips}")));
    let printed = Printed::SecondsOf { operations: f64::from(round_trips) };
    Ok(Workload::new("`perf bench sched pipe`, one CPU", command, printed))
}

/// The page-fault loop on one CPU.
///
/// # Errors
/// When our own program is not found.
pub fn faults(rounds: u32) -> Result<Workload> {
    let mut command = on_last_cpu()?;
    command.push(env::current_exe().context("find xtask's own program")?.into());
    command.extend(words(&format!("fault-loop --rounds {rounds}")));
    Ok(Workload::new("minor faults, one CPU", command, Printed::Nanoseconds))
}

/// fio reads `device` on one CPU.
///
/// # Errors
/// When no CPU is found to pin it to.
pub fn device_reads(name: &'static str, device: &Path, seconds: u32) -> Result<Workload> {
    let command = on_last_cpu()?.into_iter().chain(fio(device, seconds)).collect();
    Ok(Workload::new(name, command, Printed::Fio))
}

/// The words of a command without quotes.
pub fn words(text: &str) -> Vec<OsString> {
    text.split(' ').map(OsString::from).collect()
}

fn on_last_cpu() -> Result<Vec<OsString>> {
    Ok(words(&format!("taskset -c {}", last_cpu()?)))
}

impl Workload {
    /// A workload of this command, which prints what it took in this way.
    pub fn new(name: &'static str, command: Vec<OsString>, printed: Printed) -> Self {
        Self { name, command, printed }
    }

    /// The command that runs it, its output to be read.
    pub fn command(&self, tracing: Tracing) -> Command {
        let mut command = match tracing {
            Tracing::Off => Command::new(&self.command[0]),
            Tracing::On => {
                let mut command = Command::new(target_dir().join("release/jobtrace"));
                command.args(["run", "--quiet", "--"]).arg(&self.command[0]);
                command
            }
        };
        command.args(&self.command[1..]).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Runs it once; nanoseconds per operation.
    ///
    /// # Errors
    /// When it fails or prints something unexpected.
    pub fn run(&self, tracing: Tracing) -> Result<f64> {
        let mut command = self.command(tracing);
        // Cgroups of their own cost a workload something too, and jobtrace's is in several.
        let _cgroup = match tracing {
            Tracing::Off => Some(inside(&mut command)?),
            Tracing::On => None,
        };
        let printed = crate::process::output(&mut command)?;
        self.printed.parse(&printed).with_context(|| {
            format!("understand what `{}` printed", in_words(&self.command(tracing)))
        })
    }
}

/// Has `command` run in cgroups as `jobtrace run` makes them; they go with the value.
fn inside(command: &mut Command) -> Result<JobCgroup> {
    let cgroup = JobCgroup::create(&Hierarchies::read()?, "bench-plain")?;
    let open =
        |place: &Place| File::options().write(true).open(place.directory.join("cgroup.procs"));
    let mut files = cgroup
        .places()
        .own()
        .map(open)
        .collect::<Result<Vec<_>, _>>()
        .context("open the workload's cgroup")?;
    let join = move || files.iter_mut().try_for_each(|file| file.write_all(b"0"));
    // SAFETY: between fork and exec it only writes to open files.
    unsafe { command.pre_exec(join) };
    Ok(cgroup)
}

fn fio(target: &Path, seconds: u32) -> Vec<OsString> {
    let mut filename = OsString::from("--filename=");
    filename.push(target);
    let options = format!(
        "fio --name=reads --rw=randread --bs=4k --direct=1 --ioengine=psync --readonly \
         --time_based --runtime={seconds} --size={FILE_BYTES} --output-format=json"
    );
    words(&options).into_iter().chain([filename]).collect()
}

/// The last CPU that we may use: the first takes most interrupts.
pub fn last_cpu() -> Result<usize> {
    let set = rustix::thread::sched_getaffinity(None).context("read which CPUs we may use")?;
    let usable = (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|&cpu| set.is_set(cpu));
    usable.context("no CPU to pin a workload to")
}

impl Printed {
    /// Nanoseconds per operation.
    fn parse(self, printed: &str) -> Result<f64> {
        match self {
            Self::SecondsOf { operations } => Ok(parse_number(printed)? * 1e9 / operations),
            Self::Nanoseconds => parse_number(printed),
            Self::Fio => parse_fio(printed),
        }
    }
}

fn parse_number(printed: &str) -> Result<f64> {
    let number: f64 = printed.trim().parse().with_context(|| format!("read `{printed}`"))?;
    if number > 0.0 { Ok(number) } else { bail!("`{printed}` is no time") }
}

fn parse_fio(printed: &str) -> Result<f64> {
    // Notes, such as one on the size of a file, come before the JSON.
    let json = printed.find('{').map_or(printed, |start| &printed[start..]);
    let result: Value = serde_json::from_str(json).context("read fio's JSON")?;
    let read = &result["jobs"][0]["read"];
    let milliseconds = read["runtime"].as_f64().context("fio states no run time")?;
    match read["total_ios"].as_f64() {
        Some(reads) if reads > 0.0 => Ok(milliseconds * 1e6 / reads),
        _ => bail!("fio read nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_per_operation() {
        let seconds = Printed::SecondsOf { operations: 300_000.0 };
        assert_eq!(seconds.parse("1.500\n").expect("seconds"), 5000.0);
        assert_eq!(Printed::Nanoseconds.parse("1510.2\n").expect("nanoseconds"), 1510.2);
        assert!(Printed::Nanoseconds.parse("0").is_err());
        let json = r#"note: so
            {"jobs":[{"read":{"runtime":2000,"total_ios":20000}}]}"#;
        assert_eq!(Printed::Fio.parse(json).expect("fio's"), 100_000.0);
        let nothing = r#"{"jobs":[{"read":{"runtime":2000,"total_ios":0}}]}"#;
        assert!(Printed::Fio.parse(nothing).is_err());
        assert!(Printed::Fio.parse("fio: no such file").is_err());
    }

    #[test]
    fn tracing_wraps_the_same_command() {
        let workload = Workload::new("w", words("a b"), Printed::Nanoseconds);
        assert_eq!(in_words(&workload.command(Tracing::Off)), "a b");
        assert!(
            in_words(&workload.command(Tracing::On))
                .ends_with("/release/jobtrace run --quiet -- a b")
        );
    }
}
