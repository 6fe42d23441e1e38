//! The compute job of `cargo xtask compare`, a program of its own (`rustc -O`, so that it is
//! optimised whatever profile the chore was built with): on each CPU it is given, a thread pinned
//! there multiplies matrices, and all wait for each other after each product, as the ranks of an
//! MPI job do. Prints the nanoseconds of one step.

use std::env;
use std::hint::black_box;
use std::io::Error;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Rows and columns: three matrices of 512 KiB, about what a core's own cache holds.
const SIZE: usize = 256;

unsafe extern "C" {
    fn sched_setaffinity(pid: i32, bytes: usize, mask: *const u64) -> i32;
}

/// `matrix_job STEPS CPU...`
pub fn main() {
    let numbers: Option<Vec<usize>> = env::args().skip(1).map(|word| word.parse().ok()).collect();
    match numbers.as_deref() {
        Some([steps, cpus @ ..]) if *steps > 0 && !cpus.is_empty() => {
            println!("{:.1}", run(*steps, cpus));
        }
        _ => {
            eprintln!("usage: matrix_job STEPS CPU...");
            std::process::exit(2);
        }
    }
}

fn run(steps: usize, cpus: &[usize]) -> f64 {
    let barrier = Barrier::new(cpus.len() + 1);
    thread::scope(|scope| {
        for &cpu in cpus {
            let barrier = &barrier;
            scope.spawn(move || {
                pin(cpu);
                let a = vec![1.5; SIZE * SIZE];
                let b = vec![0.5; SIZE * SIZE];
                let mut c = vec![0.0; SIZE * SIZE];
                barrier.wait();
                for _ in 0..steps {
                    multiply(&a, &b, &mut c);
                    black_box(&mut c);
                    barrier.wait();
                }
            });
        }
        barrier.wait();
        let begin = Instant::now();
        for _ in 0..steps {
            barrier.wait();
        }
        begin.elapsed().as_nanos() as f64 / steps as f64
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
