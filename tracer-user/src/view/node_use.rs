//! What each node of a job used at its most: advice is for the fullest of them, since a scheduler gives all the same.

use crate::{
    model::{
        parts::Part,
        tables::{GPU, SCHED, Sched},
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
    /// GPUs held.
    pub gpus: usize,
    /// Those that a process of the job was on.
    pub gpus_used: usize,
}

impl NodeUse {
    /// Of the node that `totals` are of.
    pub fn of(totals: &RunTotals) -> Self {
        let on_cpu_ns = totals.stats.group(&SCHED).and_then(|group| group.number(Sched::on_cpu_ns));
        let mean = millicores(on_cpu_ns.unwrap_or(0), totals.elapsed_ns).unwrap_or(0);
        let tasks = totals.parts.listed.iter().filter(|part| part.is_task());
        let of_task = |part: &Part| {
            let until = part.seen.or(part.end)?;
            millicores(part.on_cpu_ns?, until.checked_sub(part.begin)?)
        };
        Self {
            busiest_millicores: totals.peaks.millicores.max(mean),
            busiest_task_millicores: tasks.filter_map(of_task).max().unwrap_or(0),
            gpus: totals.stats.groups(&GPU).count(),
            gpus_used: totals.stats.groups(&GPU).filter(|group| !is_unused(group)).count(),
        }
    }
}

/// Cores busy on average over `elapsed_ns`, in thousandths; `None` where that is no time.
pub(crate) fn millicores(on_cpu_ns: u64, elapsed_ns: u64) -> Option<u64> {
    let used = (u128::from(on_cpu_ns) * 1000).checked_div(u128::from(elapsed_ns))?;
    // What ran a little did not run not at all.
    Some(u64::try_from(used).unwrap_or(u64::MAX).max(on_cpu_ns.min(1)))
}
