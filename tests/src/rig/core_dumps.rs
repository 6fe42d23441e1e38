//! What the kernel does with core dumps, for the time of a test.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    time::Duration,
};

use anyhow::{Context, Result};
use tempfile::TempDir;

const PATTERN: &str = "/proc/sys/kernel/core_pattern";

/// Core dumps are piped to a program that reads after a while, and keeps nothing.
pub struct SlowCoreDumps {
    before: String,
    _folder: TempDir,
}

impl SlowCoreDumps {
    /// Each takes `time` at least.
    ///
    /// # Errors
    /// Without root.
    pub fn of(time: Duration) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("dump");
        fs::write(&program, format!("#!/bin/sh\nsleep {}\ncat > /dev/null\n", time.as_secs_f64()))?;
        fs::set_permissions(&program, Permissions::from_mode(0o755))?;
        let before = fs::read_to_string(PATTERN).with_context(|| format!("read {PATTERN}"))?;
        fs::write(PATTERN, format!("|{}", program.display()))
            .with_context(|| format!("write {PATTERN}"))?;
        Ok(Self { before, _folder: folder })
    }
}

impl Drop for SlowCoreDumps {
    fn drop(&mut self) {
        if let Err(error) = fs::write(PATTERN, &self.before) {
            eprintln!("{PATTERN} is not as it was, {:?}: {error}", self.before);
        }
    }
}
