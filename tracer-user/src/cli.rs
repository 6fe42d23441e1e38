//! The command line: one definition, from which the help and docs/CLI.md derive.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

use crate::{
    agent::config::{Flags, values::Time},
    probes::FaultMode,
    push::options::Options as PushOptions,
};

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
    Agent(Agent),
    Doctor(Doctor),
    Resolve(Resolve),
    Push(Push),
    /// Holds an empty program on each hook, and on these tracepoints, for the benchmark.
    #[command(hide = true)]
    BenchEmpty {
        /// Names of tracepoints
        tracepoints: Vec<String>,
    },
}

/// Trace one command as a job and tell where its time went.
///
/// The command runs in a cgroup of its own, with jobtrace's streams, environment and terminal; its exit
/// status is jobtrace's (128 + N for signal N, 127 not found, 126 not executable; 1 where the command
/// returned 0 but output was lost; 2 where nothing was run). A signal sent to jobtrace reaches the command,
/// one sent to both in their process group does so once. Needs root, or CAP_BPF, CAP_PERFMON and a
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
  Pick one number out of it:
      jobtrace run --quiet --json - -- make -j8 | jq .sched.on_cpu_ns
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
    /// Write the whole run's numbers to FILE as JSON (- for standard output; the command's own then goes
    /// to standard error)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Name of the job in summary and output [default: the command's name]
    #[arg(long)]
    pub name: Option<String>,
    /// Name of the cluster, a tag of every line of line protocol
    #[arg(long, default_value = "", hide_default_value = true)]
    pub cluster: String,
    /// Time between two readings: seconds, or a number with its unit (ms, s, m, h)
    #[arg(long, default_value = "1s", value_parser = parse_interval, value_name = "TIME")]
    pub interval: Duration,
    /// Which page faults are timed: major ones only, which costs nothing on the path of minor ones, or
    /// all (full)
    #[arg(long, value_enum, default_value_t = FaultMode::Full)]
    pub faults: FaultMode,
    /// Look for AMD's, Intel's and others' GPUs in DIR/sys and DIR/proc: in a container that has the
    /// host's there, and for tests
    #[arg(long, default_value = "/", hide_default_value = true, value_name = "DIR")]
    pub sysfs_root: PathBuf,
    /// Print no summary
    #[arg(long, short)]
    pub quiet: bool,
    /// Record every reading to FILE (gzip where it ends in .gz; - as for --json), for --replay
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Take the readings from a recording (- for standard input) instead of running a command
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "command", "name", "cluster", "interval", "faults", "sysfs_root"])]
    pub replay: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "replay")]
    pub command: Vec<OsString>,
}

/// Trace every job on this node: the daemon.
///
/// Reads /etc/jobtrace/jobtrace.toml where it exists; options stand above the file. SIGHUP reads it again
/// and takes over what can be (the log names what needs a restart); SIGTERM writes what is gathered and
/// ends within two seconds. Killing it outright disturbs no job. One agent runs on a node: a second one
/// refuses to start and names the first. Exit status 2 where the configuration is wrong or the agent
/// cannot start.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  As the package's unit does it:
      systemctl enable --now jobtrace
  Try a configuration before it counts, then take it over:
      jobtrace agent --check && systemctl reload jobtrace
  See all settings, with what they mean:
      jobtrace agent --print-config
  In the foreground, with a spool of its own:
      sudo jobtrace agent --interval 1s --spool /tmp/spool")]
pub struct Agent {
    /// The configuration [default: /etc/jobtrace/jobtrace.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Tell whether the configuration is good and what the agent would do with it
    #[arg(long)]
    pub check: bool,
    /// Print the configuration with file and options taken into account
    #[arg(long, conflicts_with = "check")]
    pub print_config: bool,
    /// Remove what a pinned agent (--pin) left in the kernel
    #[arg(long, conflicts_with_all = ["check", "print_config"])]
    pub unpin: bool,
    /// What stands above the file.
    #[command(flatten)]
    pub flags: Flags,
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
    /// Look for AMD's, Intel's and others' GPUs in DIR/sys and DIR/proc: in a container that has the
    /// host's there, and for tests
    #[arg(long, default_value = "/", hide_default_value = true, value_name = "DIR")]
    pub sysfs_root: PathBuf,
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
    /// Configuration with the site's own rules [default: /etc/jobtrace/jobtrace.toml where it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
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

/// Send the spool's files to InfluxDB or VictoriaMetrics.
///
/// For sites without Telegraf or another collector. A file leaves the spool once the server has taken
/// all of it; one with lines that the server refuses goes to `failed` beside the outbox, with the
/// server's words in FILE.reason. What may succeed later is tried again: the server is down, slow, busy or
/// out of order. Sending a file twice is harmless. Without --url, /etc/jobtrace/push.toml is read; there
/// every option is a key, with `_` for `-`. Tokens and passwords come from files or the environment
/// (JOBTRACE_PUSH_TOKEN, JOBTRACE_PUSH_PASSWORD), proxies from the environment (HTTPS_PROXY, NO_PROXY). Exit status 0 where
/// all was sent, 1 where files were refused or stay, 2 where it cannot start or the server refuses us.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  As the package's unit does it, with the server in /etc/jobtrace/push.toml:
      systemctl enable --now jobtrace-push
  What a run wrote, once, into InfluxDB 1.x:
      jobtrace run --out metrics/ -- ./simulate && jobtrace push --spool metrics/ --url http://influx:8086
  InfluxDB 2.x:
      jobtrace push --url https://influx:8086 --org hpc --bucket jobtrace --token-file token
  InfluxDB 3.x, and VictoriaMetrics:
      jobtrace push --url https://influx:8181 --api v3 --database jobtrace --token-file token
      jobtrace push --url http://metrics:8428 --api victoria
  What would be sent:
      jobtrace push --url http://influx:8086 --dry-run")]
pub struct Push {
    /// The configuration [default: /etc/jobtrace/push.toml, where no --url is given]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Go on when all is sent, and send what comes
    #[arg(long)]
    pub follow: bool,
    /// Tell what would be sent, and send nothing
    #[arg(long, conflicts_with = "follow")]
    pub dry_run: bool,
    /// Print the configuration with file and options taken into account
    #[arg(long, conflicts_with_all = ["follow", "dry_run"])]
    pub print_config: bool,
    /// Where to, and how.
    #[command(flatten)]
    pub options: PushOptions,
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

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
