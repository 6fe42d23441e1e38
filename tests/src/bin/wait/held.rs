//! Tasks that are held: stopped by a signal, frozen with their cgroup; and sleeps that go on afterwards.

use std::{
    fs,
    path::{Path, PathBuf},
    ptr::null_mut,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use jobtrace_tests::{
    own_cgroup::own_directory,
    work::{Pages, fork, off_cpu_ns, spin},
};

use super::{
    Amount, Cause, Waited,
    alone::{ended_with, ignore, timespec},
    partners::reap_busily,
};

pub const CAUSES: &[Cause] = &[
    ("stop", stop),
    ("freezer", freezer),
    ("freeze", freeze),
    ("stopped-timer", stopped_timer),
    ("stopped-futex", stopped_futex),
    ("stopped-poll", stopped_poll),
];

/// How long a task may take to be held, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// A sleep that no busy machine lets come to its end before the last stop.
const LONGER_THAN_ALL: Duration = Duration::from_secs(600);

/// A child that is busy until it is told to end, after it has done `first`; what it was off its CPU for
/// lies in shared memory. `hold` holds it, and gives what it waited for itself.
fn busy_child(first: impl FnOnce(), hold: impl Fn(i32) -> u64) -> Waited {
    let page = Pages::shared(1);
    let [end, off, ready, apart] = [0, 1, 2, 3].map(|index| &page.words()[index]);
    let pid = fork(|| {
        apart.store(off_cpu_ns(first), Ordering::Release);
        let ns = off_cpu_ns(|| {
            // Within what is measured: it may be held from now on.
            ready.store(1, Ordering::Release);
            while end.load(Ordering::Acquire) == 0 {
                spin(Duration::from_micros(20));
            }
        });
        off.store(ns, Ordering::Release);
    });
    until("a child ran", || ready.load(Ordering::Acquire) == 1);
    let apart_ns = hold(pid) + apart.load(Ordering::Acquire);
    end.store(1, Ordering::Release);
    reap_busily(pid);
    Waited { apart_ns, ..off.load(Ordering::Acquire).into() }
}

/// Waits without going to sleep.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        spin(Duration::from_micros(20));
    }
}

/// Stops child `pid` for `time`; gives how long it was stopped, at least and at most.
fn stop_for(pid: i32, time: Duration) -> [u64; 2] {
    let told = Instant::now();
    // SAFETY: signals to a child of ours.
    unsafe {
        assert_eq!(libc::kill(pid, libc::SIGSTOP), 0);
        until("a child is stopped", || {
            libc::waitpid(pid, null_mut(), libc::WNOHANG | libc::WUNTRACED) == pid
        });
        let begin = Instant::now();
        spin(time);
        let least = begin.elapsed();
        assert_eq!(libc::kill(pid, libc::SIGCONT), 0);
        [least, told.elapsed()].map(|time| time.as_nanos() as u64)
    }
}

fn stop(amount: &Amount) -> Waited {
    let hold = |pid| {
        for _ in 0..amount.count {
            stop_for(pid, amount.time);
            spin(Duration::from_millis(1));
        }
        0
    };
    busy_child(|| {}, hold)
}

/// A child in the cgroup `path` of the freezer's own hierarchy, and back.
fn freezer(amount: &Amount) -> Waited {
    let (state, procs) = (amount.path().join("freezer.state"), amount.path().join("cgroup.procs"));
    let is = |wanted: &'static str| {
        let state = &state;
        move || fs::read_to_string(state).unwrap().trim() == wanted
    };
    let hold = |_| {
        let mut off = 0;
        for _ in 0..amount.count {
            off += off_cpu_ns(|| write(&state, "FROZEN"));
            until("a cgroup is frozen", is("FROZEN"));
            spin(amount.time);
            off += off_cpu_ns(|| write(&state, "THAWED"));
            spin(Duration::from_millis(1));
        }
        off
    };
    busy_child(|| write(&procs, "0"), hold)
}

/// A child in a cgroup that the job makes below its own.
fn freeze(amount: &Amount) -> Waited {
    let directory: PathBuf = own_directory("").expect("cgroup v2").join("held");
    fs::create_dir_all(&directory).unwrap();
    let (file, events) = (directory.join("cgroup.freeze"), directory.join("cgroup.events"));
    let is_frozen = || fs::read_to_string(&events).unwrap().contains("frozen 1");
    let hold = |_| {
        let mut off = 0;
        for _ in 0..amount.count {
            off += off_cpu_ns(|| write(&file, "1"));
            until("a cgroup is frozen", is_frozen);
            spin(amount.time);
            off += off_cpu_ns(|| write(&file, "0"));
            until("a cgroup is thawed", || !is_frozen());
            spin(Duration::from_millis(1));
        }
        off
    };
    let mut waited = busy_child(|| write(&directory.join("cgroup.procs"), "0"), hold);
    // A process is gone from its cgroup a moment after its end was told.
    waited.apart_ns +=
        off_cpu_ns(|| until("a cgroup is empty", || fs::remove_dir(&directory).is_ok()));
    waited
}

fn write(file: &Path, text: &str) {
    fs::write(file, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
}

/// One long sleep in a child, which is stopped each time for a while: the kernel has it call
/// restart_syscall afterwards. Between two stops it sleeps as long as it is stopped. A signal ends it.
fn stopped(amount: &Amount, sleep: impl Fn(Duration) -> i64) -> Waited {
    let page = Pages::shared(1);
    let off = &page.words()[0];
    let pid = fork(|| {
        // SAFETY: a handler that lives as long as the program.
        unsafe { libc::signal(libc::SIGALRM, ignore as *const () as usize) };
        let ns = off_cpu_ns(|| ended_with(libc::EINTR, sleep(LONGER_THAN_ALL)));
        off.store(ns, Ordering::Release);
    });
    let (mut least, mut most) = (0, 0);
    for _ in 0..amount.count {
        spin(amount.time);
        let held = stop_for(pid, amount.time);
        (least, most) = (least + held[0], most + held[1]);
    }
    spin(amount.time);
    // SAFETY: a signal to a child of ours.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGALRM) }, 0);
    reap_busily(pid);
    let off = off.load(Ordering::Acquire);
    Waited { facts: vec![("held_least_ns", least), ("held_most_ns", most)], ..off.into() }
}

fn stopped_timer(amount: &Amount) -> Waited {
    // SAFETY: a time of ours.
    stopped(amount, |time| unsafe { libc::nanosleep(&timespec(time), null_mut()).into() })
}

fn stopped_futex(amount: &Amount) -> Waited {
    stopped(amount, |time| {
        let (word, time) = (0_u32, timespec(time));
        // SAFETY: a word and a time of ours.
        unsafe { libc::syscall(libc::SYS_futex, &raw const word, libc::FUTEX_WAIT, 0, &time) }
    })
}

fn stopped_poll(amount: &Amount) -> Waited {
    // SAFETY: no file at all.
    stopped(amount, |time| unsafe { libc::poll(null_mut(), 0, time.as_millis() as i32).into() })
}
