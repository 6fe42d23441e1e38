//! What a job asked its scheduler for, and how to ask for something else: the scheduler's own option and number.

use crate::{
    model::tables::{FAULT, Fact, Fault, fact},
    record::Record,
};

const GIB: u64 = 1 << 30;
/// The least memory that is asked for, and the step up to 1 GiB.
pub(crate) const LEAST_MEMORY_BYTES: u64 = GIB / 8;
const MINUTE_NS: u64 = 60_000_000_000;
const HOUR_NS: u64 = 60 * MINUTE_NS;

/// What was asked for, and what is known of the nodes; each where known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// The scheduler.
    pub manager: String,
    /// Memory on each node.
    pub memory_bytes: Option<u64>,
    /// Run time.
    pub time_ns: Option<u64>,
    /// Tasks that the scheduler started, on all nodes.
    pub tasks: Option<u64>,
    /// Nodes that there are records of.
    pub nodes: u64,
    /// Nodes that it was given.
    pub nodes_given: Option<u64>,
    /// Cores of each node.
    pub node_cores: Option<u64>,
    /// Memory of each node.
    pub node_memory_bytes: Option<u64>,
    /// Run time so far or from start to end, that included in which it was not counted.
    pub took_ns: u64,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Whether it ended by itself and, as far as is known, well: what it needed up to then is what it needs.
    pub ended_itself: bool,
    /// Why, as `job_info` has it.
    pub end_reason: String,
    /// Whether it ended when a process of it was killed for lack of memory.
    pub ended_for_memory: bool,
}

impl Request {
    /// What `record` tells of it.
    pub fn of(record: &Record) -> Self {
        let number = |row: &'static Fact| record.facts.number(row).filter(|number| *number > 0);
        let per_core = || {
            let cores = number(const { fact("core_count") })?;
            Some(number(const { fact("memory_per_core_bytes") })?.saturating_mul(cores))
        };
        let per_gpu = || {
            let gpus = number(const { fact("gpu_count") })?;
            Some(number(const { fact("memory_per_gpu_bytes") })?.saturating_mul(gpus))
        };
        let limit = || {
            let end_ns = number(const { fact("time_limit_end") })?;
            end_ns.checked_sub(number(const { fact("start") })?).filter(|ns| *ns > 0)
        };
        let per_node = number(const { fact("memory_per_node_bytes") });
        let has_ended = record.totals.exit.is_some() || record.facts.has(const { fact("end") });
        let end_reason = record.facts.text(const { fact("end_reason") }).to_owned();
        Self {
            manager: record.job().manager.clone(),
            memory_bytes: per_node.or_else(per_core).or_else(per_gpu),
            time_ns: number(const { fact("time_limit_ns") }).or_else(limit),
            tasks: number(const { fact("task_count") }),
            nodes: record.hosts.len() as u64,
            nodes_given: number(const { fact("node_count") }),
            node_cores: number(const { fact("node_cores") }),
            node_memory_bytes: number(const { fact("node_memory_bytes") }),
            took_ns: record.took_ns(),
            has_ended,
            ended_itself: has_ended
                && end_reason.is_empty()
                && !has_failed(record)
                && !is_doubtful(record),
            end_reason,
            ended_for_memory: record.ended_for_memory(),
        }
    }

    /// Tasks on each node; 1 where nobody tells.
    pub fn tasks_per_node(&self) -> u64 {
        let nodes = self.nodes_given.unwrap_or(0).max(self.nodes).max(1);
        (self.tasks.unwrap_or(1) / nodes).max(1)
    }

    /// Memory for a peak of `bytes` on a node, no more than the node has; `None` where that is not enough.
    pub fn memory_for(&self, bytes: u64) -> Option<Ask> {
        let node_bytes = self.node_memory_bytes.unwrap_or(u64::MAX);
        let whole_gib = (node_bytes / GIB * GIB).max(node_bytes.min(GIB));
        let Ask::Memory(enough) = Ask::memory_for(bytes) else { return None };
        (bytes < node_bytes).then(|| Ask::Memory(enough.min(whole_gib.max(bytes))))
    }
}

