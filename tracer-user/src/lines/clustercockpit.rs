//! ClusterCockpit's flavour of line protocol: one metric a line, `NAME,hostname=…,type=… value=…`, in
//! seconds, for its metric store (docs/decisions/0017-clustercockpit.md).
//!
//! Pure. Metrics are a node's: the store keeps no jobs, its backend knows which job had which node when.
//! Refuses the store's well-known names for what is measured otherwise here: two sources of one metric
//! overwrite each other.

use tracer_ebpf::{
    handle::{Handle, Histogram, Number},
    table::{Measurement, Unit},
};

use super::backlog::Pending;
use crate::model::{
    group::{Group, merge_all},
    hist::Hist,
    point::{FieldValue, Origin, Point},
    points::number_value,
    tables::{BLOCK, Block, Fault, GPU, Gpu, Memory, Own, Sched},
};

/// What a metric is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// Counters, added up, over the interval's length: in cores or tasks where both are times, else a second.
    PerTime(&'static [Handle<Number>]),
    /// The same of the sum of a histogram.
    SumPerTime(Handle<Histogram>),
    /// A counter of the devices' reads or writes over the interval's length.
    DiskPerTime(&'static str, Handle<Number>),
    /// What 99 in a hundred values of a histogram are not above, over all series.
    P99(Handle<Histogram>),
    /// The value at the interval's end, or what came in it; of several jobs their sum.
    Now(Handle<Number>),
    /// Of each GPU: the mean of a histogram's values; of several jobs their sum.
    GpuMean(Handle<Histogram>),
    /// Of each GPU: a histogram's mean over the values of all its jobs.
    GpuDevice(Handle<Histogram>),
    /// Of each GPU: the value at the interval's end; of several jobs their sum.
    GpuNow(Handle<Number>),
}

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, the measurement.
    pub name: &'static str,
    /// Its unit, as ClusterCockpit writes units.
    pub unit: &'static str,
    /// What it means.
    pub help: &'static str,
    /// What the values are multiplied with.
    factor: f64,
    of: Of,
}

impl Metric {
    const fn new(name: &'static str, unit: &'static str, of: Of, help: &'static str) -> Self {
        Self { name, unit, help, factor: 1.0, of }
    }

