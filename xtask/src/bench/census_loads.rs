//! Executions and reads of `cargo xtask bench --only census`, a program of its own (`rustc -O`), so that it can be a job's
//! and can be called as an interpreter is. It keeps to CPU, and prints nanoseconds of its children's or its own CPU time
//! for one of them:
//! - `census_loads CPU exec COUNT PROGRAM [ARGUMENT]...` executes a program again and again;
//! - `census_loads CPU each FOLDER` executes each program in a folder once;
//! - `census_loads CPU read COUNT FILE` opens a file, reads its first byte and closes it.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::process::{Command, Stdio};

const RUSAGE_SELF: i32 = 0;
const RUSAGE_CHILDREN: i32 = -1;
/// Words of a `struct rusage`: seconds and microseconds as a user and in the kernel come first.
const USAGE_WORDS: usize = 18;

unsafe extern "C" {
    fn sched_setaffinity(pid: i32, bytes: usize, mask: *const u64) -> i32;
    fn getrusage(whose: i32, usage: *mut [i64; USAGE_WORDS]) -> i32;
}

/// See above.
pub fn main() {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let [cpu, what, rest @ ..] = &words[..] else { panic!("usage: census_loads CPU WHAT ...") };
    let cpu: usize = number(cpu);
    let mut mask = [0_u64; 128];
    mask[cpu / 64] = 1 << (cpu % 64);
    // SAFETY: the mask is as long as it says.
    assert_eq!(unsafe { sched_setaffinity(0, size_of_val(&mask), mask.as_ptr()) }, 0);
    let (whose, count) = match (what.to_str(), rest) {
        (Some("exec"), [count, program, arguments @ ..]) => {
            let count = number(count);
            (0..count).for_each(|_| execute(program, arguments));
            (RUSAGE_CHILDREN, count)
        }
        (Some("each"), [folder]) => {
            let programs = fs::read_dir(folder).expect("a folder");
            let execute = |program: fs::DirEntry| execute(program.path().as_os_str(), &[]);
            (RUSAGE_CHILDREN, programs.map(|entry| execute(entry.expect("an entry"))).count())
        }
        (Some("read"), [count, file]) => {
            let count = number(count);
            (0..count).for_each(|_| read(file));
            (RUSAGE_SELF, count)
        }
        _ => panic!("usage: census_loads CPU exec COUNT PROGRAM | each FOLDER | read COUNT FILE"),
    };
    println!("{:.0}", cpu_ns(whose) as f64 / count as f64);
}

fn number(text: &OsString) -> usize {
    text.to_str().and_then(|text| text.parse().ok()).expect("a number")
}

fn execute(program: impl AsRef<std::ffi::OsStr>, arguments: &[OsString]) {
    let status = Command::new(program).args(arguments).stdin(Stdio::null()).status();
    assert!(status.expect("a program").success());
}

fn read(file: &OsString) {
    let mut byte = [0];
    assert_eq!(File::open(file).and_then(|mut file| file.read(&mut byte)).expect("a file"), 1);
}

fn cpu_ns(whose: i32) -> i64 {
    let mut usage = [0; USAGE_WORDS];
    // SAFETY: room for it.
    assert_eq!(unsafe { getrusage(whose, &raw mut usage) }, 0);
    ((usage[0] + usage[2]) * 1_000_000 + usage[1] + usage[3]) * 1000
}
