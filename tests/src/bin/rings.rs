//! Known requests to io_uring, each as the kernel answered it. `rings FOLDER` leaves a file there.

use std::{fs::File, os::fd::AsFd, path::PathBuf};

use jobtrace_tests::{account::Report, uring::Ring};

const PIECE: usize = 4096;
const WRITES: u64 = 300;
const READS: u64 = 500;
const FSYNCS: u64 = 100;

fn main() {
    let path = PathBuf::from(std::env::args().nth(1).expect("a folder")).join("ring");
    let file = File::options()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(path)
        .expect("a file");
    let ring = Ring::new().expect("a kernel with io_uring");
    let mut piece = vec![7; PIECE];
    let mut report = Report::default();
    let mut count = |op: &str, answer: i32| {
        let mut add = |field: &str, value: u64| {
            *report.facts.entry(format!("{op}.{field}")).or_default() += value;
        };
        add("ops", 1);
        add("errors", u64::from(answer < 0));
        add("bytes", u64::try_from(answer).unwrap_or(0));
    };
    for at in 0..WRITES {
        count("uring_write", ring.write(file.as_fd(), &piece, at * PIECE as u64));
    }
    for _ in 0..FSYNCS {
        count("uring_fsync", ring.fsync(file.as_fd()));
    }
    // Those past the end bring nothing, and those from a file that cannot be read fail.
    for at in 0..READS {
        count("uring_read", ring.read(file.as_fd(), &mut piece, at * PIECE as u64));
    }
    let folder = File::open(std::env::args().nth(1).expect("a folder")).expect("a folder");
    for _ in 0..FSYNCS {
        count("uring_read", ring.read(folder.as_fd(), &mut piece, 0));
    }
    println!("{}", serde_json::to_string(&report).expect("a report is JSON"));
}
