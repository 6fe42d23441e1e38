//! Between the readings, the governor and the probes: what each family did and cost, what of an interval
//! is unknown because probes were detached, and the attaching and detaching itself. Judging is the
//! governor's.
//!
//! Totals are read whether their probes run or not: those of a detached family stand still. An interval is
//! their difference as ever, and only then the fields of families that did not run through all of it are
//! made unknown. So no difference reaches across a gap.

mod measuring;
mod settings;

use std::path::Path;

use measuring::Measuring;
pub use settings::OverheadSettings;

use super::{
    governor::{Action, Activity, Governor, Reading, Verdict},
    log::Log,
};
use crate::{
    base::kept::KeptFile,
    cgroup::formats::parse_cpu_count,
    model::{
        snapshot::Interval,
        tables::{FAULT, NET, Own, SCHED, SELF},
    },
    probes::{EventCount, FAMILIES, Family, Probes},
};

/// Bounds what the probes cost.
pub struct Overhead {
    settings: OverheadSettings,
    governor: Governor,
    /// Families that this kernel and this configuration have.
    present: [bool; FAMILIES],
    attached: [bool; FAMILIES],
    /// Families that did not run through all of the interval under way.
    hidden: [bool; FAMILIES],
    cgroups: u64,
    /// The kernel's list of CPUs that are online.
    online: KeptFile,
    measuring: Measuring,
}

impl Overhead {
    /// Of probes that are all attached.
    #[must_use]
    pub fn new(settings: OverheadSettings, probes: &Probes) -> Self {
        let present = Family::ALL.map(|family| probes.has(family));
        Self {
            settings,
            governor: Governor::new(settings.governor),
            present,
            attached: present,
            hidden: [false; FAMILIES],
            cgroups: 0,
            online: KeptFile::new(Path::new("/sys/devices/system/cpu"), "online"),
            measuring: Measuring::begin(probes),
        }
    }

    /// Takes over what SIGHUP may change.
    pub fn set(&mut self, settings: OverheadSettings) {
        self.settings.governor = settings.governor;
        self.governor.set(settings.governor);
    }

    /// Cgroups were made or removed.
    pub fn saw_cgroups(&mut self, count: u64) {
        self.cgroups += count;
    }

    /// Judges `interval`, which ended at `now_ns`, the moment of its last reading; tells in it what the
    /// probes cost and what is unknown; and detaches or attaches what the next one is to have.
    pub fn tick(&mut self, interval: &mut Interval, now_ns: u64, probes: &mut Probes, log: &Log) {
        let measured = self.measuring.end_interval(probes, self.settings.statistics, log);
        let events = events(interval, std::mem::take(&mut self.cgroups));
        let families = Family::ALL.map(|family| {
            let is_running = self.present[family as usize] && self.attached[family as usize];
            let bpf_ns = measured.map(|of| of[family as usize]);
            let events = events[family as usize].filter(|_| is_running)?;
            Some(Activity { events, bpf_ns })
        });
        let cpus = self.online.read(parse_cpu_count).unwrap_or(0) as u32;
        let verdict =
            self.governor.judge(&Reading { now_ns, span_ns: interval.span_ns, cpus, families });
        for family in Family::ALL.into_iter().filter(|family| self.hidden[*family as usize]) {
            hide(interval, family);
        }
        self.tell(interval, &verdict, measured.is_some());
        self.follow(probes, log);
        // Only what is done is said to be.
        if let Some(action) = verdict.action.filter(|action| self.is_done(*action)) {
            self.say(action, &verdict, now_ns, log);
        }
    }

    /// Sets the fields of `jobtrace_self`.
    fn tell(&self, interval: &mut Interval, verdict: &Verdict, is_measured: bool) {
        let own = interval.own.iter_mut().find(|own| own.is(&SELF));
        let Some(own) = own else { return };
        own.set(Own::overhead_ratio, verdict.ratio.map(|ratio| (ratio * 1e6).round() as u64));
        own.set(Own::overhead_measured, u64::from(verdict.is_measured));
        let known = |family: &Family| self.governor.measured_event_ns(*family).is_some();
        own.set(Own::families_measured, Family::ALL.iter().filter(|f| known(f)).count() as u64);
        let hidden = self.hidden.iter().filter(|hidden| **hidden).count();
        own.set(Own::shed_families, hidden as u64);
        for (family, field) in Family::ALL.map(|family| (family, family.row().shed)) {
            let Some(field) = field else { continue };
            let hidden = u64::from(self.hidden[family as usize]);
            own.set(field, Some(hidden).filter(|_| self.present[family as usize]));
        }
        if !is_measured {
            // Nobody counted: no run is not known.
            own.set(Own::bpf_ns, None);
            own.set(Own::bpf_runs, None);
        }
    }

    fn is_done(&self, action: Action) -> bool {
        match action {
            Action::Shed(family) => !self.attached[family as usize],
            Action::Restore(family) => self.attached[family as usize],
        }
    }

    fn say(&self, action: Action, verdict: &Verdict, now_ns: u64, log: &Log) {
        let percent = verdict.ratio.unwrap_or(0.0) * 100.0;
        let limit = self.settings.governor.max_ratio * 100.0;
        match action {
            Action::Shed(family) => {
                let how = if verdict.is_measured { "measured" } else { "estimated" };
                let seconds =
                    self.governor.shed_for_ns(family, now_ns).unwrap_or(0) / 1_000_000_000;
                log.warning(format_args!(
                    "the probes take {percent:.3} % of the CPUs' time ({how}; limit {limit:.3} %): \
                     {action}; next attempt in {seconds} s"
                ));
            }
            Action::Restore(_) => log.notice(format_args!(
                "{action}; the other probes take {percent:.3} % of the CPUs' time (limit {limit:.3} %)"
            )),
        }
    }

