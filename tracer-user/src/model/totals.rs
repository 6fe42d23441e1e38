//! A whole run added up: what the summary and the JSON are made of.

use serde::{Deserialize, Serialize};
use tracer_ebpf::table::{Field, Measurement};

use super::{
    files::Files,
    gaps::{self, Gaps},
    group::{Group, Value, follow_all},
    held::most_at_a_moment,
    info::{Exit, JobInfo},
    job::{Job, JobStats},
    parts::{Part, Parts},
    software::Software,
    tables::{self, BLOCK, Block, CPU, Cpu, SCHED, Sched},
};

/// Highest rates over single intervals, which no total shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peaks {
    /// Thousandths of a core busy over the busiest interval.
    pub millicores: u64,
    /// When that began, nanoseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millicores_from: Option<u64>,
    /// Bytes read and written per second over the busiest interval, all devices.
    pub disk_bytes_per_s: u64,
    /// When that began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_from: Option<u64>,
}

/// Time over which a rate is noise.
pub const SLIVER_NS: u64 = 100_000_000;

/// `amount` over `span_ns` by the second.
pub fn per_second(amount: u64, span_ns: u64) -> u64 {
    let amount = u128::from(amount) * 1_000_000_000 / u128::from(span_ns.max(1));
    u64::try_from(amount).unwrap_or(u64::MAX)
}

impl Peaks {
    /// The higher of each.
    pub fn merge(&mut self, other: &Self) {
        if other.millicores > self.millicores {
            (self.millicores, self.millicores_from) = (other.millicores, other.millicores_from);
        }
        if other.disk_bytes_per_s > self.disk_bytes_per_s {
            (self.disk_bytes_per_s, self.disk_from) = (other.disk_bytes_per_s, other.disk_from);
        }
    }
}

/// Everything known of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunTotals {
    /// What was known at its start.
    pub info: JobInfo,
    /// Monotonic time from start to end (or to now).
    pub elapsed_ns: u64,
    /// How it ended; `None` while it runs, or where the recording stops before its end.
    pub exit: Option<Exit>,
    /// The job's values, added up.
    pub stats: JobStats,
    /// The tracing's own values (`jobtrace_self`), added up.
    pub own: Vec<Group>,
    /// Highest rates over single intervals.
    pub peaks: Peaks,
    /// Intervals added, those too short for a rate left out.
    pub intervals: u64,
    /// What cannot be known here: keys of measurements (`block`), whose absence is not zero, and buffered writes
    /// (`write_back`).
    pub unknown: Vec<String>,
    /// Times in which something could not be counted.
    pub gaps: Gaps,
    /// Its steps and tasks.
    pub parts: Parts,
    /// The files that it used most, where it was asked for them.
    pub files: Files,
    /// The software that it ran, where somebody watched for that.
    pub software: Option<Software>,
    /// Things the reader must know: a hook missing, processes left behind, output lost.
    pub notes: Vec<String>,
}

impl RunTotals {
    /// Totals of a run that has just begun.
    pub fn new(job: Job, info: JobInfo) -> Self {
        Self {
            info,
            elapsed_ns: 0,
            exit: None,
            stats: JobStats { job, groups: Vec::new() },
            own: Vec::new(),
            peaks: Peaks::default(),
            intervals: 0,
            unknown: Vec::new(),
            gaps: Gaps::default(),
            parts: Parts::default(),
            files: Files::default(),
            software: None,
            notes: Vec::new(),
        }
    }

    /// The part of the elapsed time in which scheduling was counted, on average over `nodes`.
    pub fn counted_ns(&self, nodes: usize) -> u64 {
        self.elapsed_ns.saturating_sub(self.gaps.of(gaps::SCHED) / nodes.max(1) as u64)
    }

    /// Leaves in `unknown` what is unknown indeed: a file may tell what the probes cannot. Measurements are named by
    /// their keys.
    pub fn forget_known(&mut self) {
        let mut unknown = std::mem::take(&mut self.unknown);
        for name in &mut unknown {
            if let Some(table) = tables::ALL.iter().find(|table| table.name == *name) {
                *name = table.key.to_owned();
            }
        }
        let is_known = |name: &String| {
            self.stats.groups.iter().any(|group| {
                let has = |(field, value): (&Field, &Option<Value>)| {
                    field.name == name && value.is_some()
                };
                group.measurement.key == name || group.fields().any(has)
            })
        };
        unknown.retain(|name| !is_known(name));
        unknown.sort();
        unknown.dedup();
        self.unknown = unknown;
    }

    /// Leaves the disk bytes of the parts unknown where their cgroups count none of those that the job moved: cgroup v1
    /// charges no write-back to them.
    pub fn forget_disks_of_parts(&mut self) {
        let moved =
            |part: &Part| part.disk_read_bytes > Some(0) || part.disk_written_bytes > Some(0);
        let blocks = self.stats.groups.iter().filter(|group| group.is(&BLOCK));
        let has_moved =
            blocks.filter_map(|group| group.number(Block::bytes)).any(|bytes| bytes > 0);
        if has_moved && !self.parts.listed.iter().any(moved) {
            for part in &mut self.parts.listed {
                (part.disk_read_bytes, part.disk_written_bytes) = (None, None);
            }
        }
    }

