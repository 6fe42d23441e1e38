//! Containers of runc, where their engines put them, and one in a job of Slurm's.

use jobtrace::resolve::Resolver;
use jobtrace_tests::{
    agent::Agent,
    agree::{Agreement, MS},
    rig::{
        container::{Container, Kind},
        workload::{self, Amounts},
    },
};

use super::{
    MOMENT,
    life::{forks, quiet},
    shaped::Shaped,
};

const TEST_JOB: &str = env!("CARGO_BIN_EXE_test_job");
/// What runc does inside before the program is executed.
const SETTING_UP_NS: u64 = 400 * MS;

#[test]
fn containers_are_jobs_of_their_engines() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let program = workload::workload("amounts").unwrap();
    let amounts = Amounts { read_mib: 0, cpu_ms: 100, pages: 3000 };
    let words = amounts.words(std::path::Path::new("/none")).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let kinds = [(Kind::Docker, "docker"), (Kind::Podman, "podman"), (Kind::Kubernetes, "k8s")];
    let mut ran = Vec::new();
    for (kind, manager) in kinds {
        let mut container = Container::start(kind, &words, &[program.parent().unwrap()]).unwrap();
        let cgroup = container.cgroup().to_owned();
        ran.push((manager, cgroup, workload::report(&container.wait(MOMENT).unwrap()).unwrap()));
    }
    // A container of a job of Slurm's is that job's.
    let inside = format!("slurm/uid_65534/job_9701/step_0/docker/{}", "ab".repeat(32));
    let inside = shaped.directory(inside);
    inside.run(&[TEST_JOB, "forks", "12"]);
    shaped.remove_job(65_534, 9_701);
    let points = agent.stop().unwrap();

    let mut agree = Agreement::new();
    let resolver = Resolver::new(&[]).unwrap();
    for (manager, cgroup, report) in ran {
        let answer = resolver.path(&cgroup);
        let job = answer.job.as_str();
        assert_eq!(answer.manager, manager, "{cgroup}");
        assert_eq!(points.tags(job, "job_sched", "manager"), [manager].into(), "{cgroup}");
        // Its root is nobody in particular.
        assert_eq!(points.tags(job, "job_sched", "user"), [""].into(), "{cgroup}");
        assert_eq!(points.fact(job, "container"), answer.container, "{cgroup}");
        let (low, high) = report.range(|all| all.on_cpu_ns).into_inner();
        let ours = points.sum(job, "job_sched", "on_cpu_ns");
        agree.between(
            &format!("{manager} on_cpu_ns"),
            ours,
            low * 99 / 100..=high * 101 / 100 + SETTING_UP_NS,
        );
        let (low, high) = report.range(|all| all.minor).into_inner();
        agree.between(
            &format!("{manager} minor"),
            points.sum(job, "job_fault", "minor"),
            low..=high + 5000,
        );
        agree.between(&format!("{manager} forks"), forks(&points, job), 1..=60);
        assert!(points.fact(job, "end").is_some(), "{cgroup} has ended");
    }
    agree.exact("forks of the job around a container", forks(&points, "9701"), 12);
    assert_eq!(points.tags("9701", "job_sched", "manager"), ["slurm"].into());
    assert_eq!(points.tags("9701", "job_sched", "user"), ["nobody"].into());
    agree.end();
}
