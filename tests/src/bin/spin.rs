//! `spin crowd WORKERS MS`: that many busy processes, bound to the CPUs in turn.
//! `spin threads WORKERS MS`: the same as threads of one process.
//! `spin hold MS`: one real-time task that keeps its CPU, telling when.
//! `spin nested MS`: one busy process, in cgroups that the job itself made below its own.
//! `spin leave MS PROCS…`: one that is busy as long again after it has moved to other cgroups.

use std::{fs, thread, time::Duration};

use jobtrace_tests::{
    account::Account,
    own_cgroup::own_directory,
    work::{Work, enter, fork, monotonic_ns, pin, reap, spin},
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| words[index].parse::<u64>().unwrap();
    let time = |index: usize| Duration::from_millis(number(index));
    let mut work = Work::begin();
    match words[0].as_str() {
        "crowd" => work.crowd(number(1) as usize, |index| {
            pin(index);
            spin(time(2));
        }),
        "threads" => threads(&mut work, number(1) as usize, time(2)),
        "hold" => hold(&mut work, time(1)),
        "nested" => work.crowd(1, |_| {
            enter(&nested());
            spin(time(1));
        }),
        "leave" => leave(&mut work, time(1), &words[2..]),
        other => panic!("unknown work {other}"),
    }
    work.end();
}

/// Each thread reads its account last of all.
fn threads(work: &mut Work, count: usize, time: Duration) {
    let one = move |index| {
        pin(index);
        spin(time);
        Account::own()
    };
    let all: Vec<_> = (0..count).map(|index| thread::spawn(move || one(index))).collect();
    all.into_iter().for_each(|thread| work.add_children(thread.join().unwrap()));
}

fn hold(work: &mut Work, time: Duration) {
    pin(usize::MAX);
    let parameter = libc::sched_param { sched_priority: 1 };
    // SAFETY: sets the scheduling of the caller.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) };
    assert_eq!(set, 0, "SCHED_FIFO: {}", std::io::Error::last_os_error());
    let now = monotonic_ns;
    let (begin, before) = (now(), Account::own());
    spin(time);
    let (end, after) = (now(), Account::own());
    work.fact("held_from_ns", begin);
    work.fact("held_to_ns", end);
    work.fact("on_cpu_ns", after.on_cpu_ns - before.on_cpu_ns);
    work.fact(
        "switches",
        after.voluntary + after.involuntary - before.voluntary - before.involuntary,
    );
}

/// Cgroups two deep in every hierarchy that tells jobs apart.
fn nested() -> Vec<String> {
    let make = |controller: &&str| {
        let directory = own_directory(controller)?.join("step/task");
        fs::create_dir_all(&directory).unwrap();
        Some(directory.join("cgroup.procs").to_string_lossy().into_owned())
    };
    ["", "blkio"].iter().filter_map(make).collect()
}

fn leave(work: &mut Work, time: Duration, procs: &[String]) {
    let (mut tell, mut told) = ([0; 2], [0_u64; 2]);
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(tell.as_mut_ptr()) }, 0);
    let pid = fork(|| {
        spin(time);
        let inside = Account::own().on_cpu_ns;
        enter(procs);
        let words = [inside, Account::own().on_cpu_ns];
        // SAFETY: the pipe above, and two words.
        unsafe { libc::write(tell[1], words.as_ptr().cast(), size_of_val(&words)) };
        spin(time);
    });
    // SAFETY: as above.
    assert_eq!(unsafe { libc::read(tell[0], told.as_mut_ptr().cast(), size_of_val(&told)) }, 16);
    let (account, status) = reap(pid);
    assert_eq!(status, 0);
    work.fact("inside_ns", told[0]);
    work.fact("moved_ns", told[1]);
    work.fact("outside_ns", account.on_cpu_ns - told[1]);
}
