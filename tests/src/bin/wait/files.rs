//! Waits for a file system: of one that answers slowly, on the path given, or of a disk.

use std::{
    ffi::CString,
    fs::{self, File},
    io::{self, Write},
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::FileExt},
    },
    ptr::null_mut,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use jobtrace_tests::work::{PAGE, Pages, fork, off_cpu_ns, open_direct, spin};

use super::{Amount, Cause, Waited, partners::reap_busily};

pub const CAUSES: &[Cause] = &[
    ("read", read),
    ("pread", pread),
    ("write", write),
    ("pwrite", pwrite),
    ("sync", sync),
    ("open", open),
    ("stat", stat),
    ("fstat", fstat),
    ("folder", folder),
    ("ioctl", ioctl),
    ("fault", fault),
    ("exec", exec),
    ("exit", exit),
    ("memory", memory),
    ("direct", direct),
    ("splice_out", splice_out),
    ("store", store),
    ("attributes", attributes),
    ("disk", disk),
];

/// Pages between two that are asked for: far enough apart that no other comes with one.
const APART: u64 = 8;

fn page(index: u64) -> u64 {
    index * APART * PAGE as u64
}

/// The file, opened; its opening is not part of what is waited for.
fn opened(amount: &Amount) -> File {
    File::options().read(true).write(true).open(amount.path()).unwrap()
}

fn each(amount: &Amount, wait: impl Fn(&File, u64)) -> Waited {
    each_of(&opened(amount), amount, wait)
}

fn each_of(file: &File, amount: &Amount, wait: impl Fn(&File, u64)) -> Waited {
    off_cpu_ns(|| (0..amount.count).for_each(|index| wait(file, index))).into()
}

/// `read`, and no page that was read before.
fn read(amount: &Amount) -> Waited {
    each(amount, |file, index| {
        // SAFETY: a descriptor and a buffer of ours.
        let got = unsafe {
            let mut buffer = [0_u8; PAGE];
            assert!(libc::lseek(file.as_raw_fd(), page(index) as i64, libc::SEEK_SET) >= 0);
            libc::read(file.as_raw_fd(), buffer.as_mut_ptr().cast(), PAGE)
        };
        assert_eq!(got, PAGE as isize, "{}", io::Error::last_os_error());
    })
}

/// Of a file that may be there for reading alone.
fn pread(amount: &Amount) -> Waited {
    let file = File::open(amount.path()).unwrap();
    each_of(&file, amount, |file, index| file.read_exact_at(&mut [0; PAGE], page(index)).unwrap())
}

fn write(amount: &Amount) -> Waited {
    each(amount, |mut file, _| io::Write::write_all(&mut file, &[0; PAGE]).unwrap())
}

fn pwrite(amount: &Amount) -> Waited {
    each(amount, |file, index| file.write_all_at(&[0; PAGE], page(index)).unwrap())
}

fn sync(amount: &Amount) -> Waited {
    each(amount, |file, index| {
        if index % 2 == 0 { file.sync_all() } else { file.sync_data() }.unwrap();
    })
}

fn open(amount: &Amount) -> Waited {
    off_cpu_ns(|| (0..amount.count).for_each(|_| drop(opened(amount)))).into()
}

fn stat(amount: &Amount) -> Waited {
    let wait = |_| assert!(fs::metadata(amount.path()).unwrap().is_file());
    off_cpu_ns(|| (0..amount.count).for_each(wait)).into()
}

/// By its descriptor.
fn fstat(amount: &Amount) -> Waited {
    each(amount, |file, _| assert!(file.metadata().unwrap().is_file()))
}

/// A folder's names, each time from their begin.
fn folder(amount: &Amount) -> Waited {
    let folder = File::open(amount.path()).unwrap();
    let mut names = vec![0_u8; PAGE];
    let mut off = 0;
    for _ in 0..amount.count {
        // SAFETY: a descriptor and a buffer of ours.
        let got = unsafe {
            assert_eq!(libc::lseek(folder.as_raw_fd(), 0, libc::SEEK_SET), 0);
            let mut got = 0;
            off += off_cpu_ns(|| {
                let (fd, to) = (folder.as_raw_fd(), names.as_mut_ptr());
                got = libc::syscall(libc::SYS_getdents64, fd, to, PAGE);
            });
            got
        };
        assert!(got > 0, "getdents64: {}", io::Error::last_os_error());
    }
    off.into()
}

/// A request without an argument: number 1 of `j`.
fn ioctl(amount: &Amount) -> Waited {
    each(amount, |file, _| {
        // SAFETY: no memory is passed.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), 0x6a01, 0) };
        assert_eq!(result, 0, "ioctl: {}", io::Error::last_os_error());
    })
}

/// Pages of a mapped file.
struct Mapped {
    address: *mut u8,
    bytes: usize,
}

impl Mapped {
    fn of(file: &File, at: u64, bytes: usize) -> Self {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, owned by the value made here.
        let address = unsafe {
            libc::mmap(null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), at as i64)
        };
        assert_ne!(address, libc::MAP_FAILED, "mmap: {}", io::Error::last_os_error());
        Self { address: address.cast(), bytes }
    }

    fn read(&self, at: usize) {
        // SAFETY: within the mapping.
        unsafe { self.address.add(at).read_volatile() };
    }

    fn write(&self) {
        // SAFETY: within the mapping.
        unsafe { self.address.write_volatile(1) };
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping.
        unsafe { libc::munmap(self.address.cast(), self.bytes) };
    }
}

