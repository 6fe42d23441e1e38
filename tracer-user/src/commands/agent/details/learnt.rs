//! What a task's environment tells of its job.

use super::Details;
use crate::{
    gpu::{Claim, Claims},
    model::tables::fact,
    resolve::facts::JobFacts,
};

impl Details {
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
        let ns = |seconds: u64| seconds.saturating_mul(1_000_000_000);
        let start_ns = facts.start_s.map_or(self.info.start_wall_ns, ns);
        let end_ns = facts.end_s.map(ns);
        let limit_ns = facts.limit_s.map(ns);
        let limit_ns = limit_ns
            .or(facts.end_s.zip(facts.start_s).map(|(end, start)| ns(end.saturating_sub(start))));
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
        if let Some(seconds) = facts.start_s {
            self.info.start_wall_ns = ns(seconds);
            self.started_s = Some(seconds);
        }
        self.uid = self.uid.or(facts.uid);
        self.claims = claims(facts).or(self.claims.take());
        self.told_ns = None;
    }
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