/// Whether tasks of it were killed for memory and nobody knows whether it went on without them.
fn is_doubtful(record: &Record) -> bool {
    let is_well = record.totals.exit.is_some_and(|exit| exit.code == Some(0))
        || record.facts.number(const { fact("exit") }) == Some(0);
    let kills = record.totals.stats.group(&FAULT).and_then(|fault| fault.number(Fault::oom_kills));
    !is_well && kills > Some(0)
}

/// Whether its exit status is known and tells of a failure.
fn has_failed(record: &Record) -> bool {
    let exit = record.totals.exit.map_or(Some(0), |exit| exit.code);
    exit != Some(0) || record.facts.number(const { fact("exit") }).is_some_and(|exit| exit > 0)
}

/// What to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Bytes on each node.
    Memory(u64),
    /// Cores of each task.
    Cores(u64),
    /// Run time in nanoseconds.
    Time(u64),
    /// GPUs on each node.
    Gpus(u64),
}

impl Ask {
    /// Enough memory for a peak of `bytes`: a fifth more, rounded up to a whole number that people write.
    pub fn memory_for(bytes: u64) -> Self {
        let wanted = bytes.saturating_add(bytes / 5).max(1);
        let step = match wanted {
            ..=GIB => LEAST_MEMORY_BYTES,
            w if w <= 30 * GIB => GIB,
            w if w <= 100 * GIB => 5 * GIB,
            w if w <= 1000 * GIB => 10 * GIB,
            _ => 100 * GIB,
        };
        Self::Memory(wanted.div_ceil(step).saturating_mul(step))
    }

    /// Enough time for a run of `ns`: a fifth more, rounded up.
    pub fn time_for(ns: u64) -> Self {
        let wanted = ns.saturating_add(ns / 5);
        let step = match wanted {
            ..=HOUR_NS => 5 * MINUTE_NS,
            w if w <= 6 * HOUR_NS => 15 * MINUTE_NS,
            _ => HOUR_NS,
        };
        Self::Time(wanted.div_ceil(step).max(1).saturating_mul(step))
    }

    /// The option of `manager`; a plain name where it is no batch scheduler that has one.
    pub fn option(self, manager: &str) -> String {
        let clock = |ns: u64| {
            let minutes = ns.div_ceil(MINUTE_NS);
            format!("{}:{:02}", minutes / 60, minutes % 60)
        };
        match (manager, self) {
            ("slurm", Self::Memory(bytes)) => format!("--mem={}", memory(bytes, ["G", "M"])),
            ("slurm", Self::Cores(cores)) => format!("--cpus-per-task={cores}"),
            ("slurm", Self::Time(ns)) => format!("--time={}:00", clock(ns)),
            ("slurm", Self::Gpus(gpus)) => format!("--gpus-per-node={gpus}"),
            ("pbs", Self::Time(ns)) => format!("-l walltime={}:00", clock(ns)),
            ("pbs", chunk) => pbs_select(&[chunk]),
            ("lsf", Self::Memory(bytes)) => {
                format!("-R \"rusage[mem={}]\"", memory(bytes, ["GB", "MB"]))
            }
            ("lsf", Self::Cores(cores)) => format!("-n {cores}"),
            ("lsf", Self::Time(ns)) => format!("-W {}", clock(ns)),
            ("lsf", Self::Gpus(gpus)) => format!("-gpu \"num={gpus}\""),
            (_, Self::Memory(bytes)) => format!("memory {}", memory(bytes, [" GiB", " MiB"])),
            (_, Self::Cores(cores)) => format!("cores {cores}"),
            (_, Self::Time(ns)) => format!("time {} h", clock(ns)),
            (_, Self::Gpus(gpus)) => format!("GPUs {gpus}"),
        }
    }
}

/// `8G` or `768M`, with the scheduler's letters.
fn memory(bytes: u64, unit: [&str; 2]) -> String {
    match bytes.is_multiple_of(GIB) {
        true => format!("{}{}", bytes / GIB, unit[0]),
        false => format!("{}{}", bytes >> 20, unit[1]),
    }
}

