//! What runs at the moment of a read: charged in the kernel only when it leaves its CPU.
//!
//! Its own account (`/proc/PID/schedstat`) lags by up to a tick; the wall clock counts what interrupts
//! and the hypervisor took, and believes a record that a withheld switch left behind. Each bounds the
//! other.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use tracer_ebpf::records::CpuRecord;

use crate::model::{
    group::Group,
    lease::Lease,
    tables::{SCHED, Sched},
};

/// A tick, the lag of a running task's account, at 250 Hz. Where ticks are longer the estimate is low
/// by the rest of one; it is never more than this too high.
const TICK_NS: u64 = 4_000_000;

/// Time on CPU of the task that `cpu` shows, since it was last charged. `now_ns` is the run queues'
/// clock; `account` gives a task's `sum_exec_runtime` in nanoseconds, `None` where it has ended or is
/// hidden (another pid namespace): then `has_left` tells whether it was charged elsewhere since, which is asked only
/// where much depends on it.
pub fn uncharged_ns(
    cpu: &CpuRecord,
    now_ns: u64,
    account: impl Fn(u32) -> Option<u64>,
    has_left: impl Fn(&CpuRecord) -> bool,
) -> u64 {
    let wall_ns = now_ns.saturating_sub(cpu.since_ns);
    match account(cpu.pid) {
        Some(sum_exec_ns) => wall_ns.min(sum_exec_ns.saturating_sub(cpu.sum_exec_ns) + TICK_NS),
        None if wall_ns > TICK_NS && has_left(cpu) => 0,
        None => wall_ns,
    }
}

/// Of the CPUs that show one task, the last that it entered: it left the others unseen.
pub fn one_each(mut cpus: Vec<CpuRecord>) -> Vec<CpuRecord> {
    cpus.sort_by_key(|cpu| (cpu.pid, cpu.task, Reverse(cpu.since_ns)));
    cpus.dedup_by_key(|cpu| (cpu.pid, cpu.task));
    cpus
}

/// `sum_exec_runtime` of task `pid`.
pub fn read_account(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// `on_cpu_ns` as last reported, which never shrinks though a part of it is an estimate.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reported {
    ns: BTreeMap<Lease, u64>,
    /// What was reported of the kernel's own charge at that time.
    charged_ns: BTreeMap<Lease, u64>,
    /// Reported, and never charged: the hook was away.
    uncharged_ns: BTreeMap<Lease, u64>,
}

impl Reported {
    /// Adds `running_ns`, what runs now, to the `on_cpu_ns` of `lease`.
    pub fn report(&mut self, lease: Lease, groups: &mut [Group], running_ns: u64) {
        let Some(sched) = sched(groups) else { return };
        let Some(charged) = sched.number(Sched::on_cpu_ns) else { return };
        let uncharged = self.uncharged_ns.get(&lease).copied().unwrap_or(0);
        let reported = self.ns.entry(lease).or_default();
        *reported = (*reported).max(charged + running_ns + uncharged);
        self.charged_ns.insert(lease, charged);
        sched.set(Sched::on_cpu_ns, *reported);
    }

    /// The tasks were forgotten: what was reported ahead of the kernel's charge is never charged.
    pub fn resume(&mut self) {
        for (lease, reported) in &self.ns {
            let charged = self.charged_ns.get(lease).copied().unwrap_or(0);
            self.uncharged_ns.insert(*lease, reported.saturating_sub(charged));
        }
    }

    /// Forgets a lease that has ended, whose last values were reported.
    pub fn forget(&mut self, lease: Lease) {
        self.ns.remove(&lease);
        self.charged_ns.remove(&lease);
        self.uncharged_ns.remove(&lease);
    }
}

fn sched(groups: &mut [Group]) -> Option<&mut Group> {
    groups.iter_mut().find(|group| group.is(&SCHED))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_cpu(ns: u64) -> Vec<Group> {
        let mut group = Group::unknown(&SCHED, Vec::new());
        group.set(Sched::on_cpu_ns, ns);
        vec![group]
    }

    #[test]
    fn tasks_that_were_forgotten_count_on_from_what_was_reported() {
        let mut reported = Reported::default();
        let report = |reported: &mut Reported, charged, running| {
            let mut groups = on_cpu(charged);
            reported.report(1, &mut groups, running);
            groups[0].number(Sched::on_cpu_ns).unwrap()
        };
        assert_eq!(report(&mut reported, 5, 90), 95, "a hog, hardly charged yet");
        assert_eq!(report(&mut reported, 6, 0), 95, "the switch hook is detached");
        reported.resume();
        assert_eq!(report(&mut reported, 6, 0), 95);
        assert_eq!(report(&mut reported, 8, 10), 107, "what came since, and nothing of the gap");
        assert_eq!(report(&mut reported, 9, 10), 108);
        assert_eq!(report(&mut reported, 9, 0), 108, "never less than before");
    }

    #[test]
    fn the_wall_clock_and_the_account_bound_each_other() {
        const MS: u64 = 1_000_000;
        let cpu =
            CpuRecord { since_ns: 100 * MS, sum_exec_ns: 7 * MS, pid: 9, ..Default::default() };
        for (what, now_ms, account_ms, has_left, expected_ms) in [
            ("running, its account a tick old", 150, Some(54), false, 50),
            ("the hypervisor took most of it", 150, Some(17), false, 14),
            ("it left long ago, unseen", 900, Some(27), true, 24),
            ("its account is hidden", 150, None, false, 50),
            ("it ended elsewhere", 150, None, true, 0),
            ("it ended a moment ago", 103, None, true, 3),
            ("another's account", 150, Some(1), false, 4),
            ("the clock is behind", 99, Some(8), false, 0),
        ] {
            let account = |_| account_ms.map(|ms: u64| ms * MS);
            let ns = uncharged_ns(&cpu, now_ms * MS, account, |_| has_left);
            assert_eq!(ns, expected_ms * MS, "{what}");
        }
    }

    #[test]
    fn a_task_runs_on_one_cpu() {
        let cpu =
            |pid, since_ns| CpuRecord { pid, task: pid.into(), since_ns, ..Default::default() };
        let shown = one_each(vec![cpu(7, 10), cpu(8, 5), cpu(7, 30), cpu(7, 20)]);
        assert_eq!(
            shown.iter().map(|cpu| (cpu.pid, cpu.since_ns)).collect::<Vec<_>>(),
            [(7, 30), (8, 5)]
        );
    }

    #[test]
    fn the_account_of_this_very_process_is_read() {
        assert!(read_account(std::process::id()).is_some_and(|ns| ns > 0));
        assert_eq!(read_account(u32::MAX), None);
    }
}
