//! Idle time, beside what a job's tasks did.

use super::*;

/// What a job's tasks have done so far: blocked for so many reads of a millisecond.
pub fn looked(reads: u64) -> Vec<Group> {
    let mut sched = Group::unknown(&SCHED, Vec::new());
    let mut blocked = Hist::default();
    (0..reads).for_each(|_| blocked.record(1_000_000));
    sched.set(Sched::on_cpu_ns, 0);
    sched.set_hist(Sched::run_queue_wait_ns, Hist::default());
    sched.set_hist(Sched::blocked_ns, blocked);
    vec![sched]
}

fn idle(group: &Group) -> [Option<u64>; 4] {
    let fields = [Gpu::busy_ns, Gpu::idle_ns, Gpu::idle_while_blocked_ns, Gpu::idle_other_ns];
    fields.map(|field| group.number(field).map(|ns| (ns + 500_000) / 1_000_000))
}

#[test]
fn the_parts_of_each_interval_are_its_idle_time_from_the_first_look_on() {
    let own = [process(10, 5, None)];
    let mut totals = Totals::default();
    (1..3).for_each(|at| add(&mut totals, at, device(None, &own)));
    totals.look(&1, 2 * S, Some(&looked(0)));
    let first = group(&totals, 1, 2);
    assert_eq!(idle(&first), [Some(900), Some(100), Some(0), Some(100)]);
    add(&mut totals, 3, device(None, &own));
    totals.look(&1, 3 * S, Some(&looked(60)));
    let second = group(&totals, 1, 3).since(&first);
    assert_eq!(idle(&second), [Some(900), Some(60), Some(60), Some(0)]);
}

#[test]
fn idle_time_lies_beside_what_the_tasks_did_since_the_look_before() {
    let own = [process(10, 5, None)];
    let mut totals = Totals::default();
    let ms = |at: u64| at * 1_000_000;
    add(&mut totals, 1, device(None, &own));
    totals.look(&1, ms(1_001), Some(&looked(0)));
    add(&mut totals, 2, device(None, &own));
    totals.look(&1, ms(2_001), Some(&looked(60)));
    assert_eq!(idle(&group(&totals, 1, 2)), [Some(900), Some(60), Some(60), Some(0)]);
    // A look between two readings takes nothing from the next.
    totals.look(&1, ms(2_500), Some(&looked(500)));
    add(&mut totals, 3, device(None, &own));
    totals.look(&1, ms(3_001), Some(&looked(560)));
    assert_eq!(idle(&group(&totals, 1, 3)), [Some(1_800), Some(160), Some(160), Some(0)]);
    // Two readings, one look: they share what it found.
    add(&mut totals, 4, device(None, &own));
    add(&mut totals, 5, device(None, &own));
    totals.look(&1, ms(5_001), Some(&looked(560 + 100)));
    assert_eq!(idle(&group(&totals, 1, 5)), [Some(3_600), Some(260), Some(260), Some(0)]);
    // Nobody can tell: the probes are detached.
    add(&mut totals, 6, device(None, &own));
    totals.look(&1, ms(6_001), None);
    assert_eq!(idle(&group(&totals, 1, 6))[1..], [Some(360), Some(260), Some(100)]);
    // What the tasks did before the first look after that is in no second, and busy and idle are all of it.
    add(&mut totals, 7, device(None, &own));
    totals.look(&1, ms(7_001), Some(&looked(9_000)));
    assert_eq!(idle(&group(&totals, 1, 7))[1..], [Some(460), Some(260), Some(200)]);
    totals.settle(&1);
    assert_eq!(idle(&group(&totals, 1, 7))[1], Some(600), "what waited for an explanation");
    let [busy_ms, idle_ms, ..] = idle(&group(&totals, 1, 7)).map(Option::unwrap);
    let held_ns = group(&totals, 1, 7).number(Gpu::held_ns);
    assert_eq!(held_ns, Some((busy_ms + idle_ms) * 1_000_000));
}
