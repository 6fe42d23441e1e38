//! Whole /proc/PID/cgroup files.

use jobtrace::resolve::{Resolver, Role};

#[test]
fn the_first_line_that_yields_a_job_decides() {
    let only_freezer = "\
12:memory:/system.slice/slurmd.service
11:freezer:/slurm/uid_7319/job_748468/step_0
10:cpu,cpuacct:/
1:name=systemd:/system.slice/slurmd.service
0::/
";
    let adopted = "\
12:freezer:/slurm/uid_5/job_6/step_extern
1:name=systemd:/user.slice/user-5.slice/session-3.scope
";
    let adopted_below = "\
1:name=systemd:/user.slice/user-5.slice/session-3.scope
12:freezer:/slurm/uid_5/job_6/step_extern
";
    let deeper = "\
5:freezer:/slurm/uid_5/job_6
4:cpuset:/slurm/uid_5/job_6/step_0
3:memory:/slurm/uid_5/job_6/step_0/task_2
";
    let other_step = "\
5:freezer:/slurm/uid_5/job_6/step_0
4:cpuset:/slurm/uid_5/job_6/step_1/task_2
";
    let resolver = Resolver::new(&[]).unwrap();
    for (text, job, step, task, begin) in [
        (only_freezer, "748468", Some("0"), None, "11:"),
        (adopted, "6", Some("extern"), None, "12:"),
        (adopted_below, "6", Some("extern"), None, "12:"),
        (deeper, "6", Some("0"), Some("2"), "5:"),
        (other_step, "6", Some("0"), None, "5:"),
        ("0::/a:b/lxc.payload/c:d\n", "c:d", None, None, "0:"),
    ] {
        let (answer, line) = resolver.deciding_line(text);
        let seen = (answer.job.as_str(), answer.step.as_deref(), answer.task.as_deref());
        assert_eq!(seen, (job, step, task), "{text}");
        assert!(line.unwrap().starts_with(begin), "{line:?}");
        assert_eq!(resolver.lines(text), answer);
    }
}

#[test]
fn without_a_job_the_manager_of_the_daemons_is_told() {
    let resolver = Resolver::new(&[]).unwrap();
    let text = "2:cpu:/\n1:name=systemd:/system.slice/slurmd.service\n";
    let (answer, line) = resolver.deciding_line(text);
    assert_eq!((answer.role, answer.manager.as_str()), (Role::NotAJob, "slurm"));
    assert_eq!(line, Some("1:name=systemd:/system.slice/slurmd.service"));
    for nothing in ["", "\n", "garbage", "1:two"] {
        let (answer, line) = resolver.deciding_line(nothing);
        assert_eq!((answer.rule.as_str(), line), ("unknown", None), "{nothing:?}");
    }
}
