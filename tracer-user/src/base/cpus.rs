//! Each CPU once.

use std::thread::Builder;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Has each CPU that this process may run on leave what it runs, for as long as it takes to come and go: what is seen of a
/// task when it leaves or enters a CPU is seen of those, too, that would run on for long. In a thread that nobody waits for:
/// where a real-time task runs, its turn may come late.
pub fn enter_each() {
    // Without a thread they are seen when they leave by themselves.
    let _ = Builder::new().name("enter-cpus".into()).spawn(|| {
        let first = libc::sched_param { sched_priority: 99 };
        // SAFETY: the parameter is there as long as the call. Where it is refused (CAP_SYS_NICE) it waits for its turn.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const first) };
        for cpu in 0..CpuSet::MAX_CPU {
            let mut one = CpuSet::new();
            one.set(cpu);
            // There is no such CPU, or it is not for this process.
            let _ = sched_setaffinity(None, &one);
        }
    });
}
