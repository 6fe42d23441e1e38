use proptest::{collection::vec, prelude::*};

use super::*;

/// Noon of some day: a multiple of every interval used here.
const NOON: u64 = 1_800_014_400 * SECOND;
const YEAR: u64 = 365 * 86_400 * SECOND;

fn grid(interval_s: u32, last_stamp_ns: u64, wall_ns: u64) -> Grid {
    Grid::new(NonZeroU32::new(interval_s).unwrap(), last_stamp_ns, wall_ns, 0)
}

/// Ticks of 10 s from noon on, each given by the wall clock's difference from the grid's begin and the
/// monotonic clock (milliseconds).
fn ticks(moments: &[(i64, u64)]) -> Vec<Tick> {
    let mut grid = grid(10, 0, NOON);
    let moment = |(wall, monotonic): &(i64, u64)| {
        grid.tick(NOON.saturating_add_signed(wall * 1_000_000), monotonic * 1_000_000)
    };
    moments.iter().map(moment).collect()
}

fn stamps(ticks: &[Tick]) -> Vec<u64> {
    ticks.iter().map(|tick| (tick.stamp_ns - NOON) / SECOND).collect()
}

#[test]
fn the_first_tick_is_at_the_next_point_of_the_grid() {
    for (interval_s, wall_ns, due_ns) in [
        (10, NOON, 10 * SECOND),
        (10, NOON + 1, 10 * SECOND - 1),
        (10, NOON + 8 * SECOND, 2 * SECOND),
        // Too short an interval says little: what is less than a tenth away is taken for the next.
        (10, NOON + 9 * SECOND + SECOND / 2, 10 * SECOND + SECOND / 2),
        (60, NOON + 61 * SECOND, 59 * SECOND),
        (1, NOON + SECOND / 4, 3 * SECOND / 4),
    ] {
        assert_eq!(
            grid(interval_s, 0, wall_ns).due_monotonic_ns(),
            due_ns,
            "{interval_s} {wall_ns}"
        );
    }
}

#[test]
fn ticks_in_time_are_on_the_grid_and_say_nothing() {
    // A few milliseconds late, and early by what slewing makes of 10 s.
    let ticks = ticks(&[(10_003, 10_003), (20_001, 20_002), (29_995, 29_999), (40_000, 40_010)]);
    assert_eq!(stamps(&ticks), [10, 20, 30, 40]);
    assert_eq!(ticks[2].span_ns, 9_997_000_000);
    assert!(ticks.iter().all(|tick| tick.remark().is_none()), "{ticks:?}");
}

#[test]
fn a_late_tick_is_counted_and_its_span_is_true() {
    let mut grid = grid(10, 0, NOON);
    for (at_s, late, stamp, span) in
        [(10, 0, 10, 10), (23, 1, 20, 13), (30, 1, 30, 7), (75, 2, 70, 45), (80, 2, 80, 5)]
    {
        let tick = grid.tick(NOON + at_s * SECOND, at_s * SECOND);
        assert_eq!((tick.stamp_ns, tick.span_ns), (NOON + stamp * SECOND, span * SECOND));
        assert_eq!((grid.late(), tick.step_ns), (late, None), "at {at_s}");
    }
    let tick = grid.tick(NOON + 125 * SECOND, 125 * SECOND);
    let remark = "measured 35.0 s late, this interval is 45.0 s long";
    assert_eq!(tick.remark().as_deref(), Some(remark));
}

#[test]
fn a_small_step_back_makes_one_longer_interval() {
    let mut grid = grid(10, 0, NOON);
    grid.tick(NOON + 10 * SECOND, 10 * SECOND);
    // Set back by 4 s while it slept: the sleep is by the other clock.
    let tick = grid.tick(NOON + 16 * SECOND, 20 * SECOND);
    assert_eq!((tick.stamp_ns, tick.step_ns), (NOON + 20 * SECOND, Some(-4 * SECOND as i64)));
    assert_eq!(tick.remark().as_deref(), Some("the wall clock stepped back by 4.0 s"));
    assert_eq!(grid.due_monotonic_ns(), 34 * SECOND);
    let tick = grid.tick(NOON + 30 * SECOND, 34 * SECOND);
    assert_eq!((tick.stamp_ns, tick.span_ns), (NOON + 30 * SECOND, 14 * SECOND));
    assert_eq!((tick.remark(), grid.late()), (None, 0));
}

