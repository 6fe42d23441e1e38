//! Calls that are not what they seem: of another machine's numbers, left for a signal's handler or for good.

use std::{
    ptr::null_mut,
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use jobtrace_tests::work::off_cpu_ns;

use super::{
    Amount, Cause, Waited,
    alone::{Ticks, timespec},
};

pub const CAUSES: &[Cause] = &[
    #[cfg(target_arch = "x86_64")]
    ("compat", compat),
    ("handler", handler),
    ("core_dump", core_dump),
    ("membarrier", membarrier),
];

/// Until all CPUs have passed a barrier: blocked in a call that is none on files, memory or children.
fn membarrier(amount: &Amount) -> Waited {
    off_cpu_ns(|| {
        for _ in 0..amount.count {
            // SAFETY: no pointers.
            let result =
                unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
            assert_eq!(result, 0, "membarrier: {}", std::io::Error::last_os_error());
        }
    })
    .into()
}

/// nanosleep by a call of 32 bits: its number 162 is sync's on x86-64.
#[cfg(target_arch = "x86_64")]
fn compat(amount: &Amount) -> Waited {
    use std::arch::asm;
    const NANOSLEEP: i32 = 162;
    // The kernel takes only an address of 32 bits.
    // SAFETY: a new mapping.
    let time = unsafe {
        let time = libc::mmap(
            null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT,
            -1,
            0,
        );
        assert_ne!(time, libc::MAP_FAILED);
        time.cast::<[i32; 2]>()
    };
    // SAFETY: within the mapping.
    unsafe { time.write([amount.time.as_secs() as i32, amount.time.subsec_nanos() as i32]) };
    off_cpu_ns(|| {
        for _ in 0..amount.count {
            let result: i32;
            // SAFETY: a time of ours; rbx is the compiler's own, so it is put back.
            unsafe {
                asm!(
                    "xchg rbx, {time:r}",
                    "int 0x80",
                    "xchg rbx, {time:r}",
                    time = inout(reg) time => _,
                    inlateout("eax") NANOSLEEP => result,
                    in("ecx") 0,
                    out("r8") _,
                    out("r9") _,
                    out("r10") _,
                    out("r11") _,
                );
            }
            assert_eq!(result, 0, "is the kernel built without calls of 32 bits?");
        }
    })
    .into()
}

/// What the handler was off its CPU for.
static IN_HANDLER: AtomicU64 = AtomicU64::new(0);

/// Sleeps that a signal cuts short after half of what is asked for, in whose handler the other half is
/// spent polling nothing.
fn handler(amount: &Amount) -> Waited {
    extern "C" fn poll_nothing(_: i32) {
        let off = off_cpu_ns(|| {
            // SAFETY: no file at all; it ends by itself.
            unsafe { libc::poll(null_mut(), 0, HALF.load(Ordering::Relaxed) as i32) };
        });
        IN_HANDLER.fetch_add(off, Ordering::Relaxed);
    }
    let half = amount.time / 2;
    HALF.store(half.as_millis() as u64, Ordering::Relaxed);
    let mut off = 0;
    for _ in 0..amount.count {
        let long = timespec(Duration::from_secs(60));
        off += off_cpu_ns(|| {
            let _ticks = Ticks::after(half, poll_nothing);
            // SAFETY: a time of ours.
            let result = unsafe { libc::nanosleep(&long, null_mut()) };
            assert_eq!(result, -1);
        });
    }
    let inside = IN_HANDLER.load(Ordering::Relaxed);
    Waited { facts: vec![("handler_ns", inside)], ..off.into() }
}

/// Half of what is asked for, in milliseconds.
static HALF: AtomicU64 = AtomicU64::new(0);

/// A child of so many threads that aborts: all but the one that is dumped wait for the dump, in calls that they
/// never return from.
fn core_dump(amount: &Amount) -> Waited {
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let unlimited =
            libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: a limit of ours.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &unlimited) }, 0);
        let ready = Barrier::new(amount.count as usize + 1);
        thread::scope(|scope| {
            for _ in 0..amount.count {
                scope.spawn(|| {
                    ready.wait();
                    thread::sleep(Duration::from_secs(60));
                });
            }
            ready.wait();
            // Until they sleep.
            thread::sleep(Duration::from_millis(20));
            std::process::abort()
        });
    }
    let mut status = 0;
    let waited = off_cpu_ns(|| {
        // SAFETY: a child of ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    });
    assert!(libc::WCOREDUMP(status), "no core was dumped: {status:#x}");
    waited.into()
}
