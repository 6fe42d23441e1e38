//! What is known of one job besides the probes' counts: who runs it, what it holds, its files, and its
//! totals for the line at its end.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use procfs::process::Process;

mod totals;

use totals::SoFar;

use super::asking::Asking;
use crate::{
    cgroup::{place::Places, read::CgroupReader},
    gpu::{Claim, Claims},
    model::{
        group::Group,
        info::{Facts, JobInfo},
        job::Job,
        point::{Origin, Point},
        points::facts_point,
        tables::fact,
    },
    resolve::{Answer, facts::JobFacts},
};

/// `job_info` is written again after this long: a panel that looks at an hour finds the job's name.
pub const REPEAT_NS: u64 = 300_000_000_000;

/// Readings after which a job's directories and limits are taken for settled.
const SETTLING: u32 = 2;

/// The facts of a job.
#[derive(Default)]
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
    totals: SoFar,
    told_ns: Option<u64>,
    ended: Option<u64>,
    end_told: bool,
}

impl Details {
    /// Of a job that began at `start_wall_ns`.
    pub fn new(answer: &Answer, start_wall_ns: u64) -> Self {
        let info = JobInfo { start_wall_ns, ..JobInfo::default() };
        let mut details = Self { info, ..Self::default() };
        details.note(answer);
        details
    }

    /// Its values are counted from `wall_ns` on, when it had begun already.
    pub fn set_counted_from(&mut self, wall_ns: u64) {
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
        totals: Vec<Group>,
    ) -> Self {
        let (ended, end_told) =
            (end.map(|(wall_ns, _)| wall_ns), end.is_some_and(|(_, told)| told));
        let totals = SoFar(totals);
        Self { info, uid, totals, ended, end_told, ..Self::default() }
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

    /// Its values so far.
    pub fn totals(&self) -> &[Group] {
        &self.totals.0
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
        ];
        let end_ns = facts.end_s.map(|seconds| seconds.saturating_mul(1_000_000_000));
        let numbers = [
            (const { fact("node_count") }, facts.node_count),
            (const { fact("task_count") }, facts.tasks),
            (const { fact("gpu_count") }, facts.gpu_count()),
            (const { fact("memory_per_node_bytes") }, facts.memory_per_node_bytes),
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

    /// Adds an interval of the job's to its totals.
    pub fn add(&mut self, groups: &[Group]) {
        self.totals.add(groups);
    }

    /// The job's last cgroup was removed at `wall_ns`; `None`: it has one again.
    pub fn set_ended(&mut self, wall_ns: Option<u64>) {
        if self.ended.is_some() != wall_ns.is_some() {
            self.ended = wall_ns;
            self.end_told = false;
            self.told_ns = None;
            self.readings = 0;
        }
    }

    /// Whether its end has been told.
    pub fn is_end_told(&self) -> bool {
        self.end_told
    }

    /// `job_info`, where it is due at `stamp_ns`; with the job's totals once it has ended.
    pub fn due_info(&mut self, origin: &Origin, job: &Job, stamp_ns: u64) -> Option<Point> {
        let fresh = |told: u64| stamp_ns.saturating_sub(told) < REPEAT_NS;
        if self.end_told || self.told_ns.is_some_and(fresh) {
            return None;
        }
        self.told_ns = Some(stamp_ns);
        self.info.uid = self.uid.unwrap_or_default();
        let mut facts = self.info.facts();
        facts.set(const { fact("uid") }, self.uid.map(u64::from));
        facts.extend(&self.facts);
        facts.set(const { fact("end") }, self.ended);
        self.end_told = self.ended.is_some();
        let totals = if self.end_told { self.totals.fields() } else { Vec::new() };
        Some(facts_point(origin, job, &facts, totals, stamp_ns))
    }
}

/// The GPUs that an environment names. Slurm counts device files, over the whole node; CUDA and ROCm count
/// the devices that a process sees, so within a device cgroup from zero.
fn claims(facts: &JobFacts) -> Option<Claims> {
    let is_slurms = facts.gpus_by.as_ref().is_some_and(|variable| variable.starts_with("SLURM_"));
    let number = if is_slurms { Claim::Minor } else { Claim::Index };
    let of = Claims::parse(facts.gpus.as_ref()?, number);
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
    fn who_wrote_the_numbers_says_which_they_are() {
        let facts = |gpus: &str, by: &str| JobFacts {
            gpus: Some(gpus.into()),
            gpus_by: Some(by.into()),
            ..JobFacts::default()
        };
        let of =
            |facts| claims(&facts).map(|claims| (Vec::from_iter(claims.of), claims.is_relative));
        assert_eq!(of(facts("1", "SLURM_JOB_GPUS")), Some((vec![Claim::Minor(1)], false)));
        assert_eq!(of(facts("1", "CUDA_VISIBLE_DEVICES")), Some((vec![Claim::Index(1)], true)));
        let uuid = Claim::Uuid("GPU-8932f937".into());
        let named = facts("GPU-8932f937", "CUDA_VISIBLE_DEVICES");
        assert_eq!(of(named), Some((vec![uuid], false)));
        assert_eq!(of(facts("NoDevFiles", "CUDA_VISIBLE_DEVICES")), None);
    }
}
