//! What is known of one job besides the probes' counts: who runs it, what it holds, its files, and its
//! totals for the line at its end.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use procfs::process::Process;

mod told;
mod totals;

use super::{asking::Asking, state::Counted};
use crate::{
    base::identity::Capacity,
    cgroup::{place::Places, read::CgroupReader},
    gpu::{Claim, Claims},
    model::{
        group::Group,
        held::add_held,
        info::{Facts, JobInfo},
        job::Job,
        point::Origin,
        tables::fact,
    },
    record::{Record, timeline::Timeline},
    resolve::{Answer, facts::JobFacts},
};

pub use told::REPEAT_NS;

/// Readings after which a job's directories and limits are taken for settled.
const SETTLING: u32 = 2;

/// The facts of a job.
pub struct Details {
    /// Its name, owner and begin.
    pub info: JobInfo,
    /// Its owner's number, once known.
    pub uid: Option<u32>,
    /// Who could make its directories, where that was seen.
    pub made_by: Option<u32>,
    /// How often its programs were asked.
    pub asking: Asking,
    /// What its scheduler's environment and its paths tell.
    facts: Facts,
    /// The GPUs that its environment names.
    claims: Option<Claims>,
    reader: Option<CgroupReader>,
    /// Readings so far: limits are set, and directories made, after the first directory.
    readings: u32,
    /// Its values so far, and what came when.
    record: Record,
    told_ns: Option<u64>,
    ended: Option<u64>,
    /// Whether its time is counted up to its end.
    counted_to_end: bool,
    end_told: bool,
    /// Whether something came after that.
    late: bool,
    /// Whether nothing comes any more.
    settled: bool,
    /// When its record was made last; its first is due a while after the job was seen first.
    recorded_ns: Option<u64>,
    /// Whether its record tells of its end.
    end_recorded: bool,
    hold: Arc<()>,
}

impl Details {
    /// Of a job that began at `start_wall_ns`.
    pub fn new(answer: &Answer, start_wall_ns: u64) -> Self {
        let info = JobInfo { start_wall_ns, ..JobInfo::default() };
        let mut details = Self::of(info);
        details.note(answer);
        details
    }

    /// Of a job that came after `reported_ns`, of which an agent that was killed then told nobody.
    pub fn found(reported_ns: u64) -> Self {
        let mut details = Self::of(JobInfo::default());
        details.record.timeline = Timeline::new(reported_ns);
        details
    }

    /// Of a job of which no more is known than `info`.
    fn of(info: JobInfo) -> Self {
        let begin_ns = info.start_wall_ns;
        Self {
            record: Record::new(&Origin::default(), Job::default(), info.clone(), begin_ns),
            info,
            uid: None,
            made_by: None,
            asking: Asking::default(),
            facts: Facts::default(),
            claims: None,
            reader: None,
            readings: 0,
            told_ns: None,
            ended: None,
            counted_to_end: false,
            end_told: false,
            late: false,
            settled: false,
            recorded_ns: None,
            end_recorded: false,
            hold: Arc::default(),
        }
    }

    /// It runs on this node.
    pub fn set_node(&mut self, capacity: Capacity) {
        self.facts.set(const { fact("node_cores") }, capacity.cores);
        self.facts.set(const { fact("node_memory_bytes") }, capacity.memory_bytes);
    }

    /// Its values are counted from `wall_ns` on, when it had begun already.
    pub fn set_counted_from(&mut self, wall_ns: u64) {
        self.record.timeline = Timeline::new(wall_ns);
        self.facts.set(const { fact("counted_from") }, Some(wall_ns));
    }

    /// Adds what the path of one of its cgroups tells, where no other has told it.
    pub fn note(&mut self, answer: &Answer) {
        let texts = [
            (const { fact("sluid") }, &answer.sluid),
            (const { fact("container") }, &answer.container),
            (const { fact("qos") }, &answer.qos),
            (const { fact("runtime") }, &answer.runtime),
            (const { fact("array_task") }, &answer.array),
        ];
        for (fact, value) in texts {
            if let (Some(value), false) = (value, self.facts.has(fact)) {
                self.facts.set_text(fact, value);
                self.told_ns = None;
            }
        }
        self.uid = self.uid.or(answer.uid);
    }

