//! Each CPU once.

use std::thread::Builder;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Threads that share the CPUs: where others compute, each CPU's turn comes after some ms.
const THREADS: usize = 8;

/// Has each CPU that this process is bound to leave what it runs, for as long as it takes to come and go: the kernel's
/// programs see a task when it leaves or enters a CPU, and so those, too, that would run on for long. In threads that
/// nobody waits for: where a real-time task runs, their turn may come late.
pub fn enter_each() {
    let Ok(bound) = sched_getaffinity(None) else { return };
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| bound.is_set(*cpu)).collect();
    for share in cpus.chunks(cpus.len().div_ceil(THREADS).max(1)) {
        let share = share.to_vec();
        // Without a thread what runs there is seen when it leaves by itself.
        let _ = Builder::new()
            .name("enter-cpus".into())
            .spawn(move || share.into_iter().for_each(enter));
    }
}

fn enter(cpu: usize) {
    let first = libc::sched_param { sched_priority: 99 };
    // SAFETY: the parameter is there as long as the call. Where it is refused (CAP_SYS_NICE) its turn comes as others'.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const first) };
    let mut one = CpuSet::new();
    one.set(cpu);
    // It may be gone by now.
    let _ = sched_setaffinity(None, &one);
}
