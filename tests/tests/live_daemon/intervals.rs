//! When the agent measures, what it stamps that with, and that nothing is lost where a tick comes late or
//! the clock is stepped.

use std::{
    thread::sleep,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jobtrace_tests::{
    daemon::{Setup, files, site::Site},
    rig::clock::WallClock,
};

const SECOND: u64 = 1_000_000_000;
/// Between a signal that is sent and what the agent does of it.
const CLOSE_NS: u64 = 300_000_000;

/// Sleeps until so far into a second of the wall clock.
pub fn wait_until_in_second(ns: u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    sleep(Duration::from_nanos((ns + SECOND - u64::from(now)) % SECOND));
}

fn spans(intervals: &[(u64, u64)]) -> u64 {
    intervals.iter().map(|(_, span)| span).sum()
}

#[test]
fn a_late_tick_is_counted_and_costs_resolution_only() {
    let (setup, site) = (Setup::new("").unwrap(), Site::new().unwrap());
    wait_until_in_second(100_000_000);
    let mut agent = setup.start().unwrap();
    site.fork(0, 11).unwrap();
    sleep(Duration::from_secs(2));
    wait_until_in_second(300_000_000);
    agent.signal(libc::SIGSTOP);
    site.fork(0, 23).unwrap();
    sleep(Duration::from_millis(3500) - Duration::from_millis(20));
    agent.signal(libc::SIGCONT);
    sleep(Duration::from_secs(2));
    wait_until_in_second(500_000_000);
    agent.end_well().unwrap();

    let points = files::points(&setup.outbox()).unwrap();
    let found = files::intervals(&points);
    assert!(found.iter().all(|(stamp, _)| stamp % SECOND == 0), "{found:?}");
    let life = agent.life_ns();
    assert!(life.contains(&spans(&found)), "{} of {life:?} ns: {found:?}", spans(&found));
    let late: Vec<_> = (0..found.len()).filter(|at| found[*at].1 > 2 * SECOND).collect();
    let [late] = late[..] else { panic!("one late interval is expected: {found:?}") };
    // From the tick before, 0.3 s earlier, to 0.8 s into the third second after it.
    assert!(found[late].1.abs_diff(3_800_000_000) < CLOSE_NS, "{found:?}");
    assert!(found[late + 1].1.abs_diff(200_000_000) < CLOSE_NS, "{found:?}");
    assert_eq!(found[late].0, found[late - 1].0 + 3 * SECOND, "{found:?}");
    // Every second else, and the last, short one.
    let expected = (found.last().unwrap().0 - found[0].0) / SECOND + 1 - 2;
    assert_eq!(found.len() as u64, expected, "{found:?}");
    eprintln!("{} intervals, {:.3} s late", found.len(), found[late].1 as f64 / 1e9 - 1.0);
    // A busy machine may delay others too, which is said of each.
    let told = files::sum(&points, "jobtrace_self", "_system", "late_intervals");
    assert!(told >= 1);
    assert_eq!(agent.said("s late, this interval is") as u64, told, "{}", agent.words());
    assert_eq!(files::sum(&points, "job_sched", &site.job(0), "forks"), 34);
}

#[test]
fn a_clock_that_is_stepped_gives_no_stamp_twice_and_loses_nothing() {
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
    assert!(found.iter().all(|(stamp, _)| stamp % SECOND == 0), "{found:?}");
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
