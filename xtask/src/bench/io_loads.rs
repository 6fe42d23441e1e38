//! Calls on files of `cargo xtask bench --only io`, a program of its own (`rustc -O`), so that it can be a job.
//! `io_loads CPU COUNT FILE` prints a line for each call: nanoseconds of CPU time, a tab, what it is.

use std::env;
use std::ffi::CString;
use std::io::Error;

const PAGE: usize = 4096;
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
    let [cpu, count, file] = &words[..] else { panic!("usage: io_loads CPU COUNT FILE") };
    let (cpu, count): (usize, u32) = (cpu.parse().expect("a CPU"), count.parse().expect("a count"));
    let path = CString::new(file.as_str()).expect("no zero byte");
    let mut mask = [0_u64; 128];
    mask[cpu / 64] = 1 << (cpu % 64);
    let mut page = [0_u8; PAGE];
    let mut about = [0_u8; STAT_BYTES];
    let (to, path, about) = (page.as_mut_ptr(), path.as_ptr(), about.as_mut_ptr());
    // SAFETY: open files, and room for what is read, throughout.
    unsafe {
        assert_eq!(sched_setaffinity(0, size_of_val(&mask), mask.as_ptr()), 0);
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

fn time(what: &str, count: u32, call: impl Fn() -> bool) {
    (0..count / 8).for_each(|_| assert!(call()));
    let begin = cpu_ns();
    (0..count).for_each(|_| assert!(call()));
    println!("{:.1}\t{what}", (cpu_ns() - begin) as f64 / f64::from(count));
}

fn cpu_ns() -> i64 {
    let mut time = [0; 2];
    // SAFETY: room for the time.
    assert_eq!(unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME, &raw mut time) }, 0);
    time[0] * 1_000_000_000 + time[1]
}
