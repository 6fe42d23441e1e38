//! Jobs that come and go: shorter than any reading, older than the agent, more than there are slots for.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use jobtrace::{cgroup::hierarchies::Hierarchies, model::tables::fact, record::running};
use jobtrace_tests::{
    account::Account,
    agent::{Agent, Points},
    agree::{Agreement, MS},
    rig::wait_for,
};

use super::{
    MOMENT,
    shaped::{Directories, Running, Shaped},
    times::{fork_ten, forker},
};

const TEST_JOB: &str = env!("CARGO_BIN_EXE_test_job");
const SPIN: &str = env!("CARGO_BIN_EXE_spin");

/// A hierarchy that no scheduler's jobs are told apart by, so that no other jobs are in it; and the
/// controller of its directories.
pub fn quiet() -> (&'static str, &'static str) {
    let has_pids = Hierarchies::read().unwrap().v1("pids").is_some();
    if has_pids { ("pids", "pids") } else { ("v2", "") }
}

pub fn forks(points: &Points, job: &str) -> u64 {
    points.sum(job, "job_sched", "forks")
}

#[test]
fn jobs_of_a_few_milliseconds_are_counted_whole() {
    const FIRST: u32 = 9_100;
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    // The sibling's own directory is no job's.
    let beside = shaped.directory("beside");
    shaped.directory("slurm/uid_0");
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let begin = Instant::now();
    for number in 0..50 {
        let job = shaped.job(0, FIRST + number, "");
        job.run(&[TEST_JOB, "forks", &(10 + number).to_string()]);
        job.remove();
    }
    eprintln!("fifty jobs, each in {:?}", begin.elapsed() / 50);
    beside.run(&[TEST_JOB, "forks", "7"]);
    let points = agent.stop().unwrap();
    let mut agree = Agreement::new();
    for number in 0..50 {
        let job = (FIRST + number).to_string();
        agree.exact(&format!("{job} forks"), forks(&points, &job), 10 + u64::from(number));
        agree.exact(&format!("{job} execs"), points.sum(&job, "job_sched", "execs"), 1);
        assert_eq!(points.tags(&job, "job_sched", "user"), ["root"].into(), "{job}");
        assert!(points.fact(&job, "end").is_some(), "{job} has ended");
    }
    agree.between("_system forks", forks(&points, "_system"), 57..=1_000_000);
    agree.exact("no slot", points.own("dropped_slot"), 0);
    agree.end();
}

#[test]
fn a_job_that_was_there_before_and_one_that_moves_on() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let [old, gone, first, second] =
        [9_201, 9_202, 9_203, 9_204].map(|job| shaped.job(0, job, "step_0"));
    let sleeper = |directories: &Directories, job: &str| {
        let mut command = directories.command("sleep");
        let names =
            [("SLURM_JOB_ID", job), ("SLURM_JOB_NAME", "old one"), ("SLURM_JOB_ACCOUNT", "geo")];
        Running(command.arg("607").envs(names).spawn().unwrap())
    };
    let running = sleeper(&old, "9201");
    let other = sleeper(&gone, "9202");
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let info = agent.wait_for("the old job's facts", MOMENT, |points| points.info("9201").cloned());
    let info = format!("{:?}", info.unwrap().fields);
    assert!(info.contains("old one") && info.contains("geo"), "{info}");

    // Its end comes while nobody looks.
    agent.signal(libc::SIGSTOP);
    drop(other);
    gone.remove();
    shaped.remove_job(0, 9_202);
    agent.signal(libc::SIGCONT);
    agent.wait_for("the end of one", MOMENT, |points| points.fact("9202", "end")).unwrap();

    // Twenty forks as the one, thirty as the other.
    let script = format!(
        "i=0; while [ $i -lt 20 ]; do (:); i=$((i+1)); done; echo $$ > {}/cgroup.procs; \
         while [ $i -lt 50 ]; do (:); i=$((i+1)); done",
        second.0[0].display()
    );
    first.run(&["sh", "-c", &script]);
    shaped.remove_job(0, 9_203);
    shaped.remove_job(0, 9_204);
    let points = agent.stop().unwrap();
    assert_eq!((forks(&points, "9203"), forks(&points, "9204")), (20, 30));
    assert_eq!(points.fact("9201", "end"), None, "it runs still");
    assert_eq!((forks(&points, "9201"), forks(&points, "9202")), (0, 0));
    drop(running);
}

