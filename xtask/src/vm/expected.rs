//! What a kernel may lack: hooks that came with a later one, or in another form.

use jobtrace::base::kernel_release::version_of;

/// A hook that kernels before a version lack.
struct Later {
    program: &'static str,
    /// On these machines, by `uname -m`; on all where it is empty.
    machine: &'static str,
    /// With cgroups of this version; with either where it is empty.
    cgroups: &'static str,
    since: (u32, u32),
    why: &'static str,
}

/// No version so far.
const NEVER: (u32, u32) = (u32::MAX, 0);

/// On the entry or return of a function.
const fn of_function(program: &'static str) -> Later {
    Later {
        program,
        machine: "aarch64",
        cgroups: "",
        since: (6, 4),
        why: "fentry and fexit programs take direct calls of ftrace",
    }
}

const LATER: &[Later] = &[
    Later {
        program: "page_fault_user",
        machine: "aarch64",
        cgroups: "",
        since: NEVER,
        why: "the tracepoint is x86-64's",
    },
    Later {
        program: "page_fault_kernel",
        machine: "aarch64",
        cgroups: "",
        since: NEVER,
        why: "the tracepoint is x86-64's",
    },
    of_function("handle_mm_fault"),
    of_function("inet_sendmsg"),
    of_function("inet6_sendmsg"),
    of_function("unix_stream_sendmsg"),
    of_function("unix_dgram_sendmsg"),
    of_function("inet_sendpage"),
    of_function("unix_stream_sendpage"),
    of_function("inet_recvmsg"),
    of_function("inet6_recvmsg"),
    of_function("unix_stream_recvmsg"),
    of_function("unix_dgram_recvmsg"),
    of_function("sock_splice_read"),
    Later {
        program: "sock_send_length",
        machine: "aarch64",
        cgroups: "",
        since: (6, 3),
        why: "the tracepoint is younger",
    },
    Later {
        program: "sock_recv_length",
        machine: "aarch64",
        cgroups: "",
        since: (6, 3),
        why: "the tracepoint is younger",
    },
    Later {
        program: "sock_splice_read",
        machine: "",
        cgroups: "",
        since: (5, 11),
        why: "no helper gives a file's socket",
    },
    Later {
        program: "tcp_retransmit_skb",
        machine: "",
        cgroups: "",
        since: (5, 15),
        why: "a socket's cgroup is no pointer",
    },
    Later {
        program: "tcp_retransmit_skb",
        machine: "",
        cgroups: "v1",
        since: NEVER,
        why: "a socket's cgroup is one of v2",
    },
    Later {
        program: "tcp_retransmit_sent",
        machine: "",
        cgroups: "",
        since: (5, 15),
        why: "a socket's cgroup is no pointer",
    },
    Later {
        program: "tcp_retransmit_sent",
        machine: "",
        cgroups: "v1",
        since: NEVER,
        why: "a socket's cgroup is one of v2",
    },
];

/// Why kernel `release` of a `machine` with `cgroups` is known to lack the hook of `program`.
pub fn lacks(program: &str, release: &str, machine: &str, cgroups: &str) -> Option<&'static str> {
    let own = version_of(release);
    let fits = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
    let is_it = |later: &&Later| {
        let is_here = fits(later.machine, machine) && fits(later.cgroups, cgroups);
        later.program == program && is_here && own < later.since
    };
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
        assert_eq!(lacks("sched_switch", "5.10.0", "aarch64", "v2"), None);
        assert_eq!(lacks("page_fault_user", "5.10.0", "x86_64", "v2"), None);
        assert!(lacks("page_fault_user", "7.2.13+deb14", "aarch64", "v2").is_some());
        assert_eq!(lacks("handle_mm_fault", "6.1.0", "x86_64", "v2"), None);
        assert!(lacks("handle_mm_fault", "6.1.0", "aarch64", "v2").is_some());
        assert_eq!(lacks("handle_mm_fault", "6.12.107", "aarch64", "v2"), None);
        assert_eq!(lacks("tcp_retransmit_skb", "6.12.107", "x86_64", "v2"), None);
        assert!(lacks("tcp_retransmit_skb", "6.12.107", "x86_64", "v1").is_some());
    }
}
