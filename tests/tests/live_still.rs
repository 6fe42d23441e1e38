//! Live ring: banks of slots in which nothing moved are not read, and nothing that moves later is missed.

use std::{fs, process::Command, time::Duration};

use jobtrace::{
    model::source::Source,
    probes::{self, FaultMode, Options},
};
use jobtrace_tests::{
    account::Account,
    agent::Agent,
    probed::{cgroup, forks, tasks_directory},
    rig::shaped::{Running, Shaped},
    traced::program,
};

const ROUNDS: u64 = 30;
/// Readings without anything to read: the first two read the bank all the same.
const STILL: usize = 4;
const FORKS: u64 = 7;
const USER: u32 = 65_534;
const JOBS: u32 = 64;
const SECONDS: u32 = 6;

/// Its tasks have just ended, and some may not have left their CPU: what they did is there at once.
#[test]
fn what_a_job_does_after_a_rest_is_in_the_next_reading() {
    let (job, sibling) = (cgroup("still-job"), cgroup("still-sibling"));
    let options = Options {
        object: std::env::var_os("JOBTRACE_BPF_OBJECT").map(Into::into),
        ..Options::new(FaultMode::Major)
    };
    let mut probes =
        probes::load(&job.layout(), &options).unwrap_or_else(|error| panic!("{error}"));
    let [of_job, of_sibling] = [&job, &sibling].map(|cgroup| {
        let block = cgroup.block().map(|block| block.id);
        probes.slots.track(cgroup.tasks().id, block).expect("a free slot")
    });
    let directory = tasks_directory(&job);
    let script = format!(
        "echo 0 > {}/cgroup.procs; i=0; while [ $i -lt {FORKS} ]; do (:); i=$((i + 1)); done",
        directory.display()
    );
    for round in 1..=ROUNDS {
        let status = Command::new("sh").args(["-c", &script]).status().expect("sh");
        assert!(status.success(), "{status}");
        for reading in 0..=STILL {
            let snapshot = probes.snapshot().expect("a snapshot").expect("probes never end");
            let told = [of_job, of_sibling].map(|lease| forks(&snapshot, lease));
            assert_eq!(told, [round * FORKS, 0], "round {round}, reading {reading}");
        }
    }
}

/// By what strace sees of the agent's calls.
#[test]
fn the_banks_of_jobs_that_rest_are_not_read() {
    let shaped = Shaped::make(&[""]);
    let agent = Agent::start_by(
        Command::new(program().unwrap()),
        "hierarchy = \"v2\"\ninterval = \"1s\"\ncensus = \"off\"",
    )
    .unwrap();
    let start = |number| {
        let job = shaped.job(USER, 7_000 + number, "");
        Running(job.command("sleep").arg("600").spawn().unwrap())
    };
    let _running: Vec<_> = (0..JOBS).map(start).collect();
    agent.settle().unwrap();
    // Young jobs move: their tasks fall asleep, and what moved is read twice.
    std::thread::sleep(Duration::from_secs(4));
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let mut strace = Command::new("timeout");
    strace.args(["-s", "INT", &SECONDS.to_string(), "strace", "-f", "-e", "trace=bpf", "-o"]);
    strace.arg(&calls).args(["-p", &agent.pid().to_string()]);
    let output = strace.output().expect("timeout");
    let calls = fs::read_to_string(&calls).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let of_readings = calls.lines().filter(|line| line.contains("BPF_MAP_LOOKUP_ELEM")).count();
    println!("{of_readings} elements of maps were read in {SECONDS} s with {JOBS} jobs");
    assert!(of_readings >= SECONDS as usize, "the agent reads once a second: {calls}");
    let most = (JOBS * SECONDS / 2) as usize;
    assert!(of_readings < most, "{of_readings} elements of maps were read, {most} at most");
}

/// The thread that answers has no clock of its own.
#[test]
fn nobody_asks_and_nothing_is_woken_for_it() {
    let interval = "interval = \"10s\"";
    let agent = Agent::start_by(Command::new(program().unwrap()), interval).unwrap();
    agent.settle().unwrap();
    let threads = fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
    let tasks: Vec<i32> = threads
        .map(|thread| thread.unwrap().file_name().into_string().unwrap().parse().unwrap())
        .filter(|task| fs::read_to_string(format!("/proc/{task}/comm")).unwrap() == "query\n")
        .collect();
    let [task] = tasks[..] else { panic!("one thread answers: {tasks:?}") };
    let before = Account::of(task).voluntary;
    std::thread::sleep(Duration::from_secs(4));
    let woken = Account::of(task).voluntary - before;
    assert_eq!(woken, 0, "by nobody, in 4 s");
}
