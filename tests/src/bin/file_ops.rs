//! Known operations on files, each counted as the kernel answered it: the truth that `job_io` is held against.
//! `file_ops FOLDER [TIMES [PART]]` leaves the folder as it found it. `TIMES` is how often the kernel counts what
//! copy_file_range moves: an overlay hands the call on, and both count in /proc/PID/io. With `PART` it does one part of so
//! many of all that there is most of.

use std::{
    collections::BTreeMap,
    ffi::CString,
    sync::{Arc, Mutex},
    thread,
};

use jobtrace_tests::account::Report;
use libc::{c_int, c_long, c_void};

const MISSING: u64 = 70;
const PIECE: usize = 3_000;
const READ: usize = 2_048;
const THREADS: u64 = 8;
const BY_CHILD: u64 = 100;

/// How much there is of what there is most of.
#[derive(Clone, Copy)]
struct Amounts {
    files: u64,
    /// Reads and writes at a place.
    placed: u64,
    by_thread: u64,
}

impl Amounts {
    fn part(part: u64) -> Self {
        Self { files: 1_000 / part, placed: 1_630 / part, by_thread: 2_000 / part }
    }
}

/// What the kernel answered, by operation: how many, how many of them errors, how many bytes.
#[derive(Default)]
struct Tally(BTreeMap<&'static str, [u64; 3]>);

impl Tally {
    /// Counts a call that returned `result`, which it gives back.
    fn add(&mut self, op: &'static str, result: i64) -> i64 {
        let moves = ["read", "write", "sendfile", "copy_file_range", "splice"].contains(&op);
        let counts = self.0.entry(op).or_default();
        counts[0] += 1;
        counts[1] += u64::from(result < 0);
        counts[2] += if moves { u64::try_from(result).unwrap_or(0) } else { 0 };
        result
    }

    /// Counts a call that must do well.
    fn well(&mut self, op: &'static str, result: i64) -> i64 {
        assert!(self.add(op, result) >= 0, "{op}: {}", std::io::Error::last_os_error());
        result
    }

    /// Counts a call that must fail.
    fn ill(&mut self, op: &'static str, result: i64) {
        assert!(self.add(op, result) < 0, "{op} did well");
    }
}

macro_rules! call {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: each argument is what the call takes, and lives through it.
        unsafe { libc::syscall(libc::$number $(, $argument)*) }
    };
}

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let number = |at| std::env::args().nth(at).map_or(1, |word| word.parse().expect("a number"));
    let (times, amounts) = (number(2), Amounts::part(number(3)));
    let mut tally = Tally::default();
    let path = |name: &str| CString::new(format!("{folder}/{name}")).expect("no zero byte");
    // SAFETY: a literal with its zero.
    let account = unsafe { libc::open(c"/proc/self/io".as_ptr(), libc::O_RDONLY) };
    let before = moved(account);
    names(&mut tally, amounts, &path);
    data(&mut tally, amounts, &path);
    let after = moved(account);
    // The first reading is in the second.
    let [read, written] = [after.0 - before.0 - before.2, after.1 - before.1];
    let bytes = |op: &str| tally.0[op][2];
    let both = bytes("sendfile") + times * bytes("copy_file_range");
    assert_eq!(read, bytes("read") + both, "rchar of /proc/PID/io");
    assert_eq!(written, bytes("write") + both, "wchar of it");
    aside(&mut tally, &path);
    let tally = together(tally, amounts, &path);
    let mut report = Report::default();
    for (op, [ops, errors, bytes]) in tally.0 {
        report.facts.insert(format!("{op}.ops"), ops);
        report.facts.insert(format!("{op}.errors"), errors);
        report.facts.insert(format!("{op}.bytes"), bytes);
    }
    println!("{}", serde_json::to_string(&report).expect("a report is JSON"));
}

/// Bytes that this process has read and written so far, and those of the answer itself.
fn moved(account: c_int) -> (u64, u64, u64) {
    let mut text = [0_u8; 512];
    // SAFETY: so much room.
    let length = unsafe { libc::pread(account, text.as_mut_ptr().cast(), text.len(), 0) };
    let text = String::from_utf8_lossy(&text[..usize::try_from(length).expect("an answer")]);
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)).expect("a line");
        line.trim().parse::<u64>().expect("a number")
    };
    (number("rchar:"), number("wchar:"), text.len() as u64)
}

fn open(tally: &mut Tally, path: &CString, flags: c_int) -> c_long {
    tally.well("open", call!(SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o600))
}

fn close(tally: &mut Tally, file: c_long) {
    tally.well("close", call!(SYS_close, file));
}

