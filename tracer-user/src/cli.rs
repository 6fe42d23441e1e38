//! The command line: one definition, from which the help and docs/CLI.md derive.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

use crate::probes::FaultMode;

/// Traces what a job does to a compute node: CPU, page faults and disk, in the kernel, per job.
#[derive(Debug, Parser)]
#[command(name = "jobtrace", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[allow(
    missing_docs,
    reason = "a variant's text would take the place of its arguments', in the help"
)]
pub enum Command {
    Run(Run),
    Doctor(Doctor),
    Resolve(Resolve),
    /// Holds an empty program on each hook, for the benchmark.
    #[command(hide = true)]
    BenchEmpty,
}

/// Trace one command as a job and tell where its time went.
///
/// The command runs in a cgroup of its own, with jobtrace's streams, environment and terminal; its exit
/// status is jobtrace's (128 + N for signal N, 127 not found, 126 not executable; 1 where the command
/// returned 0 but output was lost; 2 where nothing was run). Needs root, or CAP_BPF, CAP_PERFMON and a
/// writable cgroup. Killing jobtrace itself with SIGKILL ends the tracing: no program of it stays in the
/// kernel, the command goes on, and the next run removes its cgroup once that is empty.
#[derive(Debug, Args)]
#[command(
    override_usage = "jobtrace run [OPTIONS] -- CMD [ARG]...\n       jobtrace run --replay FILE [OPTIONS]",
    after_long_help = "\
Examples:
  Trace a build and print the summary:
      jobtrace run -- make -j8
  Keep the numbers: JSON of the whole run, line protocol of every second:
      jobtrace run --json run.json --out metrics/ -- ./simulate input.toml
  Load the line protocol into InfluxDB 1.x:
      influx -import -compressed -precision ns -path metrics/FILE.lp.gz
  Record now, look at it again elsewhere, without privileges:
      jobtrace run --record run.jobtrace.gz -- ./simulate
      jobtrace run --replay run.jobtrace.gz --json run.json"
)]
pub struct Run {
    /// Write line protocol into DIR (made if absent), as gzip files that appear whole
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the whole run's numbers to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Name of the job in summary and output [default: the command's name]
    #[arg(long)]
    pub name: Option<String>,
    /// Name of the cluster, a tag of every line of line protocol
    #[arg(long, default_value = "", hide_default_value = true)]
    pub cluster: String,
    /// Time between two readings: seconds, or a number with ms, s or m
    #[arg(long, default_value = "1s", value_parser = parse_interval, value_name = "TIME")]
    pub interval: Duration,
    /// Which page faults are timed: major ones only, which costs nothing on the path of minor ones, or
    /// all (full)
    #[arg(long, value_enum, default_value_t = FaultMode::Full)]
    pub faults: FaultMode,
    /// Print no summary
    #[arg(long, short)]
    pub quiet: bool,
    /// Record every reading to FILE (gzip where it ends in .gz), for --replay
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Take the readings from a recording instead of running a command
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "command", "name", "cluster", "interval", "faults"])]
    pub replay: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "replay")]
    pub command: Vec<OsString>,
}

/// Tell what this node supports, what is missing and how to get it.
///
/// Exit status 1 where `jobtrace run` would not work here and now.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  As the user who will trace:
      sudo jobtrace doctor
  For a script:
      jobtrace doctor --json | jq '.[] | select(.state == \"missing\")'")]
pub struct Doctor {
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// Tell which job a cgroup or a process belongs to, and by which rule.
///
/// A number is a process, anything else a cgroup's path, as /proc/PID/cgroup shows it or below
/// /sys/fs/cgroup. Exit status 0 for a job, 1 for none, 2 where there is no such process or file.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Whose is this process:
      jobtrace resolve 4711
  Whose is this cgroup:
      jobtrace resolve /system.slice/slurmstepd.scope/job_12/step_0/user/task_0
  Whose are all cgroups of this node:
      find /sys/fs/cgroup -type d | jobtrace resolve --tsv -")]
pub struct Resolve {
    /// A cgroup's path, or the number of a process
    #[arg(value_name = "PATH|PID", required_unless_present = "tsv")]
    pub target: Option<String>,
    /// Print JSON, of a file one object on each line
    #[arg(long)]
    pub json: bool,
    /// Resolve the paths in FILE (- for standard input), one on each line; what follows a tab is left out
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub tsv: Option<PathBuf>,
}

/// Shortest time between two readings.
const SHORTEST: Duration = Duration::from_millis(10);
/// Longest; none between the first and the last is as good, and timers hold no more than years.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

fn parse_interval(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        _ => return Err(format!("unknown unit {unit:?}, use ms, s or m")),
    };
    let number: f64 = number.parse().map_err(|_| format!("{number:?} is no number"))?;
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())?;
    if time < SHORTEST {
        return Err("shorter than 10 ms".into());
    }
    if time > LONGEST {
        return Err("longer than a day (1440m)".into());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        for (text, ms) in [
            ("1", 1000),
            ("0.5", 500),
            ("250ms", 250),
            ("2m", 120_000),
            ("10s", 10_000),
            ("1440m", 86_400_000),
        ] {
            assert_eq!(parse_interval(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in
            ["", "s", "-1", "nan", "inf", "1h", "9ms", "0", "1e300", "1441m", "1000000000000"]
        {
            assert!(parse_interval(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
