//! Live ring: page faults against the kernel's rusage of the same processes, their times against each
//! other, and a child that the kernel kills for memory.

use jobtrace_tests::{
    account::stolen_ns,
    agree::{Agreement, MS, tried_again},
    disk::RamDisk,
    own_cgroup::OwnCgroup,
    sibling::Sibling,
    traced::{Traced, count_and_sum, program},
};

const TOUCH: &str = env!("CARGO_BIN_EXE_touch");

/// Faults of the workload's first process after it has counted them: it writes its report and ends.
const LAST_FAULTS: u64 = 40;
/// And those of them that are major, where the program's pages were given up meanwhile.
const LAST_MAJOR: u64 = 10;
const PAGE: u64 = 4096;

#[test]
fn minor_faults_are_rusages() {
    let command = [TOUCH, "fresh", "40000"];
    let sibling = Sibling::start(&command);
    let (job, report) = Traced::report(&["--faults", "major"], &command);
    sibling.end();
    let mut agree = Agreement::new();
    let minor = job.number("fault", "minor");
    agree.near("minor", minor, report.range(|all| all.minor), 0, LAST_FAULTS);
    agree.between("minor, pages touched", minor, 40_000..=40_000 + 1500);
    agree.near("major", job.number("fault", "major"), report.range(|all| all.major), 0, LAST_MAJOR);
    agree.exact("oom_kills", job.number("fault", "oom_kills"), 0);
    for absent in ["minor_latency_ns", "minor_sampled", "major_latency_ns", "latency_sample_every"]
    {
        assert!(job.json["fault"][absent].is_null(), "{absent} in {}", job.json["fault"]);
    }
    agree.end();
}

#[test]
fn one_minor_fault_in_sixty_one_is_timed() {
    let command = [TOUCH, "fresh", "122000"];
    let sibling = Sibling::start(&command);
    let (job, report) = Traced::report(&["--faults", "full"], &command);
    sibling.end();
    let mut agree = Agreement::new();
    let minor = job.number("fault", "minor");
    agree.near("minor", minor, report.range(|all| all.minor), 0, LAST_FAULTS);
    let every = job.number("fault", "latency_sample_every");
    agree.exact("latency_sample_every", every, 61);
    let hist = &job.json["fault"]["minor_latency_ns"];
    let (count, sum) = count_and_sum(hist);
    agree.exact("minor_sampled", job.number("fault", "minor_sampled"), count * every);
    // Every 61st of a CPU, whoever's: the job's share of the samples is its share of the faults, give or take
    // one where tasks take turns. (A switch withheld beside busy CPUs once gave 20 to 290 to nobody.)
    let expected = minor / every;
    agree.near("minor faults timed", count, expected..=expected, 1, 10);
    agree.between("p50", hist["p50"].as_u64().unwrap(), 200..=MS);
    agree.between("p90", hist["p90"].as_u64().unwrap(), hist["p50"].as_u64().unwrap()..=MS);
    agree.between("mean", sum / count, 200..=MS);
    agree.end();
}

