//! Two environment variables that serve jobtrace's own development.

use anyhow::{Context, Result};

use super::options::{FaultMode, Options};

/// Options of the probes as `JOBTRACE_BPF_LOG` and `JOBTRACE_BPF_OBJECT` say. Under privileges that the
/// caller lacks (file capabilities) they are not obeyed: they name what the kernel runs.
///
/// # Errors
/// When the level is no number.
pub fn development() -> Result<Options> {
    let options = Options::new(FaultMode::Full);
    // SAFETY: getauxval has no preconditions.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return Ok(options);
    }
    let log_level = match std::env::var("JOBTRACE_BPF_LOG") {
        Ok(level) => {
            level.parse().context("JOBTRACE_BPF_LOG must be a number from 0 (off) to 5 (trace)")?
        }
        Err(_) => 0,
    };
    let object = std::env::var_os("JOBTRACE_BPF_OBJECT").map(Into::into);
    Ok(Options { log_level, object, ..options })
}
