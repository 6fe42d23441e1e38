//! What runs at the moment of a read: charged in the kernel only when it leaves its CPU.
//!
//! Its own account (`/proc/PID/schedstat`) lags by up to a tick; the wall clock counts what interrupts
//! and the hypervisor took, and believes a record that a withheld switch left behind. Each bounds the
//! other.

use tracer_ebpf::records::CpuRecord;

/// A tick, the lag of a running task's account, at 250 Hz. Where ticks are longer the estimate is low
/// by the rest of one; it is never more than this too high.
const TICK_NS: u64 = 4_000_000;

/// Time on CPU of the task that `cpu` shows, since it was last charged. `now_ns` is the run queues'
/// clock; `account` gives a task's `sum_exec_runtime` in nanoseconds, `None` where it has ended or is
/// hidden (another pid namespace).
pub fn uncharged_ns(cpu: &CpuRecord, now_ns: u64, account: impl Fn(u32) -> Option<u64>) -> u64 {
    let wall_ns = now_ns.saturating_sub(cpu.since_ns);
    match account(cpu.pid) {
        Some(sum_exec_ns) => wall_ns.min(sum_exec_ns.saturating_sub(cpu.sum_exec_ns) + TICK_NS),
        None => wall_ns,
    }
}

/// `sum_exec_runtime` of task `pid`.
pub fn read_account(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_and_the_account_bound_each_other() {
        const MS: u64 = 1_000_000;
        let cpu =
            CpuRecord { since_ns: 100 * MS, sum_exec_ns: 7 * MS, pid: 9, ..Default::default() };
        for (what, now_ms, account_ms, expected_ms) in [
            ("running, its account a tick old", 150, Some(54), 50),
            ("the hypervisor took most of it", 150, Some(17), 14),
            ("it left long ago, unseen", 900, Some(27), 24),
            ("its account is hidden", 150, None, 50),
            ("another's account", 150, Some(1), 4),
            ("the clock is behind", 99, Some(8), 0),
        ] {
            let account = |_| account_ms.map(|ms: u64| ms * MS);
            assert_eq!(uncharged_ns(&cpu, now_ms * MS, account), expected_ms * MS, "{what}");
        }
    }

    #[test]
    fn the_account_of_this_very_process_is_read() {
        assert!(read_account(std::process::id()).is_some_and(|ns| ns > 0));
        assert_eq!(read_account(u32::MAX), None);
    }
}
