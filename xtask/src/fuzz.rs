//! `cargo xtask fuzz`: libFuzzer on what parses what others write, through cargo-fuzz, which is installed
//! where it is missing. The compiler is the one that is there: without a sanitizer, stable knows all the
//! flags, and the code under test is safe Rust. Overflows are checked.

use crate::process::{cargo, find, run as run_command, say, target_dir};
use anyhow::{Context, Result, bail, ensure};
use clap::builder::PossibleValuesParser;
use jobtrace_fuzz::{TARGETS, corpus};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::root;

const EXAMPLES: &str = "\
Examples:
  cargo xtask fuzz --list                          list the targets
  cargo xtask fuzz --seconds 60                    every target for a minute
  cargo xtask fuzz --target btf --seconds 300      one target for five minutes
  cargo xtask fuzz --target btf --input FILE       run a found input again
  cargo xtask fuzz --minimise                      reduce the corpora to inputs that reach more code";

/// cargo-fuzz's version: what it asks of libFuzzer and the compiler changes.
const CARGO_FUZZ: &str = "=0.13.2";
/// The workspace of libFuzzer's programs.
const PROGRAMS: &str = "tests/fuzz/libfuzzer";
/// An input may take so long, seconds, and the program so much memory, MiB; an input is so long at most.
const LIMITS: [&str; 3] = ["-timeout=5", "-rss_limit_mb=1024", "-max_len=16384"];
/// What is committed of the inputs that libFuzzer found: none longer, and no more of each target.
const KEPT_BYTES: usize = 1024;
const KEPT_FILES: usize = 20;

/// Fuzzes every parser of foreign input with libFuzzer.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only this target; may be given several times
    #[arg(long, value_name = "NAME", value_parser = names())]
    target: Vec<String>,
    /// How long each target runs
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u32,
    /// List the targets and what they parse, and do nothing
    #[arg(long)]
    list: bool,
    /// Run the target on this file only, as the fuzzer would
    #[arg(long, value_name = "FILE", conflicts_with = "minimise")]
    input: Option<PathBuf>,
    /// Replace each committed corpus by some of the smallest inputs that earlier runs found and that reach
    /// code which others do not
    #[arg(long)]
    minimise: bool,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(TARGETS.iter().map(|target| target.name))
}

/// Runs the chore.
///
/// # Errors
/// When cargo-fuzz cannot be installed or built with, or a target fails: each that does is named.
pub fn run(args: &Args) -> Result<()> {
    if args.list {
        TARGETS.iter().for_each(|target| println!("{:<14} {}", target.name, target.about));
        return Ok(());
    }
    let chosen = |name: &&str| args.target.is_empty() || args.target.iter().any(|t| t == name);
    let targets: Vec<&str> = TARGETS.iter().map(|target| target.name).filter(chosen).collect();
    install()?;
    lock()?;
    if let Some(input) = &args.input {
        ensure!(targets.len() == 1, "an input is one target's: name it with --target");
        return run_command(fuzz("run", targets[0]).arg(std::path::absolute(input)?));
    }
    let mut failed = Vec::new();
    for name in targets {
        let done = if args.minimise { minimise(name) } else { search(name, args.seconds) };
        if let Err(error) = done {
            say(format_args!("{name}: {error:#}"));
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("targets that failed: {}; the inputs are in {PROGRAMS}/artifacts", failed.join(", "));
    }
    Ok(())
}

/// cargo-fuzz, where it is missing.
fn install() -> Result<()> {
    let own = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let own = own.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    if find("cargo-fuzz").is_some() || own.is_some_and(|home| home.join("bin/cargo-fuzz").is_file())
    {
        return Ok(());
    }
    say("cargo-fuzz is missing: installing it");
    run_command(cargo().args(["install", "cargo-fuzz", "--version", CARGO_FUZZ, "--locked"]))
}

/// The programs have a workspace of their own, so that nobody else's build needs libFuzzer; what is fuzzed
/// is of the versions that are shipped all the same.
fn lock() -> Result<()> {
    let (from, to) = (root().join("Cargo.lock"), root().join(PROGRAMS).join("Cargo.lock"));
    fs::copy(&from, &to).with_context(|| format!("copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn fuzz(what: &str, target: &str) -> Command {
    let mut command = cargo();
    // Flags meant for our own crates would replace cargo-fuzz's.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    command.args(["fuzz", what, "--fuzz-dir", PROGRAMS, "--sanitizer", "none", "--target-dir"]);
    command.arg(target_dir().join("fuzz")).arg(target);
    command
}

/// What earlier runs found, which no commit has.
fn found(target: &str) -> Result<PathBuf> {
    let folder = target_dir().join("fuzz-corpus").join(target);
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    Ok(folder)
}

/// Runs the target for so long, from the committed inputs and those found before.
fn search(target: &str, seconds: u32) -> Result<()> {
    let mut command = fuzz("run", target);
    command.arg(found(target)?).arg(corpus(target)).arg("--").args(LIMITS);
    run_command(command.arg(format!("-max_total_time={seconds}")).arg("-print_final_stats=1"))
}

/// Merges what was found into the committed corpus: of the smallest inputs that together reach all that is
/// reached, some. Chosen inputs stay, for they say what they are.
fn minimise(target: &str) -> Result<()> {
    let committed = corpus(target);
    let fresh = tempfile::tempdir_in(target_dir()).context("make a folder in the target folder")?;
    let mut command = fuzz("run", target);
    command.arg(fresh.path()).arg(&committed).arg(found(target)?);
    run_command(command.arg("--").arg("-merge=1").arg("-use_counters=0").args(LIMITS))?;
    for old in entries(&committed)? {
        if is_found(&old) {
            fs::remove_file(&old).with_context(|| format!("remove {}", old.display()))?;
        }
    }
    let known: Vec<Vec<u8>> =
        entries(&committed)?.iter().map(fs::read).collect::<Result<_, _>>()?;
    let mut new = Vec::new();
    for file in entries(fresh.path())? {
        let content = fs::read(&file)?;
        if content.len() <= KEPT_BYTES && !known.contains(&content) {
            new.push((content.len(), file.file_name().context("a name")?.to_owned(), content));
        }
    }
    new.sort();
    // Some of each size: the short ones alone are garbage of every kind.
    let kept = new.len().min(KEPT_FILES);
    for index in 0..kept {
        let (_, name, content) = &new[index * new.len() / kept];
        fs::write(committed.join(name), content)?;
    }
    say(format_args!("{target}: {} chosen inputs and {kept} found ones", known.len()));
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    Ok(entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?)
}

/// Whether libFuzzer named it: by its SHA-1.
fn is_found(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_inputs_are_told_from_found_ones() {
        assert!(is_found(Path::new("/c/da39a3ee5e6b4b0d3255bfef95601890afd80709")));
        assert!(!is_found(Path::new("/c/memory.stat")) && !is_found(Path::new("/c/deadbeef")));
    }
}
