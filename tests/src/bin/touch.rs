//! `touch fresh PAGES`: first writes to memory. `touch file PATH PROCESSES`: pages of a file that lie
//! on disk only, read by one process after the other. `touch handed PATH PROCESSES`: the same pages, handed
//! to a system call, in which the fault is taken. `touch beyond BYTES`: more memory than there
//! is, in a child that the kernel kills; exit status 128 + its signal.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use jobtrace_tests::work::{PAGE, Pages, Work, fork};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut work = Work::begin();
    match words[0].as_str() {
        "fresh" => {
            let pages: usize = words[1].parse().unwrap();
            work.crowd(2, |_| Pages::fresh(pages / 2).write());
        }
        "file" => {
            let path = Path::new(&words[1]);
            for _ in 0..words[2].parse().unwrap() {
                work.crowd(1, |_| {
                    Pages::of_uncached_file(path).read();
                });
            }
        }
        "handed" => {
            let path = Path::new(&words[1]);
            for _ in 0..words[2].parse().unwrap() {
                work.crowd(1, |_| hand_over(&Pages::of_uncached_file(path)));
            }
        }
        "beyond" => {
            let bytes: usize = words[1].parse().unwrap();
            let victim = fork(|| {
                std::fs::write("/proc/self/oom_score_adj", "1000").unwrap();
                Pages::fresh(bytes / PAGE).write();
            });
            let status = work.reap(victim);
            std::process::exit(128 + libc::WTERMSIG(status));
        }
        other => panic!("unknown work {other}"),
    }
    work.end();
}

/// Writes a word of each page to a file in memory; the page itself is not touched before.
fn hand_over(pages: &Pages) {
    let memory = rustix::fs::memfd_create("handed", rustix::fs::MemfdFlags::empty()).unwrap();
    let memory = File::from(memory);
    for at in (0..pages.len()).step_by(PAGE) {
        assert_eq!(memory.write_at(pages.part(at, 8), 0).unwrap(), 8);
    }
}
