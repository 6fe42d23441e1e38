//! `amounts FILE MIB CPU_MS PAGES`: exactly MIB MiB read of a file past the page cache in transfers of
//! 1 MiB, CPU_MS milliseconds on a CPU, PAGES pages touched for the first time; then the report.

use std::{os::unix::fs::FileExt, path::Path};

use jobtrace_tests::{
    account::Account,
    work::{PAGE, Pages, Work, fork, open_direct, spin},
};
use std::time::Duration;

const MIB: usize = 1 << 20;
/// Of the busy time between two looks at what it has come to.
const PIECE: Duration = Duration::from_millis(1);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| words[index].parse::<u64>().unwrap();
    let (mib, cpu_ms, pages) = (number(1), number(2), number(3) as usize);
    let mut work = Work::begin();
    read(Path::new(&words[0]), mib);
    work.fact("read_bytes", mib * MIB as u64);
    work.fact("pages", pages as u64);
    // In a child whose whole life is this: its account is the amount.
    let child = fork(|| busy(cpu_ms * 1_000_000));
    assert_eq!(work.reap(child), 0);
    Pages::fresh(pages).write();
    work.end();
}

fn read(path: &Path, mib: u64) {
    if mib == 0 {
        return;
    }
    let file = open_direct(path);
    let mut pages = Pages::fresh(MIB / PAGE);
    for index in 0..mib {
        file.read_exact_at(pages.bytes(), index * MIB as u64).unwrap();
    }
}

/// Until this process has been on a CPU for so long, however long that takes.
fn busy(on_cpu_ns: u64) {
    while Account::own().on_cpu_ns < on_cpu_ns {
        spin(PIECE);
    }
}
