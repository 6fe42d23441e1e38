//! Why nothing can be traced, in words that name the cure.

use std::{error::Error, fmt, path::PathBuf};

use super::privileges::cure_of;
use crate::base::open_files::TooFew;

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
