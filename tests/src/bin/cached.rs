//! Known uses of the page cache, each with what the kernel says of it: the truth that `device_read_bytes` and
//! `fetched_bytes` are held against. `cached FOLDER` leaves three files there.

use std::{
    fs::{self, File, OpenOptions},
    io::Read,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    ptr::null_mut,
};

use jobtrace_tests::account::{Account, Report};

const BYTES: usize = 8 << 20;
const PAGE: usize = 4096;
const PIECE: usize = 64 << 10;
/// Pages of a mapped file from one that is touched to the next.
const STRIDE: usize = 16;

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder"));
    let names = ["read", "mapped", "touched"];
    for name in names {
        let file = File::create(folder.join(name)).expect("a file");
        file.write_all_at(&vec![7; BYTES], 0).expect("room");
        file.sync_all().expect("a disk");
    }
    // A page fault of the program's own would be read in the midst of what is measured.
    // SAFETY: no arguments but a flag.
    assert_eq!(unsafe { libc::mlockall(libc::MCL_CURRENT) }, 0, "is this root?");
    let mut report = Report::default();
    let mut fact = |name: &str, value: u64| report.facts.insert(name.into(), value);
    read_whole(&folder.join("read"), false);
    fact("device", device(|| read_whole(&folder.join("read"), true)));
    fact("device_warm", device(|| read_whole(&folder.join("read"), false)));
    fact("device_direct", device(|| read_directly(&folder.join("read"))));
    fact("mapped", device(|| touch(&folder.join("mapped"), 1, libc::MADV_NORMAL)));
    let before = Account::own().major;
    fact("touched", device(|| touch(&folder.join("touched"), STRIDE, libc::MADV_RANDOM)));
    fact("touched_major", Account::own().major - before);
    println!("{}", serde_json::to_string(&report).expect("a report is JSON"));
}

/// Bytes that devices read for this process while `work` runs.
fn device(work: impl FnOnce()) -> u64 {
    let now = || {
        let text = fs::read_to_string("/proc/self/io").expect("the kernel's account");
        let line = text.lines().find_map(|line| line.strip_prefix("read_bytes:"));
        line.expect("a line").trim().parse::<u64>().expect("a number")
    };
    let before = now();
    work();
    now() - before
}

/// Takes the pages of `file` out of the page cache.
fn forget(file: &File) {
    // SAFETY: an open file.
    let told = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(told, 0, "posix_fadvise");
}

fn read_whole(path: &Path, is_cold: bool) {
    let mut file = File::open(path).expect("a file");
    if is_cold {
        forget(&file);
    }
    let mut piece = vec![0; PIECE];
    while file.read(&mut piece).expect("a piece") > 0 {}
}

/// Reads past the page cache.
fn read_directly(path: &Path) {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path);
    let file = file.expect("a file system with O_DIRECT");
    let mut room = vec![0; PIECE + PAGE];
    let at = room.as_ptr().align_offset(PAGE);
    for offset in (0..BYTES).step_by(PIECE) {
        file.read_exact_at(&mut room[at..at + PIECE], offset as u64).expect("a piece");
    }
}

/// Maps the file, and touches every `stride`th of its pages, which are not in memory.
fn touch(path: &Path, stride: usize, advice: i32) {
    let file = File::open(path).expect("a file");
    forget(&file);
    let (prot, flags) = (libc::PROT_READ, libc::MAP_PRIVATE);
    // SAFETY: a new mapping of an open file, unmapped below; its bytes are read within its length.
    unsafe {
        let at = libc::mmap(null_mut(), BYTES, prot, flags, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED, "mmap");
        assert_eq!(libc::madvise(at, BYTES, advice), 0, "madvise");
        for page in (0..BYTES / PAGE).step_by(stride) {
            assert_eq!(at.cast::<u8>().add(page * PAGE).read_volatile(), 7);
        }
        libc::munmap(at, BYTES);
    }
}
