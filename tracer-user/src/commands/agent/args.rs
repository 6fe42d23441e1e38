//! The arguments of `jobtrace agent`.

use std::path::PathBuf;

use super::config::Flags;

/// Trace every job on this node, as a daemon.
///
/// Reads /etc/jobtrace/jobtrace.toml if it exists; options override the file. On SIGHUP it reloads the
/// file and applies what can be changed at run time (the log names what needs a restart); on SIGTERM it
/// writes what it has measured and exits within two seconds, or twelve where hundreds of jobs have just ended
/// and the disk still takes their records. Even SIGKILL disturbs no job. One agent is to run on a
/// node: a second one with the same `state.dir` refuses to start and names the first. With another `state.dir` both run and
/// count every job, but only one of them can pin. The exit status is 2 if the configuration is wrong or
/// the agent cannot start.
#[derive(Debug, clap::Args)]
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
pub struct Args {
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
