//! The run queues' clock, told from CLOCK_MONOTONIC: needed for what runs at the moment of a read.
//!
//! No helper and no file shows that clock. But when this process wakes up, its own switch-in is
//! recorded with it: CLOCK_MONOTONIC read right after is that moment plus a few microseconds. The
//! smallest difference of several tries is the best; what runs now then seems a little too short.

use std::time::Duration;

use rustix::thread::sched_getcpu;
use tracer_ebpf::records::CpuRecord;

use crate::base::clock::monotonic_ns;

const TRIES: usize = 3;

/// How far CLOCK_MONOTONIC is ahead of the run queues' clock (it may be behind); `None` where no try
/// succeeded. `read` gives the CPUs' records.
pub fn ahead_of_run_queues(mut read: impl FnMut() -> Option<Vec<CpuRecord>>) -> Option<i64> {
    let one_try = |_| {
        std::thread::sleep(Duration::from_micros(20));
        let cpu = sched_getcpu();
        let records = read()?;
        // After the records: whatever comes between makes the difference larger, never smaller.
        let now = monotonic_ns();
        let since = records.get(cpu)?.since_ns;
        // Moved meanwhile: the record is not of our own switch.
        (sched_getcpu() == cpu).then_some(())?;
        (since != 0).then(|| now as i64 - since as i64)
    };
    (0..TRIES).filter_map(one_try).min()
}
