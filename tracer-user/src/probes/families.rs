//! The families of probes: what is attached, detached and unknown together, what one event of each costs
//! and where that figure comes from. Which programs and fields are of a family, the rows of the hooks say.

use tracer_ebpf::handle::{Handle, Number};

use crate::model::tables::{Block, Fault, Net, Own, Sched};

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
    /// The field of `jobtrace_self` that reports it detached; `None` where it never is, by itself or with
    /// the family that it needs.
    pub shed: Option<Handle<Number>>,
    /// Whether it is attached in full mode only.
    pub full_only: bool,
}

/// What counts a family's events.
#[derive(Clone, Copy, Debug)]
pub enum EventCount {
    /// A field, over all leases.
    Field(Handle<Number>),
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
    /// Context switches, and tasks that change their cgroup: most of `job_sched`, `job_wait`, and the counts
    /// of faults.
    Sched = FamilyRow {
        name: "sched",
        event: "context switches",
        counted_by: &[Field(Sched::switches_voluntary), Field(Sched::switches_involuntary)],
        event_ns: 160,
        source: "cargo xtask bench, AMD EPYC, sched pipe: 5397 - 5080 ns for two switches",
        gives: "job_sched except forks and execs, job_wait, minor and major of job_fault",
        needs: None,
        sheddable: true,
        shed: Some(Own::shed_sched),
        full_only: false,
    };
    /// Waits of major faults.
    MajorFault = FamilyRow {
        name: "major_fault",
        event: "major faults",
        counted_by: &[Field(Fault::major)],
        event_ns: 210,
        source: "not measured, as it is rare beside its disk read: that of the costliest one, a block completion",
        gives: "major_wait_ns",
        needs: Some(Family::Sched),
        // What the switch hook notes for it would pile up and come out as one long wait.
        sheddable: false,
        shed: Some(Own::shed_major_fault),
        full_only: false,
    };
    /// Latencies of minor and major faults (`faults = "full"`).
    FullFault = FamilyRow {
        name: "full_fault",
        event: "page faults, minor and major",
        counted_by: &[Field(Fault::minor), Field(Fault::major)],
        event_ns: 180,
        source: "cargo xtask bench, AMD EPYC, minor faults: 1676 - 1498 ns",
        gives: "minor_latency_ns, major_latency_ns",
        needs: Some(Family::Sched),
        sheddable: true,
        shed: Some(Own::shed_full_fault),
        full_only: true,
    };
    /// Completions of block requests: `job_block`.
    Block = FamilyRow {
        name: "block",
        event: "block requests",
        counted_by: &[Field(Block::ops)],
        event_ns: 210,
        source: "cargo xtask bench, fio on a file: 207.9 ns a run, including the empty program's 60.5",
        gives: "job_block",
        needs: None,
        sheddable: true,
        shed: Some(Own::shed_block),
        full_only: false,
    };
    /// Messages sent and received through sockets: `job_net`.
    Net = FamilyRow {
        name: "net",
        event: "messages sent and received",
        counted_by: &[Field(Net::sent_calls), Field(Net::received_calls)],
        event_ns: 80,
        source: "cargo xtask bench, AMD EPYC, messages between unix sockets: 78.7 ns a run, including the empty program's 47.1",
        gives: "job_net",
        needs: None,
        sheddable: true,
        shed: Some(Own::shed_net),
        full_only: false,
    };
    /// Programs executed, libraries mapped, Python modules opened: `job_software`, where it is asked for.
    Census = FamilyRow {
        name: "census",
        event: "programs executed",
        counted_by: &[Field(Sched::execs)],
        event_ns: 2_400,
        source: "cargo xtask bench --only census, AMD EPYC, a small program of a job: 516 ns for its execution, 119 for its process, 1249 for what it reads, 439 for its end, and getting into these programs; not the modules of Python",
        gives: "job_software",
        needs: None,
        sheddable: true,
        shed: Some(Own::shed_census),
        full_only: false,
    };
    /// Cgroups made and removed, forks, execs, out of memory.
    LifeCycle = FamilyRow {
        name: "life_cycle",
        event: "forks, execs, cgroups made and removed",
        counted_by: &[Field(Sched::forks), Field(Sched::execs), Cgroups],
        event_ns: 210,
        source: "not measured, as it is cheap beside the fork itself: that of a block completion",
        gives: "forks, execs, new cgroups",
        needs: None,
        // Without it new cgroups would count for the wrong job: wrong values, not absent ones.
        sheddable: false,
        shed: None,
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tables::SELF;

    #[test]
    fn what_is_needed_needs_nothing() {
        let needed = Family::ALL.into_iter().filter_map(|family| family.row().needs);
        assert!(needed.into_iter().all(|family| family.row().needs.is_none()));
        let kept = Family::ALL.into_iter().filter(|family| family.row().shed.is_none());
        assert_eq!(kept.collect::<Vec<_>>(), [Family::LifeCycle]);
    }

    #[test]
    fn each_family_that_is_ever_shed_has_its_field() {
        let fields = SELF.fields.iter().map(|field| field.name);
        let fields = fields.filter(|name| name.starts_with("shed_") && *name != "shed_families");
        let mut named = Vec::new();
        for family in Family::ALL {
            let row = family.row();
            assert_eq!(row.shed.is_some(), row.sheddable || row.needs.is_some(), "{}", row.name);
            let mut measurements = family.fields().filter(|field| field.starts_with("job_"));
            assert!(measurements.all(|name| row.gives.contains(name)), "{}", row.name);
            let Some(shed) = row.shed.map(|shed| shed.field()) else { continue };
            assert_eq!(shed.name, format!("shed_{}", row.name));
            assert!(shed.help.contains(row.gives), "{} does not say {:?}", shed.name, row.gives);
            named.push(shed.name);
        }
        assert_eq!(fields.collect::<Vec<_>>(), named);
    }
}
