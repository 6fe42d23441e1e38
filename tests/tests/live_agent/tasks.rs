//! How many tasks a job has, where the kernel may only list them.

use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::{agent::Agent, agree::tried_again, rig::shaped::Running};

use super::shaped::Shaped;

/// Threads that come, and how long they stay, s.
const THREADS: u64 = 5;
const STAY_S: u64 = 2;

/// Never at rest. Older than what is young when the threads come, which wait and execute nothing.
const PROGRAM: &str = "
import sys, threading, time
def work(s):
    until = time.monotonic() + s
    while time.monotonic() < until:
        time.sleep(0.05)
work(12)
ends = threading.Event()
threads = [threading.Thread(target=ends.wait) for _ in range(int(sys.argv[1]))]
[thread.start() for thread in threads]
work(int(sys.argv[2]))
ends.set()
[thread.join() for thread in threads]
work(6)
";

#[test]
fn tasks_of_a_job_that_works_are_known_in_each_interval() {
    // A run of a program that the kernel withholds is not seen, and tasks are then as unknown as they were.
    tried_again(|| {
        let memory = Hierarchies::read().unwrap().v1("memory").map(|_| "memory");
        let shaped = Shaped::make(&[""].into_iter().chain(memory).collect::<Vec<_>>());
        let agent = Agent::start("hierarchy = \"v2\"").unwrap();
        let (job, other) = (shaped.job(0, 92, "step_0"), shaped.job(0, 93, "step_0"));
        let mut beside = Running(other.command("sleep").arg("600").spawn().unwrap());
        let [threads, stay] = [THREADS, STAY_S].map(|number| number.to_string());
        job.run(&["python3", "-c", PROGRAM, &threads, &stay]);
        beside.0.kill().unwrap();
        beside.0.wait().unwrap();
        let points = agent.stop().unwrap();
        shaped.remove_job(0, 92);
        shaped.remove_job(0, 93);
        for (job, ended) in [("92", THREADS), ("93", 0)] {
            let sched = points.of(job).filter(|point| point.measurement == "job_sched");
            let of_intervals =
                sched.map(|point| point.number("thread_exits").expect("always known"));
            assert_eq!(of_intervals.sum::<u64>(), ended, "{job}");
        }
        let tasks = |job| -> Vec<u64> {
            let cpu = points.of(job).filter(|point| point.measurement == "job_cpu");
            cpu.map(|point| point.number("tasks").expect("known in each interval")).collect()
        };
        let mut told = tasks("92");
        // The last intervals may be after its end.
        while told.last() == Some(&0) {
            told.pop();
        }
        let count = |tasks: u64| told.iter().filter(|told| **told == tasks).count() as u64;
        let (few, many) = (count(1), count(1 + THREADS));
        // Without a sign of their end they would be told to the end.
        assert!((STAY_S - 1..=STAY_S + 1).contains(&many), "{told:?}");
        // One each that saw them come or end.
        assert!(few + many + 2 >= told.len() as u64 && few >= 12, "{told:?}");
        assert_eq!(told.last(), Some(&1), "{told:?}");
        let beside = tasks("93");
        let before_its_end = beside.iter().rev().skip_while(|told| **told == 0);
        assert!(beside.len() >= 16 && before_its_end.skip(1).all(|told| *told <= 1), "{beside:?}");
        assert!(beside.iter().filter(|told| **told == 1).count() >= 14, "{beside:?}");
    });
}
