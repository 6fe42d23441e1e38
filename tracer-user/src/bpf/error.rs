//! Why nothing can be traced, in words that name the cure.

use std::{error::Error, fmt, io, path::PathBuf};

use super::privileges::cure_of;
use crate::base::open_files::TooFew;

/// The kernel's own error for what an architecture lacks; no C library has words for it. Linux before 6.4
/// answers so on arm64 to programs at a function's entry.
const ENOTSUPP: i32 = 524;
const NOT_SUPPORTED: &str = "this kernel does not support it on this architecture (ENOTSUPP)";

/// Why nothing can be traced.
#[derive(Debug)]
pub enum LoadError {
    /// The caller lacks the privilege.
    NotPermitted(anyhow::Error),
    /// The caller, be it root, lacks these capabilities.
    Capabilities(Vec<&'static str>),
    /// The limit of open files is too low.
    OpenFiles(TooFew),
    /// This is a user namespace, in which no capability counts for the kernel's programs.
    Namespace,
    /// The kernel lacks something.
    Unsupported(anyhow::Error),
    /// The object asked for instead of the built-in one cannot be read or loaded.
    Object(PathBuf, anyhow::Error),
}

impl LoadError {
    /// Of a refusal in the kernel's words. Root may be refused too: by lockdown, or in a container.
    pub fn of(text: &str) -> Self {
        let refused = ["Operation not permitted", "Permission denied"]
            .iter()
            .any(|words| text.contains(words));
        let error = anyhow::anyhow!("{text}");
        if refused && !rustix::process::geteuid().is_root() {
            Self::NotPermitted(error)
        } else {
            Self::Unsupported(error)
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted(error) => write!(
                f,
                "not permitted to trace: run as root or with CAP_BPF and CAP_PERFMON ({error:#})"
            ),
            Self::Capabilities(lacking) => write!(
                f,
                "not permitted to trace without {}: {}",
                lacking.join(" and "),
                cure_of(lacking)
            ),
            Self::OpenFiles(too_few) => too_few.fmt(f),
            Self::Namespace => f.write_str(
                "not permitted to trace from a user namespace, where capabilities have no effect: \
                 run jobtrace outside of it, as root or with CAP_BPF and CAP_PERFMON",
            ),
            Self::Unsupported(error) => {
                write!(f, "this kernel cannot be traced: {error:#}; `jobtrace doctor` shows more")
            }
            Self::Object(path, error) => write!(
                f,
                "cannot load the BPF object {}, built by `cargo xtask ebpf`: {error:#}",
                path.display()
            ),
        }
    }
}

impl Error for LoadError {}

/// The error and its causes in one line, the verifier's log cut down to its last words.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = match error.downcast_ref::<io::Error>() {
            Some(error) if error.raw_os_error() == Some(ENOTSUPP) => NOT_SUPPORTED.to_owned(),
            _ => error.to_string(),
        };
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    // What a verifier says of itself comes last; before that is what it refuses.
    let statistics = ["verification time ", "stack depth "];
    let is_said = |line: &&str| {
        !line.trim().is_empty() && !statistics.iter().any(|words| line.starts_with(words))
    };
    let lines: Vec<_> = text.lines().filter(is_said).collect();
    let said = match lines.as_slice() {
        [first, .., before, last] => format!("{first} … {before} {last}"),
        _ => lines.join(" "),
    };
    // Where it said nothing, its heading stands alone.
    said.trim_end().trim_end_matches(". Verifier output:").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_only_the_kernel_knows_is_put_into_words() {
        let told = |number| {
            let error = anyhow::Error::from(io::Error::from_raw_os_error(number));
            with_causes(error.context("cannot attach").as_ref())
        };
        assert_eq!(told(ENOTSUPP), format!("cannot attach: {NOT_SUPPORTED}"));
        assert!(told(libc::EPERM).contains("not permitted"), "{}", told(libc::EPERM));
    }
}
