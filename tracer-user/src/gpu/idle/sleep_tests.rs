//! Idle time in which tasks slept.

use super::{
    tests::{MS, S, long, stretch, tasks, within},
    *,
};
use crate::{
    gpu::tasks::{Asleep, Calls},
    model::tables::GPU,
};

/// On CPU, and asleep in short waits: in poll, on sockets and for anything else.
fn asleep(on_cpu: u64, poll: u64, sockets: u64, elsewhere: u64) -> TaskTimes {
    let asleep = Asleep {
        poll: within(poll),
        sockets: within(sockets),
        elsewhere: within(elsewhere),
        network_ppm: (poll + sockets) * 1_000,
        elsewhere_ppm: elsewhere * 1_000,
    };
    TaskTimes { asleep: Some(asleep), ..tasks(on_cpu, 0, 0, 0) }
}

/// Idle time that is the network's and other, in ms, after seconds of which the device was idle for so many ms.
fn told(seconds: &[(u64, TaskTimes)]) -> [u64; 2] {
    let mut idle = Idle::default();
    for (end, (idle_ms, tasks)) in (1..).zip(seconds) {
        let second = stretch(end, *idle_ms);
        idle.lay_back(second.begin_ns, tasks);
        idle.add(second, second.busy_ns, Some(tasks));
    }
    idle.settle(u64::MAX);
    [idle.parts.network_ns / MS, (idle.parts.other_ns + idle.parts.otherwise_ns) / MS]
}

#[test]
fn sleep_is_a_reason_where_no_helper_sleeps_so() {
    for (what, second, expected) in [
        ("a task spins, then waits on a socket", asleep(400, 0, 600, 0), [600, 0]),
        ("the same in poll", asleep(400, 600, 0, 0), [600, 0]),
        ("a helper sleeps in poll for ever", asleep(400, 999, 0, 0), [0, 600]),
        ("one that is awake at times", asleep(400, 850, 0, 0), [0, 600]),
        ("one that is, and a task that waits", asleep(400, 900, 600, 0), [500, 100]),
        ("three do", asleep(400, 2_990, 0, 0), [0, 600]),
        ("a helper, and a task that waits", asleep(400, 999, 600, 0), [599, 0]),
        ("it waits for a lock, a helper in poll", asleep(400, 999, 0, 600), [0, 600]),
        ("one waits for the network, one for a lock", asleep(400, 0, 600, 600), [300, 300]),
        ("one for the network, a helper for a lock", asleep(400, 0, 600, 999), [600, 0]),
        ("it sleeps in poll until the device is done", asleep(0, 400, 0, 600), [0, 600]),
        ("it waits shortly", asleep(400, 0, 100, 0), [100, 500]),
    ] {
        let seconds = vec![(600, second); 9];
        let [network, other] = told(&seconds);
        let near = |got: u64, wanted: u64| got.abs_diff(wanted * 9) <= 9;
        assert!(near(network, expected[0]), "{what}: {network} ms");
        assert!(near(other, expected[1]), "{what}: {other} ms");
    }
}

#[test]
fn helpers_are_known_from_when_the_device_was_busy() {
    let never = vec![(1_000, asleep(0, 1_000, 0, 0)); 5];
    assert_eq!(told(&never), [0, 5_000], "drivers' helpers sleep so");
    let sockets = vec![(1_000, asleep(0, 1_000, 400, 0)); 5];
    assert_eq!(told(&sockets), [2_000, 3_000], "they do not on sockets");
    // Then a phase of idle seconds in which one more sleeps.
    let mut phase = vec![(100, asleep(900, 999, 0, 0)); 5];
    phase.extend(vec![(1_000, asleep(0, 1_999, 0, 0)); 5]);
    assert_eq!(told(&phase), [4_995, 505]);
}

#[test]
fn a_long_sleep_goes_back_to_when_the_device_was_busy() {
    let ended = |reach: u64, network_ppm: u64| TaskTimes {
        asleep: Some(Asleep { sockets: long(reach), network_ppm, ..Asleep::default() }),
        ..tasks(0, 0, 0, 0)
    };
    let mut seconds = vec![(0, asleep(1_000, 0, 0, 0)); 2];
    seconds.extend(vec![(1_000, asleep(0, 0, 0, 0)); 5]);
    // From 2.5 to 7.5 s.
    seconds.push((1_000, ended(5, 5_000_000)));
    assert_eq!(told(&seconds), [5_000, 1_000]);
    // One from before the device was busy last.
    seconds[2].0 = 500;
    assert_eq!(told(&seconds), [4_500, 1_000]);
    // A helper that wakes every five seconds, the device busy now and then.
    let helper: Vec<_> = (0..40)
        .map(|second| match (second % 5, second % 2) {
            (4, _) => (500, ended(5, 5_000_000)),
            (_, 0) => (900, asleep(100, 0, 0, 0)),
            _ => (100, asleep(900, 0, 0, 0)),
        })
        .collect();
    let [network, _] = told(&helper[5..]);
    assert!(network <= 500, "{network} ms, all before it was known");
}

#[test]
fn what_blocked_comes_before_what_slept() {
    let mut idle = Idle::default();
    let waiting = asleep(0, 0, 1_000, 0);
    for end in 1..=6 {
        idle.add(stretch(end, 1_000), 0, Some(&waiting));
    }
    let calls = Some(Calls { of_ns: [3 * S, S, 0, 0], all_ns: 5 * S });
    let ended = TaskTimes { blocked: long(5), calls, ..asleep(0, 0, 0, 0) };
    idle.lay_back(6 * S, &ended);
    idle.settle(u64::MAX);
    assert_eq!(idle.parts.blocked_ns, 4_500 * MS);
    assert_eq!(idle.parts.calls_ns, [2_700 * MS, 900 * MS, 0, 0]);
    assert_eq!((idle.parts.network_ns, idle.parts.other_ns), (1_500 * MS, 0));
}

#[test]
fn what_blocks_otherwise_is_other() {
    let second = TaskTimes { otherwise: within(300), ..tasks(0, 600, 0, 0) };
    let parts = split(600 * MS, 0, &second);
    assert_eq!((parts.blocked_ns, parts.otherwise_ns), (400 * MS, 200 * MS));
    let mut idle = Idle::default();
    idle.add(stretch(1, 600), 0, Some(&second));
    idle.settle(u64::MAX);
    let mut group = Group::unknown(&GPU, vec![String::new(); GPU.tags.len()]);
    idle.tell(&mut group);
    assert_eq!(group.number(Gpu::idle_while_blocked_ns), Some(400 * MS));
    assert_eq!(group.number(Gpu::idle_other_ns), Some(200 * MS));
    assert_eq!(group.number(Gpu::idle_while_network_ns), None, "nobody told causes of sleep");
    assert_eq!(group.number(Gpu::idle_while_reading_ns), None);
}
