//! `jobtrace run` on a node with an agent: each works, and they agree on the command.

use std::{collections::BTreeSet, time::Duration};

use jobtrace_tests::{
    agree::{Agreement, MS},
    daemon::{Setup, files},
    rig::workload::workload,
    traced::Traced,
};

#[test]
fn run_and_agent_agree_on_a_command() {
    let setup = Setup::new("").unwrap();
    let mut agent = setup.start().unwrap();
    let spin = workload("spin").unwrap();
    let forks = workload("test_job").unwrap();
    let (spin, forks) = (spin.to_str().unwrap(), forks.to_str().unwrap());
    let script = format!("{spin} crowd 2 600 >/dev/null; {forks} forks 40");
    let run = Traced::run(&[], &["sh", "-c", &script]);
    // The last switch of the last task comes after its parent has been told.
    std::thread::sleep(Duration::from_millis(50));
    agent.end_well().unwrap();

    let points = files::points(&setup.outbox()).unwrap();
    let of_run = points.keys().filter(|(_, tags, _)| tags.get("manager") == Some(&"run".into()));
    let jobs: BTreeSet<_> = of_run.map(|(_, tags, _)| tags["job"].clone()).collect();
    let job = run.json["job"]["job"].as_str().unwrap_or_else(|| panic!("no job in {}", run.json));
    // The agent knows it by its cgroup, which begins with jobtrace's process id as the job's name does.
    let (pid, _) = job.split_once('-').unwrap();
    let is_it = |job: &&String| job.split_once('-').is_some_and(|(first, _)| first == pid);
    let job = jobs.iter().find(is_it).unwrap_or_else(|| panic!("{job:?} is not among {jobs:?}"));
    let sum = |measurement, field| files::sum(&points, measurement, job, field);
    let mut agreement = Agreement::new();
    let truth = run.number("sched", "on_cpu_ns");
    agreement.near("on_cpu_ns", sum("job_sched", "on_cpu_ns"), truth..=truth, 1, 2 * MS);
    for field in ["forks", "execs"] {
        agreement.exact(field, sum("job_sched", field), run.number("sched", field));
    }
    for field in ["switches_voluntary", "switches_involuntary", "migrations"] {
        let truth = run.number("sched", field);
        agreement.near(field, sum("job_sched", field), truth..=truth, 1, 3);
    }
    let truth = run.number("fault", "minor");
    agreement.near("minor", sum("job_fault", "minor"), truth..=truth, 1, 10);
    let (_, truth) = run.hist("sched", "run_queue_wait_ns");
    let ours = sum("job_sched", "run_queue_wait_ns_sum");
    agreement.near("run_queue_wait_ns", ours, truth..=truth, 2, 2 * MS);
    agreement.end();
}
