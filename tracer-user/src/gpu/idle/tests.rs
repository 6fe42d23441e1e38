//! Seconds as they may be, and any others.

use proptest::prelude::*;

use super::*;
use crate::{
    gpu::tasks::{Asleep, Calls},
    model::tables::{GPU, Gpu},
};

pub(super) const MS: u64 = 1_000_000;
pub(super) const S: u64 = 1_000 * MS;

pub(super) fn within(ms: u64) -> Waits {
    Waits { within_ns: ms * MS, ..Waits::default() }
}

/// Milliseconds on CPU, blocked, waiting for a CPU and in major faults.
pub(super) fn tasks(on_cpu: u64, blocked: u64, run_queue: u64, faulting: u64) -> TaskTimes {
    TaskTimes {
        on_cpu_ns: on_cpu * MS,
        run_queue: within(run_queue),
        blocked: within(blocked),
        faulting: Some(within(faulting)),
        ..TaskTimes::default()
    }
}

/// Milliseconds of each part: blocked, waiting for a CPU, in major faults, on CPU, other.
fn shown(parts: Parts) -> [u64; 5] {
    let Parts { faulting_ns, blocked_ns, run_queue_ns, on_cpu_ns, other_ns, .. } = parts;
    [blocked_ns, run_queue_ns, faulting_ns, on_cpu_ns, other_ns].map(|ns| ns / MS)
}

#[test]
fn a_second_of_which_the_device_was_idle_for_a_part() {
    for (what, idle, busy, tasks, expected) in [
        ("busy all the time", 0, 1_000, tasks(1_000, 8_000, 0, 0), [0; 5]),
        ("one task reads", 1_000, 0, tasks(50, 950, 0, 0), [950, 0, 0, 50, 0]),
        ("all tasks asleep", 1_000, 0, tasks(1, 0, 0, 0), [0, 0, 0, 1, 999]),
        ("a task computes on a CPU", 900, 100, tasks(1_000, 0, 0, 0), [0, 0, 0, 900, 0]),
        ("eight loaders blocked", 710, 290, tasks(0, 8_000, 0, 0), [710, 0, 0, 0, 0]),
        (
            "they are blocked while one spins in cudaStreamSynchronize",
            500,
            500,
            tasks(500, 4_000, 0, 0),
            [500, 0, 0, 0, 0],
        ),
        ("one task reads, then spins", 500, 500, tasks(500, 500, 0, 0), [500, 0, 0, 0, 0]),
        ("it spins, then sleeps", 500, 500, tasks(500, 0, 0, 0), [0, 0, 0, 0, 500]),
        (
            "eight loaders, two fifths blocked and three on CPU; the main task spins",
            700,
            300,
            tasks(4_800 + 300, 3_200, 0, 0),
            [280, 0, 0, 420, 0],
        ),
        (
            "one device of four is idle: a task spins for each of the others",
            1_000,
            3_000,
            tasks(3_000, 1_000, 0, 0),
            [1_000, 0, 0, 0, 0],
        ),
        ("too many tasks for the CPUs", 1_000, 0, tasks(2_000, 0, 6_000, 0), [0, 750, 0, 250, 0]),
        (
            "one task reads and spins, on a CPU that it has half of the time",
            500,
            500,
            tasks(400, 200, 400, 0),
            [200, 150, 0, 150, 0],
        ),
        ("a mapped file", 1_000, 0, tasks(100, 0, 0, 900), [0, 0, 900, 100, 0]),
    ] {
        let parts = split(idle * MS, busy * MS, &tasks);
        assert_eq!(shown(parts), expected, "{what}");
        assert_eq!(parts.sum(), idle * MS, "{what}");
    }
}

/// The second that ends at `end` s, idle for so many ms.
pub(super) fn stretch(end: u64, idle_ms: u64) -> Stretch {
    Stretch { begin_ns: (end - 1) * S, end_ns: end * S, busy_ns: S - idle_ms * MS }
}

