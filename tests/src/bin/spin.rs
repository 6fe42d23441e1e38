//! `spin crowd WORKERS MS`: that many busy processes, bound to the CPUs in turn.
//! `spin threads WORKERS MS`: the same as threads of one process.
//! `spin uneven MS…`: processes that run for so long each, bound to the CPUs in turn.
//! `spin hold MS`: one real-time task that keeps its CPU, telling when.
//! `spin nested MS`: one busy process, in cgroups that the job itself made below its own.
//! `spin leave MS PROCS…`: one that is busy as long again after it has moved to other cgroups.
//! `spin slip MS PROCS…`: the same, and the move itself does not wait.
//! `spin expelled MS PROCS…`: one that hardly leaves its CPU while another moves it there and back, again and again.
//! `spin alone MS`: one process that runs for so long, however long it waits for its CPU.
//! `spin successor LEADER_MS MS COMMAND…`: runs for so long in its first thread, then in another, which
//! then executes COMMAND.

use std::{fs, os::unix::process::CommandExt, process::Command, thread, time::Duration};

use jobtrace_tests::{
    account::{Account, stolen_ns},
    own_cgroup::own_directory,
    work::{Work, enter, fork, keep_cpu, monotonic_ns, pin, reap, spin, spin_on_cpu},
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| words[index].parse::<u64>().unwrap();
    let time = |index: usize| Duration::from_millis(number(index));
    let mut work = Work::begin();
    let stolen = stolen_ns();
    match words[0].as_str() {
        "crowd" => work.crowd(number(1) as usize, |index| {
            pin(index);
            spin(time(2));
        }),
        "threads" => threads(&mut work, number(1) as usize, time(2)),
        "uneven" => work.crowd(words.len() - 1, |index| {
            pin(index);
            spin_on_cpu(time(1 + index));
        }),
        "hold" => hold(&mut work, time(1)),
        "nested" => work.crowd(1, |_| {
            enter(&nested());
            spin(time(1));
        }),
        "leave" => leave(&mut work, time(1), &words[2..]),
        "slip" => {
            let mover = keep_moving();
            leave(&mut work, time(1), &words[2..]);
            end(mover);
        }
        "expelled" => expelled(&mut work, time(1), &words[2..]),
        "alone" => spin_on_cpu(time(1)),
        "successor" => successor(time(1), time(2), &words[3..]),
        other => panic!("unknown work {other}"),
    }
    work.fact("stolen_ns", stolen_ns().saturating_sub(stolen));
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
    keep_cpu(1);
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

/// The first thread waits for its successor, and is gone when that executes its program.
fn successor(first: Duration, second: Duration, command: &[String]) -> ! {
    spin_on_cpu(first);
    let command = command.to_vec();
    let thread = thread::spawn(move || {
        spin_on_cpu(second);
        let error = Command::new(&command[0]).args(&command[1..]).exec();
        panic!("cannot execute {command:?}: {error}");
    });
    let _ = thread.join();
    unreachable!("the thread became another program");
}

/// The first of several moves waits until every CPU has switched; one right after another does not.
fn keep_moving() -> i32 {
    let own = own_directory("").expect("cgroup v2 is mounted").join("cgroup.procs");
    fork(|| {
        loop {
            enter(&[own.to_string_lossy().into_owned()]);
            thread::sleep(Duration::from_millis(1));
        }
    })
}

fn end(pid: i32) {
    // SAFETY: ends a child of ours.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    reap(pid);
}

/// Turns outside the job, and one more inside.
const TURNS: u32 = 4;

/// The first of the cgroups on either side is the one that tells jobs apart; the kernel's own account is
/// in another. What the child runs while it is in one but not the other is reported.
fn expelled(work: &mut Work, time: Duration, outside: &[String]) {
    let own = ["", "cpuacct"].into_iter().filter_map(own_directory);
    let own = own.map(|directory| directory.join("cgroup.procs").to_string_lossy().into_owned());
    let own: Vec<String> = own.collect();
    pin(0);
    let pid = fork(|| {
        pin(1);
        // No real-time priority: the kernel's own tasks, which a move waits for, could not run.
        // SAFETY: sets the priority of the caller.
        assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) }, 0);
        spin((2 * TURNS + 1) * time);
    });
    let mover = keep_moving();
    let mut apart = 0;
    for turn in 0..2 * TURNS {
        thread::sleep(time);
        let (first, others) = if turn % 2 == 0 { outside } else { &own }.split_first().unwrap();
        fs::write(first, pid.to_string()).unwrap();
        let before = Account::of(pid).on_cpu_ns;
        others.iter().for_each(|file| fs::write(file, pid.to_string()).unwrap());
        apart += Account::of(pid).on_cpu_ns - before;
    }
    end(mover);
    work.fact("apart_ns", apart);
    assert_eq!(work.reap(pid), 0);
}

fn leave(work: &mut Work, time: Duration, procs: &[String]) {
    let (mut tell, mut told) = ([0; 2], [0_u64; 2]);
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(tell.as_mut_ptr()) }, 0);
    let pid = fork(|| {
        keep_cpu(1);
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
