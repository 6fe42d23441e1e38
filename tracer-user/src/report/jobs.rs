//! Jobs side by side: a row for each run, of its heads alone.

mod table;

pub use table::{csv, table};

use serde::Serialize;

use super::idle::{Cores, idle_gpu_ns};
use crate::{
    base::units::{UNKNOWN, bytes},
    model::end_reason::{EndReason, ended_for_memory},
    record::{head::Head, select::Run},
    view::rules::Saves,
};

/// Agents save what runs every few minutes, and push it every few hours at most.
const LOST_NS: u64 = 86_400_000_000_000;

/// A run of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The job's id; texts are empty where unknown.
    pub job: String,
    /// Its scheduler.
    pub manager: String,
    /// Its owner.
    pub user: String,
    /// Account or project.
    pub account: String,
    /// Partition or queue.
    pub partition: String,
    /// Its name.
    pub name: String,
    /// `running`, `lost`, `ended`, `succeeded`, `failed`, `out_of_memory`, `time_limit`.
    pub state: &'static str,
    /// Nodes that there are records of.
    pub nodes: u64,
    /// Start, nanoseconds since the Unix epoch.
    pub start: u64,
    /// End; unknown while it runs.
    pub end: Option<u64>,
    /// Up to when it was counted.
    pub seen: u64,
    /// Time for which it was counted, where that is longest of its nodes: its own, whatever its steps took.
    pub elapsed_ns: u64,
    /// How long it took, counted or not.
    pub took_ns: u64,
    /// Time on CPU of all tasks.
    pub on_cpu_ns: Option<u64>,
    /// Time of its tasks waiting for a CPU.
    pub run_queue_wait_ns: Option<u64>,
    /// Time of its tasks blocked.
    pub blocked_ns: Option<u64>,
    /// Cores that it may use on all nodes, in thousandths.
    pub millicores_held: Option<u64>,
    /// Core time held.
    pub core_held_ns: Option<u64>,
    /// Part of it in which it was counted what was used.
    pub core_counted_ns: Option<u64>,
    /// Memory needed on the fullest node, at least.
    pub memory_used_peak_bytes: Option<u64>,
    /// And at most, where nobody knows it better.
    pub memory_used_most_bytes: Option<u64>,
    /// The largest limit of a node.
    pub memory_limit_bytes: Option<u64>,
    /// GPU time held.
    pub gpu_held_ns: Option<u64>,
    /// GPU time in which a kernel ran.
    pub gpu_busy_ns: Option<u64>,
    /// Read from and written to local disks.
    pub disk_bytes: Option<u64>,
    /// Sent and received.
    pub net_bytes: Option<u64>,
    /// Core time held and not used, of the nodes that tell both.
    pub idle_core_ns: u64,
    /// GPU time held and not used, of the records that tell both.
    pub idle_gpu_ns: u64,
    /// Files of its records.
    pub files: Vec<String>,
}

impl Row {
    /// Memory needed on the fullest node, `≥` before it where it may have been more.
    pub fn memory_shown(&self, unicode: bool) -> String {
        // Who was killed for it would have needed more.
        let is_more = self.memory_used_most_bytes > self.memory_used_peak_bytes
            || self.state == EndReason::OutOfMemory.word();
        let sign = match (is_more, unicode) {
            (false, _) => "",
            (true, true) => "≥ ",
            (true, false) => ">= ",
        };
        self.memory_used_peak_bytes
            .map_or(UNKNOWN.to_owned(), |used| format!("{sign}{}", bytes(used)))
    }
}

