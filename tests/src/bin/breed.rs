//! `breed forks N`, `breed execs N`, `breed threads N`: tasks made, programs executed, one after the
//! other. `breed migrations N`: moves between two CPUs.

use std::{process::Command, thread};

use jobtrace_tests::work::{Work, pin};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() {
        return;
    }
    let count: usize = words[1].parse().unwrap();
    let mut work = Work::begin();
    match words[0].as_str() {
        "forks" => (0..count).for_each(|_| work.crowd(1, |_| {})),
        "execs" => {
            let itself = std::env::current_exe().unwrap();
            for _ in 0..count {
                assert!(Command::new(&itself).status().unwrap().success());
            }
        }
        "threads" => (0..count).for_each(|_| thread::spawn(|| {}).join().unwrap()),
        "migrations" => {
            assert!(thread::available_parallelism().unwrap().get() > 1, "needs two CPUs");
            (0..count).for_each(pin_either);
        }
        other => panic!("unknown work {other}"),
    }
    work.end();
}

/// Both CPUs in turn; the mask must be whole again before the next choice.
fn pin_either(index: usize) {
    let mut all = rustix::thread::CpuSet::new();
    (0..rustix::thread::CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    rustix::thread::sched_setaffinity(None, &all).unwrap();
    pin(index);
}