#[test]
fn a_large_step_back_is_caught_up_at_half_pace() {
    let (mut grid, hour) = (grid(10, 0, NOON), 3600 * SECOND);
    grid.tick(NOON + 10 * SECOND, 10 * SECOND);
    let (mut now, mut wall) = (20 * SECOND, NOON + 20 * SECOND - hour);
    let tick = grid.tick(wall, now);
    assert_eq!((tick.stamp_ns, tick.ahead_ns), (NOON + 20 * SECOND, Some(hour)));
    assert!(
        tick.remark().unwrap().contains("stepped back by 3600.0 s; time stamps are 3600 s ahead")
    );
    let (mut ticks, mut told) = (0, Vec::new());
    loop {
        let due = grid.due_monotonic_ns();
        (wall, now) = (wall + due - now, due);
        let tick = grid.tick(wall, now);
        ticks += 1;
        told.extend(tick.ahead_ns.map(|ahead| ahead / SECOND));
        assert_eq!(tick.stamp_ns, NOON + 20 * SECOND + ticks * 10 * SECOND);
        if tick.stamp_ns == wall {
            break;
        }
        assert_eq!(tick.span_ns, 20 * SECOND);
    }
    assert_eq!(told, [1800, 900, 450, 220, 110, 50, 20], "not each time that it changes");
    assert_eq!((ticks, grid.due_monotonic_ns() - now), (360, 10 * SECOND));
    assert_eq!(grid.late(), 0);
}

#[test]
fn steps_of_years_do_no_harm() {
    let (year, second) = (YEAR as i64 / 1_000_000, 1000);
    let there = ticks(&[(10_000, 10_000), (year, 20_000), (year + 10 * second, 30_000)]);
    assert_eq!(stamps(&there)[0], 10);
    assert_eq!(there[1].stamp_ns, NOON + YEAR);
    assert_eq!(there[2].stamp_ns, NOON + YEAR + 10 * SECOND);
    assert!(there.iter().all(|tick| tick.span_ns == 10 * SECOND && tick.late_ns.is_none()));
    let back = ticks(&[(10_000, 10_000), (-50 * year, 20_000), (-50 * year + 20_000, 40_000)]);
    assert_eq!(stamps(&back), [10, 20, 30]);
    // 1970, before the clock is set, and the end of time.
    let mut grid = grid(10, 0, 0);
    assert_eq!(grid.tick(10 * SECOND, 10 * SECOND).stamp_ns, 10 * SECOND);
    assert_eq!(grid.tick(NOON, 20 * SECOND).stamp_ns, NOON);
    let last = grid.tick(u64::MAX, 30 * SECOND).stamp_ns;
    assert!(grid.tick(0, u64::MAX).stamp_ns > last);
    // What no clock gives is no stamp: what comes after it would be stamped alike in each life.
    for last in [MAX_WALL_NS, u64::MAX] {
        let tick = self::grid(10, last, NOON).tick(NOON + 10 * SECOND, 10 * SECOND);
        assert_eq!((tick.stamp_ns, tick.ahead_ns), (NOON + 10 * SECOND, None));
    }
}