impl From<&Run> for Row {
    fn from(run: &Run) -> Self {
        let heads = || run.parts.iter().map(|(_, head)| head);
        let text = |of: fn(&Head) -> &Option<String>| {
            heads().find_map(|head| of(head).clone()).unwrap_or_default()
        };
        let sum = |of: fn(&Head) -> Option<u64>| heads().filter_map(of).reduce(u64::saturating_add);
        let most = |of: fn(&Head) -> Option<u64>| heads().filter_map(of).max();
        let mut nodes: Vec<_> = heads().map(|head| &head.host).collect();
        nodes.sort();
        nodes.dedup();
        let of_node = |node: &Option<String>| -> Vec<&Head> {
            heads().filter(|head| head.host == *node).collect()
        };
        let elapsed_ns = nodes.iter().map(|node| elapsed_ns(&of_node(node))).max().unwrap_or(0);
        let idle_core_ns = |node| Cores::idle_ns(of_node(node).into_iter().map(Cores::of));
        Self {
            job: text(|head| &head.job),
            manager: text(|head| &head.manager),
            user: text(|head| &head.user),
            account: text(|head| &head.account),
            partition: text(|head| &head.partition),
            name: text(|head| &head.name),
            state: state(run),
            nodes: nodes.len() as u64,
            start: heads().filter_map(|head| head.start).min().unwrap_or(run.begin_ns()),
            end: most(|head| head.end).filter(|_| has_ended(run)),
            seen: run.seen_ns(),
            elapsed_ns,
            // That of one of its parts may be all of it.
            took_ns: most(|head| head.took_ns).map_or(elapsed_ns, |ns| ns.max(elapsed_ns)),
            on_cpu_ns: sum(|head| head.on_cpu_ns),
            run_queue_wait_ns: sum(|head| head.run_queue_wait_ns),
            blocked_ns: sum(|head| head.blocked_ns),
            millicores_held: nodes
                .iter()
                .filter_map(|node| {
                    of_node(node).iter().filter_map(|head| head.millicores_held).max()
                })
                .reduce(u64::saturating_add),
            core_held_ns: sum(|head| head.core_held_ns),
            core_counted_ns: sum(Head::core_counted_ns),
            memory_used_peak_bytes: most(|head| head.memory_used_peak_bytes),
            memory_used_most_bytes: most(|head| head.memory_used_most_bytes),
            memory_limit_bytes: most(|head| head.memory_limit_bytes),
            gpu_held_ns: sum(|head| head.gpu_held_ns),
            gpu_busy_ns: sum(|head| head.gpu_busy_ns),
            disk_bytes: sum(|head| head.disk_bytes),
            net_bytes: sum(|head| head.net_bytes),
            idle_core_ns: nodes
                .iter()
                .filter_map(|node| idle_core_ns(node))
                .fold(0, u64::saturating_add),
            idle_gpu_ns: heads().map(idle_gpu_ns).fold(0, u64::saturating_add),
            files: run.files().iter().map(|file| file.display().to_string()).collect(),
        }
    }
}

impl Row {
    /// The same at a time: a job that has not been seen for a day does not run, as its node is gone.
    pub fn at(mut self, now_ns: u64) -> Self {
        if self.state == "running" && self.seen.saturating_add(LOST_NS) < now_ns {
            self.state = "lost";
        }
        self
    }

    /// What it held and did not use, as one number to put jobs in order.
    pub fn waste(&self) -> u64 {
        Saves { core_ns: self.idle_core_ns, gpu_ns: self.idle_gpu_ns }.weight_ns()
    }
}

/// The time of a job's parts on one node: they follow each other, but for its steps, which are within it. Where these
/// alone are known it is the time in which there was any.
fn elapsed_ns(parts: &[&Head]) -> u64 {
    let (steps, own): (Vec<&Head>, Vec<&Head>) = parts.iter().partition(|head| head.step.is_some());
    if !own.is_empty() {
        return own.iter().filter_map(|head| head.elapsed_ns).fold(0, u64::saturating_add);
    }
    let mut spans: Vec<_> = steps.iter().filter_map(|head| head.begin.zip(head.seen)).collect();
    spans.sort_unstable();
    let (mut all_ns, mut until_ns) = (0, 0);
    for (begin_ns, seen_ns) in spans {
        all_ns += seen_ns.saturating_sub(begin_ns.max(until_ns));
        until_ns = until_ns.max(seen_ns);
    }
    all_ns
}

fn state(run: &Run) -> &'static str {
    let heads = || run.parts.iter().map(|(_, head)| head);
    let exit = heads().filter_map(|head| head.exit).max();
    let has_failed = exit.is_some_and(|exit| exit != 0);
    let is_for = |reason: EndReason| {
        heads().any(|head| head.end_reason.as_deref().unwrap_or_default() == reason.word())
    };
    // A kill that no reason names may be long before the end.
    let is_killed = heads().any(|head| ended_for_memory("", has_failed, head.oom_kills));
    match exit {
        _ if is_for(EndReason::OutOfMemory) => EndReason::OutOfMemory.word(),
        _ if is_for(EndReason::TimeLimit) => EndReason::TimeLimit.word(),
        _ if is_killed => EndReason::OutOfMemory.word(),
        Some(0) => "succeeded",
        Some(_) => "failed",
        None if has_ended(run) => "ended",
        None => "running",
    }
}