    /// Adds an interval of `span_ns`, begun at `from_ns` (wall time), in which the job did `groups`, and the tracing
    /// `own`.
    pub fn add(&mut self, from_ns: u64, span_ns: u64, groups: &[Group], own: &[Group]) {
        self.elapsed_ns += span_ns;
        follow_all(&mut self.stats.groups, groups);
        follow_all(&mut self.own, own);
        // A rate over a sliver of time (the last interval of a run) is noise.
        if span_ns < SLIVER_NS {
            return;
        }
        self.intervals += 1;
        let per_second = |amount| per_second(amount, span_ns);
        // A recording may hold any number.
        let add = u64::saturating_add;
        let of = |table: &'static Measurement| groups.iter().filter(move |group| group.is(table));
        let on_cpu_ns = of(&SCHED).filter_map(|group| group.number(Sched::on_cpu_ns)).fold(0, add);
        let disk = of(&BLOCK).filter(|group| matches!(group.tags[1].as_str(), "read" | "write"));
        let disk_bytes = disk.filter_map(|group| group.number(Block::bytes)).fold(0, add);
        // Where the kernel withholds a switch its time comes with a later one, and an interval may have more than its
        // own.
        let held = of(&CPU).filter_map(|group| group.number(Cpu::cores_held)).max();
        let most = held.map_or(u64::MAX, most_at_a_moment);
        let millicores = (per_second(on_cpu_ns) / 1_000_000).min(most);
        // What ran a little did not run not at all.
        let millicores = millicores.max(on_cpu_ns.min(1));
        self.peaks.merge(&Peaks {
            millicores,
            millicores_from: Some(from_ns),
            disk_bytes_per_s: per_second(disk_bytes),
            disk_from: Some(from_ns),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tables::{BLOCK, SCHED};

    #[test]
    fn a_peak_of_a_little_is_not_zero() {
        let mut totals = RunTotals::new(Job::default(), JobInfo::default());
        let mut sched = Group::unknown(&SCHED, vec![]);
        for (at, on_cpu_ns, millicores, from) in [
            (1, 0, 0, None),
            (2, 1, 1, Some(2)),
            (3, 2_000_000_000, 200, Some(3)),
            (4, 9, 200, Some(3)),
        ] {
            sched.set(Sched::on_cpu_ns, on_cpu_ns);
            totals.add(at, 10_000_000_000, std::slice::from_ref(&sched), &[]);
            let peaks = totals.peaks;
            assert_eq!((peaks.millicores, peaks.millicores_from), (millicores, from));
        }
    }

    #[test]
    fn no_interval_is_busier_than_the_cores_allowed() {
        let mut totals = RunTotals::new(Job::default(), JobInfo::default());
        let mut sched = Group::unknown(&SCHED, vec![]);
        let mut cpu = Group::unknown(&CPU, vec![]);
        cpu.set(Cpu::cores_held, 2_000);
        for (span_ns, on_cpu_ns, millicores) in
            [(1_000_000_000, 900_000_000, 900), (300_000_000, 1_128_000_000, 2_000)]
        {
            sched.set(Sched::on_cpu_ns, on_cpu_ns);
            totals.add(1, span_ns, &[sched.clone(), cpu.clone()], &[]);
            assert_eq!(totals.peaks.millicores, millicores);
        }
        assert_eq!(
            totals.stats.group(&SCHED).unwrap().number(Sched::on_cpu_ns),
            Some(2_028_000_000)
        );
    }

    #[test]
    fn peaks_of_any_numbers_are_numbers() {
        let mut sched = Group::unknown(&SCHED, vec![]);
        sched.set(Sched::on_cpu_ns, u64::MAX);
        let block = |device: &str| {
            let mut block = Group::unknown(&BLOCK, vec![device.into(), "read".into()]);
            block.set(Block::bytes, u64::MAX);
            block
        };
        let groups = [sched, block("sda"), block("sdb")];
        let mut totals = RunTotals::new(Job::default(), JobInfo::default());
        totals.add(0, 100_000_000, &groups, &[]);
        assert_eq!(totals.peaks.millicores, u64::MAX / 1_000_000);
        assert_eq!(totals.peaks.disk_bytes_per_s, u64::MAX);
    }

    #[test]
    fn parts_that_count_no_disk_do_not_say_zero() {
        let mut totals = RunTotals::new(Job::default(), JobInfo::default());
        let part =
            Part { disk_read_bytes: Some(0), disk_written_bytes: Some(0), ..Part::default() };
        totals.parts.listed = vec![part.clone(), part];
        let disks = |totals: &RunTotals| -> Vec<_> {
            totals.parts.listed.iter().map(|part| part.disk_written_bytes).collect()
        };
        totals.forget_disks_of_parts();
        assert_eq!(disks(&totals), [Some(0), Some(0)], "the job moved none either");
        let mut block = Group::unknown(&BLOCK, vec!["sda".into(), "write".into()]);
        block.set(Block::bytes, 4096);
        totals.stats.groups.push(block);
        let mut one = totals.clone();
        one.parts.listed[0].disk_written_bytes = Some(4096);
        one.forget_disks_of_parts();
        assert_eq!(disks(&one), [Some(4096), Some(0)]);
        totals.forget_disks_of_parts();
        assert_eq!(disks(&totals), [None, None]);
    }
}
