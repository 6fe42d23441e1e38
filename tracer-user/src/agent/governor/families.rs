//! The families of probes, what one event of each costs, and where that figure comes from.

/// Probes that are attached and detached together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Context switches: all of `job_sched`, and the counts of faults.
    Sched,
    /// Waits of major faults.
    MajorFault,
    /// Latencies of minor and major faults (`faults = "full"`).
    FullFault,
    /// Completions of block requests: `job_block`.
    Block,
    /// Cgroups made, removed and joined, forks, execs, out of memory.
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
    /// What is unknown without it; `None`: it stays attached.
    pub gives: Option<&'static str>,
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
        gives: Some("job_sched, minor and major of job_fault"),
        source: "docs/OVERHEAD.md, sched pipe: 5397 - 5080 ns for two switches",
    },
    Cost {
        family: Family::MajorFault,
        name: "major_fault",
        event: "major faults",
        event_ns: 210,
        gives: Some("major_wait_ns"),
        source: "not measured, rare beside its disk read: as the dearest one, a block completion",
    },
    Cost {
        family: Family::FullFault,
        name: "full_fault",
        event: "page faults, minor and major",
        event_ns: 180,
        gives: Some("minor_latency_ns, major_latency_ns"),
        source: "docs/OVERHEAD.md, minor faults: 1676 - 1498 ns",
    },
    Cost {
        family: Family::Block,
        name: "block",
        event: "block requests",
        event_ns: 210,
        gives: Some("job_block"),
        source: "docs/OVERHEAD.md, fio on a file: 207.9 ns a run, the empty program's 60.5 left in",
    },
    Cost {
        family: Family::LifeCycle,
        name: "life_cycle",
        event: "forks, execs, cgroups made, removed and joined",
        event_ns: 210,
        // Without it new cgroups would count for the wrong job: wrong values, not absent ones.
        gives: None,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_families_order() {
        for (family, row) in Family::ALL.into_iter().zip(&COSTS) {
            assert_eq!(row.family, family);
            assert_eq!(family.cost().name, row.name);
        }
    }
}