    const fn times(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// Whether each GPU has one, rather than the node.
    pub fn is_accelerators(&self) -> bool {
        matches!(self.of, Of::GpuMean(_) | Of::GpuDevice(_) | Of::GpuNow(_))
    }
}

/// Tasks of the whole node, as in `/proc/loadavg`, over the interval instead of a minute's decay.
const TASKS: &str = "tasks";

/// All metrics. The names without the prefix are the store's own, and mean what they mean there.
pub static METRICS: &[Metric] = &[
    Metric::new("jobtrace_cpu_used", "cores", Of::PerTime(&[Sched::on_cpu_ns]), "Cores in use."),
    Metric::new(
        "jobtrace_cpu_wait",
        TASKS,
        Of::SumPerTime(Sched::run_queue_wait_ns),
        "Runnable tasks waiting for a CPU, on average.",
    ),
    Metric::new(
        "jobtrace_blocked",
        TASKS,
        Of::SumPerTime(Sched::blocked_ns),
        "Tasks blocked in the kernel, mostly on I/O, on average; a wait is counted when it ends.",
    ),
    Metric::new(
        "jobtrace_cpu_wait_p99",
        "s",
        Of::P99(Sched::run_queue_wait_ns),
        "Wait for a CPU, 99th percentile of all waits.",
    )
    .times(1e-9),
    Metric::new(
        "jobtrace_context_switches",
        "1/s",
        Of::PerTime(&[Sched::switches_voluntary, Sched::switches_involuntary]),
        "Context switches.",
    )
    .times(1e9),
    Metric::new(
        "jobtrace_forks",
        "1/s",
        Of::PerTime(&[Sched::forks]),
        "Processes and threads created.",
    )
    .times(1e9),
    Metric::new(
        "jobtrace_minor_faults",
        "1/s",
        Of::PerTime(&[Fault::minor]),
        "Page faults served from memory.",
    )
    .times(1e9),
    Metric::new(
        "jobtrace_major_faults",
        "1/s",
        Of::PerTime(&[Fault::major]),
        "Page faults served from disk.",
    )
    .times(1e9),
    Metric::new(
        "jobtrace_oom_kills",
        "",
        Of::Now(Fault::oom_kills),
        "Tasks chosen by the out-of-memory killer in the interval.",
    ),
    Metric::new(
        "jobtrace_disk_read",
        "B/s",
        Of::DiskPerTime("read", Block::bytes),
        "Read from local disks.",
    )
    .times(1e9),
    Metric::new(
        "jobtrace_disk_write",
        "B/s",
        Of::DiskPerTime("write", Block::bytes),
        "Written to local disks.",
    )
    .times(1e9),
    Metric::new(
        "jobtrace_disk_read_ops",
        "1/s",
        Of::DiskPerTime("read", Block::ops),
        "Reads completed.",
    )
    .times(1e9),
    Metric::new(
        "jobtrace_disk_write_ops",
        "1/s",
        Of::DiskPerTime("write", Block::ops),
        "Writes completed.",
    )
    .times(1e9),
    Metric::new(
        "jobtrace_disk_latency_p99",
        "s",
        Of::P99(Block::device_latency_ns),
        "Time that the disks took, 99th percentile of all requests.",
    )
    .times(1e-9),
    Metric::new(
        "jobtrace_mem_jobs",
        "B",
        Of::Now(Memory::current_bytes),
        "Memory charged to the jobs' cgroups.",
    ),
    Metric::new("jobtrace_jobs", "", Of::Now(Own::jobs), "Jobs on the node."),
    Metric::new(
        "jobtrace_overhead",
        "%",
        Of::Now(Own::overhead_ratio),
        "Share of the CPUs' time that jobtrace's probes took.",
    )
    .times(100.0),
    Metric::new(
        "acc_utilization",
        "%",
        Of::GpuMean(Gpu::utilization_ratio),
        "Share of the time in which the GPU computed, while jobs had it.",
    )
    .times(100.0),
    Metric::new(
        "acc_mem_used",
        "B",
        Of::GpuNow(Gpu::memory_used_bytes),
        "GPU memory used by the jobs.",
    ),
    Metric::new(
        "acc_power",
        "W",
        Of::GpuDevice(Gpu::power_watts),
        "Power of the whole GPU, while jobs had it.",
    ),
];

/// The lines of an interval, stamped with its end.
pub fn points(origin: &Origin, pending: &Pending) -> Vec<Point> {
    let mut node: Vec<Group> = Vec::new();
    pending.jobs.iter().for_each(|stats| merge_all(&mut node, &stats.groups));
    let mut points = Vec::new();
    for metric in METRICS {
        if metric.is_accelerators() {
            let mut gpus: Vec<&str> = node.iter().filter_map(index_of_gpu).collect();
            gpus.sort_unstable();
            gpus.dedup();
            for gpu in gpus {
                if let Some(value) = of_gpu(metric, gpu, pending, &node) {
                    points.push(point(
                        origin,
                        metric,
                        ("accelerator", gpu),
                        value,
                        pending.stamp_ns,
                    ));
                }
            }
        } else if let Some(value) = of_node(metric, pending.span_ns, &node) {
            points.push(point(origin, metric, ("node", ""), value, pending.stamp_ns));
        }
    }
    points
}

/// At `place`, type and id. The node has no id: the store would take one for a part of it.
fn point(origin: &Origin, metric: &Metric, place: (&str, &str), value: f64, time_ns: u64) -> Point {
    let tags = [
        ("cluster", origin.cluster.as_str()),
        ("hostname", &origin.host),
        ("type", place.0),
        ("type-id", place.1),
    ];
    Point {
        measurement: metric.name.into(),
        tags: tags.map(|(key, value)| (key.into(), value.to_owned())).to_vec(),
        fields: vec![("value".into(), FieldValue::Float(value * metric.factor))],
        time_ns,
    }
}

/// Its value of the whole node; `None` where it is unknown.
fn of_node(metric: &Metric, span_ns: u64, node: &[Group]) -> Option<f64> {
    let of = |table: &'static Measurement| node.iter().filter(move |group| group.is(table));
    let per_time = |amount: f64| (span_ns > 0).then(|| amount / span_ns as f64);
    match metric.of {
        Of::PerTime(fields) => {
            let amounts =
                fields.iter().map(|field| amount(of(field.measurement()).next()?, *field));
            per_time(amounts.sum::<Option<f64>>()?)
        }
        Of::SumPerTime(field) => {
            let hist = of(field.measurement()).next()?.hist(field)?;
            per_time(public(field.field().unit, hist.sum as f64))
        }
        Of::DiskPerTime(op, field) => {
            let of_op = of(&BLOCK).filter(|group| group.tags.get(1).is_some_and(|tag| tag == op));
            per_time(sum(of_op.map(|group| amount(group, field)))?)
        }
        Of::P99(field) => {
            let mut all = Hist::default();
            let hists = of(field.measurement()).filter_map(|group| group.hist(field));
            hists.for_each(|hist| all.merge(hist));
            all.quantiles().map(|quantiles| quantiles[2] as f64)
        }
        Of::Now(field) => amount(of(field.measurement()).next()?, field),
        Of::GpuMean(_) | Of::GpuDevice(_) | Of::GpuNow(_) => None,
    }
}

/// Its value of the GPU `index`; `None` where it is unknown.
fn of_gpu(metric: &Metric, index: &str, pending: &Pending, node: &[Group]) -> Option<f64> {
    let is_it = |group: &&Group| index_of_gpu(group) == Some(index);
    let mean = |group: &Group, field: Handle<Histogram>| {
        Some(public(field.field().unit, group.hist(field)?.mean()?))
    };
    match metric.of {
        Of::GpuMean(field) => {
            let of_jobs = pending.jobs.iter().flat_map(|stats| &stats.groups).filter(is_it);
            // Shares of several jobs are of one whole.
            sum(of_jobs.map(|group| mean(group, field))).map(|share| share.min(1.0))
        }
        Of::GpuDevice(field) => node.iter().find(is_it).and_then(|group| mean(group, field)),
        Of::GpuNow(field) => node.iter().find(is_it).and_then(|group| amount(group, field)),
        _ => None,
    }
}

/// What is known of `values`, added up; `None` where nothing is.
fn sum(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().reduce(|sum, value| sum + value)
}

/// A number in its public unit.
fn amount(group: &Group, field: Handle<Number>) -> Option<f64> {
    Some(public(field.field().unit, group.number(field)? as f64))
}

fn public(unit: Unit, value: f64) -> f64 {
    match number_value(unit, 1) {
        FieldValue::Float(one) => value * one,
        _ => value,
    }
}

/// The index, as NVML counts, where the group is a GPU's.
fn index_of_gpu(group: &Group) -> Option<&str> {
    group.is(&GPU).then(|| group.tags.first().map(String::as_str)).flatten()
}

#[cfg(test)]
#[path = "clustercockpit/tests.rs"]
mod tests;
