//! The arguments of `jobtrace run`.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use crate::{
    base::values::Time,
    probes::{FaultMode, WaitMode},
};

/// Trace one command as a job and show where its time went.
///
/// The command runs in a cgroup of its own, with jobtrace's streams, environment and terminal. jobtrace
/// returns the command's exit status (128 + N for signal N, 127 not found, 126 not executable), or 1 if
/// the command returned 0 but output was lost, or 2 if nothing was run. A signal sent to jobtrace is passed
/// on to the command; one sent to both through their process group reaches it once. Needs root, or CAP_BPF,
/// CAP_PERFMON and a writable cgroup. If jobtrace itself is killed with SIGKILL, the tracing ends: nothing
/// stays loaded in the kernel, the command keeps running, and the next run removes its cgroup once that is
/// empty.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "jobtrace run [OPTIONS] -- CMD [ARG]...\n       jobtrace run --replay FILE [OPTIONS]",
    after_long_help = "\
Examples:
  Trace a build and print the summary:
      jobtrace run -- make -j8
  Save the numbers: JSON of the whole run, line protocol for every second:
      jobtrace run --json run.json --out metrics/ -- ./simulate input.toml
  Extract one number:
      jobtrace run --quiet --json - -- make -j8 | jq .sched.on_cpu_ns
  Watch where the time goes, its output in a file; q closes the view, the command goes on:
      jobtrace run --top -- ./simulate input.toml > simulate.log
  Find out on which files' mount and in which calls the I/O time goes:
      jobtrace run --io -- python train.py
  Find out which libraries and Python packages it uses:
      jobtrace run --software --json - -- python train.py | jq .software
  Keep a record of each run, a few kB:
      jobtrace run --save runs/ -- ./simulate input.toml
  Load the line protocol into InfluxDB 1.x:
      influx -import -compressed -precision ns -path metrics/FILE.lp.gz
  Write a recording now, replay it elsewhere, without privileges:
      jobtrace run --record run.jobtrace.gz -- ./simulate
      jobtrace run --replay run.jobtrace.gz --json run.json"
)]
pub struct Args {
    /// Write line protocol into DIR (created if missing), as gzip files that appear only when complete
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the whole run's numbers to FILE as JSON (- for standard output; the command's own output
    /// then goes to standard error)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Name of the job in the summary and the output [default: the command's name]
    #[arg(long)]
    pub name: Option<String>,
    /// Name of the cluster, written as a tag of every line of line protocol
    #[arg(long, default_value = "", hide_default_value = true)]
    pub cluster: String,
    /// Time between two readings, from 10ms to 24h: seconds, or a number with a unit (ms, s, m, h)
    #[arg(long, default_value = "1s", value_parser = parse_interval, value_name = "TIME")]
    pub interval: Duration,
    /// Which page faults to time: major ones only, which adds no cost to minor ones, or all (full)
    #[arg(long, value_enum, default_value_t = FaultMode::Full)]
    pub faults: FaultMode,
    /// What to record about waits: only how long tasks sleep and are blocked (off), also the causes, by
    /// system call (calls), or also the file systems that they wait for (files)
    #[arg(long, value_enum, default_value_t = WaitMode::Files)]
    pub waits: WaitMode,
    /// Also count and time each operation on files, by mount, kind of call and file: reads, opens, stats and
    /// so on. Each system call of the node takes about 0.15 µs longer while the command runs, the command's
    /// own operations about 0.5 µs
    #[arg(long)]
    pub io: bool,
    /// Also tell which software runs: programs, shared libraries and Python packages, with their versions. The
    /// kernel tells of each the first time; nothing is injected into the command
    #[arg(long)]
    pub software: bool,
    /// Look for AMD, Intel and other GPUs in DIR/sys and DIR/proc: for containers in which the host's
    /// are mounted there, and for tests
    #[arg(long, default_value = "/", hide_default_value = true, value_name = "DIR")]
    pub sysfs_root: PathBuf,
    /// Watch the run on the terminal while it lasts: what the command does now, and its report so far. What
    /// the command writes to the terminal is kept in a file in TMPDIR meanwhile and printed when the view
    /// is over; redirected output is left alone. At the terminal the command can read nothing
    #[arg(long)]
    pub top: bool,
    /// Print no summary
    #[arg(long, short)]
    pub quiet: bool,
    /// Save the record of the run in DIR (created if missing): what --json writes, compressed, under a name
    /// and day of its own, to be read when the run is over. Who may read it is up to your umask
    #[arg(long, value_name = "DIR")]
    pub save: Option<PathBuf>,
    /// Write a recording to FILE: every reading, to be computed anew by --replay (gzip if it ends in .gz; -
    /// as for --json). What came of the readings is the record: see --save
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Replay a recording (- for standard input) instead of running a command
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "command", "name", "cluster", "interval", "faults", "waits", "io", "software", "sysfs_root", "top"])]
    pub replay: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "replay")]
    pub command: Vec<OsString>,
}

/// Shortest time between two readings.
const SHORTEST: Duration = Duration::from_millis(10);
/// Longest; none between the first and the last is as good, and timers hold no more than years.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

fn parse_interval(text: &str) -> Result<Duration, String> {
    let Time(time) = text.parse()?;
    if time < SHORTEST {
        return Err("shorter than 10 ms".into());
    }
    if time > LONGEST {
        return Err("longer than a day (24h)".into());
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
            ("1h 30m", 5_400_000),
        ] {
            assert_eq!(parse_interval(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in
            ["", "s", "-1", "nan", "inf", "25h", "9ms", "0", "1e300", "1441m", "1000000000000"]
        {
            assert!(parse_interval(text).is_err(), "{text}");
        }
    }
}
