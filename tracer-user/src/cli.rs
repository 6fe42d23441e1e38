//! The command line: one definition, from which the help and docs/CLI.md derive.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

use crate::{
    agent::config::{Flags, values::Time},
    probes::FaultMode,
    push::options::Options as PushOptions,
};

/// Traces what jobs do on a compute node: CPU, page faults, disk and GPU, per job.
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
    /// Holds an empty program on each hook, for the benchmark.
    #[command(hide = true)]
    BenchEmpty,
}

/// Trace one command as a job and show where its time went.
///
/// The command runs in a cgroup of its own, with jobtrace's streams, environment and terminal. jobtrace
/// returns the command's exit status (128 + N for signal N, 127 not found, 126 not executable), or 1 if
/// the command returned 0 but output was lost, or 2 if nothing was run. A signal sent to jobtrace is passed
/// on to the command; one sent to both through their process group reaches it once. Needs root, or CAP_BPF,
/// CAP_PERFMON and a writable cgroup. If jobtrace itself is killed with SIGKILL, the tracing ends: nothing
/// stays loaded in the kernel, the command keeps running, and the next run removes its cgroup once that is
/// empty.
#[derive(Debug, Args)]
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
  Load the line protocol into InfluxDB 1.x:
      influx -import -compressed -precision ns -path metrics/FILE.lp.gz
  Record now, replay elsewhere, without privileges:
      jobtrace run --record run.jobtrace.gz -- ./simulate
      jobtrace run --replay run.jobtrace.gz --json run.json"
)]
pub struct Run {
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
    /// Time between two readings: seconds, or a number with a unit (ms, s, m, h)
    #[arg(long, default_value = "1s", value_parser = parse_interval, value_name = "TIME")]
    pub interval: Duration,
    /// Which page faults to time: major ones only, which adds no cost to minor ones, or all (full)
    #[arg(long, value_enum, default_value_t = FaultMode::Full)]
    pub faults: FaultMode,
    /// Look for AMD, Intel and other GPUs in DIR/sys and DIR/proc: for containers in which the host's
    /// are mounted there, and for tests
    #[arg(long, default_value = "/", hide_default_value = true, value_name = "DIR")]
    pub sysfs_root: PathBuf,
    /// Print no summary
    #[arg(long, short)]
    pub quiet: bool,
    /// Record every reading to FILE for --replay (gzip if it ends in .gz; - as for --json)
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Replay a recording (- for standard input) instead of running a command
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "command", "name", "cluster", "interval", "faults", "sysfs_root"])]
    pub replay: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "replay")]
    pub command: Vec<OsString>,
}

/// Trace every job on this node, as a daemon.
///
/// Reads /etc/jobtrace/jobtrace.toml if it exists; options override the file. On SIGHUP it reloads the
/// file and applies what can be changed at run time (the log names what needs a restart); on SIGTERM it
/// writes what it has measured and exits within two seconds. Even SIGKILL disturbs no job. Only one agent
/// can run on a node: a second one refuses to start and names the first. The exit status is 2 if the
/// configuration is wrong or the agent cannot start.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Start it as a service:
      systemctl enable --now jobtrace
  Check a changed configuration, then apply it:
      jobtrace agent --check && systemctl reload jobtrace
  Show all settings, with explanations:
      jobtrace agent --print-config
  In the foreground, with a spool of its own:
      sudo jobtrace agent --interval 1s --spool /tmp/spool")]
pub struct Agent {
    /// The configuration file [default: /etc/jobtrace/jobtrace.toml]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the configuration and report what the agent would do with it
    #[arg(long)]
    pub check: bool,
    /// Print the configuration that results from file and options
    #[arg(long, conflicts_with = "check")]
    pub print_config: bool,
    /// Remove what a pinned agent (--pin) left in the kernel
    #[arg(long, conflicts_with_all = ["check", "print_config"])]
    pub unpin: bool,
    /// What overrides the file.
    #[command(flatten)]
    pub flags: Flags,
}

/// Report what this node supports, what is missing and how to get it.
///
/// The exit status is 1 if `jobtrace run` would not work here and now.
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
    /// Look for AMD, Intel and other GPUs in DIR/sys and DIR/proc: for containers in which the host's
    /// are mounted there, and for tests
    #[arg(long, default_value = "/", hide_default_value = true, value_name = "DIR")]
    pub sysfs_root: PathBuf,
}

/// Show which job a cgroup or a process belongs to, and by which rule.
///
/// A number is a process; anything else is a cgroup's path, as in /proc/PID/cgroup or below
/// /sys/fs/cgroup. The exit status is 0 if there is a job, 1 if there is none, 2 if there is no such
/// process or file.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Which job does this process belong to:
      jobtrace resolve 4711
  Which job does this cgroup belong to:
      jobtrace resolve /system.slice/slurmstepd.scope/job_12/step_0/user/task_0
  The same for all cgroups of this node:
      find /sys/fs/cgroup -type d | jobtrace resolve --tsv -")]
pub struct Resolve {
    /// Configuration file with the site's rules [default: /etc/jobtrace/jobtrace.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A cgroup's path, or a process id
    #[arg(value_name = "PATH|PID", required_unless_present = "tsv")]
    pub target: Option<String>,
    /// Print JSON; with --tsv one object per line
    #[arg(long)]
    pub json: bool,
    /// Resolve the paths in FILE (- for standard input), one per line; anything after a tab is ignored
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub tsv: Option<PathBuf>,
}

/// Send the spool's files to InfluxDB or VictoriaMetrics.
///
/// For sites without Telegraf or another collector. A file is removed from the spool once the server has
/// stored all of it. A file with lines that the server refuses is moved to `failed` beside the outbox, with
/// the server's answer in FILE.reason. Anything that may succeed later is retried: if the server is down,
/// slow, busy or broken. Sending a file twice is harmless. Without --url, /etc/jobtrace/push.toml is read,
/// in which every option is a key, with `_` for `-`. Tokens and passwords come from files or the environment
/// (JOBTRACE_PUSH_TOKEN, JOBTRACE_PUSH_PASSWORD), proxies from the environment (HTTPS_PROXY, NO_PROXY). The
/// exit status is 0 if everything was sent, 1 if files were refused or remain, 2 if it cannot start or the
/// server refuses access.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  Start it as a service, with the server in /etc/jobtrace/push.toml:
      systemctl enable --now jobtrace-push
  Send a run's output once, to InfluxDB 1.x:
      jobtrace run --out metrics/ -- ./simulate && jobtrace push --spool metrics/ --url http://influx:8086
  InfluxDB 2.x:
      jobtrace push --url https://influx:8086 --org hpc --bucket jobtrace --token-file token
  InfluxDB 3.x, and VictoriaMetrics:
      jobtrace push --url https://influx:8181 --api v3 --database jobtrace --token-file token
      jobtrace push --url http://metrics:8428 --api victoria
  Show what would be sent:
      jobtrace push --url http://influx:8086 --dry-run")]
pub struct Push {
    /// The configuration file [default: /etc/jobtrace/push.toml, unless --url is given]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep running and send new files as they appear
    #[arg(long)]
    pub follow: bool,
    /// Show what would be sent, without sending it
    #[arg(long, conflicts_with = "follow")]
    pub dry_run: bool,
    /// Print the configuration that results from file and options
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
