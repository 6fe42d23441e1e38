//! Whether a job's environment asks that the software it runs is not told. Pure: bytes in, the answer out.

use crate::model::seen::Consent;

/// The variable that says so.
pub const VARIABLE: &str = "JOBTRACE_CENSUS";
/// What it says then, in any case.
const REFUSALS: [&str; 4] = ["off", "no", "false", "0"];
/// Variables of a runtime's own program, which becomes the container's first one.
const RUNTIMES: &[u8] = b"_LIBCONTAINER_";

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
