//! `burst DEVICE FILE MS`: reads of 4 KiB past the page cache, one after the other, until FILE is there;
//! then rests MS milliseconds in one sleep.
//! `burst pipe FILE MS`: the same, but two processes on one CPU that hand a byte to each other.
//! `burst socket FILE MS`: the same, but one process that sends bytes to itself, one at a time.

use std::{
    io::{Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::{fs::FileExt, net::UnixStream},
    },
    path::Path,
    thread::sleep,
    time::Duration,
};

use jobtrace_tests::{
    account::Account,
    work::{Pages, Work, fork, open_direct, pin},
};

/// Between two looks at the file.
const TURNS: u64 = 256;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (file, rest) = (Path::new(&words[1]), Duration::from_millis(words[2].parse().unwrap()));
    let mut work = Work::begin();
    let before = Account::own();
    let turns = match words[0].as_str() {
        "pipe" => ping(&mut work, file),
        "socket" => echo(file),
        device => read(Path::new(device), file),
    };
    let busy = Account::own();
    work.fact("turns", turns);
    work.fact("busy_switches", switches(&busy) - switches(&before));
    sleep(rest);
    let end = Account::own();
    work.fact("rest_switches", switches(&end) - switches(&busy));
    work.fact("rest_on_cpu_ns", end.on_cpu_ns - busy.on_cpu_ns);
    work.end();
}

fn switches(account: &Account) -> u64 {
    account.voluntary + account.involuntary
}

fn read(device: &Path, file: &Path) -> u64 {
    let device = open_direct(device);
    let mut page = Pages::fresh(1);
    page.write();
    let mut done = 0;
    while done % TURNS != 0 || !file.exists() {
        device.read_exact_at(page.bytes(), done % TURNS * 4096).unwrap();
        done += 1;
    }
    done
}

fn ping(work: &mut Work, file: &Path) -> u64 {
    pin(0);
    let pipe = || {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors, ours from then on.
        unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            (std::fs::File::from_raw_fd(ends[0]), std::fs::File::from_raw_fd(ends[1]))
        }
    };
    let ((mut here, there), (mut back, mut child_back)) = (pipe(), pipe());
    let mut byte = [0];
    let child = fork(|| {
        // SAFETY: the child's own copy, which nothing uses after this: it must see the end.
        unsafe { libc::close(there.as_raw_fd()) };
        while let Ok(1) = here.read(&mut byte) {
            child_back.write_all(&byte).unwrap();
        }
    });
    let (mut done, mut there) = (0, there);
    while done % TURNS != 0 || !file.exists() {
        there.write_all(&byte).unwrap();
        back.read_exact(&mut byte).unwrap();
        done += 1;
    }
    drop(there);
    assert_eq!(work.reap(child), 0);
    done
}

fn echo(file: &Path) -> u64 {
    let (mut here, mut there) = UnixStream::pair().unwrap();
    let mut byte = [0];
    let mut done = 0;
    while done % TURNS != 0 || !file.exists() {
        here.write_all(&byte).unwrap();
        there.read_exact(&mut byte).unwrap();
        done += 1;
    }
    done
}
