//! Records of a minute of a job that has run for two hours.

use super::*;
use crate::{
    model::{
        info::JobInfo,
        job::Job,
        point::Origin,
        tables::{IO, Io},
    },
    view::{Style, summary},
};

const SECOND: u64 = 1_000_000_000;
/// When its counting began, CLOCK_MONOTONIC, and what the wall's clock is ahead of that.
const BEGAN: u64 = 9_000 * SECOND;
const AHEAD: u64 = 1_795_305_600 * SECOND;

fn so_far() -> Record {
    let job = Job { job: "4711".into(), ..Job::default() };
    let mut record = Record::new(&Origin::default(), job, JobInfo::default(), AHEAD);
    record.totals.unknown = vec!["block".into(), "sleep_ns".into()];
    record
}

/// What the leases had by then: seconds on CPU.
fn used(at_s: u64, leases: Option<&[(Lease, u64)]>) -> Used {
    let groups = |on_cpu_s: u64| {
        let mut sched = Group::unknown(&SCHED, Vec::new());
        sched.set(Sched::on_cpu_ns, on_cpu_s * SECOND);
        sched.set(Sched::cpus_used, 5);
        sched.set(Sched::busiest_cpu_ns, 7_200 * SECOND);
        vec![sched]
    };
    let slots = leases.map(|all| all.iter().map(|(lease, s)| (*lease, groups(*s))).collect());
    let monotonic_ns = BEGAN + at_s * SECOND;
    // The first is as old as the job, the second began after half a minute.
    let since_ns = [(1, BEGAN - 7_200 * SECOND), (2, BEGAN + 30 * SECOND)].into();
    Used { wall_ns: AHEAD + monotonic_ns, monotonic_ns, slots, since_ns, ..Used::default() }
}

fn counted() -> Counted {
    let mut opens = Group::unknown(&IO, ["ext4", "/", "open"].map(str::to_owned).into());
    opens.set(Io::ops, 10);
    let (from_ns, until_ns) = (BEGAN, BEGAN + 60 * SECOND);
    Counted { from_ns, until_ns, groups: vec![opens], ..Counted::default() }
}

fn on_cpu_s(record: &Record) -> Option<u64> {
    let sched = record.totals.stats.group(&SCHED)?;
    sched.number(Sched::on_cpu_ns).map(|ns| ns / SECOND)
}

#[test]
fn what_was_not_looked_at_is_unknown_and_not_zero() {
    let (before, after) = (used(1, Some(&[(1, 7_200)])), used(63, Some(&[(1, 7_260), (2, 4)])));
    let record = whole(so_far(), &before, &after, counted());
    assert_eq!(on_cpu_s(&record), Some(64));
    let unknown = "block busiest_cpu_ns cpu cpus_used gpu memory sleep_ns wait xid";
    assert_eq!(record.totals.unknown.join(" "), unknown);
    let sched = record.totals.stats.group(&SCHED).unwrap();
    assert_eq!((sched.number(Sched::cpus_used), sched.number(Sched::busiest_cpu_ns)), (None, None));
    let text = summary(&record, &Style { width: 100, color: false, unicode: false });
    let disk = text.lines().find(|line| line.trim_start().starts_with("Disk"));
    assert!(disk.is_some_and(|line| line.ends_with("unknown")), "{text}");
}

#[test]
fn no_hours_are_told_as_a_minute() {
    let full: &[(Lease, u64)] = &[(1, 7_260)];
    let both: &[(Lease, u64)] = &[(1, 7_260), (2, 4)];
    for (before, after) in [
        (None, Some(full)),
        (Some(full), None),
        (None, None),
        (Some(&[]), Some(full)),
        (Some(&[]), Some(both)),
    ] {
        let record = whole(so_far(), &used(1, before), &used(63, after), counted());
        assert_eq!(on_cpu_s(&record), None, "{before:?}, {after:?}");
        for key in ["sched", "fault", "net"] {
            assert!(record.totals.unknown.iter().any(|unknown| unknown == key), "{key}");
        }
        assert_eq!(record.totals.stats.groups(&IO).count(), 1);
    }
}

#[test]
fn the_time_is_that_which_was_counted() {
    let times = |ended_s: Option<u64>, has_ended: bool| {
        let (before, mut after) = (used(1, Some(&[])), used(65, Some(&[])));
        after.ended_ns = ended_s.map(|s| BEGAN + s * SECOND);
        let record = whole(so_far(), &before, &after, Counted { has_ended, ..counted() });
        let second = |row| record.facts.number(row).map(|ns| (ns - AHEAD - BEGAN) / SECOND);
        assert_eq!(second(const { fact("counted_from") }), Some(0));
        let elapsed_s = record.totals.elapsed_ns / SECOND;
        assert_eq!(record.timeline.end_ns(), AHEAD + BEGAN + elapsed_s * SECOND);
        (elapsed_s, second(const { fact("end") }))
    };
    assert_eq!(times(None, false), (60, None));
    // Seen to be gone at the last look.
    assert_eq!(times(Some(59), true), (59, Some(59)));
    // Forgotten already.
    assert_eq!(times(None, true), (60, Some(60)));
    // Just after.
    assert_eq!(times(Some(61), false), (60, Some(61)));
}

#[test]
fn what_could_not_be_counted_meanwhile_is_kept() {
    let mut after = used(63, None);
    let wall_ns = |s: u64| AHEAD + BEGAN + s * SECOND;
    after.gaps.add("fault", wall_ns(0) - 60 * SECOND, wall_ns(10));
    after.gaps.add("net", wall_ns(0) - 60 * SECOND, wall_ns(0) - SECOND);
    let record = whole(so_far(), &used(1, None), &after, counted());
    let gaps: Vec<_> = record.totals.gaps.iter().map(|gap| (&*gap.what, gap.for_ns)).collect();
    assert_eq!(gaps, [("fault", 10 * SECOND)]);
}