/// Pages of a device of our own, first read by two processes one after the other, each of which takes
/// them from the page cache first.
fn major_faults(mode: &str) {
    const PAGES: u64 = 1500;
    let (disk, other) = (RamDisk::new(PAGES * PAGE), RamDisk::new(PAGES * PAGE));
    let sibling = Sibling::start(&[TOUCH, "file", &other.path(), "2"]);
    let stolen_before_ns = stolen_ns();
    let (job, report) = Traced::report(&["--faults", mode], &[TOUCH, "file", &disk.path(), "2"]);
    let stolen_ns = stolen_ns() - stolen_before_ns;
    sibling.end();
    let mut agree = Agreement::new();
    let major = job.number("fault", "major");
    agree.near("major", major, report.range(|all| all.major), 0, LAST_MAJOR);
    agree.between("major, pages touched", major, 2 * PAGES..=2 * PAGES + 50);
    agree.near(
        "minor",
        job.number("fault", "minor"),
        report.range(|all| all.minor),
        0,
        LAST_FAULTS,
    );
    let (waits, waited) = job.hist("fault", "major_wait_ns");
    // A page may have come by the time the task would wait for it.
    agree.between("major_wait_ns, count", waits, major * 9 / 10..=major);
    let (_, blocked) = job.hist("sched", "blocked_ns");
    agree.between("major_wait_ns, of blocked_ns", waited, blocked * 9 / 10..=blocked + MS);
    // Whoever reads the disk for it waits for a CPU as well.
    agree.between("mean major_wait_ns", waited / waits, 1000..=1000 * MS);
    let read = job.block_amount(&disk.name(), "read").0;
    agree.completed("bytes read", read, 2 * PAGES * PAGE, PAGE);
    agree.exact("bytes read by the sibling", job.block_amount(&other.name(), "read").0, 0);
    let timed = &job.json["fault"]["major_latency_ns"];
    if mode == "full" {
        let (count, took) = count_and_sum(timed);
        agree.between("major faults timed", count, major * 99 / 100..=major);
        let most = waited
            + job.hist("sched", "run_queue_wait_ns").1
            + job.number("sched", "on_cpu_ns")
            // Its fault goes on meanwhile, its time on CPU does not.
            + stolen_ns
            + MS;
        agree.between("major_latency_ns, more than the wait", took, waited * 99 / 100..=most);
        let quantile = |key: &str| timed[key].as_u64().unwrap();
        let wait = |key: &str| job.json["fault"]["major_wait_ns"][key].as_u64().unwrap();
        for key in ["p50", "p90"] {
            agree.between(key, quantile(key), wait(key)..=5000 * MS);
        }
    } else {
        assert!(timed.is_null(), "{timed}");
    }
    agree.end();
}

/// The same pages, first touched inside a system call: the kernel takes the fault on the task's behalf. Told
/// in full mode, which sees faults begin; in the other only faults taken in user mode have a known wait.
fn major_faults_in_system_calls(mode: &str) {
    const PAGES: u64 = 1500;
    let (disk, other) = (RamDisk::new(PAGES * PAGE), RamDisk::new(PAGES * PAGE));
    let sibling = Sibling::start(&[TOUCH, "handed", &other.path(), "2"]);
    let (job, report) = Traced::report(&["--faults", mode], &[TOUCH, "handed", &disk.path(), "2"]);
    sibling.end();
    let mut agree = Agreement::new();
    let major = job.number("fault", "major");
    agree.near("major", major, report.range(|all| all.major), 0, LAST_MAJOR);
    agree.between("major, pages touched", major, 2 * PAGES..=2 * PAGES + 50);
    let (waits, waited) = job.hist("fault", "major_wait_ns");
    let (_, blocked) = job.hist("sched", "blocked_ns");
    if mode == "full" {
        agree.between("major_wait_ns, count", waits, major * 9 / 10..=major);
        agree.between("major_wait_ns, of blocked_ns", waited, blocked * 9 / 10..=blocked + MS);
    } else {
        agree.between("major_wait_ns, count", waits, 0..=major - 2 * PAGES);
    }
    agree.end();
}

#[test]
fn major_faults_in_system_calls_are_timed_in_full_mode() {
    tried_again(|| major_faults_in_system_calls("full"));
}

#[test]
fn major_faults_in_system_calls_have_no_wait_in_the_other() {
    tried_again(|| major_faults_in_system_calls("major"));
}

#[test]
fn major_faults_are_rusages() {
    tried_again(|| major_faults("major"));
}

#[test]
fn major_faults_are_timed_in_full_mode() {
    tried_again(|| major_faults("full"));
}

#[test]
fn a_child_killed_for_memory() {
    let beyond = (1_u64 << 30).to_string();
    let (cgroup, beside) = (OwnCgroup::limited("oom", 384), OwnCgroup::limited("oom-beside", 64));
    let mut start = cgroup.inside();
    start.arg(program().unwrap());
    // Another victim, which is not the job's.
    let mut other = beside.inside();
    let mut other = other.args([TOUCH, "beyond", &beyond]).spawn().unwrap();
    let job = Traced::run_by(start, &[], &[TOUCH, "beyond", &beyond]);
    assert_eq!(other.wait().unwrap().code(), Some(137));
    let mut agree = Agreement::new();
    agree.exact("oom_kills", job.number("fault", "oom_kills"), 1);
    agree.exact("status", job.output.status.code().unwrap_or(-1) as u64, 137);
    let minor = job.number("fault", "minor");
    // The child touched what the limit left of 384 MiB, page by page.
    agree.between("minor", minor, (200 << 20) / PAGE..=(384 << 20) / PAGE + 2000);
    agree.end();
}
