//! Workloads of `cargo xtask bench`, a program of its own (`rustc -O`, so that it is optimised whatever
//! profile the chore was built with). Prints nanoseconds: of a step, of a touched page, of a turn, of a
//! message.
//!
//! `loads matrix STEPS CPU…`: on each CPU a thread pinned there multiplies matrices, and all wait for each
//! other after each product, as the ranks of an MPI job do.
//! `loads steps COUNT WORK CPU…`: the same with so many multiplications a step, each of which needs the result of the one
//! before it, in place of a product: short steps, of a length that no cache and no other thread changes.
//! `loads faults ROUNDS`: maps fresh memory, touches each page once and gives it back, so that nearly all
//! the time is minor faults.
//! `loads turns COUNT`: two threads on one CPU that yield to each other so often each: switches between
//! runnable tasks.
//! `loads messages ROUNDS`: hands messages to a unix socket and takes them from its other end.

use std::env;
use std::ffi::c_void;
use std::hint::black_box;
use std::io::{Error, Read, Write};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Rows and columns: three matrices of 512 KiB, about what a core's own cache holds.
const SIZE: usize = 256;
/// Pages mapped at a time, and the bytes from one to the next: larger pages are touched several times.
const PAGES: usize = 4096;
const PAGE_BYTES: usize = 4096;
/// Of a message.
const MESSAGE_BYTES: usize = 64;

// Of sys/mman.h, on x86-64 and ARM alike.
const READ_AND_WRITE: i32 = 3;
const PRIVATE_AND_ANONYMOUS: i32 = 0x22;
const NO_HUGE_PAGE: i32 = 15;

unsafe extern "C" {
    fn sched_setaffinity(pid: i32, bytes: usize, mask: *const u64) -> i32;
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        prot: i32,
        flags: i32,
        fd: i32,
        from: i64,
    ) -> *mut c_void;
    fn madvise(at: *mut c_void, bytes: usize, advice: i32) -> i32;
    fn munmap(at: *mut c_void, bytes: usize) -> i32;
}

/// See above.
pub fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let numbers: Option<Vec<usize>> = words.iter().skip(1).map(|word| word.parse().ok()).collect();
    match (words.first().map(String::as_str), numbers.as_deref()) {
        (Some("matrix"), Some([steps, cpus @ ..])) if *steps > 0 && !cpus.is_empty() => {
            println!("{:.1}", matrix(*steps, cpus));
        }
        (Some("steps"), Some([count, work, cpus @ ..])) if *count > 0 && !cpus.is_empty() => {
            println!("{:.1}", steps(*count, *work, cpus));
        }
        (Some("faults"), Some([rounds])) if *rounds > 0 => println!("{:.1}", faults(*rounds)),
        (Some("turns"), Some([count])) if *count > 0 => println!("{:.1}", turns(*count)),
        (Some("messages"), Some([rounds])) if *rounds > 0 => println!("{:.1}", messages(*rounds)),
        _ => {
            eprintln!(
                "usage: loads matrix STEPS CPU... | loads steps COUNT WORK CPU... | loads faults ROUNDS | \
                 loads turns COUNT | loads messages ROUNDS"
            );
            std::process::exit(2);
        }
    }
}

fn matrix(count: usize, cpus: &[usize]) -> f64 {
    in_step(count, cpus, || {
        let a = vec![1.5; SIZE * SIZE];
        let b = vec![0.5; SIZE * SIZE];
        let mut c = vec![0.0; SIZE * SIZE];
        move || {
            multiply(&a, &b, &mut c);
            black_box(&mut c);
        }
    })
}

fn steps(count: usize, work: usize, cpus: &[usize]) -> f64 {
    in_step(count, cpus, || {
        let mut number = 1_u64;
        move || {
            for _ in 0..work {
                number = black_box(number.wrapping_mul(6_364_136_223_846_793_005) | 1);
            }
        }
    })
}

/// Has a thread on each CPU `begin`, and do so many steps of what that gives, at the same time; nanoseconds of a step.
fn in_step<Step: FnMut()>(count: usize, cpus: &[usize], begin: impl Fn() -> Step + Sync) -> f64 {
    let barrier = Barrier::new(cpus.len() + 1);
    // The caller takes part at the ends alone: it would be one more thread to switch to in each step.
    let among_them = Barrier::new(cpus.len());
    thread::scope(|scope| {
        for &cpu in cpus {
            let (barrier, among_them, begin) = (&barrier, &among_them, &begin);
            scope.spawn(move || {
                pin(cpu);
                let mut step = begin();
                barrier.wait();
                for _ in 0..count {
                    step();
                    among_them.wait();
                }
                barrier.wait();
            });
        }
        barrier.wait();
        let begin = Instant::now();
        barrier.wait();
        begin.elapsed().as_nanos() as f64 / count as f64
    })
}

/// c = a b, rows first.
fn multiply(a: &[f64], b: &[f64], c: &mut [f64]) {
    c.fill(0.0);
    for (a_row, c_row) in a.chunks_exact(SIZE).zip(c.chunks_exact_mut(SIZE)) {
        for (factor, b_row) in a_row.iter().zip(b.chunks_exact(SIZE)) {
            for (sum, value) in c_row.iter_mut().zip(b_row) {
                *sum += factor * value;
            }
        }
    }
}

fn pin(cpu: usize) {
    let mut mask = [0_u64; 128];
    mask[cpu / 64] = 1 << (cpu % 64);
    // SAFETY: the kernel reads as many bytes of the mask as it has.
    let result = unsafe { sched_setaffinity(0, size_of_val(&mask), mask.as_ptr()) };
    assert!(result == 0, "pin a thread to CPU {cpu}: {}", Error::last_os_error());
}

/// Two threads; the CPUs they may run on are the caller's.
fn turns(count: usize) -> f64 {
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..count).for_each(|_| thread::yield_now()));
        }
    });
    begin.elapsed().as_nanos() as f64 / (2 * count) as f64
}

fn faults(rounds: usize) -> f64 {
    let begin = Instant::now();
    (0..rounds).for_each(|_| touch());
    begin.elapsed().as_nanos() as f64 / (rounds * PAGES) as f64
}

fn messages(rounds: usize) -> f64 {
    let (mut near, mut far) = UnixStream::pair().expect("a pair of sockets");
    let mut message = [1; MESSAGE_BYTES];
    let begin = Instant::now();
    for _ in 0..rounds {
        near.write_all(&message).expect("send");
        far.read_exact(&mut message).expect("receive");
    }
    begin.elapsed().as_nanos() as f64 / rounds as f64
}

fn touch() {
    let bytes = PAGES * PAGE_BYTES;
    // SAFETY: a new private mapping at an address of the kernel's choice overlaps nothing.
    let memory =
        unsafe { mmap(ptr::null_mut(), bytes, READ_AND_WRITE, PRIVATE_AND_ANONYMOUS, -1, 0) };
    assert!(memory as isize != -1, "map {bytes} bytes: {}", Error::last_os_error());
    // SAFETY: the mapping has `bytes` bytes, is ours alone and ends after the last use of it.
    unsafe {
        // A huge page would be one fault for 512 pages. A kernel without them refuses, and has none.
        madvise(memory, bytes, NO_HUGE_PAGE);
        for page in 0..PAGES {
            memory.cast::<u8>().add(page * PAGE_BYTES).write_volatile(1);
        }
        assert!(munmap(memory, bytes) == 0, "unmap: {}", Error::last_os_error());
    }
}
