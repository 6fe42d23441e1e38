//! Programs in JavaScript and Python below `tests/grafana` and `tests/page`, with the packages that the lock files there
//! pin by version and checksum, which are installed once beside the test programs.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result};

use super::{cache, program, run};

/// A folder of scripts.
fn folder(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of)
}

/// A folder with what `locks` in the folder `of` pin; `install` fills it where these have changed.
fn installed(
    name: &str,
    of: &str,
    locks: &[&str],
    install: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let place = cache()?.join(name);
    let mut wanted = String::new();
    for lock in locks {
        wanted +=
            &fs::read_to_string(folder(of).join(lock)).with_context(|| format!("read {lock}"))?;
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
        fs::copy(folder(of).join(lock), place.join(lock))?;
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

/// The packages that `package-lock.json` in the folder `of` pins, as npm has them.
fn packages(name: &str, of: &str) -> Result<PathBuf> {
    let npm = program("npm", "npm")?;
    let place = installed(name, of, &["package.json", "package-lock.json"], |place| {
        let mut command = Command::new(npm);
        command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]);
        run(command.current_dir(place)).map(drop)
    })?;
    Ok(place.join("node_modules"))
}

/// The script that finds what keeps people from using a page: axe.
///
/// # Errors
/// When npm is missing, or the package cannot be had.
pub fn axe() -> Result<PathBuf> {
    Ok(packages("axe", "page")?.join("axe-core/axe.min.js"))
}

/// Runs a script in JavaScript to its end.
///
/// # Errors
/// When Node.js or npm is missing, or the packages cannot be had.
pub fn node(script: &str, arguments: &[&Path]) -> Result<Output> {
    let mut command = Command::new(program("node", "nodejs")?);
    command.arg(folder("grafana").join(script)).args(arguments);
    command.env("NODE_PATH", packages("node", "grafana")?);
    command.output().context("cannot start node")
}

/// Runs a script in Python to its end.
///
/// # Errors
/// When Python or its module venv is missing, or the packages cannot be had.
pub fn python(script: &str, arguments: &[PathBuf]) -> Result<Output> {
    let python = program("python3", "python3-venv")?;
    let place = installed("python", "grafana", &["requirements.txt"], |place| {
        run(Command::new(python).args(["-m", "venv"]).arg(place.join("venv")))
            .context("Debian has Python's module venv in the package python3-venv")?;
        let mut command = Command::new(place.join("venv/bin/pip"));
        command.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        run(command.arg(place.join("requirements.txt"))).map(drop)
    })?;
    let mut command = Command::new(place.join("venv/bin/python"));
    command.arg(folder("grafana").join(script)).args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
    command.output().context("cannot start python")
}