/// A wait of so many seconds that ended in the middle of a second.
pub(super) fn long(seconds: u64) -> Waits {
    Waits { within_ns: S / 2, before_ns: seconds * S - S / 2, reach_ns: seconds * S }
}

#[test]
fn a_long_wait_is_laid_back_over_the_seconds_it_lasted() {
    let mut idle = Idle::default();
    let asleep = tasks(0, 0, 0, 0);
    for end in 1..=10 {
        idle.lay_back((end - 1) * S, &asleep);
        idle.add(stretch(end, 1_000), 0, Some(&asleep));
    }
    assert_eq!(idle.parts, Parts::default(), "it may still turn out why");
    // Blocked from 5.5 to 10.5 s.
    let ended = TaskTimes { blocked: long(5), ..asleep.clone() };
    idle.lay_back(10 * S, &ended);
    idle.add(stretch(11, 500), 0, Some(&ended));
    assert_eq!(shown(idle.parts), [5_000, 0, 0, 0, 0]);
    idle.settle(4 * S);
    assert_eq!(shown(idle.parts), [5_000, 0, 0, 0, 4_000]);
    // What another waited at the same time accounts for nothing twice.
    idle.lay_back(11 * S, &TaskTimes { run_queue: long(4), ..asleep });
    assert_eq!(shown(idle.parts), [5_000, 0, 0, 0, 4_000], "6.5 to 11.5 s are accounted for");
    idle.settle(u64::MAX);
    assert_eq!(shown(idle.parts), [5_000, 0, 0, 0, 5_500]);
}

#[test]
fn unknown_is_not_asleep() {
    let mut idle = Idle::default();
    let mut group = Group::unknown(&GPU, vec![String::new(); GPU.tags.len()]);
    idle.tell(&mut group);
    assert_eq!(group.number(Gpu::idle_ns), None);
    idle.add(stretch(1, 300), 0, None);
    idle.tell(&mut group);
    assert_eq!(
        (group.number(Gpu::idle_ns), group.number(Gpu::busy_ns)),
        (Some(300 * MS), Some(700 * MS))
    );
    assert_eq!(group.number(Gpu::idle_other_ns), None, "nobody looked at the tasks");
    idle.add(stretch(2, 100), 0, Some(&TaskTimes { faulting: None, ..tasks(0, 100, 0, 0) }));
    idle.tell(&mut group);
    assert_eq!(group.number(Gpu::idle_while_blocked_ns), Some(100 * MS));
    assert_eq!(group.number(Gpu::idle_other_ns), Some(300 * MS));
    assert_eq!(group.number(Gpu::idle_while_faulting_ns), None);
}

fn any_waits() -> impl Strategy<Value = Waits> {
    let ns = || prop_oneof![Just(0), 0..9 * S, 0..u64::MAX / 8];
    (ns(), ns(), ns()).prop_map(|(within_ns, before_ns, reach_ns)| Waits {
        within_ns,
        before_ns,
        reach_ns,
    })
}

fn any_asleep() -> impl Strategy<Value = Asleep> {
    let ppm = || prop_oneof![Just(0), 0..9_000_000_u64, any::<u64>()];
    (any_waits(), any_waits(), any_waits(), ppm(), ppm()).prop_map(
        |(poll, sockets, elsewhere, network_ppm, elsewhere_ppm)| Asleep {
            poll,
            sockets,
            elsewhere,
            network_ppm,
            elsewhere_ppm,
        },
    )
}

fn any_calls() -> impl Strategy<Value = Calls> {
    (prop::array::uniform4(0..u64::MAX / 8), 0..u64::MAX / 8)
        .prop_map(|(of_ns, more)| Calls { of_ns, all_ns: of_ns.iter().sum::<u64>() + more })
}

fn any_tasks() -> impl Strategy<Value = TaskTimes> {
    let on_cpu = prop_oneof![Just(0), 0..9 * S, 0..u64::MAX / 8];
    let blocked = (any_waits(), prop::option::of(any_calls()), any_waits());
    let more = (prop::option::of(any_waits()), prop::option::of(any_asleep()));
    (on_cpu, any_waits(), blocked, more).prop_map(
        |(on_cpu_ns, run_queue, (blocked, calls, otherwise), (faulting, asleep))| TaskTimes {
            on_cpu_ns,
            run_queue,
            blocked,
            calls,
            otherwise,
            faulting,
            asleep,
        },
    )
}

