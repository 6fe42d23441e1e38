//! The families of probes, what one event of each costs, and where that figure comes from.

/// Probes that are attached and detached together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Context switches, and tasks that change their cgroup: most of `job_sched`, and the counts of
    /// faults.
    Sched,
    /// Waits of major faults.
    MajorFault,
    /// Latencies of minor and major faults (`faults = "full"`).
    FullFault,
    /// Completions of block requests: `job_block`.
    Block,
    /// Cgroups made and removed, forks, execs, out of memory.
    LifeCycle,
}

/// Number of families.
pub const FAMILIES: usize = 5;

/// What is known of a family.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The family.
    pub family: Family,
    /// Its name in log and data.
    pub name: &'static str,
    /// What is counted as its event.
    pub event: &'static str,
    /// Nanoseconds of the traced task's time for each event, getting into the program included.
    pub event_ns: u64,
    /// Its programs, what begins something before what ends it: the order in which they are attached.
    pub programs: &'static [&'static str],
    /// The fields it gives, or a whole measurement.
    pub fields: &'static [&'static str],
    /// The same in words.
    pub gives: &'static str,
    /// The family whose records its programs read: detached with it.
    pub needs: Option<Family>,
    /// Whether it is shed by itself.
    pub sheddable: bool,
    /// Where `event_ns` comes from.
    pub source: &'static str,
}

/// One row for each family, in the order of [`Family`].
pub static COSTS: [Cost; FAMILIES] = [
    Cost {
        family: Family::Sched,
        name: "sched",
        event: "context switches",
        event_ns: 160,
        // The first two serve the records of the others, and nothing else.
        programs: &[
            "cgroup_attach_task",
            "cgroup_attach_self",
            "sched_switch",
            "sched_switch_3",
            "switch_untimed",
            "switch_untimed_3",
        ],
        fields: &[
            "on_cpu_ns",
            "switches_voluntary",
            "switches_involuntary",
            "migrations",
            "run_queue_wait_ns",
            "on_cpu_slice_ns",
            "sleep_ns",
            "blocked_ns",
            "minor",
            "major",
        ],
        gives: "job_sched except forks and execs, minor and major of job_fault",
        needs: None,
        sheddable: true,
        source: "cargo xtask bench, AMD EPYC, sched pipe: 5397 - 5080 ns for two switches",
    },
    Cost {
        family: Family::MajorFault,
        name: "major_fault",
        event: "major faults",
        event_ns: 210,
        programs: &["major_fault"],
        fields: &["major_wait_ns"],
        gives: "major_wait_ns",
        needs: Some(Family::Sched),
        // What the switch hook notes for it would pile up and come out as one long wait.
        sheddable: false,
        source: "not measured, rare beside its disk read: as the dearest one, a block completion",
    },
    Cost {
        family: Family::FullFault,
        name: "full_fault",
        event: "page faults, minor and major",
        event_ns: 180,
        programs: &[
            "page_fault_user",
            "handle_mm_fault",
            "page_fault_kernel",
            "major_fault_latency",
            "minor_fault_latency",
        ],
        fields: &["minor_latency_ns", "minor_sampled", "major_latency_ns", "latency_sample_every"],
        gives: "minor_latency_ns, major_latency_ns",
        needs: Some(Family::Sched),
        sheddable: true,
        source: "cargo xtask bench, AMD EPYC, minor faults: 1676 - 1498 ns",
    },
    Cost {
        family: Family::Block,
        name: "block",
        event: "block requests",
        event_ns: 210,
        programs: &["block_rq_complete"],
        fields: &["job_block"],
        gives: "job_block",
        needs: None,
        sheddable: true,
        source: "cargo xtask bench, fio on a file: 207.9 ns a run, the empty program's 60.5 left in",
    },
    Cost {
        family: Family::LifeCycle,
        name: "life_cycle",
        event: "forks, execs, cgroups made and removed",
        event_ns: 210,
        programs: &[
            "cgroup_mkdir",
            "cgroup_rmdir",
            "cgroup_rename",
            "sched_process_fork",
            "sched_process_exec",
            "mark_victim",
            "mark_victim_pid",
            "victim_exit",
        ],
        fields: &["forks", "execs", "oom_kills"],
        gives: "forks, execs, new cgroups",
        needs: None,
        // Without it new cgroups would count for the wrong job: wrong values, not absent ones.
        sheddable: false,
        source: "not measured, rare beside the fork itself: as a block completion",
    },
];

impl Family {
    /// All of them.
    pub const ALL: [Self; FAMILIES] =
        [Self::Sched, Self::MajorFault, Self::FullFault, Self::Block, Self::LifeCycle];

    /// Its row.
    #[must_use]
    pub fn cost(self) -> &'static Cost {
        &COSTS[self as usize]
    }

    /// Itself, and those that cannot do without it.
    pub fn with_dependents(self) -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .filter(move |&other| other == self || other.cost().needs == Some(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::tables::{BLOCK, FAULT, SCHED},
        probes::HOOKS,
    };

    #[test]
    fn rows_stand_in_the_families_order() {
        for (family, row) in Family::ALL.into_iter().zip(&COSTS) {
            assert_eq!(row.family, family);
            assert_eq!(family.cost().name, row.name);
        }
    }

    #[test]
    fn every_hook_is_of_one_family() {
        let mut programs: Vec<_> = COSTS.iter().flat_map(|row| row.programs).copied().collect();
        let mut hooks: Vec<_> = HOOKS.iter().map(|hook| hook.program).collect();
        programs.sort_unstable();
        hooks.sort_unstable();
        assert_eq!(programs, hooks);
    }

    #[test]
    fn every_field_of_the_probes_is_of_one_family() {
        let mut given: Vec<_> = COSTS.iter().flat_map(|row| row.fields).copied().collect();
        let fields = SCHED.fields.iter().chain(FAULT.fields).map(|field| field.name);
        let mut fields: Vec<_> = fields.chain([BLOCK.name]).collect();
        given.sort_unstable();
        fields.sort_unstable();
        assert_eq!(given, fields);
    }

    #[test]
    fn what_is_needed_needs_nothing() {
        let needed = COSTS.iter().filter_map(|row| row.needs);
        assert!(needed.into_iter().all(|family| family.cost().needs.is_none()));
        let kept = COSTS.iter().filter(|row| !row.sheddable && row.needs.is_none());
        assert_eq!(kept.map(|row| row.family).collect::<Vec<_>>(), [Family::LifeCycle]);
    }
}
