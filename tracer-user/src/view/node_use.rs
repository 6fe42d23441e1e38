//! What each node of a job used at its most: advice is for the fullest of them, since a scheduler gives all the same.

use crate::{
    model::{
        group::Group,
        needed::{MEMORY_IS_SHORT, Needed},
        parts::Part,
        tables::{GPU, MEMORY, Memory, SCHED, Sched},
        totals::RunTotals,
    },
    view::gpu_idle::is_unused,
};

/// Of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeUse {
    /// Cores busy over the busiest interval, in thousandths.
    pub busiest_millicores: u64,
    /// Cores busy on average in the task that computed most, in thousandths; 0 where tasks are not known.
    pub busiest_task_millicores: u64,
    /// CPUs that its tasks ran on, in thousandths: as many as busy as the busiest one make its time on CPU.
    pub ran_on_millicpus: Option<u64>,
    /// Whether that is a single one.
    pub is_on_one_cpu: bool,
    /// GPUs held.
    pub gpus: usize,
    /// Those that a process of the job was on.
    pub gpus_used: usize,
    /// Memory needed at its peak, where a reading told file cache apart.
    pub memory: Option<Needed>,
    /// Memory charged at its peak, and the limit of that, bytes.
    pub charged: Option<(u64, u64)>,
}

impl NodeUse {
    /// Cores busy at the busiest moment in each of `tasks`, in thousandths; of tasks that are known the busiest one's.
    pub fn busiest_of_task(&self, tasks: u64) -> u64 {
        (self.busiest_millicores / tasks.max(1)).max(self.busiest_task_millicores)
    }

    /// Whether nearly all the memory allowed was charged.
    pub fn is_full(&self) -> bool {
        self.charged.is_some_and(|(peak, limit)| peak as f64 >= limit as f64 * MEMORY_IS_SHORT)
    }

    /// Of the node that `totals` are of; the job may have been killed for lack of memory.
    pub fn of(totals: &RunTotals, was_killed: bool) -> Self {
        let on_cpu_ns = totals.stats.group(&SCHED).and_then(|group| group.number(Sched::on_cpu_ns));
        let mean = millicores(on_cpu_ns.unwrap_or(0), totals.counted_ns(1)).unwrap_or(0);
        let memory = totals.stats.group(&MEMORY);
        let charged = |memory: &Group| {
            memory.number(Memory::peak_bytes).zip(memory.number(Memory::limit_bytes))
        };
        let tasks = totals.parts.listed.iter().filter(|part| part.is_task());
        let of_task = |part: &Part| {
            let until = part.seen.or(part.end)?;
            millicores(part.on_cpu_ns?, until.checked_sub(part.begin)?)
        };
        let sched = |field| totals.stats.group(&SCHED)?.number(field);
        let is_on_one_cpu = sched(Sched::cpus_used) == Some(1);
        let ran_on = |busiest_ns| millicores(on_cpu_ns?, busiest_ns);
        let ran_on = sched(Sched::busiest_cpu_ns).and_then(ran_on);
        Self {
            // What runs now is in the sum alone.
            ran_on_millicpus: if is_on_one_cpu { Some(1_000) } else { ran_on },
            is_on_one_cpu,
            busiest_millicores: totals.peaks.millicores.max(mean),
            busiest_task_millicores: tasks.filter_map(of_task).max().unwrap_or(0),
            gpus: totals.stats.groups(&GPU).count(),
            gpus_used: totals.stats.groups(&GPU).filter(|group| !is_unused(group)).count(),
            memory: memory.and_then(|memory| Needed::of(memory, was_killed)),
            charged: memory.and_then(charged),
        }
    }
}

/// Cores busy on average over `elapsed_ns`, in thousandths; `None` where that is no time.
pub(crate) fn millicores(on_cpu_ns: u64, elapsed_ns: u64) -> Option<u64> {
    let used = (u128::from(on_cpu_ns) * 1000).checked_div(u128::from(elapsed_ns))?;
    // What ran a little did not run not at all.
    Some(u64::try_from(used).unwrap_or(u64::MAX).max(on_cpu_ns.min(1)))
}
