//! Programs in JavaScript and Python below `tests/grafana`, with the packages that its lock files pin,
//! which are installed once beside the test programs.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result};

use super::{cache, program, run};

/// The folder of the scripts.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("grafana")
}

/// A folder with what `locks` pin; `install` fills it where these have changed.
fn installed(
    name: &str,
    locks: &[&str],
    install: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let place = cache()?.join(name);
    let mut wanted = String::new();
    for lock in locks {
        wanted +=
            &fs::read_to_string(folder().join(lock)).with_context(|| format!("read {lock}"))?;
    }
    let stamp = place.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(place);
    }
    match fs::remove_dir_all(&place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("empty {}", place.display()));
        }
        _ => fs::create_dir_all(&place)?,
    }
    for lock in locks {
        fs::copy(folder().join(lock), place.join(lock))?;
    }
    install(&place)?;
    fs::write(stamp, wanted)?;
    let owner = fs::metadata(cache()?)?;
    run(Command::new("chown")
        .arg("-R")
        .arg(format!("{}:{}", owner.uid(), owner.gid()))
        .arg(&place))?;
    Ok(place)
}

/// Runs a script in JavaScript to its end.
///
/// # Errors
/// When Node.js or npm is missing, or the packages cannot be had.
pub fn node(script: &str, arguments: &[&Path]) -> Result<Output> {
    let (node, npm) = (program("node", "nodejs")?, program("npm", "npm")?);
    let place = installed("node", &["package.json", "package-lock.json"], |place| {
        let mut command = Command::new(npm);
        command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]);
        run(command.current_dir(place)).map(drop)
    })?;
    let mut command = Command::new(node);
    command.arg(folder().join(script)).args(arguments);
    command.env("NODE_PATH", place.join("node_modules"));
    command.output().context("cannot start node")
}

/// Runs a script in Python to its end.
///
/// # Errors
/// When Python or its module venv is missing, or the packages cannot be had.
pub fn python(script: &str, arguments: &[PathBuf]) -> Result<Output> {
    let python = program("python3", "python3-venv")?;
    let place = installed("python", &["requirements.txt"], |place| {
        run(Command::new(python).args(["-m", "venv"]).arg(place.join("venv")))
            .context("Debian has Python's module venv in the package python3-venv")?;
        let mut command = Command::new(place.join("venv/bin/pip"));
        command.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        run(command.arg(place.join("requirements.txt"))).map(drop)
    })?;
    let mut command = Command::new(place.join("venv/bin/python"));
    command.arg(folder().join(script)).args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
    command.output().context("cannot start python")
}
