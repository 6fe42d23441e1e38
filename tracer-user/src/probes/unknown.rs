//! What cannot be known on this kernel, which is not zero.

use std::collections::BTreeMap;

use tracer_ebpf::settings;

use super::hooks::{FaultMode, HOOKS, HookState};

/// Fields (or whole measurements) that cannot be known on this kernel, which is not zero.
pub fn unknown_fields(
    states: &[HookState],
    globals: &BTreeMap<&'static str, u64>,
    faults: FaultMode,
) -> Vec<&'static str> {
    let attached = |program: &str| {
        HOOKS
            .iter()
            .zip(states)
            .any(|(hook, state)| hook.program == program && *state == HookState::Attached)
    };
    let entry = attached("page_fault_user") || attached("handle_mm_fault");
    let oom_kills =
        attached("mark_victim") || (attached("mark_victim_pid") && attached("victim_exit"));
    let rules: &[(bool, &[&'static str])] = &[
        (
            globals[settings::TIMES_KNOWN] == 0,
            &["run_queue_wait_ns", "on_cpu_slice_ns", "sleep_ns", "blocked_ns", "major_wait_ns"],
        ),
        (!attached("sched_process_fork"), &["forks"]),
        (!attached("sched_process_exec"), &["execs"]),
        (!oom_kills, &["oom_kills"]),
        (!attached("major_fault"), &["major_wait_ns"]),
        (!attached("block_rq_complete"), &["job_block"]),
        (
            faults == FaultMode::Full && !(entry && attached("minor_fault_latency")),
            &["minor_latency_ns", "minor_sampled", "latency_sample_every"],
        ),
        (
            faults == FaultMode::Full && !(entry && attached("major_fault_latency")),
            &["major_latency_ns"],
        ),
    ];
    rules.iter().filter(|(lost, _)| *lost).flat_map(|(_, fields)| fields.iter().copied()).collect()
}
