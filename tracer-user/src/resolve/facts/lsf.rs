//! What LSF writes in notations of its own. Pure.

use std::{collections::BTreeSet, str::from_utf8};

/// Hosts with their cores, of an LSB_MCPU_HOSTS: `n1 4 n2.site.org 2`. `None` of anything else.
pub(super) fn host_cores(list: &[u8]) -> Option<Vec<(&str, u64)>> {
    let words: Vec<&str> = from_utf8(list).ok()?.split_ascii_whitespace().collect();
    let pairs = words.chunks(2).map(|pair| match pair {
        [host, cores] => Some((*host, cores.parse().ok().filter(|cores| *cores > 0)?)),
        _ => None,
    });
    pairs.collect::<Option<Vec<_>>>().filter(|pairs| !pairs.is_empty())
}

/// How many hosts they are.
pub(super) fn count(list: &[(&str, u64)]) -> u64 {
    list.iter().map(|(host, _)| host).collect::<BTreeSet<_>>().len() as u64
}

/// Cores on `host`, which one of both may name with its domain.
pub(super) fn cores_on(host: &str, list: &[(&str, u64)]) -> Option<u64> {
    let short = |name: &str| name.split('.').next().map(str::to_owned);
    let own = list.iter().filter(|(name, _)| short(name) == short(host)).map(|(_, cores)| *cores);
    own.reduce(u64::saturating_add)
}

/// When job `number` was submitted, in seconds since the Unix epoch, by an LSB_JOBFILENAME:
/// `/home/ada/.lsbatch/1239206877.748`, behind which an array has its index.
pub(super) fn submitted_s(job_file: &[u8], number: &str) -> Option<u64> {
    let name = from_utf8(job_file).ok()?.rsplit('/').next()?;
    let mut parts = name.split('.');
    let seconds = parts.next()?.parse().ok()?;
    (parts.next() == Some(number)).then_some(seconds).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_cores() {
        let list = host_cores(b"n1 4 n2.site.org 2 n1 3").unwrap();
        assert_eq!((&list[..], count(&list)), (&[("n1", 4), ("n2.site.org", 2), ("n1", 3)][..], 2));
        for (host, cores) in
            [("n1", Some(7)), ("n1.site.org", Some(7)), ("n2", Some(2)), ("n", None), ("", None)]
        {
            assert_eq!(cores_on(host, &list), cores, "{host}");
        }
        for other in [&b""[..], b"n1", b"n1 4 n2", b"n1 0", b"n1 -4", b"4 n1", b"n1 \xff"] {
            assert_eq!(host_cores(other), None, "{}", other.escape_ascii());
        }
        let most = u64::MAX.to_string();
        let list = format!("n1 {most} n1 {most}");
        assert_eq!(cores_on("n1", &host_cores(list.as_bytes()).unwrap()), Some(u64::MAX));
    }

    #[test]
    fn a_job_file_is_named_by_its_submission() {
        for (file, submitted) in [
            ("/home/ada/.lsbatch/1239206877.748", Some(1_239_206_877)),
            ("1239206877.748", Some(1_239_206_877)),
            ("/tmp/1239206877.748.3", Some(1_239_206_877)),
            ("/tmp/1239206877.749", None),
            ("/tmp/0.748", None),
            ("/tmp/x.748", None),
            ("/tmp/99999999999999999999.748", None),
            ("/tmp/1239206877", None),
            ("", None),
        ] {
            assert_eq!(submitted_s(file.as_bytes(), "748"), submitted, "{file}");
        }
    }
}
