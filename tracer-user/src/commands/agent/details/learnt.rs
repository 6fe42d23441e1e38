//! What a task's environment tells of its job.

use super::Details;
use crate::{
    gpu::{Claim, Claims},
    model::tables::{Fact, fact},
    resolve::facts::JobFacts,
};

/// By how much the scheduler's clock may be ahead of this node's.
const SKEW_NS: u64 = 60_000_000_000;

impl Details {
    /// Whether a task's environment has told of its job.
    pub(super) fn has_learnt(&self) -> bool {
        const TOLD: [&Fact; 4] =
            [fact("core_count"), fact("node_count"), fact("task_count"), fact("restarts")];
        self.started_s.is_some() || TOLD.iter().any(|fact| self.facts.has(fact))
    }

    /// When it began by `facts`, seconds since the Unix epoch: not after it was seen.
    pub(super) fn start_s(&self, facts: &JobFacts) -> Option<u64> {
        let seen_ns = self.record.timeline.begin_ns().saturating_add(SKEW_NS);
        facts.start_s.filter(|seconds| ns(*seconds) <= seen_ns)
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
        let start_s = self.start_s(facts);
        let start_ns = start_s.map_or(self.info.start_wall_ns, ns);
        let end_ns = facts.end_s.map(ns);
        let limit_ns = facts.limit_s.map(ns);
        let limit_ns =
            limit_ns.or(facts.end_s.zip(start_s).map(|(end, start)| ns(end.saturating_sub(start))));
        // Of a job that was there before the agent the begin is its oldest task's.
        let end_ns = end_ns.or(limit_ns.map(|limit_ns| start_ns.saturating_add(limit_ns)));
        let numbers = [
            (const { fact("node_count") }, facts.node_count),
            (const { fact("task_count") }, facts.tasks),
            (const { fact("gpu_count") }, facts.gpu_count()),
            (const { fact("core_count") }, facts.cores),
            (const { fact("memory_per_node_bytes") }, facts.memory_per_node_bytes),
            (const { fact("memory_per_core_bytes") }, facts.memory_per_core_bytes),
            (const { fact("memory_per_gpu_bytes") }, facts.memory_per_gpu_bytes),
            (const { fact("restarts") }, facts.restarts),
            (const { fact("submitted") }, facts.submitted_s.map(ns)),
            (const { fact("time_limit_end") }, end_ns),
            (const { fact("time_limit_ns") }, limit_ns),
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
        if let Some(seconds) = start_s {
            self.info.start_wall_ns = ns(seconds);
            self.started_s = Some(seconds);
        }
        self.uid = self.uid.or(facts.uid);
        self.claims = claims(facts).or(self.claims.take());
        self.told_ns = None;
    }
}

fn ns(seconds: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000)
}

/// The GPUs that an environment names. Slurm counts its own list of them, mostly in PCI order, as the driver
/// does; CUDA and ROCm count the devices that a process sees, so within a device cgroup from zero.
fn claims(facts: &JobFacts) -> Option<Claims> {
    let of = Claims::parse(facts.gpus.as_ref()?, Claim::Index);
    let is_relative = of.iter().any(|claim| matches!(claim, Claim::Index(_)));
    (!of.is_empty()).then_some(Claims { of, is_relative })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{probes::Cgroup, resolve::Resolver};

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

    /// Of a job that was seen 1,000 s after the Unix epoch.
    fn seen() -> Details {
        let answer = Resolver::new(&[]).unwrap().path("/slurm/uid_0/job_1");
        Details::new(&answer, ns(1_000), 0)
    }

    #[test]
    fn what_is_told_first_ends_no_job_before() {
        let told = |restarts, start_s| JobFacts {
            cores: Some(1),
            restarts: Some(restarts),
            start_s,
            ..JobFacts::default()
        };
        let mut details = seen();
        assert_eq!(details.end_of_another(&told(2, None)), None);
        details.learn(&told(2, Some(990)));
        assert_eq!(details.end_of_another(&told(2, Some(990))), None);
        assert_eq!(details.end_of_another(&told(2, Some(4_000))), None, "it is not believed");
        assert!(details.end_of_another(&told(3, Some(990))).is_some());
    }

    #[test]
    fn a_run_that_ended_before_it_was_asked_is_another_than_one_that_began_later() {
        let told = |restarts, start_s| JobFacts {
            restarts: Some(restarts),
            start_s: Some(start_s),
            ..JobFacts::default()
        };
        let returned = || {
            let mut details = seen();
            details.set_ended(ns(1_002));
            assert!(details.set_returned(ns(1_004), false));
            details
        };
        assert_eq!(returned().end_of_another(&told(1, 1_003)), Some(ns(1_002)));
        assert_eq!(returned().end_of_another(&told(1, 999)), None, "the second step of one run");
        assert_eq!(returned().end_of_another(&told(0, 1_003)), None, "a clock that is ahead");
    }

    #[test]
    fn a_step_that_is_there_again_is_of_another_run() {
        let resolver = Resolver::new(&[]).unwrap();
        let mut details = seen();
        let begin = |details: &mut Details, number, step: &str, at_s| {
            let path = format!("/slurm/uid_0/job_1/step_{step}");
            let cgroup = Cgroup { table: 0, id: number };
            details.begin_part(cgroup, path.clone().into(), &resolver.path(&path), ns(at_s));
            cgroup
        };
        let first = begin(&mut details, 1, "batch", 1_000);
        details.end_part(first, ns(1_002));
        details.set_ended(ns(1_002));
        assert!(details.set_returned(ns(1_004), false));
        let told = |restarts| JobFacts { restarts: Some(restarts), ..JobFacts::default() };
        begin(&mut details, 2, "0", 1_004);
        assert_eq!(details.end_of_another(&told(1)), None, "may be the second step of one run");
        begin(&mut details, 3, "batch", 1_004);
        assert_eq!(details.end_of_another(&told(0)), None, "nothing tells of another run");
        assert_eq!(details.end_of_another(&told(1)), Some(ns(1_002)));
    }

    #[test]
    fn a_begin_after_the_job_was_seen_is_not_believed() {
        let mut details = seen();
        for (told_s, begin_s) in [(1_061, 1_000), (u64::MAX, 1_000), (1_060, 1_060), (990, 990)] {
            details.learn(&JobFacts { start_s: Some(told_s), ..JobFacts::default() });
            assert_eq!(details.info.start_wall_ns, ns(begin_s), "{told_s}");
        }
    }
}
