//! When a job began and ended is the kernel's word, however late the agent hears it; and whose a cgroup is
//! by the name that it has now.

use std::{
    fs,
    io::{Read, Write},
    process::{Child, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jobtrace_tests::{
    agent::{Agent, Points},
    agree::{Agreement, MS},
};

use super::{
    MOMENT,
    life::{forks, quiet},
    shaped::{Directories, Running, Shaped},
};

const TEST_JOB: &str = env!("CARGO_BIN_EXE_test_job");

fn wall_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn begin_and_end_are_told_as_they_were_though_nobody_looked() {
    const JOB: u32 = 9_400;
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    shaped.directory("slurm/uid_0");
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    agent.settle().unwrap();
    agent.signal(libc::SIGSTOP);
    let begin = wall_ns();
    let job = shaped.job(0, JOB, "");
    let made = wall_ns();
    job.run(&["sleep", "1"]);
    let ends = wall_ns();
    job.remove();
    let end = wall_ns();
    thread::sleep(Duration::from_secs(2));
    agent.signal(libc::SIGCONT);
    let name = JOB.to_string();
    agent.wait_for("its end", MOMENT, |points| points.fact(&name, "end")).unwrap();
    let points = agent.stop().unwrap();
    let fact = |field| points.info(&name).unwrap().number(field).unwrap();
    let mut agree = Agreement::new();
    // The clocks are read one after the other.
    agree.between("start", fact("start"), begin - MS..=made + MS);
    agree.between("end", fact("end"), ends - MS..=end + MS);
    agree.between(
        "on_cpu_ns of its life",
        fact("sched_on_cpu_ns"),
        1..=fact("end") - fact("start"),
    );
    agree.end();
}

/// A shell inside that forks ten times at each line it is told, and says when it has.
pub fn forker(directories: &Directories) -> Running {
    let script = "while read x; do i=0; while [ $i -lt 10 ]; do (:); i=$((i+1)); done; echo; done";
    let mut command = directories.command("sh");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    Running(command.spawn().unwrap())
}

/// Has it fork ten times.
pub fn fork_ten(forker: &mut Running) {
    let Child { stdin, stdout, .. } = &mut forker.0;
    stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
}

#[test]
fn a_directory_that_is_renamed_is_another_job() {
    const JOBS: [u32; 2] = [9_410, 9_411];
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let step = shaped.job(0, JOBS[0], "step_0");
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let mut forker = forker(&step);
    fork_ten(&mut forker);
    let of = |job: u32| step.0[0].parent().unwrap().with_file_name(format!("job_{job}"));
    let renamed = fs::rename(of(JOBS[0]), of(JOBS[1]));
    if controller.is_empty() {
        // Version 2 has no renaming.
        assert!(renamed.is_err());
        drop(forker);
        return shaped.remove_job(0, JOBS[0]);
    }
    renamed.unwrap();
    let names = JOBS.map(|job| job.to_string());
    let told = |points: &Points| points.fact(&names[0], "end").and(points.info(&names[1]).cloned());
    agent.wait_for("the end of one and the begin of the other", MOMENT, told).unwrap();
    fork_ten(&mut forker);
    drop(forker);
    shaped.remove_job(0, JOBS[1]);
    agent.wait_for("the other's end", MOMENT, |points| points.fact(&names[1], "end")).unwrap();
    let points = agent.stop().unwrap();
    assert_eq!(names.each_ref().map(|job| forks(&points, job)), [10, 10]);
    assert_eq!(points.own("dropped_slot"), 0);
}

/// Jobs that come and go while the agent attaches its programs, one after the other: what it did not see
/// is unknown, and what it may have seen a part of says so.
#[test]
fn jobs_while_the_programs_are_attached_are_not_told_as_idle() {
    const FIRST: u32 = 9_420;
    const FORKS: u64 = 5;
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    shaped.directory("slurm/uid_0");
    let (job, until) = (AtomicU32::new(FIRST), AtomicU32::new(u32::MAX));
    let (jobs, points) = thread::scope(|scope| {
        let jobs = scope.spawn(|| {
            while job.load(Ordering::Relaxed) < until.load(Ordering::Relaxed) {
                let id = job.load(Ordering::Relaxed);
                shaped.job(0, id, "").run(&[TEST_JOB, "forks", &FORKS.to_string()]);
                shaped.remove_job(0, id);
                job.store(id + 1, Ordering::Relaxed);
                // Each job's end costs the agent a grace period of the kernel's: hundreds would keep it for long.
                thread::sleep(Duration::from_millis(20));
            }
            FIRST..job.load(Ordering::Relaxed)
        });
        let agent = Agent::start(&format!("hierarchy = {hierarchy:?}"));
        // However slow the machine is, some begin from now on.
        until.store(job.load(Ordering::Relaxed) + 20, Ordering::Relaxed);
        let (jobs, agent) = (jobs.join().unwrap(), agent.unwrap());
        agent.settle().unwrap();
        (jobs, agent.stop().unwrap())
    });
    let (mut unseen, mut partly, mut whole) = (0, 0, 0);
    for job in jobs.clone().map(|job| job.to_string()) {
        let Some(info) = points.info(&job).filter(|info| info.number("end").is_some()) else {
            // Gone before the agent knew of any cgroup.
            continue;
        };
        let forks = info.number("sched_forks");
        match (info.number("counted_from"), forks) {
            // Also one that was gone before there was a slot for it.
            (_, None) => unseen += 1,
            (Some(_), Some(0..=FORKS)) => partly += 1,
            (None, Some(FORKS)) => whole += 1,
            other => panic!("{job} forked {FORKS} times, its end tells {other:?}"),
        }
    }
    eprintln!("of {} jobs {unseen} unseen, {partly} seen in part, {whole} whole", jobs.len());
    assert!(whole > 0, "some began after the agent did");
}

/// Jobs of a few milliseconds, more than there are slots for, while nobody looks: when each ended is known,
/// and of those without a slot nothing else.
#[test]
fn jobs_that_never_had_a_slot_have_an_end_and_no_values() {
    const JOBS: std::ops::Range<u32> = 9_700..9_720;
    const FORKS: u64 = 5;
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    shaped.directory("slurm/uid_0");
    let agent =
        Agent::start(&format!("hierarchy = {hierarchy:?}\nslots = 8\nspare_slots = 4")).unwrap();
    agent.settle().unwrap();
    agent.signal(libc::SIGSTOP);
    let lives: Vec<_> = JOBS
        .map(|job| {
            let begin = wall_ns();
            shaped.job(0, job, "").run(&[TEST_JOB, "forks", &FORKS.to_string()]);
            shaped.remove_job(0, job);
            begin..=wall_ns()
        })
        .collect();
    thread::sleep(Duration::from_secs(1));
    agent.signal(libc::SIGCONT);
    let all_ended = |points: &Points| {
        JOBS.into_iter().all(|job| points.fact(&job.to_string(), "end").is_some()).then_some(())
    };
    agent.wait_for("the end of all", MOMENT, all_ended).unwrap();
    let points = agent.stop().unwrap();
    let mut agree = Agreement::new();
    let mut counted = 0;
    for (job, life) in JOBS.zip(lives) {
        let info = points.info(&job.to_string()).unwrap();
        let (start, end) = (info.number("start").unwrap(), info.number("end").unwrap());
        agree.between(&format!("{job} start"), start, life.start() - MS..=life.end() + MS);
        agree.between(&format!("{job} end"), end, start..=life.end() + MS);
        match info.number("sched_forks") {
            None => assert_eq!(info.number("counted_from"), None, "{job}"),
            Some(forks) => {
                counted += 1;
                agree.exact(&format!("{job} forks"), forks, FORKS);
            }
        }
    }
    agree.between("jobs counted", counted, 1..=8);
    agree.exact("dropped_slot", points.own("dropped_slot"), JOBS.len() as u64 - counted);
    agree.end();
}
