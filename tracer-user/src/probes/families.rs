//! The families of probes: what is attached, detached and unknown together, what one event of each costs
//! and where that figure comes from. Which programs and fields are of a family, the rows of the hooks say.

use tracer_ebpf::{
    table::Measurement,
    tables::{block::BLOCK, fault::FAULT, job::SCHED},
};

/// What is known of a family.
#[derive(Clone, Copy, Debug)]
pub struct FamilyRow {
    /// Its name in log and data.
    pub name: &'static str,
    /// What is counted as its event, in words.
    pub event: &'static str,
    /// The same, by what counts it: added up.
    pub counted_by: &'static [EventCount],
    /// Nanoseconds of the traced task's time for each event, getting into the program included.
    pub event_ns: u64,
    /// Where `event_ns` comes from.
    pub source: &'static str,
    /// What is unknown without it, in words.
    pub gives: &'static str,
    /// The family whose records its programs read: detached with it.
    pub needs: Option<Family>,
    /// Whether it is shed by itself.
    pub sheddable: bool,
    /// Whether it is attached in full mode only.
    pub full_only: bool,
}

/// What counts a family's events.
#[derive(Clone, Copy, Debug)]
pub enum EventCount {
    /// A field, over all leases.
    Field(&'static Measurement, &'static str),
    /// Cgroups that the kernel told of.
    Cgroups,
}

use EventCount::{Cgroups, Field};

macro_rules! families {
    ($($(#[$doc:meta])* $family:ident = $row:expr;)*) => {
        /// Probes that are attached and detached together.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Family {
            $($(#[$doc])* $family),*
        }

        /// Number of families.
        pub const FAMILIES: usize = [$(Family::$family),*].len();

        static ROWS: [FamilyRow; FAMILIES] = [$($row),*];

        impl Family {
            /// All of them.
            pub const ALL: [Self; FAMILIES] = [$(Self::$family),*];
        }
    };
}

families! {
    /// Context switches, and tasks that change their cgroup: most of `job_sched`, and the counts of
    /// faults.
    Sched = FamilyRow {
        name: "sched",
        event: "context switches",
        counted_by: &[Field(&SCHED, "switches_voluntary"), Field(&SCHED, "switches_involuntary")],
        event_ns: 160,
        source: "cargo xtask bench, AMD EPYC, sched pipe: 5397 - 5080 ns for two switches",
        gives: "job_sched but forks and execs, minor and major of job_fault",
        needs: None,
        sheddable: true,
        full_only: false,
    };
    /// Waits of major faults.
    MajorFault = FamilyRow {
        name: "major_fault",
        event: "major faults",
        counted_by: &[Field(&FAULT, "major")],
        event_ns: 210,
        source: "not measured, rare beside its disk read: as the dearest one, a block completion",
        gives: "major_wait_ns",
        needs: Some(Family::Sched),
        // What the switch hook notes for it would pile up and come out as one long wait.
        sheddable: false,
        full_only: false,
    };
    /// Latencies of minor and major faults (`faults = "full"`).
    FullFault = FamilyRow {
        name: "full_fault",
        event: "page faults, minor and major",
        counted_by: &[Field(&FAULT, "minor"), Field(&FAULT, "major")],
        event_ns: 180,
        source: "cargo xtask bench, AMD EPYC, minor faults: 1676 - 1498 ns",
        gives: "minor_latency_ns, major_latency_ns",
        needs: Some(Family::Sched),
        sheddable: true,
        full_only: true,
    };
    /// Completions of block requests: `job_block`.
    Block = FamilyRow {
        name: "block",
        event: "block requests",
        counted_by: &[Field(&BLOCK, "ops")],
        event_ns: 210,
        source: "cargo xtask bench, fio on a file: 207.9 ns a run, the empty program's 60.5 left in",
        gives: "job_block",
        needs: None,
        sheddable: true,
        full_only: false,
    };
    /// Cgroups made and removed, forks, execs, out of memory.
    LifeCycle = FamilyRow {
        name: "life_cycle",
        event: "forks, execs, cgroups made and removed",
        counted_by: &[Field(&SCHED, "forks"), Field(&SCHED, "execs"), Cgroups],
        event_ns: 210,
        source: "not measured, rare beside the fork itself: as a block completion",
        gives: "forks, execs, new cgroups",
        needs: None,
        // Without it new cgroups would count for the wrong job: wrong values, not absent ones.
        sheddable: false,
        full_only: false,
    };
}

impl Family {
    /// Its row.
    #[must_use]
    pub fn row(self) -> &'static FamilyRow {
        &ROWS[self as usize]
    }

    /// Itself, and those that cannot do without it.
    pub fn with_dependents(self) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |&other| other == self || other.row().needs == Some(self))
    }

    /// Whether it is ever detached: by itself, or with the one that it needs.
    #[must_use]
    pub fn is_ever_shed(self) -> bool {
        self.row().sheddable || self.row().needs.is_some()
    }

    /// The field of `jobtrace_self` that tells of its being detached.
    #[must_use]
    pub fn shed_field(self) -> String {
        format!("shed_{}", self.row().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tables::SELF;

    #[test]
    fn what_is_needed_needs_nothing() {
        let needed = Family::ALL.into_iter().filter_map(|family| family.row().needs);
        assert!(needed.into_iter().all(|family| family.row().needs.is_none()));
        let kept = Family::ALL.into_iter().filter(|family| !family.is_ever_shed());
        assert_eq!(kept.collect::<Vec<_>>(), [Family::LifeCycle]);
    }

    #[test]
    fn what_counts_events_is_a_counter() {
        for family in Family::ALL {
            for count in family.row().counted_by {
                let Field(measurement, name) = count else { continue };
                assert!(measurement.fields.iter().any(|field| field.name == *name), "{name}");
            }
        }
    }

    #[test]
    fn each_family_that_is_ever_shed_has_its_field() {
        let fields = SELF.fields.iter().filter(|field| field.name.starts_with("shed_"));
        let mut fields: Vec<_> = fields.collect();
        fields.retain(|field| field.name != "shed_families");
        let shed = Family::ALL.into_iter().filter(|family| family.is_ever_shed());
        let shed: Vec<_> = shed.collect();
        let names: Vec<_> = fields.iter().map(|field| field.name.to_owned()).collect();
        assert_eq!(names, shed.iter().map(|family| family.shed_field()).collect::<Vec<_>>());
        for (field, family) in fields.iter().zip(shed) {
            let gives = family.row().gives;
            assert!(field.help.contains(gives), "{} does not say {gives:?}", field.name);
        }
    }
}
