//! The dashboard "Job": what its tasks slept and were blocked for, and on which file systems.

use super::{
    compose::{term, whole},
    spec::{Look, Panel, Row, Value},
};

/// Seconds of a nanosecond.
const SECONDS: f64 = 1e-9;

/// Causes of sleep as a reader names them; the rare ones stand last.
const SLEEPS: [(&str, &str); 12] = [
    ("in poll", "sleep_poll_ns"),
    ("locks", "sleep_lock_ns"),
    ("timers", "sleep_timer_ns"),
    ("sockets", "sleep_socket_ns"),
    ("pipes", "sleep_pipe_ns"),
    ("children", "sleep_child_ns"),
    ("signals", "sleep_signal_ns"),
    ("messages", "sleep_message_ns"),
    ("asynchronous I/O", "sleep_ring_ns"),
    ("drivers", "sleep_ioctl_ns"),
    ("stopped", "sleep_stopped_ns"),
    ("other", "sleep_other_ns"),
];

/// Causes of blocks, those that are I/O first.
const BLOCKS: [(&str, &str); 11] = [
    ("reading", "blocked_read_ns"),
    ("writing", "blocked_write_ns"),
    ("fsync", "blocked_sync_ns"),
    ("metadata", "blocked_metadata_ns"),
    ("page faults", "blocked_fault_ns"),
    ("loading programs", "blocked_exec_ns"),
    ("memory maps", "blocked_memory_ns"),
    ("starting children", "blocked_child_ns"),
    ("exiting", "blocked_exit_ns"),
    ("drivers", "blocked_ioctl_ns"),
    ("other", "blocked_other_ns"),
];

fn by_cause(panel: Panel, causes: &[(&'static str, &'static str)]) -> Panel {
    causes.iter().fold(panel, |panel, (legend, field)| {
        panel.line(legend, term("job_sched", Value::Rate(field)), &[])
    })
}

/// Causes over time, then file systems.
pub fn causes() -> Row {
    let asleep = Panel::new(
        Look::Stack,
        "short",
        "Asleep, by cause",
        "How many tasks slept, on average, and for what. In poll or on sockets: for the network or \
         other processes, as MPI ranks do. Locks: for other threads. Pipes (any plain read or \
         write that sleeps) and children: for other processes of the job. Idle helper threads sleep \
         all the time: what matters is what grows while cores or GPUs are idle.",
    )
    .size(12, 9);
    let blocked = Panel::new(
        Look::Stack,
        "short",
        "Blocked, by cause",
        "How many tasks were blocked, on average, and on what. Reading, writing, fsync, metadata \
         (open, stat, readdir), page faults and loading programs are I/O. Memory maps: threads that \
         wait for each other in mmap and munmap. Starting children: parents in vfork. Other: calls \
         that do not tell; io_uring's I/O is there.",
    )
    .size(12, 9);
    let files = |value| term("job_wait", value);
    let table = Panel::new(
        Look::Table,
        "s",
        "Waits for file systems",
        "Task seconds spent waiting, by kind of call and file system, local or over the network. \
         `unknown`: the call had a path and no descriptor (open, stat), or had given it away (close).",
    )
    .ask(whole(
        "waited",
        files(Value::Sum("blocked_ns_sum")).times(SECONDS),
        &["call", "fs", "mount"],
    ));
    let mean = Panel::new(
        Look::Lines,
        "ns",
        "Waits for file systems: mean",
        "How long one wait takes. A file system over the network answers within a few milliseconds; \
         if this rises while the job does the same, the file system is busy with others.",
    )
    .line(
        "{call} {fs} {mount}",
        files(Value::Ratio("blocked_ns_sum", "blocked_ns_count")),
        &["call", "fs", "mount"],
    );
    Row {
        title: "What its tasks waited for",
        each: None,
        panels: vec![by_cause(asleep, &SLEEPS), by_cause(blocked, &BLOCKS), table, mean],
    }
}
