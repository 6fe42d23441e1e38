//! Why a GPU was idle: the idle time of each reading, split by what the job's tasks did meanwhile. Pure.
//! The definition with its reasons is docs/decisions/0014-gpu-idle.md. Refuses to guess: idle time that
//! the tasks' time does not account for is `other`.

use std::collections::VecDeque;

use super::tasks::{TaskTimes, Waits};
use crate::model::{group::Group, tables::Gpu};

/// Idle time that nothing accounts for waits so long for a wait to end that does.
pub const LATE_NS: u64 = 30_000_000_000;

/// Idle time by what the tasks did. The parts add up to it exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Parts {
    /// In major faults.
    pub faulting_ns: u64,
    /// Blocked in the kernel otherwise: I/O.
    pub blocked_ns: u64,
    /// Waiting for a CPU.
    pub run_queue_ns: u64,
    /// On a CPU.
    pub on_cpu_ns: u64,
    /// Nothing of these: asleep, or not known.
    pub other_ns: u64,
}

impl Parts {
    /// All of it.
    pub fn sum(&self) -> u64 {
        let known = self.faulting_ns + self.blocked_ns + self.run_queue_ns + self.on_cpu_ns;
        known + self.other_ns
    }

    fn add(&mut self, more: &Self) {
        self.faulting_ns += more.faulting_ns;
        self.blocked_ns += more.blocked_ns;
        self.run_queue_ns += more.run_queue_ns;
        self.on_cpu_ns += more.on_cpu_ns;
        self.other_ns += more.other_ns;
    }
}

/// Splits `idle_ns` of a device by what `tasks` did in the same stretch of time. `beside_ns` is how long
/// the job's devices were busy in it, all added up: so long tasks were runnable, on a CPU or waiting for one,
/// to feed them or to spin until they were done. That keeps none idle, and is left out first.
///
/// Each state accounts for as much idle time as the tasks spent in it; where that is more than there is,
/// the states share it in that proportion.
pub fn split(idle_ns: u64, beside_ns: u64, tasks: &TaskTimes) -> Parts {
    let (on_cpu_ns, run_queue_ns) = (tasks.on_cpu_ns, tasks.run_queue.within_ns);
    let runnable = u128::from(on_cpu_ns) + u128::from(run_queue_ns);
    let beside = runnable.min(beside_ns.into());
    let on_cpu_beside = (beside * u128::from(on_cpu_ns)).checked_div(runnable).unwrap_or(0);
    let times = [
        tasks.faulting.unwrap_or_default().within_ns,
        tasks.blocked.within_ns,
        run_queue_ns - (beside - on_cpu_beside) as u64,
        on_cpu_ns - on_cpu_beside as u64,
    ];
    let total: u128 = times.iter().map(|ns| u128::from(*ns)).sum();
    let mut upto = 0_u128;
    let mut shared = 0;
    let mut parts = times.map(|ns| {
        if total <= u128::from(idle_ns) {
            return ns;
        }
        // Of running sums, so that roundings do not add up.
        upto += u128::from(ns);
        let next = (u128::from(idle_ns) * upto / total) as u64;
        next - std::mem::replace(&mut shared, next)
    });
    let [faulting_ns, blocked_ns, run_queue_ns, on_cpu_ns] = &mut parts;
    let known = *faulting_ns + *blocked_ns + *run_queue_ns + *on_cpu_ns;
    Parts {
        faulting_ns: *faulting_ns,
        blocked_ns: *blocked_ns,
        run_queue_ns: *run_queue_ns,
        on_cpu_ns: *on_cpu_ns,
        other_ns: idle_ns - known,
    }
}

/// One reading of a device: how long it was busy and idle since the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stretch {
    /// CLOCK_MONOTONIC of the reading before.
    pub begin_ns: u64,
    /// CLOCK_MONOTONIC of the reading.
    pub end_ns: u64,
    /// Time in which a kernel ran.
    pub busy_ns: u64,
}

impl Stretch {
    /// Its length.
    pub fn span_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// A device's idle time while a job has it, added up.
#[derive(Clone, Debug, Default)]
pub struct Idle {
    busy_ns: Option<u64>,
    parts: Parts,
    is_split: bool,
    is_faulting_known: bool,
    /// What is not accounted for yet, the oldest first.
    waiting: VecDeque<Unexplained>,
}

#[derive(Clone, Copy, Debug)]
struct Unexplained {
    end_ns: u64,
    left_ns: u64,
}

impl Idle {
    /// Adds a reading. `tasks` is what the job's tasks did between the two readings; `None` where that is
    /// not known. `beside_ns` as in [`split`].
    pub fn add(&mut self, stretch: Stretch, beside_ns: u64, tasks: Option<&TaskTimes>) {
        let idle_ns = stretch.span_ns().saturating_sub(stretch.busy_ns);
        *self.busy_ns.get_or_insert(0) += stretch.busy_ns.min(stretch.span_ns());
        let Some(tasks) = tasks else {
            self.parts.other_ns += idle_ns;
            return;
        };
        self.is_split = true;
        self.is_faulting_known |= tasks.faulting.is_some();
        let mut parts = split(idle_ns, beside_ns, tasks);
        let left_ns = std::mem::take(&mut parts.other_ns);
        self.parts.add(&parts);
        if left_ns > 0 {
            self.waiting.push_back(Unexplained { end_ns: stretch.end_ns, left_ns });
        }
    }

    /// Lays waits that ended after `begin_ns`, and began before, over the idle time before it that nothing
    /// accounts for yet: the latest first, no further back than they reach.
    pub fn lay_back(&mut self, begin_ns: u64, tasks: &TaskTimes) {
        let (waiting, parts) = (&mut self.waiting, &mut self.parts);
        let mut lay = |waits: Waits, part: &mut u64| {
            let mut over_ns = waits.before_ns;
            let from_ns = begin_ns.saturating_sub(waits.reach_ns);
            for stretch in waiting.iter_mut().rev().take_while(|of| of.end_ns > from_ns) {
                let taken = over_ns.min(stretch.left_ns);
                stretch.left_ns -= taken;
                over_ns -= taken;
                *part += taken;
            }
        };
        lay(tasks.faulting.unwrap_or_default(), &mut parts.faulting_ns);
        lay(tasks.blocked, &mut parts.blocked_ns);
        lay(tasks.run_queue, &mut parts.run_queue_ns);
        waiting.retain(|stretch| stretch.left_ns > 0);
    }

    /// Idle time up to `until_ns` waits no longer for what could account for it.
    pub fn settle(&mut self, until_ns: u64) {
        while let Some(oldest) = self.waiting.front().filter(|of| of.end_ns <= until_ns) {
            self.parts.other_ns += oldest.left_ns;
            self.waiting.pop_front();
        }
    }

    /// Sets the fields of `job_gpu`.
    pub fn tell(&self, group: &mut Group) {
        let Some(busy_ns) = self.busy_ns else { return };
        group.set(Gpu::busy_ns, busy_ns);
        group.set(Gpu::idle_ns, self.parts.sum());
        if !self.is_split {
            return;
        }
        let parts = &self.parts;
        let faulting_ns = self.is_faulting_known.then_some(parts.faulting_ns);
        group.set(Gpu::idle_while_blocked_ns, parts.blocked_ns);
        group.set(Gpu::idle_while_run_queue_ns, parts.run_queue_ns);
        group.set(Gpu::idle_while_faulting_ns, faulting_ns);
        group.set(Gpu::idle_while_on_cpu_ns, parts.on_cpu_ns);
        group.set(Gpu::idle_other_ns, parts.other_ns);
    }
}

#[cfg(test)]
mod tests;
