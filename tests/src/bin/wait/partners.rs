//! Waits for another task of the same job, which keeps a CPU busy until it lets go.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    os::fd::AsRawFd,
    ptr::null_mut,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::fs::{FlockOperation, flock as flock_file};

use jobtrace_tests::work::{PAGE, Pages, fork, off_cpu_ns, spin};

use super::{Amount, Cause, Waited};

pub const CAUSES: &[Cause] = &[
    ("pipe", pipe),
    ("preadv2", preadv2),
    ("splice", splice),
    ("contention", contention),
    ("flock", flock),
    ("child", child),
    ("message", message),
    ("vfork", vfork),
];

/// Waits for the end of child `pid` without going to sleep.
pub fn reap_busily(pid: i32) {
    let mut status = 0;
    loop {
        // SAFETY: a word of ours.
        match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } {
            0 => spin(Duration::from_micros(20)),
            ended => break assert_eq!(ended, pid),
        }
    }
    assert_eq!(status, 0, "a child ended with wait status {status}");
}

fn pipe(amount: &Amount) -> Waited {
    let (mut from, mut to) = io::pipe().unwrap();
    let writer = fork(|| {
        for _ in 0..amount.count {
            spin(amount.time);
            to.write_all(b"x").unwrap();
        }
    });
    let off = off_cpu_ns(|| {
        for _ in 0..amount.count {
            from.read_exact(&mut [0]).unwrap();
        }
    });
    reap_busily(writer);
    off.into()
}

/// Reads of a pipe by a call that files have too.
fn preadv2(amount: &Amount) -> Waited {
    let (from, mut to) = io::pipe().unwrap();
    let writer = fork(|| {
        for _ in 0..amount.count {
            spin(amount.time);
            to.write_all(b"x").unwrap();
        }
    });
    let mut byte = 0_u8;
    let part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let off = off_cpu_ns(|| {
        for _ in 0..amount.count {
            // SAFETY: one byte of ours. Minus one is the place that a pipe has.
            assert_eq!(unsafe { libc::preadv2(from.as_raw_fd(), &part, 1, -1, 0) }, 1);
        }
    });
    reap_busily(writer);
    off.into()
}

/// Pages of a file that is in memory, moved into a full pipe.
fn splice(amount: &Amount) -> Waited {
    let (mut from, to) = io::pipe().unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len((amount.count + 1) * PAGE as u64).unwrap();
    let moved = || {
        // SAFETY: descriptors of ours.
        let bytes = unsafe {
            let (file, to) = (file.as_raw_fd(), to.as_raw_fd());
            libc::splice(file, null_mut(), to, null_mut(), PAGE, 0)
        };
        assert_eq!(bytes, PAGE as isize, "splice: {}", io::Error::last_os_error());
    };
    // SAFETY: a pipe of one page.
    assert!(unsafe { libc::fcntl(to.as_raw_fd(), libc::F_SETPIPE_SZ, PAGE) } > 0);
    (&file).read_exact(&mut vec![0; (amount.count + 1) as usize * PAGE]).unwrap();
    (&file).rewind().unwrap();
    moved();
    let reader = fork(|| {
        for _ in 0..amount.count {
            spin(amount.time);
            from.read_exact(&mut [0; PAGE]).unwrap();
        }
    });
    let off = off_cpu_ns(|| (0..amount.count).for_each(|_| moved()));
    reap_busily(reader);
    off.into()
}

/// Two threads that both want to work, one at a time, and a third that waits for their end.
fn contention(amount: &Amount) -> Waited {
    let (turn, waited) = (Mutex::new(()), AtomicU64::new(0));
    let work = || {
        for _ in 0..amount.count.div_ceil(2) {
            let mut held = None;
            let off = off_cpu_ns(|| held = Some(turn.lock().unwrap()));
            waited.fetch_add(off, Ordering::Relaxed);
            spin(amount.time);
        }
    };
    let off = off_cpu_ns(|| thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work)))));
    (off + waited.into_inner()).into()
}

