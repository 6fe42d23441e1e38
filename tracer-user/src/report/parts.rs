//! The job's steps and their tasks beside each other, by the cgroups that its scheduler made for them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::whole::Whole;
use crate::{base::text::clean, model::parts::Part};

/// A step, or a task of one on a node.
#[derive(Debug, Default, Serialize)]
pub struct PartRow {
    /// `step 0`, `task 3 of step 0 on n1`.
    pub name: String,
    /// Time on CPU, ns.
    pub on_cpu_ns: Option<u64>,
    /// Memory charged at its peak, file cache included; of a step on several nodes that of the fullest.
    pub memory_peak_bytes: Option<u64>,
    /// Read from and written to local disks.
    pub disk_bytes: Option<u64>,
    /// From its begin to its end, or to when it was last read, ns.
    pub elapsed_ns: u64,
}

/// All of them: the steps, the busiest first, then the tasks of steps that have several. Nothing of a job that is one
/// script.
pub(super) fn parts(whole: &Whole, unicode: bool) -> Vec<PartRow> {
    let listed = &whole.record.totals.parts.listed;
    let (mut steps, mut tasks) =
        (BTreeMap::<_, Vec<&Part>>::new(), BTreeMap::<_, Vec<&Part>>::new());
    for part in listed.iter().filter(|part| part.is_work()) {
        let by_step = if part.task.is_empty() { &mut steps } else { &mut tasks };
        by_step.entry(part.step.as_str()).or_default().push(part);
    }
    tasks.retain(|_, parts| parts.len() > 1);
    if steps.len() < 2 && tasks.is_empty() {
        return Vec::new();
    }
    let of_step =
        |(step, parts): (&str, Vec<&Part>)| row(format!("step {}", clean(step, unicode)), &parts);
    let mut rows = busiest_first(steps.into_iter().map(of_step).collect());
    let of_task = |part: &Part| {
        let [task, step] = [&part.task, &part.step].map(|text| clean(text, unicode));
        let name = format!("task {task} of step {step}");
        let on = if part.host.is_empty() {
            String::new()
        } else {
            format!(" on {}", clean(&part.host, unicode))
        };
        row(name + &on, &[part])
    };
    rows.extend(busiest_first(tasks.into_values().flatten().map(of_task).collect()));
    rows
}

fn busiest_first(mut rows: Vec<PartRow>) -> Vec<PartRow> {
    rows.sort_by_key(|row| std::cmp::Reverse(row.on_cpu_ns));
    rows
}

/// Several parts as one: on several nodes at once.
fn row(name: String, parts: &[&Part]) -> PartRow {
    let sum = |of: fn(&Part) -> Option<u64>| {
        parts.iter().filter_map(|part| of(part)).reduce(u64::saturating_add)
    };
    let disk = [sum(|part| part.disk_read_bytes), sum(|part| part.disk_written_bytes)];
    let begin = parts.iter().map(|part| part.begin).min().unwrap_or(0);
    let end = parts.iter().filter_map(|part| part.end.max(part.seen)).max().unwrap_or(begin);
    PartRow {
        name,
        on_cpu_ns: sum(|part| part.on_cpu_ns),
        memory_peak_bytes: parts.iter().filter_map(|part| part.memory_peak_bytes).max(),
        disk_bytes: disk.into_iter().flatten().reduce(u64::saturating_add),
        elapsed_ns: end.saturating_sub(begin),
    }
}
