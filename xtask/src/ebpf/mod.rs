//! `cargo xtask ebpf`: the BPF objects that jobtrace embeds, and the record beside them.

mod build;
mod install;
mod toolchain;

use crate::process::{relative, say};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use toolchain::Toolchain;
use xtask::root;
use xtask::source_digest::{ALWAYS, OBJECTS, RECORD, Record, check, of_bytes, of_sources};

/// Builds tracer-ebpf's programs with a BPF-capable compiler, strips everything except BTF and writes
/// tracer-ebpf/object.
#[derive(clap::Args)]
pub struct Args {
    /// Compare the committed objects with the sources and with a rebuild; write nothing
    #[arg(long, conflicts_with = "out")]
    check: bool,
    /// Write the object of what always runs to FILE, and nothing else
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
    match &args.out {
        Some(out) => write(out, &build::object(&toolchain, ALWAYS.target)?),
        None => write_with_record(&toolchain),
    }
}

/// Builds the object of what always runs from the sources as they are into `out`, after installing what is missing.
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

fn write_with_record(toolchain: &Toolchain) -> Result<()> {
    let mut objects = Vec::new();
    for object in OBJECTS {
        let bytes = build::object(toolchain, object.target)?;
        write(&root().join(object.file), &bytes)?;
        objects.push(of_bytes(&bytes));
    }
    let record = Record { sources: of_sources(&root())?, objects, built_by: toolchain.in_words() };
    write(&root().join(RECORD), record.to_text().as_bytes())
}

/// The digests must match; where the compiler is the recorded one, a rebuild's bytes must too.
fn compare(choose: impl FnOnce() -> Result<Toolchain>) -> Result<()> {
    check(&root())?;
    say("the committed objects were built from these sources");
    let record = Record::parse(&fs::read_to_string(root().join(RECORD))?)?;
    let toolchain = match choose() {
        Ok(toolchain) => toolchain,
        Err(error) => {
            say(format_args!("not rebuilt: {error:#}"));
            return Ok(());
        }
    };
    let is_same_compiler = toolchain.in_words() == record.built_by;
    for (object, digest) in OBJECTS.iter().zip(&record.objects) {
        let rebuilt = of_bytes(&build::object(&toolchain, object.target)?);
        if is_same_compiler && rebuilt != *digest {
            bail!(
                "a rebuild with the same compiler gives other bytes than {}: \
                 run `cargo xtask ebpf` and commit tracer-ebpf/object",
                object.file
            );
        }
    }
    if is_same_compiler {
        say("a rebuild gives the same bytes");
    } else {
        say(format_args!("bytes not compared: the committed objects are by {}", record.built_by));
    }
    Ok(())
}