fn fault(amount: &Amount) -> Waited {
    let file = opened(amount);
    let mapped = Mapped::of(&file, 0, page(amount.count) as usize);
    off_cpu_ns(|| (0..amount.count).for_each(|index| mapped.read(page(index) as usize))).into()
}

/// Children that execute a program of the slow file system; each reads it once.
fn exec(amount: &Amount) -> Waited {
    let path = CString::new(amount.path().as_os_str().as_bytes()).unwrap();
    for _ in 0..amount.count {
        let pid = fork(|| {
            let words = [path.as_ptr(), std::ptr::null()];
            // SAFETY: words of ours that end with none.
            unsafe { libc::execv(path.as_ptr(), words.as_ptr()) };
            panic!("execv: {}", io::Error::last_os_error());
        });
        reap_busily(pid);
    }
    // By the children, whom nobody can ask any more.
    amount.least_ns().into()
}

/// Children that end with a page that is not stored yet, which the kernel then does.
fn exit(amount: &Amount) -> Waited {
    let file = opened(amount);
    let mapped = Mapped::of(&file, 0, PAGE);
    mapped.read(0);
    for _ in 0..amount.count {
        reap_busily(fork(|| mapped.write()));
    }
    amount.least_ns().into()
}

/// A thread that unmaps a page that is not stored yet, for which it waits in the kernel holding the address
/// space's lock; another that wants to change the address space too.
fn memory(amount: &Amount) -> Waited {
    let file = opened(amount);
    let (is_done, waited) = (AtomicBool::new(false), AtomicU64::new(0));
    // Once read it stays in memory.
    file.read_exact_at(&mut [0; PAGE], 0).unwrap();
    let holder = || {
        for _ in 0..amount.count {
            let mut mapped = None;
            let before = off_cpu_ns(|| mapped = Some(Mapped::of(&file, 0, PAGE)));
            mapped.as_ref().unwrap().write();
            waited.fetch_add(before + off_cpu_ns(|| drop(mapped)), Ordering::Relaxed);
        }
        is_done.store(true, Ordering::Release);
    };
    thread::scope(|scope| {
        let holder = scope.spawn(holder);
        while !is_done.load(Ordering::Acquire) {
            waited.fetch_add(off_cpu_ns(|| drop(Pages::fresh(1))), Ordering::Relaxed);
        }
        while !holder.is_finished() {
            spin(std::time::Duration::from_micros(20));
        }
    });
    waited.into_inner().into()
}

/// Writes past the page cache.
fn direct(amount: &Amount) -> Waited {
    let mut pages = Pages::fresh(1);
    pages.write();
    let file = open_direct(amount.path());
    let mut write = |index| file.write_all_at(pages.bytes(), index * PAGE as u64).unwrap();
    off_cpu_ns(|| (0..amount.count).for_each(&mut write)).into()
}

/// Pages moved from a pipe to a file, past the page cache.
fn splice_out(amount: &Amount) -> Waited {
    drop(File::create(amount.path()).unwrap());
    let file = open_direct(amount.path());
    let (from, mut to) = io::pipe().unwrap();
    let mut off = 0;
    for _ in 0..amount.count {
        to.write_all(&[7; PAGE]).unwrap();
        off += off_cpu_ns(|| {
            // SAFETY: descriptors of ours.
            let bytes = unsafe {
                let (from, file) = (from.as_raw_fd(), file.as_raw_fd());
                libc::splice(from, null_mut(), file, null_mut(), PAGE, 0)
            };
            assert_eq!(bytes, PAGE as isize, "splice: {}", io::Error::last_os_error());
        });
    }
    off.into()
}

/// Writes into the page cache, stored one by one.
fn store(amount: &Amount) -> Waited {
    each(amount, |file, index| {
        file.write_all_at(&[7; PAGE], index * PAGE as u64).unwrap();
        file.sync_all().unwrap();
    })
}

/// `fstat`, of a file that is open.
fn attributes(amount: &Amount) -> Waited {
    each(amount, |file, _| {
        // SAFETY: a descriptor, and room for what the kernel writes.
        let result = unsafe {
            let mut found: libc::stat = std::mem::zeroed();
            libc::syscall(libc::SYS_fstat, file.as_raw_fd(), &raw mut found)
        };
        assert_eq!(result, 0, "fstat: {}", io::Error::last_os_error());
    })
}

/// Writes to a file on a disk, stored one by one, then reads of it past the page cache. Reported by kind.
fn disk(amount: &Amount) -> Waited {
    let mut pages = Pages::fresh(1);
    pages.write();
    let (mut file, mut off) = (None, [0; 4]);
    off[0] = off_cpu_ns(|| file = Some(File::create(amount.path()).unwrap()));
    let file = file.unwrap();
    for index in 0..amount.count {
        off[1] += off_cpu_ns(|| file.write_all_at(&[7; PAGE], index * PAGE as u64).unwrap());
        off[2] += off_cpu_ns(|| file.sync_all().unwrap());
    }
    let mut direct = None;
    off[0] += off_cpu_ns(|| direct = Some(open_direct(amount.path())));
    let direct = direct.unwrap();
    for index in 0..amount.count {
        let read = || direct.read_exact_at(pages.bytes(), index * PAGE as u64).unwrap();
        off[3] += off_cpu_ns(read);
    }
    let names = ["metadata_ns", "write_ns", "sync_ns", "read_ns"];
    let facts = names.into_iter().zip(off).collect();
    Waited { facts, ..off.iter().sum::<u64>().into() }
}
