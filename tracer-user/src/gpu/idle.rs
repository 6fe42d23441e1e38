//! Why a GPU was idle: the idle time of each reading, split by what the job's tasks did meanwhile. Pure.
//! The definition with its reasons is docs/decisions/0014-gpu-idle.md. Refuses to guess: idle time that
//! the tasks' time does not account for is `other`.

use std::collections::VecDeque;

use super::{sleepers::Sleepers, tasks::TaskTimes, waits::Waits};
use crate::model::{group::Group, tables::Gpu};

/// Idle time that nothing accounts for waits so long for a wait to end that does.
pub const LATE_NS: u64 = 30_000_000_000;

/// Idle time by what the tasks did. The parts add up to it exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Parts {
    /// In major faults.
    pub faulting_ns: u64,
    /// Blocked on I/O otherwise; on anything where causes are not known.
    pub blocked_ns: u64,
    /// What of `blocked_ns` was for reading, writing, storing and metadata.
    pub calls_ns: [u64; 4],
    /// Blocked on what is not I/O, or not known to be; told as other.
    pub otherwise_ns: u64,
    /// Waiting for a CPU.
    pub run_queue_ns: u64,
    /// On a CPU.
    pub on_cpu_ns: u64,
    /// Nothing of these: asleep in poll or on sockets.
    pub network_ns: u64,
    /// Nothing of these: asleep for anything else, or not known.
    pub other_ns: u64,
}

impl Parts {
    /// All of it.
    pub fn sum(&self) -> u64 {
        let blocked_ns = self.faulting_ns + self.blocked_ns + self.otherwise_ns;
        let runnable_ns = self.run_queue_ns + self.on_cpu_ns;
        blocked_ns + runnable_ns + self.network_ns + self.other_ns
    }

    fn add(&mut self, more: &Self) {
        self.faulting_ns += more.faulting_ns;
        self.blocked_ns += more.blocked_ns;
        self.add_calls(more.calls_ns);
        self.otherwise_ns += more.otherwise_ns;
        self.run_queue_ns += more.run_queue_ns;
        self.on_cpu_ns += more.on_cpu_ns;
        self.network_ns += more.network_ns;
        self.other_ns += more.other_ns;
    }

    fn add_calls(&mut self, more: [u64; 4]) {
        self.calls_ns.iter_mut().zip(more).for_each(|(of, more)| *of += more);
    }
}

/// How long tasks were runnable, on a CPU or waiting for one.
fn runnable_ns(tasks: &TaskTimes) -> u128 {
    u128::from(tasks.on_cpu_ns) + u128::from(tasks.run_queue.within_ns)
}

