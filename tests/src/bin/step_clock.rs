//! `step_clock BY_NS`: steps the wall clock, says `stepped`, and stays until it is killed.

use std::thread;

use jobtrace_tests::rig::clock::WallClock;

fn main() {
    let by_ns = std::env::args().nth(1).and_then(|word| word.parse().ok()).expect("BY_NS");
    let clock = WallClock::hold().expect("root");
    clock.step(by_ns).expect("root");
    println!("stepped");
    loop {
        thread::park();
    }
}
