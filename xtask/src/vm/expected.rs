//! What a kernel may lack: hooks that came with a later one, or in another form.

/// A hook that kernels before a version lack, and why.
const LATER: &[(&str, (u32, u32), &str)] =
    &[("mark_victim", (6, 1), "its tracepoint tells a process id only, no task")];

/// Why kernel `release` is known to lack the hook of `program`.
pub fn lacks(program: &str, release: &str) -> Option<&'static str> {
    let own = version(release);
    let known = LATER.iter().find(|(name, since, _)| *name == program && own < *since);
    known.map(|(_, _, why)| *why)
}

/// Major and minor number of `5.10.0-32-cloud-amd64`.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert_eq!(version("5.10.0-32-cloud-amd64"), (5, 10));
        assert_eq!(version("7.2.13+deb14-cloud-amd64"), (7, 2));
        assert!(version("6.12.107+deb13") > version("6.1.0-50"));
        assert_eq!(lacks("sched_switch", "5.10.0"), None);
        assert!(lacks("mark_victim", "5.10.0").is_some());
        assert_eq!(lacks("mark_victim", "6.1.0"), None);
    }
}
