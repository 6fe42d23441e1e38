//! What cannot be known on this kernel, which is not zero.

use tracer_ebpf::settings::waits;

use super::{
    drain::Probes,
    hooks::{HOOKS, HookRow},
    needs::CAUSES,
    options::{FaultMode, WaitMode},
};
use crate::{
    bpf::hook::HookState,
    model::tables::{Sched, WAIT},
};

/// Fields (or whole measurements) that cannot be known where the hooks fared as `states` say: of those that
/// were asked for, some hook feeds them and neither it nor an alternative that does so too is attached.
pub fn unknown_fields(states: &[HookState], faults: FaultMode) -> Vec<&'static str> {
    let is_attached = |row: &HookRow| {
        let mut all = HOOKS.iter().zip(states);
        all.any(|(other, state)| std::ptr::eq(row, other) && *state == HookState::Attached)
    };
    let feeds_too = |group: &str, field: &str| {
        HOOKS.iter().filter(|row| is_attached(row)).any(|row| {
            let is_of_it = row.hook.group == group || row.hook.covers.contains(&group);
            is_of_it && row.feeds.contains(&field)
        })
    };
    let mut unknown = Vec::new();
    for row in HOOKS.iter().filter(|row| !row.family.row().full_only || faults == FaultMode::Full) {
        for field in row.feeds {
            if !feeds_too(row.hook.group, field) && !unknown.contains(field) {
                unknown.push(field);
            }
        }
    }
    unknown
}

/// What of waits cannot be known where the setting `WAITS` is `waits`.
pub fn unknown_waits(waits: u64) -> Vec<&'static str> {
    let mut unknown = Vec::new();
    if waits == waits::OFF {
        unknown.extend(CAUSES);
    }
    if waits != waits::FILES {
        unknown.push(WAIT.name);
    }
    unknown
}

impl Probes {
    /// Fields and whole measurements that cannot be known here.
    pub fn unknown(&self) -> &[&'static str] {
        self.readings.unknown()
    }

    /// What of waits was `asked` for and this kernel cannot tell, in words, and why.
    pub fn missing_waits(&self, asked: WaitMode) -> Option<(&'static str, &'static str)> {
        missing_waits(self.readings.unknown(), asked)
    }
}

