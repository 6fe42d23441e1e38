//! What a kernel may lack: hooks that came with a later one, or in another form.

/// A hook that kernels before a version lack.
struct Later {
    program: &'static str,
    /// On these machines, by `uname -m`.
    machine: &'static str,
    since: (u32, u32),
    why: &'static str,
}

/// No version so far.
const NEVER: (u32, u32) = (u32::MAX, 0);

const LATER: &[Later] = &[
    Later {
        program: "page_fault_user",
        machine: "aarch64",
        since: NEVER,
        why: "the tracepoint is x86-64's",
    },
    Later {
        program: "page_fault_kernel",
        machine: "aarch64",
        since: NEVER,
        why: "the tracepoint is x86-64's",
    },
    Later {
        program: "handle_mm_fault",
        machine: "aarch64",
        since: (6, 4),
        why: "fentry programs take direct calls of ftrace",
    },
];

/// Why kernel `release` of a `machine` is known to lack the hook of `program`.
pub fn lacks(program: &str, release: &str, machine: &str) -> Option<&'static str> {
    let own = version(release);
    let is_it =
        |later: &&Later| later.program == program && later.machine == machine && own < later.since;
    LATER.iter().find(is_it).map(|later| later.why)
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
    }

    #[test]
    fn what_one_machine_lacks_another_has() {
        assert_eq!(lacks("sched_switch", "5.10.0", "aarch64"), None);
        assert_eq!(lacks("page_fault_user", "5.10.0", "x86_64"), None);
        assert!(lacks("page_fault_user", "7.2.13+deb14", "aarch64").is_some());
        assert_eq!(lacks("handle_mm_fault", "6.1.0", "x86_64"), None);
        assert!(lacks("handle_mm_fault", "6.1.0", "aarch64").is_some());
        assert_eq!(lacks("handle_mm_fault", "6.12.107", "aarch64"), None);
    }
}
