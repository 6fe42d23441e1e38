//! Which blocks of tasks are waits for files, and which are I/O.

use tracer_ebpf::{
    handle::{Handle, Number},
    tables::wait::FILE_CALLS,
};

use super::{group::Group, tables::Sched};

/// Blocks in calls on files, with the kind of call as `job_wait` has it.
pub const ON_FILES: [(Handle<Number>, &str); FILE_CALLS.len()] = [
    (Sched::blocked_read_ns, FILE_CALLS[0]),
    (Sched::blocked_write_ns, FILE_CALLS[1]),
    (Sched::blocked_sync_ns, FILE_CALLS[2]),
    (Sched::blocked_metadata_ns, FILE_CALLS[3]),
];
/// Other blocks that are I/O: pages and programs are read. What is `other` may be I/O or not.
const READ_IN: [Handle<Number>; 2] = [Sched::blocked_fault_ns, Sched::blocked_exec_ns];

/// Time blocked in each kind of call on files; `None` where causes are unknown.
pub fn on_files_ns(sched: &Group) -> Option<[u64; FILE_CALLS.len()]> {
    let mut all_ns = [0; FILE_CALLS.len()];
    for (ns, (field, _)) in all_ns.iter_mut().zip(ON_FILES) {
        *ns = sched.number(field)?;
    }
    Some(all_ns)
}

/// Time blocked on I/O; `None` where causes are unknown.
pub fn io_ns(sched: &Group) -> Option<u64> {
    let mut sum_ns = 0_u64;
    for ns in on_files_ns(sched)? {
        sum_ns = sum_ns.saturating_add(ns);
    }
    let add =
        |sum_ns: u64, field: Handle<Number>| Some(sum_ns.saturating_add(sched.number(field)?));
    READ_IN.into_iter().try_fold(sum_ns, add)
}
