//! `scale SERIAL_MS SHARED_MS`: work of SERIAL_MS of one thread, for which the others wait, and of SHARED_MS that as many
//! threads as there are CPUs to use share evenly. They leave their CPUs to nobody, so the time it takes is known.

use std::{sync::Barrier, thread, time::Duration};

use jobtrace_tests::work::{keep_cpu, pin, spin_on_cpu};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [serial, shared] =
        [0, 1].map(|at: usize| Duration::from_millis(words[at].parse().unwrap()));
    let threads = thread::available_parallelism().unwrap().get();
    keep_cpu(1);
    let begun = Barrier::new(threads);
    thread::scope(|scope| {
        for index in 0..threads {
            let begun = &begun;
            scope.spawn(move || {
                pin(index);
                if index == 0 {
                    spin_on_cpu(serial);
                }
                begun.wait();
                spin_on_cpu(shared / threads as u32);
            });
        }
    });
}