    /// Of a job that an agent before this one knew.
    pub fn resumed(
        info: JobInfo,
        uid: Option<u32>,
        end: Option<(u64, bool)>,
        counted: Counted,
    ) -> Self {
        let mut details = Self::of(info);
        details.uid = uid;
        (details.ended, details.end_told) =
            end.map_or((None, false), |(ns, told)| (Some(ns), told));
        details.counted_to_end = details.ended.is_some();
        (details.facts, details.end_recorded) = (counted.facts, counted.end_saved);
        let totals = &mut details.record.totals;
        (totals.elapsed_ns, totals.intervals, totals.peaks) =
            (counted.elapsed_ns, counted.intervals, counted.peaks);
        (totals.stats.groups, totals.own) = (counted.totals, counted.losses);
        details.record.timeline = counted.timeline;
        // What came late before is in its values.
        (details.told_ns, details.late) = (counted.end_stamp_ns, details.end_told);
        details
    }

    /// What the next agent has to know of its values.
    pub fn counted(&self) -> Counted {
        let totals = &self.record.totals;
        Counted {
            facts: self.facts.clone(),
            end_stamp_ns: self.told_ns.filter(|_| self.end_told),
            end_saved: self.end_recorded && Arc::strong_count(&self.hold) == 1,
            elapsed_ns: totals.elapsed_ns,
            intervals: totals.intervals,
            peaks: totals.peaks,
            totals: totals.stats.groups.clone(),
            losses: totals.own.clone(),
            timeline: self.record.timeline.clone(),
        }
    }

    /// When its last cgroup was removed, and whether that has been told.
    pub fn end(&self) -> Option<(u64, bool)> {
        Some((self.ended?, self.end_told))
    }

    /// The GPUs that its environment names.
    pub fn claims(&self) -> Option<&Claims> {
        self.claims.as_ref()
    }

    /// As an agent before this one knew them.
    pub fn set_claims(&mut self, claims: Option<Claims>) {
        self.claims = claims;
    }

    /// Adds what a task's environment tells.
    pub fn learn(&mut self, facts: &JobFacts) {
        if *facts == JobFacts::default() {
            return;
        }
        let texts = [
            (const { fact("account") }, &facts.account),
            (const { fact("partition") }, &facts.queue),
            (const { fact("nodes") }, &facts.nodes),
            (const { fact("array_job") }, &facts.array_job),
            (const { fact("array_task") }, &facts.array_task),
            (const { fact("gpus_held") }, &facts.gpus),
            (const { fact("qos") }, &facts.qos),
        ];
        let end_ns = facts.end_s.map(|seconds| seconds.saturating_mul(1_000_000_000));
        let numbers = [
            (const { fact("node_count") }, facts.node_count),
            (const { fact("task_count") }, facts.tasks),
            (const { fact("gpu_count") }, facts.gpu_count()),
            (const { fact("core_count") }, facts.cores),
            (const { fact("memory_per_node_bytes") }, facts.memory_per_node_bytes),
            (const { fact("memory_per_core_bytes") }, facts.memory_per_core_bytes),
            (const { fact("memory_per_gpu_bytes") }, facts.memory_per_gpu_bytes),
            (const { fact("restarts") }, facts.restarts),
            (const { fact("time_limit_end") }, end_ns),
        ];
        for (fact, text) in texts {
            self.facts.set_text(fact, text.as_deref().unwrap_or_default());
        }
        for (fact, number) in numbers.into_iter().filter(|(_, number)| number.is_some()) {
            self.facts.set(fact, number);
        }
        if let Some(name) = &facts.name {
            self.info.name.clone_from(name);
        }
        if let Some(seconds) = facts.start_s {
            self.info.start_wall_ns = seconds.saturating_mul(1_000_000_000);
        }
        self.uid = self.uid.or(facts.uid);
        self.claims = claims(facts).or(self.claims.take());
        self.told_ns = None;
    }

