//! Killed outright, again and again, while jobs run: what is there is whole and there once, and nothing
//! stays in the kernel.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, sleep},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jobtrace_tests::{
    daemon::{PATIENCE, Setup, files, kernel::Held, site::Site},
    rig::wait_for,
};

const KILLS: u64 = 20;

/// Moments that differ with every run; the first number is printed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % limit
    }
}

/// Ends the load, also where the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn killed_at_any_moment_it_leaves_whole_files_and_a_clean_kernel() {
    let (setup, site) = (Setup::new("").unwrap(), Site::new().unwrap());
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    eprintln!("seed {seed}");
    let mut random = Random(seed);
    let (stop, mut unfinished, mut held_at_most) = (AtomicBool::new(false), 0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                site.fork(number % 7, 50).unwrap();
                number += 1;
            }
        });
        let _stop = Stop(&stop);
        for kill in 0..KILLS {
            let mut agent = setup.start().unwrap();
            // Around a tick, where an interval is read and written, which takes some 40 ms, and longer on a busy
            // machine; now and then at any moment.
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_millis();
            let to_tick = 1000 - u64::from(now);
            sleep(Duration::from_millis(match kill % 4 {
                0 => random.below(700),
                more => to_tick + random.below(100 * more),
            }));
            let held = Held::by(agent.pid()).unwrap();
            assert!(!held.programs.is_empty() && !held.maps.is_empty() && !held.links.is_empty());
            held_at_most = held_at_most.max(held.programs.len() + held.maps.len());
            // Maps of jobs come and go.
            let there = held.left();
            assert_eq!((&there.programs, &there.links), (&held.programs, &held.links));
            assert!(!there.maps.is_empty());
            agent.end_by(libc::SIGKILL).unwrap();
            unfinished += fs::read_dir(setup.tmp()).unwrap().count();
            let is_gone = || (held.left() == Held::default()).then_some(());
            wait_for("the kernel to let go", PATIENCE, is_gone)
                .unwrap_or_else(|error| panic!("{error}: {:?}", held.left()));
        }
    });
    let mut agent = setup.start().unwrap();
    assert_eq!(fs::read_dir(setup.tmp()).unwrap().count(), 0);
    agent.end_well().unwrap();
    // Whole files, and no field of a point twice: no stamp twice in a series.
    let points = files::points(&setup.outbox()).unwrap();
    let (intervals, written) = (files::intervals(&points), files::list(&setup.outbox()).unwrap());
    eprintln!(
        "{KILLS} kills: {} files in the outbox, {unfinished} found in tmp, {held_at_most} programs and \
         maps each",
        written.len()
    );
    assert_eq!(intervals.len(), written.len());
    assert!(written.len() >= KILLS as usize / 5);
}
