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
}

/// One workload.
pub struct Workload {
    /// What it is made of.
    pub kind: Kind,
    /// What it is called in the report.
    pub name: &'static str,
    command: Vec<OsString>,
    parse: fn(&str) -> Result<f64>,
}

/// All of them: context switches, page faults, a file in `scratch`, the RAM-backed `device`.
///
/// # Errors
/// When the file cannot be written or our own program is not found.
pub fn all(scratch: &Path, device: &Path) -> Result<Vec<Workload>> {
    let file = scratch.join("file");
    fill(&file, FILE_BYTES)?;
    let cpu = last_cpu()?;
    let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
    let mut faults = words(&format!("taskset -c {cpu}"));
    faults.extend([
        env::current_exe().context("find xtask's own program")?.into(),
        "fault-loop".into(),
    ]);
    Ok(vec![
        Workload {
            kind: Kind::Switch,
            name: "`perf bench sched pipe`, one CPU",
            command: words(&format!(
                "taskset -c {cpu} perf bench --format=simple sched pipe -l {ROUND_TRIPS}"
            )),
            parse: parse_pipe,
        },
        Workload {
            kind: Kind::Fault,
            name: "minor faults, one CPU",
            command: faults,
            parse: parse_number,
        },
        Workload {
            kind: Kind::Block,
            name: "fio, 4 KiB O_DIRECT random reads of a file",
            command: fio(&file),
            parse: parse_fio,
        },
        Workload {
            kind: Kind::Block,
            name: "the same of a loop device in RAM, one CPU",
            command: words(&format!("taskset -c {cpu}")).into_iter().chain(fio(device)).collect(),
            parse: parse_fio,
        },
    ])
}

impl Workload {
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
        (self.parse)(&printed).with_context(|| {
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

fn fio(target: &Path) -> Vec<OsString> {
    let mut filename = OsString::from("--filename=");
    filename.push(target);
    let options = format!(
        "fio --name=reads --rw=randread --bs=4k --direct=1 --ioengine=psync --readonly \
         --time_based --runtime={FIO_SECONDS} --size={FILE_BYTES} --output-format=json"
    );
    options.split(' ').map(OsString::from).chain([filename]).collect()
}

/// The last CPU that we may use: the first takes most interrupts.
pub fn last_cpu() -> Result<usize> {
    let set = rustix::thread::sched_getaffinity(None).context("read which CPUs we may use")?;
    let usable = (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|&cpu| set.is_set(cpu));
    usable.context("no CPU to pin a workload to")
}

/// `perf bench --format=simple` prints the seconds of all round trips.
fn parse_pipe(printed: &str) -> Result<f64> {
    Ok(parse_number(printed)? * 1e9 / f64::from(ROUND_TRIPS))
}

fn parse_number(printed: &str) -> Result<f64> {
    let number: f64 = printed.trim().parse().with_context(|| format!("read `{printed}`"))?;
    if number > 0.0 { Ok(number) } else { bail!("`{printed}` is no time") }
}

/// fio's own clock: run time over the number of reads.
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
        assert_eq!(parse_pipe("1.500\n").expect("seconds"), 5000.0);
        assert_eq!(parse_number("1510.2\n").expect("nanoseconds"), 1510.2);
        assert!(parse_number("0").is_err());
        let json = r#"note: so
            {"jobs":[{"read":{"runtime":2000,"total_ios":20000}}]}"#;
        assert_eq!(parse_fio(json).expect("fio's"), 100_000.0);
        assert!(parse_fio(r#"{"jobs":[{"read":{"runtime":2000,"total_ios":0}}]}"#).is_err());
        assert!(parse_fio("fio: no such file").is_err());
    }

    #[test]
    fn tracing_wraps_the_same_command() {
        let workload = Workload {
            kind: Kind::Block,
            name: "w",
            command: vec!["a".into(), "b".into()],
            parse: parse_number,
        };
        assert_eq!(in_words(&workload.command(Tracing::Off)), "a b");
        assert!(
            in_words(&workload.command(Tracing::On))
                .ends_with("/release/jobtrace run --quiet -- a b")
        );
    }
}
