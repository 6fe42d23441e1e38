//! What slurmd needs on a host with both kinds of cgroups: a library that hides those of v1 from it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::super::{program, run};

const SHIM: &str = include_str!("../../../shim/only_v2.c");

/// The library, in `folder`.
pub(super) fn compiled(folder: &Path) -> Result<PathBuf> {
    let (source, library) = (folder.join("only_v2.c"), folder.join("only_v2.so"));
    fs::write(&source, SHIM)?;
    let mut command = Command::new(program("gcc", "gcc")?);
    command.args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    run(command.arg("-ldl"))?;
    Ok(library)
}