    /// Adds the job's cgroup files now: `job_memory` and `job_cpu`, from its directories `places`. None
    /// without a directory. `probed` are the groups of the probes, which lack what this kernel cannot tell
    /// them.
    pub fn read(&mut self, places: impl FnOnce() -> Places, probed: &mut Vec<Group>) {
        if self.ended.is_some() {
            return;
        }
        if self.readings < SETTLING {
            self.readings += 1;
            let places = places();
            self.reader = (!places.0.is_empty()).then(|| CgroupReader::of_job(&places));
        }
        if let Some(reader) = &mut self.reader {
            reader.add_oom_kills(probed);
            probed.extend([reader.read_memory(), reader.read_cpu()]);
        }
    }

    /// Adds an interval of `span_ns` that ended at `wall_ns`: the job did `groups`, and `losses` were counted on the
    /// node. Sets in `groups` what the job held.
    pub fn add(&mut self, groups: &mut Vec<Group>, losses: &[Group], wall_ns: u64, span_ns: u64) {
        let own_ns = self.own_span_ns(wall_ns, span_ns);
        add_held(groups, &self.record.totals.stats.groups, own_ns);
        self.late |= self.end_told && groups.iter().any(|group| !group.is_idle());
        self.record.add(own_ns, groups, losses);
    }

    /// The part of an interval in which the job was there.
    fn own_span_ns(&mut self, wall_ns: u64, span_ns: u64) -> u64 {
        let mut own_ns = if self.counted_to_end { 0 } else { span_ns };
        if self.record.totals.elapsed_ns == 0 {
            // It began within it.
            own_ns = own_ns.min(wall_ns.saturating_sub(self.record.timeline.begin_ns()));
        }
        if let Some(ended_ns) = self.ended.filter(|_| !self.counted_to_end) {
            own_ns = own_ns.saturating_sub(wall_ns.saturating_sub(ended_ns));
            self.counted_to_end = true;
        }
        own_ns
    }

    /// The job's last cgroup was removed at `wall_ns`; `None`: it has one again.
    pub fn set_ended(&mut self, wall_ns: Option<u64>) {
        if self.ended.is_some() != wall_ns.is_some() {
            self.ended = wall_ns;
            self.counted_to_end = false;
            (self.end_told, self.end_recorded) = (false, false);
            (self.late, self.settled) = (false, false);
            self.told_ns = None;
            self.readings = 0;
        }
    }
}

/// The GPUs that an environment names. Slurm counts its own list of them, mostly in PCI order, as the driver
/// does; CUDA and ROCm count the devices that a process sees, so within a device cgroup from zero.
fn claims(facts: &JobFacts) -> Option<Claims> {
    let of = Claims::parse(facts.gpus.as_ref()?, Claim::Index);
    let is_relative = of.iter().any(|claim| matches!(claim, Claim::Index(_)));
    (!of.is_empty()).then_some(Claims { of, is_relative })
}

/// When the oldest process in `pids` began, nanoseconds since the Unix epoch.
pub fn read_start_wall_ns(pids: impl IntoIterator<Item = u32>) -> Option<u64> {
    let start = |pid: u32| {
        let started = Process::new(pid.try_into().ok()?).ok()?.stat().ok()?.starttime;
        Some(Duration::from_millis(started * 1000 / procfs::ticks_per_second()))
    };
    let since_boot = pids.into_iter().filter_map(start).min()?;
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let uptime = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
    let begin = SystemTime::now().checked_sub(uptime.checked_sub(since_boot)?)?;
    Some(begin.duration_since(UNIX_EPOCH).ok()?.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_count_otherwise_and_uuids_cannot() {
        let facts = |gpus: &str, by: &str| JobFacts {
            gpus: Some(gpus.into()),
            gpus_by: Some(by.into()),
            ..JobFacts::default()
        };
        let of =
            |facts| claims(&facts).map(|claims| (Vec::from_iter(claims.of), claims.is_relative));
        assert_eq!(of(facts("1", "SLURM_JOB_GPUS")), Some((vec![Claim::Index(1)], true)));
        assert_eq!(of(facts("1", "CUDA_VISIBLE_DEVICES")), Some((vec![Claim::Index(1)], true)));
        let uuid = Claim::Uuid("GPU-8932f937".into());
        let named = facts("GPU-8932f937", "CUDA_VISIBLE_DEVICES");
        assert_eq!(of(named), Some((vec![uuid], false)));
        assert_eq!(of(facts("NoDevFiles", "CUDA_VISIBLE_DEVICES")), None);
    }
}
