//! What is known of one job besides the probes' counts: who runs it, what it holds, its files, and its
//! totals for the line at its end.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use procfs::process::Process;
use tracer_ebpf::table::Kind;

use crate::{
    cgroup::{place::Places, read::CgroupReader},
    gpu::{Claim, Claims},
    model::{
        group::{Group, Value},
        info::JobInfo,
        job::Job,
        points::{FieldValue, Origin, Point, info_point, number_value},
    },
    resolve::{Answer, facts::JobFacts},
};

/// `job_info` is written again after this long: a panel that looks at an hour finds the job's name.
const REPEAT_NS: u64 = 300_000_000_000;

/// Readings after which a job's directories and limits are taken for settled.
const SETTLING: u32 = 2;

/// The facts of a job.
pub struct Details {
    /// Its name, owner and begin.
    pub info: JobInfo,
    /// Its owner's number, once known.
    pub uid: Option<u32>,
    /// What its scheduler's environment and its paths tell, by field.
    facts: BTreeMap<&'static str, FieldValue>,
    /// The GPUs that its environment names.
    claims: Option<Claims>,
    reader: Option<CgroupReader>,
    /// Readings so far: limits are set, and directories made, after the first directory.
    readings: u32,
    totals: Vec<Group>,
    told_ns: Option<u64>,
    ended: Option<u64>,
    end_told: bool,
}

impl Details {
    /// Of a job that began at `start_wall_ns`.
    pub fn new(answer: &Answer, start_wall_ns: u64) -> Self {
        let info = JobInfo { start_wall_ns, ..JobInfo::default() };
        let (facts, uid, claims, reader, readings) = (BTreeMap::new(), None, None, None, 0);
        let (totals, told_ns, ended, end_told) = (Vec::new(), None, None, false);
        let mut details =
            Self { info, uid, facts, claims, reader, readings, totals, told_ns, ended, end_told };
        details.note(answer);
        details
    }

    /// Adds what the path of one of its cgroups tells, where no other has told it.
    pub fn note(&mut self, answer: &Answer) {
        let texts = [
            ("sluid", &answer.sluid),
            ("container", &answer.container),
            ("qos", &answer.qos),
            ("runtime", &answer.runtime),
            ("array_task", &answer.array),
        ];
        for (key, value) in texts {
            if let (Some(value), false) = (value, self.facts.contains_key(key)) {
                self.facts.insert(key, FieldValue::Text(value.clone()));
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
        let (facts, claims, reader, readings, told_ns) = (BTreeMap::new(), None, None, 0, None);
        let (ended, end_told) =
            (end.map(|(wall_ns, _)| wall_ns), end.is_some_and(|(_, told)| told));
        Self { info, uid, facts, claims, reader, readings, totals, told_ns, ended, end_told }
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
        &self.totals
    }

    /// Adds what a task's environment tells.
    pub fn learn(&mut self, facts: &JobFacts) {
        if *facts == JobFacts::default() {
            return;
        }
        let texts = [
            ("account", &facts.account),
            ("partition", &facts.queue),
            ("nodes", &facts.nodes),
            ("array_job", &facts.array_job),
            ("array_task", &facts.array_task),
            ("gpus_held", &facts.gpus),
        ];
        let numbers = [
            ("node_count", facts.node_count),
            ("task_count", facts.tasks),
            ("gpu_count", facts.gpu_count()),
            ("memory_per_node_bytes", facts.memory_per_node_bytes),
            ("time_limit_end", facts.end_s.map(|seconds| seconds.saturating_mul(1_000_000_000))),
        ];
        let texts = texts.into_iter().filter_map(|(key, value)| {
            Some((key, FieldValue::Text(value.clone().filter(|text| !text.is_empty())?)))
        });
        let numbers = numbers
            .into_iter()
            .filter_map(|(key, number)| Some((key, FieldValue::Integer(number?))));
        self.facts.extend(texts.chain(numbers));
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
        for group in groups {
            match self.totals.iter_mut().find(|known| known.same_series(group)) {
                Some(known) => known.follow(group),
                None => self.totals.push(group.clone()),
            }
        }
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
        let mut point = info_point(origin, job, &self.info, None, stamp_ns);
        point.fields.retain(|(_, value)| *value != FieldValue::Text(String::new()));
        if self.uid.is_none() {
            point.fields.retain(|(key, _)| key != "uid");
        }
        point.fields.extend(self.facts.iter().map(|(key, value)| ((*key).into(), value.clone())));
        if let Some(end_ns) = self.ended {
            self.end_told = true;
            point.fields.push(("end".into(), FieldValue::Integer(end_ns)));
            point.fields.extend(self.summary());
        }
        Some(point)
    }

    /// The job's totals as fields: `sched_on_cpu_ns`, `sched_run_queue_wait_ns_sum`, `block_read_bytes`.
    fn summary(&self) -> Vec<(String, FieldValue)> {
        let mut fields = BTreeMap::<String, FieldValue>::new();
        for group in &self.totals {
            let prefix = match group.tags.last() {
                // All devices together, by operation.
                Some(op) if group.measurement.key == "block" => format!("block_{op}"),
                _ => group.measurement.key.to_owned(),
            };
            for (field, value) in group.measurement.fields.iter().zip(&group.values) {
                let (name, value) = match value {
                    Some(Value::Number(number)) => {
                        (format!("{prefix}_{}", field.name), number_value(field.unit, *number))
                    }
                    Some(Value::Histogram(hist)) => {
                        (format!("{prefix}_{}_sum", field.name), number_value(field.unit, hist.sum))
                    }
                    None => continue,
                };
                match (fields.get_mut(&name), value) {
                    // The highest of any device.
                    (Some(FieldValue::Integer(most)), FieldValue::Integer(other))
                        if field.kind == Kind::Peak =>
                    {
                        *most = (*most).max(other);
                    }
                    (Some(FieldValue::Integer(sum)), FieldValue::Integer(more)) => {
                        *sum = sum.saturating_add(more);
                    }
                    (Some(FieldValue::Float(sum)), FieldValue::Float(more)) => *sum += more,
                    (_, value) => drop(fields.insert(name, value)),
                }
            }
        }
        fields.into_iter().collect()
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
    use crate::{model::tables::GPU, resolve::Resolver};

    #[test]
    fn the_devices_of_a_job_are_one_in_its_totals() {
        let answer = Resolver::new(&[]).unwrap().path("/slurm/uid_1/job_2");
        let mut details = Details::new(&answer, 0);
        for (uuid, celsius) in [("GPU-a", 61), ("GPU-b", 55)] {
            let tags = ["0", uuid, "H100", "nvidia", ""].map(str::to_owned);
            let mut group = Group::unknown(&GPU, tags.into());
            group.set("energy_joules", 1_500);
            group.set("held_ns", 7);
            group.set("temperature_max_celsius", celsius);
            details.add(&[group]);
        }
        let fields: BTreeMap<_, _> = details.summary().into_iter().collect();
        assert_eq!(fields["gpu_energy_joules"], FieldValue::Float(3.0));
        assert_eq!(fields["gpu_held_ns"], FieldValue::Integer(14));
        assert_eq!(fields["gpu_temperature_max_celsius"], FieldValue::Integer(61));
    }

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
