//! `rest sleep N MS`: sleeps. `rest vfork N MS`: waits, uninterruptibly, for children that sleep.
//! `rest read FILE N [PAGES]`: reads of so many pages, 16 if none are given, past the page cache, from the file's begin
//! again after its end; each of them blocks.

use std::{
    io::{Seek, SeekFrom},
    os::unix::fs::FileExt,
    path::Path,
    thread,
    time::Duration,
};

use jobtrace_tests::work::{PAGE, Pages, Work, off_cpu_ns, open_direct};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| words[index].parse::<u64>().unwrap();
    let mut work = Work::begin();
    let off = match words[0].as_str() {
        "sleep" => off_cpu_ns(|| {
            (0..number(1)).for_each(|_| thread::sleep(Duration::from_millis(number(2))));
        }),
        "vfork" => off_cpu_ns(|| (0..number(1)).for_each(|_| wait_for_a_sleeper(number(2)))),
        "read" => {
            let pages = words.get(3).map_or(16, |pages| pages.parse().unwrap());
            let mut buffer = Pages::fresh(pages);
            buffer.write();
            let bytes = (pages * PAGE) as u64;
            let mut reads = 0;
            // Who syncs all disks meanwhile blocks the opening and the closing of one.
            let all = off_cpu_ns(|| {
                let mut file = open_direct(Path::new(&words[1]));
                let end = file.seek(SeekFrom::End(0)).unwrap() / bytes * bytes;
                reads = off_cpu_ns(|| {
                    for index in 0..number(2) {
                        file.read_exact_at(buffer.bytes(), index * bytes % end).unwrap();
                    }
                });
            });
            work.fact("reads_ns", reads);
            all
        }
        other => panic!("unknown work {other}"),
    };
    work.fact("off_cpu_ns", off);
    work.end();
}

/// CLONE_VFORK: the maker is in the kernel, uninterruptible, until its child has ended.
fn wait_for_a_sleeper(ms: u64) {
    extern "C" fn sleeper(ms: *mut libc::c_void) -> i32 {
        let ms = ms as i64;
        let time = libc::timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 };
        // SAFETY: a time of ours; the child uses nothing else of the memory it shares.
        unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
        0
    }
    let mut stack = Pages::fresh(16);
    let top = stack.bytes().as_mut_ptr_range().end;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: a stack of its own, which lives until the child has ended, as CLONE_VFORK waits for it.
    unsafe {
        let pid = libc::clone(sleeper, top.cast(), flags, ms as *mut libc::c_void);
        assert!(pid > 0, "clone: {}", std::io::Error::last_os_error());
        assert_eq!(libc::waitpid(pid, std::ptr::null_mut(), 0), pid);
    }
}