/// A file that a child holds locked.
fn flock(amount: &Amount) -> Waited {
    // A file of memory has no name to be removed by.
    // SAFETY: a name of ours.
    let descriptor = unsafe { libc::memfd_create(c"lock".as_ptr(), 0) };
    assert!(descriptor >= 0);
    let path = format!("/proc/self/fd/{descriptor}");
    let open = || File::options().read(true).write(true).open(&path).unwrap();
    let (ours, theirs, page) = (open(), open(), Pages::shared(1));
    let round = &page.words()[0];
    let holder = fork(|| {
        for index in 1..=amount.count {
            lock(&theirs, FlockOperation::LockExclusive);
            round.store(2 * index - 1, Ordering::Release);
            spin(amount.time);
            lock(&theirs, FlockOperation::Unlock);
            wait_busily(round, 2 * index);
        }
    });
    let mut off = 0;
    for index in 1..=amount.count {
        wait_busily(round, 2 * index - 1);
        off += off_cpu_ns(|| lock(&ours, FlockOperation::LockExclusive));
        lock(&ours, FlockOperation::Unlock);
        round.store(2 * index, Ordering::Release);
    }
    reap_busily(holder);
    off.into()
}

fn lock(file: &File, operation: FlockOperation) {
    flock_file(file, operation).unwrap();
}

fn wait_busily(word: &AtomicU64, value: u64) {
    while word.load(Ordering::Acquire) != value {
        std::hint::spin_loop();
    }
}

/// wait4 and waitid in turn.
fn child(amount: &Amount) -> Waited {
    let mut off = 0;
    for index in 0..amount.count {
        let pid = fork(|| spin(amount.time));
        off += off_cpu_ns(|| {
            // SAFETY: out-parameters of ours; zeros are a valid value.
            let ended = unsafe {
                if index % 2 == 0 {
                    libc::waitpid(pid, null_mut(), 0) - pid
                } else {
                    let mut info = std::mem::zeroed();
                    libc::waitid(libc::P_PID, pid as u32, &mut info, libc::WEXITED)
                }
            };
            assert_eq!(ended, 0, "{}", io::Error::last_os_error());
        });
    }
    off.into()
}

/// A System V message queue, removed when dropped.
struct Queue(i32);

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: ours.
        unsafe { libc::msgctl(self.0, libc::IPC_RMID, null_mut()) };
    }
}

fn message(amount: &Amount) -> Waited {
    // SAFETY: no memory is passed.
    let queue = Queue(unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) });
    assert!(queue.0 >= 0, "msgget: {}", io::Error::last_os_error());
    let sender = fork(|| {
        let message = [1_i64, 0];
        for _ in 0..amount.count {
            spin(amount.time);
            // SAFETY: a message of ours.
            let sent = unsafe { libc::msgsnd(queue.0, message.as_ptr().cast(), 8, 0) };
            assert_eq!(sent, 0);
        }
    });
    let off = off_cpu_ns(|| {
        for _ in 0..amount.count {
            let mut message = [0_i64; 2];
            // SAFETY: room of ours.
            let got = unsafe { libc::msgrcv(queue.0, message.as_mut_ptr().cast(), 8, 0, 0) };
            assert_eq!(got, 8, "msgrcv: {}", io::Error::last_os_error());
        }
    });
    reap_busily(sender);
    off.into()
}

/// Children that borrow their maker's memory; it is in the kernel until each has ended.
fn vfork(amount: &Amount) -> Waited {
    extern "C" fn busy(ns: *mut libc::c_void) -> i32 {
        spin(Duration::from_nanos(ns as u64));
        0
    }
    let mut stack = Pages::fresh(16);
    let top = stack.bytes().as_mut_ptr_range().end;
    let ns = amount.time.as_nanos() as usize as *mut libc::c_void;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let mut off = 0;
    for _ in 0..amount.count {
        let mut pid = 0;
        // SAFETY: a stack of its own, which lives until the child has ended, as CLONE_VFORK waits for it.
        off += off_cpu_ns(|| pid = unsafe { libc::clone(busy, top.cast(), flags, ns) });
        assert!(pid > 0, "clone: {}", io::Error::last_os_error());
        reap_busily(pid);
    }
    off.into()
}