/// Splits `idle_ns` of a device by what `tasks` did in the same stretch of time. `beside_ns` is how long
/// the job's devices were busy in it, all added up: so long tasks were runnable, on a CPU or waiting for one,
/// to feed them or to spin until they were done. That keeps none idle, and is left out first.
///
/// Each state accounts for as much idle time as the tasks spent in it; where that is more than there is,
/// the states share it in that proportion.
pub fn split(idle_ns: u64, beside_ns: u64, tasks: &TaskTimes) -> Parts {
    let (on_cpu_ns, run_queue_ns) = (tasks.on_cpu_ns, tasks.run_queue.within_ns);
    let runnable = runnable_ns(tasks);
    let beside = runnable.min(beside_ns.into());
    let on_cpu_beside = (beside * u128::from(on_cpu_ns)).checked_div(runnable).unwrap_or(0);
    let times = [
        tasks.faulting.unwrap_or_default().within_ns,
        tasks.blocked.within_ns,
        tasks.otherwise.within_ns,
        run_queue_ns - (beside - on_cpu_beside) as u64,
        on_cpu_ns - on_cpu_beside as u64,
    ];
    let total: u128 = times.iter().map(|ns| u128::from(*ns)).sum();
    let mut upto = 0_u128;
    let mut shared = 0;
    let parts = times.map(|ns| {
        if total <= u128::from(idle_ns) {
            return ns;
        }
        // Of running sums, so that roundings do not add up.
        upto += u128::from(ns);
        let next = (u128::from(idle_ns) * upto / total) as u64;
        next - std::mem::replace(&mut shared, next)
    });
    let known: u64 = parts.iter().sum();
    let [faulting_ns, blocked_ns, otherwise_ns, run_queue_ns, on_cpu_ns] = parts;
    Parts {
        faulting_ns,
        blocked_ns,
        calls_ns: tasks.calls.map_or([0; 4], |calls| calls.share(blocked_ns)),
        otherwise_ns,
        run_queue_ns,
        on_cpu_ns,
        network_ns: 0,
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
    /// Whether it is told by what the tasks did: the part that nothing accounts for is, too, from then on.
    pub is_split: bool,
    is_faulting_known: bool,
    are_calls_known: bool,
    is_sleep_known: bool,
    sleepers: Sleepers,
    /// The end of the latest stretch in which the device was busy.
    idle_from_ns: u64,
    /// What is not accounted for yet, the oldest first.
    waiting: VecDeque<Unexplained>,
}

#[derive(Clone, Copy, Debug)]
struct Unexplained {
    end_ns: u64,
    left_ns: u64,
    /// How long tasks slept meanwhile for the network, and for anything else.
    network_ns: u64,
    elsewhere_ns: u64,
}

impl Unexplained {
    /// What of the time that is left goes to the network: sleep accounts for what nothing else does.
    fn network(&self) -> u64 {
        let both = u128::from(self.network_ns) + u128::from(self.elsewhere_ns);
        if both <= u128::from(self.left_ns) {
            return self.network_ns;
        }
        (u128::from(self.left_ns) * u128::from(self.network_ns) / both) as u64
    }
}

impl Idle {
    /// Adds a reading. `tasks` is what the job's tasks did between the two readings; `None` where that is
    /// not known. `beside_ns` as in [`split`].
    pub fn add(&mut self, stretch: Stretch, beside_ns: u64, tasks: Option<&TaskTimes>) {
        let idle_ns = stretch.span_ns().saturating_sub(stretch.busy_ns);
        *self.busy_ns.get_or_insert(0) += stretch.busy_ns.min(stretch.span_ns());
        if stretch.busy_ns > 0 {
            self.idle_from_ns = stretch.end_ns;
        }
        let Some(tasks) = tasks else {
            self.parts.other_ns += idle_ns;
            return;
        };
        self.is_split = true;
        self.is_faulting_known |= tasks.faulting.is_some();
        let mut parts = split(idle_ns, beside_ns, tasks);
        let left_ns = std::mem::take(&mut parts.other_ns);
        self.parts.add(&parts);
        self.are_calls_known |= tasks.calls.is_some();
        self.is_sleep_known |= tasks.asleep.is_some();
        if let (Some(asleep), 1..) = (&tasks.asleep, stretch.busy_ns) {
            self.sleepers.see_beside_busy(asleep, stretch.busy_ns, stretch.span_ns());
        }
        if left_ns > 0 {
            // Whoever was not runnable beside a busy device may have slept until it was done.
            let runnable_ns = u64::try_from(runnable_ns(tasks)).unwrap_or(u64::MAX);
            let spare_ns = beside_ns.saturating_sub(runnable_ns);
            let reasons = |asleep| self.sleepers.reasons(asleep, stretch.span_ns(), spare_ns);
            let reasons = tasks.asleep.as_ref().map(reasons).unwrap_or_default();
            self.waiting.push_back(Unexplained {
                end_ns: stretch.end_ns,
                left_ns,
                network_ns: reasons.network.within_ns.min(left_ns),
                elsewhere_ns: reasons.elsewhere.within_ns.min(left_ns),
            });
        }
    }

    /// Lays waits that ended after `begin_ns`, and began before, over the idle time before it that nothing
    /// accounts for yet: the latest first, no further back than they reach.
    pub fn lay_back(&mut self, begin_ns: u64, tasks: &TaskTimes) {
        let waiting = &mut self.waiting;
        let mut lay = |waits: Waits| {
            let (mut over_ns, mut laid_ns) = (waits.before_ns, 0);
            for stretch in since(waiting, begin_ns.saturating_sub(waits.reach_ns)) {
                let taken = over_ns.min(stretch.left_ns);
                stretch.left_ns -= taken;
                over_ns -= taken;
                laid_ns += taken;
            }
            laid_ns
        };
        self.parts.faulting_ns += lay(tasks.faulting.unwrap_or_default());
        let blocked_ns = lay(tasks.blocked);
        self.parts.blocked_ns += blocked_ns;
        self.parts.add_calls(tasks.calls.map_or([0; 4], |calls| calls.share(blocked_ns)));
        self.parts.otherwise_ns += lay(tasks.otherwise);
        self.parts.run_queue_ns += lay(tasks.run_queue);
        waiting.retain(|stretch| stretch.left_ns > 0);
        if let Some(asleep) = &tasks.asleep {
            let reasons = self.sleepers.reasons(asleep, 0, 0);
            let mut lay = |waits: Waits, of: fn(&mut Unexplained) -> &mut u64| {
                let from_ns = begin_ns.saturating_sub(waits.reach_ns);
                // What slept while the device was busy did not wait for what idles it.
                let stretches = since(waiting, from_ns.max(self.idle_from_ns));
                lay_sleep(stretches, waits.before_ns, of);
            };
            lay(reasons.network, |of| &mut of.network_ns);
            lay(reasons.elsewhere, |of| &mut of.elsewhere_ns);
        }
    }

    /// Idle time up to `until_ns` waits no longer for what could account for it.
    pub fn settle(&mut self, until_ns: u64) {
        while let Some(oldest) = self.waiting.front().filter(|of| of.end_ns <= until_ns) {
            let network_ns = oldest.network();
            self.parts.network_ns += network_ns;
            self.parts.other_ns += oldest.left_ns - network_ns;
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
        group.set(Gpu::idle_other_ns, parts.other_ns + parts.otherwise_ns);
        if self.is_sleep_known {
            group.set(Gpu::idle_while_network_ns, parts.network_ns);
        }
        if self.are_calls_known {
            let fields = [
                Gpu::idle_while_reading_ns,
                Gpu::idle_while_writing_ns,
                Gpu::idle_while_syncing_ns,
                Gpu::idle_while_metadata_ns,
            ];
            fields.into_iter().zip(parts.calls_ns).for_each(|(field, ns)| group.set(field, ns));
        }
    }
}

/// Those of `waiting` that end after `from_ns`, the latest first.
fn since(
    waiting: &mut VecDeque<Unexplained>,
    from_ns: u64,
) -> impl Iterator<Item = &mut Unexplained> {
    waiting.iter_mut().rev().take_while(move |of| of.end_ns > from_ns)
}

/// Lays sleep of `over_ns` over stretches: as a reason, which one that comes later may still overrule.
fn lay_sleep<'a>(
    stretches: impl Iterator<Item = &'a mut Unexplained>,
    mut over_ns: u64,
    of: fn(&mut Unexplained) -> &mut u64,
) {
    for stretch in stretches {
        let left_ns = stretch.left_ns;
        let laid = of(stretch);
        let taken = over_ns.min(left_ns.saturating_sub(*laid));
        *laid += taken;
        over_ns -= taken;
    }
}

#[cfg(test)]
mod sleep_tests;
#[cfg(test)]
mod tests;
