//! `touch fresh PAGES`: first writes to memory. `touch file PATH PROCESSES`: pages of a file that lie
//! on disk only, read by one process after the other. `touch beyond BYTES`: more memory than there
//! is, in a child that the kernel kills; exit status 128 + its signal.

use std::path::Path;

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