/// Nothing takes the CPU from it, for most of a second: as from a rank that is alone on its own.
#[test]
fn a_task_that_runs_on_is_counted_from_the_agents_start_on() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let bound = rustix::thread::sched_getaffinity(None).unwrap();
    let last = (0..1024).rfind(|cpu| bound.is_set(*cpu)).unwrap();
    let pinned = ["--cpu-list", &last.to_string(), "chrt", "--fifo", "10", SPIN, "alone", "600000"];
    let mut spin = shaped.job(0, 9_206, "").command("taskset");
    let mut spin = Running(spin.args(pinned).spawn().unwrap());
    let on_cpu_ns = |spin: &Running| Account::of(spin.0.id().cast_signed()).on_cpu_ns;
    let before = on_cpu_ns(&spin);
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let traced = on_cpu_ns(&spin);
    // By then the kernel has taken the CPU from it.
    thread::sleep(Duration::from_secs(2));
    spin.0.kill().unwrap();
    // A zombie's account is whole.
    thread::sleep(Duration::from_millis(200));
    let end = on_cpu_ns(&spin);
    drop(spin);
    let points = agent.stop().unwrap();
    shaped.remove_job(0, 9_206);
    assert!(end - traced > 1_000 * MS, "it ran for {} ns", end - traced);
    let mut agree = Agreement::new();
    let told = points.sum("9206", "job_sched", "on_cpu_ns");
    agree.between("on_cpu_ns", told, end - traced - 20 * MS..=end - before + 4 * MS);
    agree.end();
}

/// Its directories are removed and made anew at once, and nothing in them tells whether that is the same job: what it used
/// in its second life is told once it is over, and no peak falls.
#[test]
fn what_a_job_used_is_told_though_its_directories_were_made_anew() {
    const JOB: u32 = 9_430;
    const MIB: u64 = 1 << 20;
    if Hierarchies::read().unwrap().v1("memory").is_none() {
        assert!(Agent::start("hierarchy = \"memory\"").is_err(), "there is none");
        return;
    }
    let shaped = Shaped::make(&["memory"]);
    shaped.directory("slurm/uid_0");
    let agent = Agent::start("hierarchy = \"memory\"").unwrap();
    agent.settle().unwrap();
    // Gives the kernel's peak.
    let live = |mib: u64| {
        let job = shaped.job(0, JOB, "");
        let bytes = mib * MIB;
        let script = format!("x=$(head -c {bytes} /dev/zero | tr '\\0' x); sleep 2.5; :");
        job.run(&["sh", "-c", &script]);
        let peak = fs::read_to_string(job.0[0].join("memory.max_usage_in_bytes")).unwrap();
        job.remove();
        peak.trim().parse::<u64>().unwrap()
    };
    let (first, second) = (live(1), live(40));
    let points = agent.stop().unwrap();
    let name = JOB.to_string();
    let memory = points.of(&name).filter(|point| point.measurement == "job_memory");
    let peaks: Vec<_> = memory.filter_map(|point| point.number("peak_bytes")).collect();
    assert!(peaks.is_sorted(), "{peaks:?}");
    assert!(first < second, "{first} {second}");
    let mut agree = Agreement::new();
    agree.exact("peak_bytes of both", peaks.last().copied().unwrap_or(0), second);
    // At least as long as it slept, at most the peak all the time.
    let used = points.sum(&name, "job_memory", "used_byte_s");
    agree.between("used_byte_s", used, 40 * MIB * 2..=second * 8);
    agree.end();
}

