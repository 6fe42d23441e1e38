//! `transfer OP PATH COUNT BYTES [PROCS…]`: COUNT transfers of BYTES each from the begin of a file or
//! device on. OP is `read` or `write` (past the page cache), `over` (reads of the first 64 again and again),
//! `buffered` (through it, then fsync) or `discard`; errors are counted. Where PROCS name cgroups, a child does the same again in these.

use std::{
    fs::File,
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::Path,
};

use jobtrace_tests::{
    account::{block_bytes, cgroup_blkio},
    work::{PAGE, Pages, Work, enter, fork, open_direct},
};

/// Transfers that `over` repeats.
const OVER: u64 = 64;
const BLKDISCARD: libc::Ioctl = 0x1277;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (count, bytes) = (words[2].parse().unwrap(), words[3].parse().unwrap());
    let path = Path::new(&words[1]);
    let mut work = Work::begin();
    let io_before = process_io();
    let errors = transfer(&words[0], path, count, bytes);
    let io = process_io();
    work.fact("errors", errors);
    work.fact("read_bytes", io[0] - io_before[0]);
    work.fact("write_bytes", io[1] - io_before[1]);
    if words.len() > 4 {
        let pid = fork(|| {
            enter(&words[4..]);
            assert_eq!(transfer(&words[0], path, count, bytes), 0);
        });
        assert_eq!(work.reap(pid), 0);
    }
    for (name, value) in cgroup_blkio(&device_of(path)) {
        work.fact(&name, value);
    }
    // With pages of the program, where they had to be read: partly before it was in the job.
    work.fact("read_bytes_all", process_io()[0]);
    work.end();
}

/// Transfers; gives how many failed.
fn transfer(op: &str, path: &Path, count: u64, bytes: usize) -> u64 {
    let mut pages = Pages::fresh(bytes.div_ceil(PAGE));
    pages.write();
    let buffer = &mut pages.bytes()[..bytes];
    let file = match op {
        "buffered" => File::options().write(true).open(path).unwrap(),
        _ => open_direct(path),
    };
    let mut errors = 0;
    for index in 0..count {
        let at = if op == "over" { index % OVER } else { index } * bytes as u64;
        let done = match op {
            "read" | "over" => file.read_exact_at(buffer, at),
            "write" | "buffered" => file.write_all_at(buffer, at),
            "discard" => {
                let range = [at, bytes as u64];
                // SAFETY: the kernel reads two words.
                match unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD, range.as_ptr()) } {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            }
            other => panic!("unknown work {other}"),
        };
        errors += u64::from(done.is_err());
    }
    if op == "buffered" {
        file.sync_all().unwrap();
    }
    errors
}

/// What this process has read from and written to block devices so far.
fn process_io() -> [u64; 2] {
    block_bytes(&std::fs::read_to_string("/proc/self/io").unwrap())
}

/// The device that `path` is, or lies on, as `major:minor`.
fn device_of(path: &Path) -> String {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let metadata = path.metadata().unwrap();
    let device =
        if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
    format!("{}:{}", libc::major(device), libc::minor(device))
}