fn missing_waits(unknown: &[&str], asked: WaitMode) -> Option<(&'static str, &'static str)> {
    let lacks = |name: &str| unknown.contains(&name);
    match asked {
        WaitMode::Calls | WaitMode::Files if lacks(CAUSES[0]) => Some((
            "what tasks sleep and are blocked for",
            if lacks(Sched::sleep_ns.field().name) {
                "for how long is unknown too"
            } else {
                "its types do not show the call that a task is in"
            },
        )),
        WaitMode::Files if lacks(WAIT.name) => {
            Some(("job_wait", "its types do not show the file system of a file"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is unknown where these programs alone are attached.
    fn unknown(programs: &[&str], faults: FaultMode) -> Vec<&'static str> {
        let state = |row: &HookRow| {
            if programs.contains(&row.hook.program) {
                HookState::Attached
            } else {
                HookState::Missing(String::new())
            }
        };
        let mut unknown = unknown_fields(&HOOKS.iter().map(state).collect::<Vec<_>>(), faults);
        unknown.sort_unstable();
        unknown
    }

    /// Not attached on a new kernel, where another of their group is.
    const ALTERNATIVES: [&str; 18] = [
        "cgroup_attach_self",
        "sched_switch_3",
        "switch_untimed",
        "switch_untimed_3",
        "mark_victim_pid",
        "victim_exit",
        "handle_mm_fault",
        "inet_sendmsg",
        "inet6_sendmsg",
        "unix_stream_sendmsg",
        "unix_dgram_sendmsg",
        "inet_sendpage",
        "unix_stream_sendpage",
        "inet_recvmsg",
        "inet6_recvmsg",
        "unix_stream_recvmsg",
        "unix_dgram_recvmsg",
        "tcp_retransmit_sent",
    ];

    /// What a new kernel attaches, with other programs for one.
    fn with(program: &str, others: &[&'static str]) -> Vec<&'static str> {
        let programs = HOOKS.iter().map(|row| row.hook.program);
        let kept = programs.filter(|name| *name != program && !ALTERNATIVES.contains(name));
        kept.chain(others.iter().copied()).collect()
    }

    #[test]
    fn alternatives_feed_the_same() {
        use FaultMode::{Full, Major};
        assert!(unknown(&with("", &[]), Full).is_empty());
        for (program, others) in [
            ("sched_switch", &["sched_switch_3"][..]),
            ("mark_victim", &["mark_victim_pid", "victim_exit"]),
            ("page_fault_user", &["handle_mm_fault"]),
            (
                "sock_send_length",
                &[
                    "inet_sendmsg",
                    "inet6_sendmsg",
                    "unix_stream_sendmsg",
                    "unix_dgram_sendmsg",
                    "inet_sendpage",
                    "unix_stream_sendpage",
                ],
            ),
            (
                "sock_recv_length",
                &["inet_recvmsg", "inet6_recvmsg", "unix_stream_recvmsg", "unix_dgram_recvmsg"],
            ),
            ("tcp_retransmit_skb", &["tcp_retransmit_sent"]),
            ("sock_splice_read", &[]),
            ("cgroup_mkdir", &[]),
        ] {
            assert!(unknown(&with(program, others), Full).is_empty(), "{others:?}");
        }
        assert!(unknown(&with("page_fault_user", &[]), Major).is_empty());
    }

    #[test]
    fn what_nobody_feeds_is_unknown_and_nothing_else() {
        let mut times = unknown_waits(waits::OFF);
        times.extend([
            "blocked_ns",
            "major_wait_ns",
            "on_cpu_slice_ns",
            "run_queue_wait_ns",
            "sleep_ns",
        ]);
        times.sort_unstable();
        let minor = ["latency_sample_every", "minor_latency_ns", "minor_sampled"];
        let latencies =
            ["latency_sample_every", "major_latency_ns", "minor_latency_ns", "minor_sampled"];
        for (program, others, lost) in [
            ("sched_process_fork", &[][..], &["forks"][..]),
            ("sched_process_exec", &[], &["execs"]),
            ("mark_victim", &["mark_victim_pid"], &["oom_kills"]),
            ("mark_victim", &["victim_exit"], &["oom_kills"]),
            ("block_rq_complete", &[], &["job_block"]),
            ("sock_send_length", &[], &["sent_bytes", "sent_calls"]),
            ("sock_recv_length", &[], &["received_bytes", "received_calls"]),
            ("tcp_retransmit_skb", &[], &["retransmits"]),
            ("inet_sock_set_state", &[], &["connections"]),
            ("major_fault", &[], &["major_wait_ns"]),
            ("minor_fault_latency", &[], &minor),
            ("major_fault_latency", &[], &["major_latency_ns"]),
            ("page_fault_user", &[], &latencies),
            ("sched_switch", &["switch_untimed"], &times),
        ] {
            assert_eq!(unknown(&with(program, others), FaultMode::Full), lost, "without {program}");
        }
    }

    #[test]
    fn only_what_was_asked_for_is_missing() {
        use WaitMode::{Calls, Files, Off};
        let gives = |unknown: &[&str], asked| missing_waits(unknown, asked).map(|(gives, _)| gives);
        let (none, calls) = (unknown_waits(waits::OFF), unknown_waits(waits::CALLS));
        let causes = Some("what tasks sleep and are blocked for");
        assert_eq!([Off, Calls, Files].map(|asked| gives(&none, asked)), [None, causes, causes]);
        let files = Some("job_wait");
        assert_eq!([Off, Calls, Files].map(|asked| gives(&calls, asked)), [None, None, files]);
        assert_eq!(gives(&unknown_waits(waits::FILES), Files), None);
    }
}