/// A scheduler may make it when it starts the first step.
#[test]
fn a_directory_that_comes_later_than_the_others_is_read() {
    const JOBS: [u32; 2] = [9_440, 9_441];
    const LIMIT: u64 = 64 << 20;
    let found = Hierarchies::read().unwrap();
    if found.v1("memory").is_none() || found.v1("pids").is_none() {
        assert!(Agent::start("hierarchy = \"memory\"").is_err(), "there is none");
        return;
    }
    let shaped = Shaped::make(&["pids", "memory"]);
    let tops = shaped.directory("").0;
    let at = |top: usize, job: u32| tops[top].join(format!("slurm/uid_0/job_{job}"));
    let agent = Agent::start("hierarchy = \"pids\"").unwrap();
    agent.settle().unwrap();
    let _running = JOBS.map(|job| {
        fs::create_dir_all(at(0, job)).unwrap();
        let of_it = Directories(vec![at(0, job)]);
        Running(of_it.command("sleep").arg("600").spawn().unwrap())
    });
    // Longer than the first looks at where a job's files are.
    (0..2).for_each(|_| drop(agent.settle().unwrap()));
    let late = at(1, JOBS[0]);
    fs::create_dir_all(&late).unwrap();
    fs::write(late.join("memory.limit_in_bytes"), LIMIT.to_string()).unwrap();
    let told = |points: &Points, job: u32| {
        let job = job.to_string();
        let of_it = points.of(&job).filter(|point| point.measurement == "job_memory");
        of_it.filter_map(|point| point.number("limit_bytes")).next_back()
    };
    let limit =
        agent.wait_for("the limit", Duration::from_secs(20), |points| told(points, JOBS[0]));
    assert_eq!(limit.unwrap(), LIMIT);
    assert_eq!(told(&agent.stop().unwrap(), JOBS[1]), None, "the other one has none");
}

#[test]
fn more_jobs_than_slots() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    shaped.directory("slurm/uid_0");
    let agent =
        Agent::start(&format!("hierarchy = {hierarchy:?}\nslots = 8\nspare_slots = 2")).unwrap();
    let names: Vec<String> = (9_300..9_312).map(|job| job.to_string()).collect();
    let mut forkers: Vec<_> =
        (9_300..9_312).map(|job| Some(forker(&shaped.job(0, job, "")))).collect();
    let settled = agent.settle().unwrap();
    assert!(settled.own("dropped_slot") >= 4, "it is counted: {}", settled.own("dropped_slot"));
    let system = forks(&settled, "_system");
    forkers.iter_mut().flatten().for_each(fork_ten);
    let points = agent.settle().unwrap();
    let counted: Vec<u64> = names.iter().map(|job| forks(&points, job)).collect();
    let with: Vec<usize> = (0..12).filter(|index| counted[*index] > 0).collect();
    eprintln!("{} of 12 jobs had a slot: {counted:?}", with.len());
    assert!((4..=8).contains(&with.len()), "{counted:?} of {:?}", points.jobs());
    assert!(with.iter().all(|index| counted[*index] == 10), "{counted:?}");
    let missed = 10 * (12 - with.len() as u64);
    assert!(forks(&points, "_system") >= system + missed, "the others' are the node's");

    // Those with a slot end; the others get theirs.
    for index in &with {
        forkers[*index] = None;
        shaped.remove_job(0, 9_300 + *index as u32);
    }
    let is_served = |name: &String| {
        let now = running::records(&agent.socket(), name).unwrap_or_default();
        now.iter().any(|record| record.facts.has(const { fact("counted_from") }))
    };
    let waiting = || (0..12).filter(|index| !with.contains(index)).map(|index| &names[index]);
    let all_served = || waiting().all(is_served).then_some(());
    wait_for("slots for those that waited", MOMENT, all_served).unwrap();
    forkers.iter_mut().flatten().for_each(fork_ten);
    let points = agent.stop().unwrap();
    let late: Vec<u64> = names.iter().map(|job| forks(&points, job)).collect();
    assert_eq!(late, [10; 12], "{late:?}");
    for index in with {
        assert_eq!(points.info(&names[index]).unwrap().number("sched_forks"), Some(10));
    }
}