/// Whether its last part on each node has an end: an agent that was started anew has left one without.
fn has_ended(run: &Run) -> bool {
    let heads = || run.parts.iter().map(|(_, head)| head);
    heads().all(|head| {
        let of_node = heads().filter(|other| other.host == head.host);
        of_node.max_by_key(|part| part.begin).is_some_and(|last| last.end.is_some())
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn head(host: &str, elapsed_ns: u64) -> (PathBuf, Head) {
        let head = Head {
            job: Some("7".into()),
            host: Some(host.into()),
            elapsed_ns: Some(elapsed_ns),
            core_held_ns: Some(8 * elapsed_ns),
            on_cpu_ns: Some(2 * elapsed_ns),
            memory_used_peak_bytes: Some(elapsed_ns),
            start: Some(5),
            end: Some(9),
            ..Head::default()
        };
        (PathBuf::new(), head)
    }

    #[test]
    fn parts_follow_each_other_on_a_node_and_nodes_are_beside_each_other() {
        let run = Run { parts: vec![head("n1", 10), head("n1", 5), head("n2", 12)] };
        let row = Row::from(&run);
        assert_eq!((row.nodes, row.elapsed_ns, row.state), (2, 15, "ended"));
        assert_eq!((row.core_held_ns, row.on_cpu_ns), (Some(8 * 27), Some(2 * 27)));
        assert_eq!((row.idle_core_ns, row.memory_used_peak_bytes), (6 * 27, Some(12)));
    }

    #[test]
    fn a_job_that_was_counted_in_part_took_longer() {
        let (folder, mut part) = head("n1", 10);
        let took_ns = |part: &Head| {
            Row::from(&Run { parts: vec![(folder.clone(), part.clone()), head("n2", 12)] }).took_ns
        };
        assert_eq!(took_ns(&part), 12);
        part.took_ns = Some(50);
        assert_eq!(took_ns(&part), 50);
    }

    #[test]
    fn memory_that_nobody_knows_better_is_told_as_a_bound() {
        let shown = |most, unicode| {
            let (folder, known) = head("n1", 2 << 30);
            let parts = vec![(folder, Head { memory_used_most_bytes: most, ..known })];
            Row::from(&Run { parts }).memory_shown(unicode)
        };
        assert_eq!(shown(None, true), "2 GiB");
        assert_eq!(shown(Some(3 << 30), true), "≥ 2 GiB");
        assert_eq!(shown(Some(3 << 30), false), ">= 2 GiB");
        assert_eq!(shown(Some(1 << 30), true), "2 GiB", "of another node");
        let (folder, known) = head("n1", 2 << 30);
        let end_reason = Some(EndReason::OutOfMemory.word().into());
        let parts = vec![(folder, Head { end_reason, ..known })];
        assert_eq!(Row::from(&Run { parts }).memory_shown(true), "≥ 2 GiB", "killed for more");
    }

    #[test]
    fn a_part_that_another_follows_needs_no_end() {
        let part = |begin, end| {
            let (folder, known) = head("n1", 10);
            (folder, Head { begin: Some(begin), end, ..known })
        };
        let state_of = |parts| Row::from(&Run { parts }).state;
        assert_eq!(state_of(vec![part(5, None), part(7, Some(9))]), "ended");
        assert_eq!(state_of(vec![part(7, Some(9)), part(5, None)]), "ended");
        assert_eq!(state_of(vec![part(5, Some(6)), part(7, None)]), "running");
        assert_eq!(state_of(vec![part(5, None), part(7, Some(9)), head("n2", 1)]), "ended");
    }

    #[test]
    fn states() {
        let of = |change: fn(&mut Head)| {
            let mut part = head("n1", 10);
            change(&mut part.1);
            Row::from(&Run { parts: vec![part, head("n2", 10)] }).state
        };
        assert_eq!(of(|_| ()), "ended");
        assert_eq!(of(|head| head.end = None), "running");
        let mut part = head("n1", 10);
        (part.1.end, part.1.seen) = (None, Some(7));
        let row = Row::from(&Run { parts: vec![part] });
        assert_eq!((row.end, row.clone().at(7 + LOST_NS).state), (None, "running"));
        assert_eq!(row.at(8 + LOST_NS).state, "lost");
        assert_eq!(of(|head| head.exit = Some(0)), "succeeded");
        assert_eq!(of(|head| head.exit = Some(3)), "failed");
        assert_eq!(of(|head| (head.exit, head.oom_kills) = (Some(137), Some(1))), "out_of_memory");
        assert_eq!(of(|head| head.end_reason = Some("time_limit".into())), "time_limit");
        let killed_before = of(|head| {
            (head.exit, head.oom_kills) = (Some(143), Some(1));
            head.end_reason = Some("time_limit".into());
        });
        assert_eq!(killed_before, "time_limit");
    }
}