    /// Attaches and detaches until the probes are as the governor wants them. What fails is said, stays
    /// unknown, and is tried again at the next tick.
    fn follow(&mut self, probes: &mut Probes, log: &Log) {
        let wanted = Family::ALL
            .map(|family| self.present[family as usize] && self.governor.is_running(family));
        self.hidden = [false; FAMILIES];
        // What ends something before what begins it, so that no end finds an old begin.
        for family in Family::ALL.into_iter().rev() {
            let own = family as usize;
            if self.attached[own] && !wanted[own] {
                self.attached[own] = !said(probes.detach(family), "detached", family, log);
                self.hidden[own] = true;
            }
        }
        for family in Family::ALL {
            let own = family as usize;
            if !self.attached[own] && wanted[own] {
                self.attached[own] = said(probes.attach(family), "attached", family, log);
                self.hidden[own] = true;
            }
            self.hidden[own] |= self.present[own] && !self.attached[own];
        }
    }
}

fn said(result: anyhow::Result<()>, done: &str, family: Family, log: &Log) -> bool {
    if let Err(error) = &result {
        let name = family.row().name;
        log.error(format_args!("the {name} probes cannot be {done}: {error:#}"));
    }
    result.is_ok()
}

/// Makes the fields of `family` unknown.
fn hide(interval: &mut Interval, family: Family) {
    let lost: Vec<_> = family.fields().collect();
    for group in interval.slots.values_mut().flatten() {
        let all = lost.contains(&group.measurement.name);
        let is_probed = [&SCHED, &FAULT, &NET].iter().any(|table| group.is(table));
        for (field, value) in group.measurement.fields.iter().zip(&mut group.values) {
            if all || (is_probed && lost.contains(&field.name)) {
                *value = None;
            }
        }
    }
}

/// Events of each family in `interval`, over all leases, `cgroups` of which were made or removed in it;
/// `None` where that is unknown.
fn events(interval: &Interval, cgroups: u64) -> [Option<u64>; FAMILIES] {
    let count = |count: &EventCount| match count {
        EventCount::Cgroups => Some(cgroups),
        EventCount::Field(field) => {
            let groups = interval.slots.values().flatten();
            let groups = groups.filter(|group| group.is(field.measurement()));
            // No device has a group before its first request.
            let nothing = (!field.measurement().tags.is_empty()).then_some(0);
            let known = groups.filter_map(|group| group.number(*field)).chain(nothing);
            known.reduce(u64::saturating_add)
        }
    };
    Family::ALL
        .map(|family| family.row().counted_by.iter().filter_map(count).reduce(u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracer_ebpf::table::Kind;

    use crate::model::{
        group::{Group, Value},
        tables::{BLOCK, MEMORY, NET},
    };

    /// An interval of two leases in which every number is 5.
    fn interval() -> Interval {
        let full = |measurement, tags: &[&str]| {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            let mut group = Group::unknown(measurement, tags);
            for (field, value) in group.measurement.fields.iter().zip(&mut group.values) {
                *value = (field.kind != Kind::Histogram).then_some(Value::Number(5));
            }
            group
        };
        let groups = || {
            let disks = ["sda", "sdb"].map(|disk| full(&BLOCK, &[disk, "read"]));
            let others = [&SCHED, &FAULT, &MEMORY].map(|measurement| full(measurement, &[]));
            let nets = ["tcp", "unix"].map(|family| full(&NET, &[family]));
            others.into_iter().chain(disks).chain(nets).collect::<Vec<_>>()
        };
        let slots = [(0, groups()), (7, groups())].into();
        Interval { span_ns: 1, slots, ..Interval::default() }
    }

    #[test]
    fn events_are_those_of_all_leases() {
        use Family::{Block, FullFault, LifeCycle, MajorFault, Net, Sched};
        // Two leases; of each two sorts of switches, two of faults, two disks, two families with messages both
        // ways, forks and execs.
        let (some, none) = (events(&interval(), 3), events(&Interval::default(), 3));
        for (family, of_both, of_nothing) in [
            (Sched, Some(20), None),
            (MajorFault, Some(10), None),
            (FullFault, Some(20), None),
            (Block, Some(20), Some(0)),
            (Net, Some(40), Some(0)),
            (LifeCycle, Some(23), Some(3)),
        ] {
            let found = (some[family as usize], none[family as usize]);
            assert_eq!(found, (of_both, of_nothing), "{family:?}");
        }
    }

    #[test]
    fn a_family_that_was_shed_is_unknown_and_nothing_else() {
        for family in Family::ALL {
            let mut hidden = interval();
            hide(&mut hidden, family);
            let lost: Vec<_> = family.fields().collect();
            for group in hidden.slots.values().flatten() {
                for (field, value) in group.fields() {
                    let key = group.measurement.key;
                    let is_lost = lost.contains(&group.measurement.name)
                        || (key != "memory" && lost.contains(&field.name));
                    let is_known = field.kind != Kind::Histogram && !is_lost;
                    assert_eq!(value.is_some(), is_known, "{family:?}: {key} {}", field.name);
                }
            }
        }
    }
}
