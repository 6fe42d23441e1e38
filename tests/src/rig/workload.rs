//! Known amounts of work for a job of a scheduler's or a container's, and the report of them that the
//! job prints: `src/bin/amounts.rs`.

use std::{env, fs::File, io::Write, path::Path, path::PathBuf};

use anyhow::{Context, Result, ensure};

use crate::account::Report;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amounts {
    /// MiB read past the page cache, 1 MiB each time.
    pub read_mib: u64,
    /// Milliseconds on a CPU, in a child of its own.
    pub cpu_ms: u64,
    /// Pages touched for the first time.
    pub pages: u64,
}

impl Amounts {
    /// The words of the command, for a shell too: none needs quotes unless a path does. `file` has
    /// the MiB and lies where direct reads are possible, so not in a tmpfs.
    ///
    /// # Errors
    /// When the program is not built.
    pub fn words(&self, file: &Path) -> Result<Vec<String>> {
        let program = workload("amounts")?;
        let numbers = [self.read_mib, self.cpu_ms, self.pages].map(|number| number.to_string());
        let paths = [&program, file].map(|path| path.display().to_string());
        Ok(paths.into_iter().chain(numbers).collect())
    }
}

/// The file of a program of `tests/src/bin`.
///
/// # Errors
/// When it is not built: cargo builds them all for the tests of this package.
pub fn workload(name: &str) -> Result<PathBuf> {
    let own = env::current_exe().context("where is this program")?;
    let path = own.ancestors().nth(2).context("no folder around this program")?.join(name);
    ensure!(path.is_file(), "{} is not built: `cargo build -p jobtrace-tests`", path.display());
    Ok(path)
}

/// The last report among what a job printed. No line's end follows a report: what a scheduler says
/// of the job's end may stand right behind it.
///
/// # Errors
/// When there is none, because the workload failed.
pub fn report(printed: &str) -> Result<Report> {
    let begin =
        printed.rfind(r#"{"begin":"#).with_context(|| format!("no report in {printed:?}"))?;
    let mut values = serde_json::Deserializer::from_str(&printed[begin..]).into_iter();
    values.next().context("an empty report")?.with_context(|| format!("no report: {printed}"))
}

/// A file of so many MiB, none of them a hole, on disk when this returns.
///
/// # Errors
/// When it cannot be written.
pub fn file_of(path: &Path, mib: u64) -> Result<()> {
    let mut file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    let piece = vec![0x5a; 1 << 20];
    for _ in 0..mib {
        file.write_all(&piece)?;
    }
    file.sync_all().context("the file does not reach the disk")
}
