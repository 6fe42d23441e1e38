//! What a kernel may lack: hooks that came with a later one, or in another form.

use jobtrace::base::kernel_release::version_of;

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
    let own = version_of(release);
    let is_it =
        |later: &&Later| later.program == program && later.machine == machine && own < later.since;
    LATER.iter().find(is_it).map(|later| later.why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobtrace::probes::HOOKS;

    #[test]
    fn each_is_a_hooks_program() {
        for Later { program, .. } in LATER {
            assert!(HOOKS.iter().any(|row| row.hook.program == *program), "{program}");
        }
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
