//! When the agent measures, what it stamps that with, and that nothing is lost where a tick comes late or
//! the clock is stepped.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use jobtrace_tests::{
    agree::tried_again,
    daemon::{PATIENCE, Setup, files, site::Site},
    rig::{clock::WallClock, wait_for},
};

const SECOND: u64 = 1_000_000_000;
/// Between the choice of a stamp and the reading.
const CLOSE_NS: u64 = 300_000_000;
/// How much shorter than others an interval may be by the pauses of the machine.
const EARLY_NS: u64 = 100_000_000;

fn spans(intervals: &[(u64, u64)]) -> u64 {
    intervals.iter().map(|(_, span)| span).sum()
}

/// All but the last, which has the time of the agent's end.
fn are_on_the_grid(intervals: &[(u64, u64)]) -> bool {
    intervals[..intervals.len() - 1].iter().all(|(stamp, _)| stamp % SECOND == 0)
}

/// Again where the machine itself stood still meanwhile.
#[test]
fn a_late_tick_is_counted_and_costs_resolution_only() {
    tried_again(late_tick);
}

fn late_tick() {
    let (setup, site) = (Setup::new("").unwrap(), Site::new().unwrap());
    let mut agent = setup.start().unwrap();
    let two_more = || {
        let written = || files::list(&setup.outbox()).unwrap().len();
        let before = written();
        wait_for("two intervals", PATIENCE, || (written() >= before + 2).then_some(())).unwrap();
    };
    site.fork(0, 11).unwrap();
    two_more();
    agent.signal(libc::SIGSTOP);
    let stopped = Instant::now();
    site.fork(0, 23).unwrap();
    sleep(Duration::from_millis(3500));
    let stopped_ns = stopped.elapsed().as_nanos() as u64;
    agent.signal(libc::SIGCONT);
    two_more();
    agent.end_well().unwrap();

    let points = files::points(&setup.outbox()).unwrap();
    let found = files::intervals(&points);
    assert!(are_on_the_grid(&found), "{found:?}");
    let life = agent.life_ns();
    assert!(life.contains(&spans(&found)), "{} of {life:?} ns: {found:?}", spans(&found));
    // One interval has the whole stop.
    let longest_ns = found.iter().map(|(_, span)| *span).max().unwrap();
    assert!(longest_ns >= stopped_ns, "{stopped_ns} ns: {found:?}");
    // Each reading has the stamp of the last second before it, but that at the end.
    let mut read_ns = 0;
    let after_stamp = found[..found.len() - 1].iter().map(|(stamp, span)| {
        read_ns += span;
        read_ns as i64 - (stamp - found[0].0) as i64
    });
    let mut after_stamp: Vec<i64> = after_stamp.collect();
    after_stamp.sort_unstable();
    let in_time = after_stamp[after_stamp.len() / 2];
    let off_ns = |at: Option<&i64>| at.unwrap() - in_time;
    let earliest_ns = off_ns(after_stamp.first());
    assert!(earliest_ns > -(EARLY_NS as i64), "{earliest_ns} ns before its stamp: {found:?}");
    let latest_ns = off_ns(after_stamp.last()) as u64;
    assert!(latest_ns < SECOND + CLOSE_NS, "{latest_ns} ns after its stamp: {found:?}");
    eprintln!("{} intervals, one of {:.3} s", found.len(), longest_ns as f64 / 1e9);
    // A busy machine may delay others too, which is said of each.
    let told = files::sum(&points, "jobtrace_self", "_system", "late_intervals");
    assert!(told >= 1);
    assert_eq!(agent.said("s late, this interval is") as u64, told, "{}", agent.words());
    // No second is left out but by those.
    let left_out = found.windows(2).filter(|pair| pair[1].0 - pair[0].0 > SECOND).count() as u64;
    assert!((1..=told).contains(&left_out), "{left_out} of {told} late: {found:?}");
    assert_eq!(files::sum(&points, "job_sched", &site.job(0), "forks"), 34);
}

/// The same.
#[test]
fn a_clock_that_is_stepped_gives_no_stamp_twice_and_loses_nothing() {
    tried_again(stepped_clock);
}

fn stepped_clock() {
    let (setup, site) = (Setup::new("").unwrap(), Site::new().unwrap());
    let mut agent = setup.start().unwrap();
    sleep(Duration::from_millis(1500));
    let clock = WallClock::hold().unwrap();
    clock.step(30 * SECOND as i64).unwrap();
    site.fork(0, 11).unwrap();
    sleep(Duration::from_millis(1900));
    clock.step(-30 * SECOND as i64).unwrap();
    drop(clock);
    site.fork(0, 23).unwrap();
    sleep(Duration::from_millis(4300));
    agent.end_well().unwrap();

    // A stamp that came twice would be a point's field that comes twice, which is an error there.
    let points = files::points(&setup.outbox()).unwrap();
    let found = files::intervals(&points);
    assert!(are_on_the_grid(&found), "{found:?}");
    assert_eq!(found.len(), files::list(&setup.outbox()).unwrap().len());
    let life = agent.life_ns();
    assert!(life.contains(&spans(&found)), "{} of {life:?} ns: {found:?}", spans(&found));
    assert_eq!(files::sum(&points, "job_sched", &site.job(0), "forks"), 34);
    let words = agent.words();
    for direction in ["forward", "back"] {
        let said = format!("the wall clock stepped {direction} by 30.0 s");
        assert_eq!(agent.said(&said), 1, "{words}");
    }
    // One or two a second before, as the begin fell; then every second; then every other.
    eprintln!("{} intervals in {:.1} s: {found:?}", found.len(), spans(&found) as f64 / 1e9);
    assert!((6..=8).contains(&found.len()), "{found:?}");
    // A stepped clock makes none late; a busy machine may, and that shows in an interval's length.
    let told = files::sum(&points, "jobtrace_self", "_system", "late_intervals");
    let is_long = |(_, span): &(u64, u64)| *span > SECOND + SECOND / 50;
    assert!(told == 0 || found.iter().any(is_long), "{told} late: {found:?}: {words}");
}
