//! Calls on files of `cargo xtask bench --only io`, a program of its own (`rustc -O`), so that it can be a job.
//! `io_loads CPU COUNT FILE` prints a line for each call: nanoseconds of CPU time, a tab, what it is. `io_loads CPU COUNT
//! FOLDER files` opens, reads and closes COUNT small files of its own, and prints nanoseconds of time that passed for one.

use std::env;
use std::ffi::CString;
use std::fs;
use std::io::{Error, Read};
use std::path::Path;
use std::time::Instant;

const PAGE: usize = 4096;
/// Times that each file is read.
pub const TURNS: u32 = 8;
/// Parts in which calls are measured.
const BLOCKS: u32 = 21;
const CLOCK_PROCESS_CPUTIME: i32 = 2;
const O_RDWR: i32 = 2;
/// More than a `struct stat` has.
const STAT_BYTES: usize = 256;

unsafe extern "C" {
    fn sched_setaffinity(pid: i32, bytes: usize, mask: *const u64) -> i32;
    fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    fn getppid() -> i32;
    fn open(path: *const std::ffi::c_char, flags: i32) -> i32;
    fn close(file: i32) -> i32;
    fn read(file: i32, to: *mut u8, bytes: usize) -> isize;
    fn pread(file: i32, to: *mut u8, bytes: usize, at: i64) -> isize;
    fn pwrite(file: i32, from: *const u8, bytes: usize, at: i64) -> isize;
    fn stat(path: *const std::ffi::c_char, to: *mut u8) -> i32;
}

/// See above.
pub fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let [cpu, count, place, what @ ..] = &words[..] else {
        panic!("usage: io_loads CPU COUNT FILE|FOLDER files")
    };
    let (cpu, count): (usize, u32) = (cpu.parse().expect("a CPU"), count.parse().expect("a count"));
    let mut mask = [0_u64; 128];
    mask[cpu / 64] = 1 << (cpu % 64);
    // SAFETY: the mask is as long as it says.
    assert_eq!(unsafe { sched_setaffinity(0, size_of_val(&mask), mask.as_ptr()) }, 0);
    if what.is_empty() { calls(count, place) } else { files(count, Path::new(place)) }
}

/// Opens, reads and closes files, each in turn, a few times.
fn files(count: u32, folder: &Path) {
    let names: Vec<_> = (0..count).map(|number| folder.join(number.to_string())).collect();
    if !folder.is_dir() {
        fs::create_dir(folder).expect("a folder");
        names.iter().for_each(|name| fs::write(name, [0; PAGE]).expect("a file"));
    }
    let mut page = [0; PAGE];
    let begin = Instant::now();
    for name in names.iter().cycle().take(names.len() * TURNS as usize) {
        let mut file = fs::File::open(name).expect("a file");
        assert_eq!(file.read(&mut page).expect("what it holds"), PAGE);
    }
    println!("{:.1}\ta file", begin.elapsed().as_nanos() as f64 / f64::from(count * TURNS));
}

fn calls(count: u32, file: &str) {
    let path = CString::new(file).expect("no zero byte");
    let mut page = [0_u8; PAGE];
    let mut about = [0_u8; STAT_BYTES];
    let (to, path, about) = (page.as_mut_ptr(), path.as_ptr(), about.as_mut_ptr());
    // SAFETY: open files, and room for what is read, throughout.
    unsafe {
        let (zero, file) = (open(c"/dev/zero".as_ptr(), O_RDWR), open(path, O_RDWR));
        assert!(zero >= 0 && file >= 0, "{}", Error::last_os_error());
        let length = PAGE as isize;
        assert_eq!(pwrite(file, to, PAGE, 0), length);
        time("getppid, no call on files", count, || getppid() >= 0);
        time("read of 1 byte of /dev/zero", count, || read(zero, to, 1) == 1);
        time("pread of 4 KiB, cached", count, || pread(file, to, PAGE, 0) == length);
        time("pwrite of 4 KiB", count, || pwrite(file, to, PAGE, 0) == length);
        time("stat", count, || stat(path, about) == 0);
        time("open and close", count, || close(open(path, O_RDWR)) == 0);
    }
}

/// The median of as many calls at a time: what else the machine does meets some of them.
fn time(what: &str, count: u32, call: impl Fn() -> bool) {
    let block = (count / BLOCKS).max(1);
    (0..block).for_each(|_| assert!(call()));
    let mut all_ns: Vec<i64> = (0..BLOCKS)
        .map(|_| {
            let begin = cpu_ns();
            (0..block).for_each(|_| assert!(call()));
            cpu_ns() - begin
        })
        .collect();
    all_ns.sort_unstable();
    println!("{:.1}\t{what}", all_ns[all_ns.len() / 2] as f64 / f64::from(block));
}

fn cpu_ns() -> i64 {
    let mut time = [0; 2];
    // SAFETY: room for the time.
    assert_eq!(unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME, &raw mut time) }, 0);
    time[0] * 1_000_000_000 + time[1]
}
