//! `reaped COMMAND…`: a program that is not ours as a child of the job's first process: its output, and right
//! behind it the report, with what both read from block devices.

use std::{fs, os::unix::process::CommandExt, process::Command};

use jobtrace_tests::{
    account::block_bytes,
    work::{Work, fork},
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut work = Work::begin();
    let child = fork(|| {
        let error = Command::new(&words[0]).args(&words[1..]).exec();
        panic!("cannot start {words:?}: {error}");
    });
    assert_eq!(work.reap(child), 0, "{words:?} failed");
    let io = fs::read_to_string("/proc/self/io").unwrap();
    work.fact("read_bytes", block_bytes(&io)[0]);
    work.end();
}