proptest! {
    #[test]
    fn the_parts_are_the_whole_and_none_is_more_than_its_tasks(
        idle_ns in prop_oneof![0..2 * S, 0..u64::MAX],
        beside_ns in 0..4 * S,
        tasks in any_tasks(),
    ) {
        let parts = split(idle_ns, beside_ns, &tasks);
        prop_assert_eq!(parts.sum(), idle_ns);
        // Roundings of running sums move a nanosecond from one to the next.
        prop_assert!(parts.blocked_ns <= tasks.blocked.within_ns.saturating_add(1));
        prop_assert!(parts.run_queue_ns <= tasks.run_queue.within_ns.saturating_add(1));
        let runnable = u128::from(parts.on_cpu_ns) + u128::from(parts.run_queue_ns);
        let all = u128::from(tasks.on_cpu_ns) + u128::from(tasks.run_queue.within_ns);
        prop_assert!(parts.on_cpu_ns <= tasks.on_cpu_ns.saturating_add(1));
        prop_assert!(runnable <= all.saturating_sub(beside_ns.into()) + 1);
        prop_assert!(parts.otherwise_ns <= tasks.otherwise.within_ns.saturating_add(1));
        prop_assert!(parts.calls_ns.iter().sum::<u64>() <= parts.blocked_ns);
        prop_assert!(parts.faulting_ns <= tasks.faulting.unwrap_or_default().within_ns);
    }

    #[test]
    fn more_of_a_state_is_no_less_of_its_part(
        idle_ns in 0..2 * S,
        beside_ns in 0..2 * S,
        tasks in any_tasks(),
        more in 0..9 * S,
    ) {
        let parts = split(idle_ns, beside_ns, &tasks);
        let mut longer = tasks.clone();
        longer.blocked.within_ns += more;
        let blocked = split(idle_ns, beside_ns, &longer);
        prop_assert!(blocked.blocked_ns + 1 >= parts.blocked_ns);
        prop_assert!(blocked.on_cpu_ns <= parts.on_cpu_ns + 1);
        prop_assert!(blocked.other_ns <= parts.other_ns);
        let more_idle = split(idle_ns + more, beside_ns, &tasks);
        prop_assert!(more_idle.blocked_ns + 1 >= parts.blocked_ns);
        prop_assert!(more_idle.other_ns >= parts.other_ns);
    }

    #[test]
    fn over_any_seconds_all_idle_time_is_told_once(
        seconds in prop::collection::vec((0..=1_000_u64, 0..2 * S, prop::option::of(any_tasks())), 1..60),
    ) {
        let mut idle = Idle::default();
        let (mut busy_ns, mut idle_ns, mut told) = (0, 0, 0);
        for (at, (idle_ms, beside_ns, tasks)) in (1..).zip(&seconds) {
            let second = stretch(at, *idle_ms);
            (busy_ns, idle_ns) = (busy_ns + second.busy_ns, idle_ns + S - second.busy_ns);
            tasks.iter().for_each(|tasks| idle.lay_back(second.begin_ns, tasks));
            idle.add(second, *beside_ns, tasks.as_ref());
            idle.settle((at * S).saturating_sub(LATE_NS));
            prop_assert!(idle.parts.sum() >= told && idle.parts.sum() <= idle_ns, "it only grows");
            told = idle.parts.sum();
            prop_assert!(idle.waiting.len() <= 31);
        }
        idle.settle(u64::MAX);
        prop_assert_eq!(idle.parts.sum(), idle_ns);
        prop_assert_eq!(idle.busy_ns, Some(busy_ns));
        prop_assert!(idle.parts.calls_ns.iter().sum::<u64>() <= idle.parts.blocked_ns);
    }
}