#[test]
fn a_new_life_goes_on_after_the_last_stamp() {
    // Ended early, at 97; started again at once.
    let mut first = grid(10, 0, NOON + 80 * SECOND);
    first.tick(NOON + 90 * SECOND, 10 * SECOND);
    let last = first.end(NOON + 97 * SECOND, 17 * SECOND);
    assert_eq!((last.stamp_ns, last.span_ns), (NOON + 97 * SECOND, 7 * SECOND));
    assert_eq!(last.remark(), None);
    let mut second = grid(10, first.last_stamp_ns(), NOON + 98 * SECOND);
    assert_eq!(second.due_monotonic_ns(), 2 * SECOND);
    assert_eq!(second.tick(NOON + 100 * SECOND, 2 * SECOND).stamp_ns, NOON + 100 * SECOND);
    // Ended before the point that its last tick was stamped with, a little early.
    let early = second.tick(NOON + 110 * SECOND - 3, 12 * SECOND - 3).stamp_ns;
    assert_eq!(second.end(NOON + 110 * SECOND - 1, 12 * SECOND - 1).stamp_ns, early + 1);
    // With another interval.
    let mut third = grid(60, NOON + 110 * SECOND, NOON + 111 * SECOND);
    assert_eq!(third.due_monotonic_ns(), 9 * SECOND);
    assert_eq!(third.tick(NOON + 120 * SECOND, 9 * SECOND).stamp_ns, NOON + 120 * SECOND);
}

#[test]
fn another_interval_counts_from_the_next_point_of_its_grid_on() {
    let mut grid = grid(10, 0, NOON);
    let tick = grid.tick(NOON + 10 * SECOND, 10 * SECOND);
    assert_eq!((tick.stamp_ns, grid.due_monotonic_ns()), (NOON + 10 * SECOND, 20 * SECOND));
    let wanted = |seconds| NonZeroU32::new(seconds).unwrap();
    grid.set_interval(wanted(10), NOON + 12 * SECOND, 12 * SECOND);
    assert_eq!(grid.due_monotonic_ns(), 20 * SECOND);
    grid.set_interval(wanted(3), NOON + 13 * SECOND, 13 * SECOND);
    assert_eq!(grid.due_monotonic_ns(), 15 * SECOND);
    let tick = grid.tick(NOON + 15 * SECOND, 15 * SECOND);
    assert_eq!((tick.stamp_ns, tick.span_ns, tick.late_ns), (NOON + 15 * SECOND, 5 * SECOND, None));
    assert_eq!(grid.due_monotonic_ns(), 18 * SECOND);
}

#[test]
fn nodes_share_the_grid_whenever_they_started() {
    let stamps = |start_ns: u64| {
        let mut grid = grid(10, 0, NOON + start_ns);
        let mut stamps = Vec::new();
        for _ in 0..5 {
            let due = grid.due_monotonic_ns();
            stamps.push(grid.tick(NOON + start_ns + due, due).stamp_ns);
        }
        stamps
    };
    assert_eq!(stamps(123_456_789), stamps(8 * SECOND));
    assert_eq!(stamps(123_456_789)[0], NOON + 10 * SECOND);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn stamps_grow_and_spans_add_up_whatever_the_wall_clock_does(
        interval_s in 1..100_u32,
        start_ns in any::<u64>(),
        // How late each tick is, and how the wall clock steps before it.
        moments in vec((0..300_000_000_000_u64, prop_oneof![
            3 => Just(0_i64),
            2 => -100_000_000_000..100_000_000_000_i64,
            1 => any::<i64>(),
        ]), 1..60),
    ) {
        let mut grid = grid(interval_s, 0, start_ns);
        let interval_ns = u64::from(interval_s) * SECOND;
        let (mut wall, mut now, mut last, mut spans) = (start_ns, 0, None, 0);
        for (late_ns, step_ns) in moments {
            let due = grid.due_monotonic_ns();
            prop_assert!(due > now && due - now <= 2 * interval_ns + interval_ns / 10);
            wall = wall.saturating_add(due + late_ns - now).saturating_add_signed(step_ns);
            now = due + late_ns;
            let tick = grid.tick(wall, now);
            prop_assert!(tick.stamp_ns.is_multiple_of(interval_ns));
            prop_assert!(last < Some(tick.stamp_ns), "{last:?} {tick:?}");
            prop_assert_eq!(tick.late_ns.is_some(), late_ns > SECOND.min(interval_ns / 10));
            last = Some(tick.stamp_ns);
            spans += tick.span_ns;
        }
        let end = grid.end(wall, now + 1);
        prop_assert!(last < Some(end.stamp_ns), "{last:?} {end:?}");
        prop_assert_eq!(spans + end.span_ns, now + 1);
    }
}
