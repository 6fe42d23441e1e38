//! The arguments of `jobtrace agent`.

use std::path::PathBuf;

use super::config::Flags;

/// Trace every job on this node: the daemon.
///
/// Reads /etc/jobtrace/jobtrace.toml where it exists; options stand above the file. SIGHUP reads it again
/// and takes over what can be (the log names what needs a restart); SIGTERM writes what is gathered and
/// ends within two seconds. Killing it outright disturbs no job. One agent runs on a node: a second one
/// refuses to start and names the first. Exit status 2 where the configuration is wrong or the agent
/// cannot start.
#[derive(Debug, clap::Args)]
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
pub struct Args {
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
