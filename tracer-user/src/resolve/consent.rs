//! Whether a job's environment asks that the software it runs is not told. Pure: bytes in, the answer out.

use crate::model::seen::Consent;

/// The variable that says so.
pub const VARIABLE: &str = "JOBTRACE_CENSUS";
/// What it says then, in any case.
const REFUSALS: [&str; 4] = ["off", "no", "false", "0"];
/// Variables of a runtime's own program, which becomes the container's first one.
const RUNTIMES: &[u8] = b"_LIBCONTAINER_";

/// A program of a job that was asked.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its environment as the kernel shows it; empty where it could not be read.
    pub environ: &'a [u8],
    /// Whether its environment is its job's: that of a scheduler's own program is not.
    pub is_jobs: bool,
    /// Whether the job's owner runs it; in a container anybody is.
    pub is_owners: bool,
    /// Whether it is known that another runs it: the scheduler, as root.
    pub is_anothers: bool,
    /// Whether it ran a program that it had executed just before its environment was read.
    pub has_executed: bool,
    /// Whether it could not be read because it had ended by then.
    pub has_gone: bool,
}

impl Asked<'_> {
    /// What it says. One of the job's owner that is gone may have refused, and another's agrees to nothing.
    pub fn tells(self) -> Consent {
        if self.has_gone && self.is_owners {
            return Consent::Missed;
        }
        match self.is_jobs && self.has_executed {
            true => match parse(self.environ) {
                Consent::Given if self.is_anothers => Consent::Unknown,
                told => told,
            },
            false => Consent::Unknown,
        }
    }
}

/// What `environ`, the environment of one process as the kernel shows it, says.
pub fn parse(environ: &[u8]) -> Consent {
    let variables = || environ.split(|byte| *byte == 0).filter(|variable| !variable.is_empty());
    if variables().next().is_none() || variables().any(|of| of.starts_with(RUNTIMES)) {
        return Consent::Unknown;
    }
    let value = |variable: &[u8]| {
        let text = str::from_utf8(variable).ok()?;
        let value = text.strip_prefix(VARIABLE)?.strip_prefix('=')?;
        Some(value.trim().to_ascii_lowercase())
    };
    match variables().filter_map(value).any(|value| REFUSALS.contains(&&*value)) {
        true => Consent::Refused,
        false => Consent::Given,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ends_while_it_is_asked_may_have_refused() {
        let asked = Asked {
            environ: b"A=1",
            is_jobs: true,
            is_owners: true,
            is_anothers: false,
            has_executed: true,
            has_gone: false,
        };
        assert_eq!(asked.tells(), Consent::Given);
        // An empty environment has no name of the job in it.
        let empty = Asked { environ: b"", is_jobs: false, ..asked };
        assert_eq!(empty.tells(), Consent::Unknown);
        let ended = Asked { has_gone: true, ..empty };
        assert_eq!(ended.tells(), Consent::Missed, "between the first look and its environment");
        assert_eq!(Asked { is_jobs: true, ..ended }.tells(), Consent::Missed);
        assert_eq!(Asked { has_executed: false, ..ended }.tells(), Consent::Missed);
        assert_eq!(Asked { is_owners: false, ..ended }.tells(), Consent::Unknown);
        assert_eq!(Asked { has_executed: false, ..asked }.tells(), Consent::Unknown);
    }

    #[test]
    fn root_refuses_for_a_users_job_and_does_not_agree() {
        let asked = Asked {
            environ: b"A=1",
            is_jobs: true,
            is_owners: false,
            is_anothers: true,
            has_executed: true,
            has_gone: false,
        };
        assert_eq!(asked.tells(), Consent::Unknown);
        let refuses = Asked { environ: b"JOBTRACE_CENSUS=off", ..asked };
        assert_eq!(refuses.tells(), Consent::Refused);
        // Of an owner who is not known yet.
        assert_eq!(Asked { is_anothers: false, ..asked }.tells(), Consent::Given);
    }

    #[test]
    fn an_environment_refuses_or_does_not() {
        for (environ, consent) in [
            ("", Consent::Unknown),
            ("\0\0", Consent::Unknown),
            ("PATH=/bin\0", Consent::Given),
            ("PATH=/bin\0JOBTRACE_CENSUS=off\0", Consent::Refused),
            ("JOBTRACE_CENSUS=OFF", Consent::Refused),
            ("JOBTRACE_CENSUS=0\0A=1", Consent::Refused),
            ("JOBTRACE_CENSUS=\0", Consent::Given),
            ("JOBTRACE_CENSUS=names\0", Consent::Given),
            ("MY_JOBTRACE_CENSUS=off\0", Consent::Given),
            ("A=JOBTRACE_CENSUS=off\0", Consent::Given),
            ("_LIBCONTAINER_INITPIPE=3\0PATH=/bin\0", Consent::Unknown),
        ] {
            assert_eq!(parse(environ.as_bytes()), consent, "{environ:?}");
        }
        assert_eq!(parse(b"A=\xff\0JOBTRACE_CENSUS=no\0"), Consent::Refused);
    }
}
