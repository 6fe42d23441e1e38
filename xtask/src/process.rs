//! Running other programs: each is said aloud first, and a failure names it.

use anyhow::{Context, Result, bail};
use jobtrace::base::text::command_line;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use xtask::say;

/// The command as a shell would take it, near enough to be copied.
pub fn in_words(command: &Command) -> String {
    command_line(std::iter::once(command.get_program()).chain(command.get_args()))
}

/// Says and runs the command with this process's output.
///
/// # Errors
/// When it cannot be started or does not end well.
pub fn run(command: &mut Command) -> Result<()> {
    say(in_words(command));
    let status = command.status().with_context(|| format!("start {}", in_words(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", in_words(command));
    }
    Ok(())
}

/// Runs the command silently and returns what it wrote to its standard output.
///
/// # Errors
/// When it cannot be started, does not end well or writes something other than UTF-8.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("start {}", in_words(command)))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", in_words(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` wrote something other than UTF-8", in_words(command)))
}

/// The first program of this name on the search path or in the folders root's path has besides.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Whether this process is root's.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command for `program` that runs as root: itself where we are root, through sudo elsewhere,
/// which is said aloud. The variables named in `keep` pass through sudo.
pub fn as_root(program: impl AsRef<OsStr>, keep: &[&str]) -> Command {
    if is_root() {
        return Command::new(program);
    }
    say("root is needed for the next command: asking sudo");
    let mut command = Command::new("sudo");
    if !keep.is_empty() {
        command.arg(format!("--preserve-env={}", keep.join(",")));
    }
    command.arg("--").arg(program);
    command
}

/// The cargo that runs this chore, in the workspace's root. What it told this program of the package `xtask` is
/// taken away: ring's build script looks at it, and would run again, and all that depends on ring be compiled
/// again, whenever cargo is called by a chore after it was called by hand, and the other way round.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command.current_dir(xtask::root());
    command
}

/// Builds `jobtrace`; gives its file. Not as the package of that name: that alone asks other features of shared
/// crates than all packages do, and would be compiled once more beside what the tests are linked with.
///
/// # Errors
/// When it does not build.
pub fn build_jobtrace(optimised: bool) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--bin", "jobtrace"]);
    if optimised {
        command.arg("--release");
    }
    run(&mut command)?;
    Ok(target_dir().join(if optimised { "release" } else { "debug" }).join("jobtrace"))
}

/// Whether this program is optimised; where it is not, the same chore is run once more by one that is.
///
/// # Errors
/// When that one cannot be built, or fails.
pub fn is_optimised() -> Result<bool> {
    if cfg!(debug_assertions) {
        say("this takes an optimised program");
        let own = env::args_os().skip(1);
        let optimised = ["run", "--profile", "chores", "--package", "xtask", "--"];
        run(cargo().args(optimised).args(own))?;
    }
    Ok(!cfg!(debug_assertions))
}

/// Where cargo puts what it builds.
pub fn target_dir() -> PathBuf {
    let root = xtask::root();
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// The path below the workspace's root, for messages.
pub fn relative(path: &Path) -> std::path::Display<'_> {
    path.strip_prefix(xtask::root()).unwrap_or(path).display()
}