/// Files made, looked up, renamed and removed.
fn names(tally: &mut Tally, amounts: Amounts, path: &dyn Fn(&str) -> CString) {
    // SAFETY: integers.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut statx: libc::statx = unsafe { std::mem::zeroed() };
    let piece = [7_u8; PIECE];
    let made = path("d");
    tally.well("mkdir", call!(SYS_mkdirat, libc::AT_FDCWD, made.as_ptr(), 0o700));
    tally.ill("mkdir", call!(SYS_mkdirat, libc::AT_FDCWD, made.as_ptr(), 0o700));
    for number in 0..amounts.files {
        let name = path(&format!("d/{number}"));
        let file = open(tally, &name, libc::O_CREAT | libc::O_WRONLY);
        for _ in 0..2 {
            tally.well("write", call!(SYS_write, file, piece.as_ptr(), PIECE));
        }
        close(tally, file);
        let at = &raw mut stat;
        tally.well("stat", call!(SYS_newfstatat, libc::AT_FDCWD, name.as_ptr(), at, 0));
    }
    for number in 0..MISSING {
        let name = path(&format!("missing-{number}"));
        let at = libc::AT_FDCWD;
        tally.ill("open", call!(SYS_openat, at, name.as_ptr(), libc::O_RDONLY, 0));
        tally.ill("stat", call!(SYS_statx, at, name.as_ptr(), 0, 0xfff, &raw mut statx));
        tally.ill("unlink", call!(SYS_unlinkat, at, name.as_ptr(), 0));
    }
    let directory = open(tally, &made, libc::O_RDONLY | libc::O_DIRECTORY);
    let mut entries = [0_u8; 4096];
    while tally.well("getdents", call!(SYS_getdents64, directory, entries.as_mut_ptr(), 4096)) > 0 {
    }
    for number in 0..amounts.files / 10 {
        let [old, new] = [format!("{number}"), format!("renamed-{number}")]
            .map(|name| CString::new(name).expect("no zero byte"));
        let (old, new) = (old.as_ptr(), new.as_ptr());
        tally.well("rename", call!(SYS_renameat2, directory, old, directory, new, 0));
        tally.ill("stat", call!(SYS_faccessat, directory, old, 0));
        tally.well("rename", call!(SYS_renameat2, directory, new, directory, old, 0));
    }
    tally.well("stat", call!(SYS_statx, directory, c"1".as_ptr(), 0, 0xfff, &raw mut statx));
    tally.ill("read", call!(SYS_read, directory, entries.as_mut_ptr(), 10));
    tally.well("lock", call!(SYS_flock, directory, libc::LOCK_EX));
    close(tally, directory);
    // By the working directory.
    let here = CString::new(
        std::env::current_dir().expect("a folder").into_os_string().into_encoded_bytes(),
    );
    tally.well("stat", call!(SYS_chdir, made.as_ptr()));
    tally.well("setattr", call!(SYS_fchmodat, libc::AT_FDCWD, c"2".as_ptr(), 0o640));
    tally.ill("open", call!(SYS_openat, libc::AT_FDCWD, c"none".as_ptr(), libc::O_RDONLY, 0));
    tally.well(
        "link",
        call!(SYS_linkat, libc::AT_FDCWD, c"2".as_ptr(), libc::AT_FDCWD, c"l".as_ptr(), 0),
    );
    tally.well("unlink", call!(SYS_unlinkat, libc::AT_FDCWD, c"l".as_ptr(), 0));
    // Of where it was, which is another file system: no part of the tally.
    assert_eq!(call!(SYS_chdir, here.expect("no zero byte").as_ptr()), 0);
}

/// What is in the files: read in pieces, by place and by vector, copied, locked, cut and stored.
fn data(tally: &mut Tally, amounts: Amounts, path: &dyn Fn(&str) -> CString) {
    let mut piece = [0_u8; READ];
    let room = piece.as_mut_ptr();
    for number in 0..amounts.files {
        let file = open(tally, &path(&format!("d/{number}")), libc::O_RDONLY);
        while tally.well("read", call!(SYS_read, file, room, READ)) > 0 {}
        tally.well("seek", call!(SYS_lseek, file, 0, libc::SEEK_SET));
        close(tally, file);
    }
    let file = open(tally, &path("d/0"), libc::O_RDWR);
    let other = open(tally, &path("d/1"), libc::O_RDWR);
    for number in 0..amounts.placed {
        tally.well("read", call!(SYS_pread64, file, room, 100, number));
        tally.well("write", call!(SYS_pwrite64, file, room, 10, number));
    }
    let part = |iov_len| libc::iovec { iov_base: room.cast::<c_void>(), iov_len };
    let parts = [part(10), part(20), part(30)];
    tally.well("write", call!(SYS_writev, file, parts.as_ptr(), 3));
    tally.well("read", call!(SYS_preadv, file, parts.as_ptr(), 3, 0, 0));
    let nothing = std::ptr::null_mut::<i64>();
    let mut from = 0_i64;
    let copied = call!(SYS_copy_file_range, file, &raw mut from, other, nothing, 1_000, 0);
    tally.well("copy_file_range", copied);
    tally.well("sendfile", call!(SYS_sendfile, other, file, &raw mut from, 500));
    for _ in 0..10 {
        tally.well("fsync", call!(SYS_fsync, file));
        tally.well("fsync", call!(SYS_fdatasync, file));
    }
    tally.well("truncate", call!(SYS_ftruncate, file, 5_000));
    let name = path("d/0");
    tally.well("truncate", call!(SYS_truncate, name.as_ptr(), 4_000));
    tally.add("fallocate", call!(SYS_fallocate, file, 0, 0, 10_000));
    let mut lock =
        libc::flock { l_type: libc::F_WRLCK as i16, l_whence: 0, l_start: 0, l_len: 10, l_pid: 0 };
    tally.well("lock", call!(SYS_fcntl, file, libc::F_SETLK, &raw mut lock));
    // No operation.
    assert!(call!(SYS_fcntl, file, libc::F_GETFL) >= 0);
    let mut waiting: c_int = 0;
    tally.well("ioctl", call!(SYS_ioctl, file, libc::FIONREAD, &raw mut waiting));
    close(tally, file);
    close(tally, other);
}