/// What changes in PBS's one `select`. How many chunks there are, and what else is in each, is the job's to know.
pub(crate) fn pbs_select(asks: &[Ask]) -> String {
    let part = |ask: &Ask| match *ask {
        Ask::Memory(bytes) => format!(":mem={}", memory(bytes, ["gb", "mb"])),
        Ask::Cores(cores) => format!(":ncpus={cores}"),
        Ask::Gpus(gpus) => format!(":ngpus={gpus}"),
        Ask::Time(_) => String::new(),
    };
    format!("-l select=...{}", asks.iter().map(part).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_is_a_fifth_more_and_a_round_number() {
        for (peak, asked) in [
            (0, GIB / 8),
            (200 << 20, GIB / 4),
            (GIB, 2 * GIB),
            (9 * GIB, 11 * GIB),
            (40 * GIB, 50 * GIB),
            (100 * GIB, 120 * GIB),
            (1000 * GIB, 1200 * GIB),
        ] {
            assert_eq!(Ask::memory_for(peak), Ask::Memory(asked), "{peak}");
        }
        for (minutes, asked) in [(0, 5), (1, 5), (40, 50), (60, 75), (300, 360), (301, 420)] {
            let asked = Ask::Time(asked * MINUTE_NS);
            assert_eq!(Ask::time_for(minutes * MINUTE_NS), asked, "{minutes}");
        }
        assert!(matches!(Ask::memory_for(u64::MAX), Ask::Memory(_)));
        assert!(matches!(Ask::time_for(u64::MAX), Ask::Time(_)));
    }

    #[test]
    fn each_scheduler_has_its_own_words() {
        for (manager, expected) in [
            ("slurm", ["--mem=12G", "--cpus-per-task=4", "--time=2:15:00", "--gpus-per-node=1"]),
            (
                "pbs",
                [
                    "-l select=...:mem=12gb",
                    "-l select=...:ncpus=4",
                    "-l walltime=2:15:00",
                    "-l select=...:ngpus=1",
                ],
            ),
            ("lsf", ["-R \"rusage[mem=12GB]\"", "-n 4", "-W 2:15", "-gpu \"num=1\""]),
            ("run", ["memory 12 GiB", "cores 4", "time 2:15 h", "GPUs 1"]),
        ] {
            let asks =
                [Ask::Memory(12 * GIB), Ask::Cores(4), Ask::Time(135 * MINUTE_NS), Ask::Gpus(1)];
            assert_eq!(asks.map(|ask| ask.option(manager)), expected, "{manager}");
        }
        assert_eq!(Ask::Memory(768 << 20).option("slurm"), "--mem=768M");
        let all = [Ask::Memory(12 * GIB), Ask::Cores(4), Ask::Gpus(1)];
        assert_eq!(pbs_select(&all), "-l select=...:mem=12gb:ncpus=4:ngpus=1");
    }

    #[test]
    fn no_more_memory_than_the_node_has() {
        let of = |node_bytes: Option<u64>, bytes| {
            Request { node_memory_bytes: node_bytes, ..Request::default() }.memory_for(bytes)
        };
        assert_eq!(of(None, 7 * GIB), Some(Ask::Memory(9 * GIB)));
        assert_eq!(of(Some(16 * GIB), 7 * GIB), Some(Ask::Memory(9 * GIB)));
        // What a node has is never a whole number.
        assert_eq!(of(Some(8 * GIB + 300), 7 * GIB), Some(Ask::Memory(8 * GIB)));
        assert_eq!(of(Some(8 * GIB + 300), 8 * GIB + 100), Some(Ask::Memory(8 * GIB + 100)));
        assert_eq!(of(Some(8 * GIB), 8 * GIB), None);
        assert_eq!(of(Some(GIB / 2), GIB / 2 - 1), Some(Ask::Memory(GIB / 2)));
    }

    #[test]
    fn tasks_are_of_all_nodes_seen_or_not() {
        let of = |tasks, nodes, nodes_given| {
            Request { tasks, nodes, nodes_given, ..Request::default() }.tasks_per_node()
        };
        assert_eq!(of(None, 0, None), 1);
        assert_eq!(of(Some(64), 2, None), 32);
        assert_eq!(of(Some(64), 2, Some(4)), 16);
        assert_eq!(of(Some(3), 4, None), 1);
    }
}
