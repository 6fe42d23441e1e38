//! `cargo xtask ebpf`: the BPF object that jobtrace embeds, and the record beside it.

mod build;
mod install;
mod toolchain;

use crate::process::{relative, say};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use toolchain::Toolchain;
use xtask::root;
use xtask::source_digest::{OBJECT, RECORD, Record, check, of_bytes, of_sources};

/// Builds tracer-ebpf's programs with a BPF-capable compiler, strips everything except BTF and writes
/// tracer-ebpf/object.
#[derive(clap::Args)]
pub struct Args {
    /// Compare the committed object with the sources and with a rebuild; write nothing
    #[arg(long, conflicts_with = "out")]
    check: bool,
    /// Write the object to FILE instead of tracer-ebpf/object, without its record
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// First install what is missing: Debian's compiler and its source, bpf-linker
    #[arg(long)]
    install: bool,
}

/// Runs the chore.
///
/// # Errors
/// When no compiler here can build it, when it does not compile, or when `--check` finds the
/// committed object out of date.
pub fn run(args: &Args) -> Result<()> {
    let choose = || if args.install { install::missing() } else { Toolchain::choose() };
    if args.check {
        return compare(choose);
    }
    let toolchain = choose()?;
    let object = build::object(&toolchain)?;
    match &args.out {
        Some(out) => write(out, &object),
        None => write_with_record(&object, &toolchain),
    }
}

/// Builds the object from the sources as they are into `out`, after installing what is missing.
///
/// # Errors
/// As [`run`].
pub fn build_into(out: &Path) -> Result<()> {
    run(&Args { check: false, out: Some(out.to_owned()), install: true })
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("make the folder {folder:?}"))?;
    }
    fs::write(file, bytes).with_context(|| format!("write {file:?}"))?;
    say(format_args!("wrote {} ({} bytes)", relative(file), bytes.len()));
    Ok(())
}

fn write_with_record(object: &[u8], toolchain: &Toolchain) -> Result<()> {
    let record = Record {
        sources: of_sources(&root())?,
        object: of_bytes(object),
        built_by: toolchain.in_words(),
    };
    write(&root().join(OBJECT), object)?;
    write(&root().join(RECORD), record.to_text().as_bytes())
}

/// The digests must match; where the compiler is the recorded one, a rebuild's bytes must too.
fn compare(choose: impl FnOnce() -> Result<Toolchain>) -> Result<()> {
    check(&root())?;
    say(format_args!("{OBJECT} was built from these sources"));
    let record = Record::parse(&fs::read_to_string(root().join(RECORD))?)?;
    let toolchain = match choose() {
        Ok(toolchain) => toolchain,
        Err(error) => {
            say(format_args!("not rebuilt: {error:#}"));
            return Ok(());
        }
    };
    let rebuilt = of_bytes(&build::object(&toolchain)?);
    if toolchain.in_words() != record.built_by {
        say(format_args!("bytes not compared: the committed object is by {}", record.built_by));
    } else if rebuilt == record.object {
        say("a rebuild gives the same bytes");
    } else {
        bail!(
            "a rebuild with the same compiler gives other bytes than {OBJECT}: \
             run `cargo xtask ebpf` and commit tracer-ebpf/object"
        );
    }
    Ok(())
}