/// What the account has nothing of, or more than what is in the folder: links that say any text, and pages out of a pipe.
fn aside(tally: &mut Tally, path: &dyn Fn(&str) -> CString) {
    let (text, link) = (c"/proc/none", path("d/s"));
    let folder = open(tally, &path("d"), libc::O_RDONLY | libc::O_DIRECTORY);
    tally.well("link", call!(SYS_symlinkat, text.as_ptr(), libc::AT_FDCWD, link.as_ptr()));
    tally.ill("link", call!(SYS_symlinkat, text.as_ptr(), folder, c"s".as_ptr()));
    #[cfg(target_arch = "x86_64")]
    tally.ill("link", call!(SYS_symlink, text.as_ptr(), link.as_ptr()));
    tally.well("unlink", call!(SYS_unlinkat, folder, c"s".as_ptr(), 0));
    close(tally, folder);
    let file = open(tally, &path("d/1"), libc::O_WRONLY);
    let (mut ends, nothing) = ([0; 2], std::ptr::null_mut::<i64>());
    // SAFETY: room for two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let [from, to] = ends;
    // The pipe's, as what follows is not.
    assert_eq!(call!(SYS_write, to, [7_u8; 100].as_ptr(), 100), 100);
    tally.well("splice", call!(SYS_splice, from, nothing, file, nothing, 100, 0));
    for end in ends {
        // SAFETY: an end of ours, the pipe's.
        assert_eq!(unsafe { libc::close(end) }, 0);
    }
    close(tally, file);
}

/// Threads that share a descriptor, a child that inherits it; then all is removed.
fn together(mut tally: Tally, amounts: Amounts, path: &dyn Fn(&str) -> CString) -> Tally {
    let file = open(&mut tally, &path("d/3"), libc::O_RDONLY);
    let shared = Arc::new(Mutex::new(tally));
    let read = move || {
        let mut piece = [0_u8; 64];
        let mut own = Tally::default();
        for place in 0..amounts.by_thread {
            own.well("read", call!(SYS_pread64, file, piece.as_mut_ptr(), 64, place));
        }
        own
    };
    let threads: Vec<_> = (0..THREADS).map(|_| thread::spawn(read)).collect();
    for thread in threads {
        let own = thread.join().expect("a thread that reads");
        add(&mut shared.lock().expect("nobody failed"), &own);
    }
    let mut tally =
        Arc::into_inner(shared).and_then(|all| all.into_inner().ok()).expect("the last");
    // SAFETY: the child reads and ends; the threads have ended.
    match unsafe { libc::fork() } {
        0 => {
            let mut piece = [0_u8; 64];
            let read = |place: u64| call!(SYS_pread64, file, piece.as_mut_ptr(), 64, place) == 64;
            let is_well = (0..BY_CHILD).all(read);
            // SAFETY: ends without what is at the parent's end.
            unsafe { libc::_exit(i32::from(!is_well)) }
        }
        child => {
            let mut status = 1;
            // SAFETY: room for the status.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "the child could not read");
        }
    }
    (0..BY_CHILD).for_each(|_| {
        tally.well("read", 64);
    });
    close(&mut tally, file);
    for number in 0..amounts.files {
        let name = path(&format!("d/{number}"));
        tally.well("unlink", call!(SYS_unlinkat, libc::AT_FDCWD, name.as_ptr(), 0));
    }
    let made = path("d");
    tally.well("unlink", call!(SYS_unlinkat, libc::AT_FDCWD, made.as_ptr(), libc::AT_REMOVEDIR));
    tally
}

fn add(all: &mut Tally, own: &Tally) {
    for (op, counts) in &own.0 {
        let known = all.0.entry(op).or_default();
        known.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
}
