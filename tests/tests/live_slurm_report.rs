//! Live ring: reports of real Slurm jobs: what Slurm knows of them, their tasks by name, and ten lines at the end of
//! their own log.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use jobtrace_tests::{
    agent::Agent,
    rig::{
        folder,
        slurm::{JobId, Mode, Slurm},
        wait_for,
    },
    traced::program,
    work::Pages,
};
use serde_json::Value;

const MOMENT: Duration = Duration::from_secs(40);
/// Of two tasks the second one works, and then both stay until they have been read.
const UNEVEN: &str = "srun --overlap --ntasks=2 sh -c '\
    if [ $SLURM_PROCID = 1 ]; then timeout 3 sh -c \"while :; do :; done\"; fi; sleep 5'; exit 3";
const EPILOG: &str = include_str!("../../docs/epilogs/slurm-task-epilog.sh");

/// What `jobtrace report` prints of a job, on the node where it ran.
fn report(slurm: &Slurm, agent: &Agent, job: JobId, words: &[&str]) -> String {
    let mut command = slurm.command(program().unwrap().to_str().unwrap());
    command.args(["report", &job.to_string()]).args(words);
    command.arg("--from").arg(agent.records_dir()).arg("--socket").arg(agent.socket());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(slurm: &Slurm, agent: &Agent, job: JobId, words: &[&str]) -> Value {
    let text = report(slurm, agent, job, &[&["--json"], words].concat());
    serde_json::from_str(&text).unwrap()
}

/// The epilog as an administrator installs it, which reads from an agent that starts later: of the test's own.
fn install_epilog(place: &Path, to: &Path) -> String {
    let (program, place) = (program().unwrap(), place.display());
    let command = format!(
        "{} report --from $(cat {place}.records) --socket $(cat {place}.socket)",
        program.display()
    );
    assert!(EPILOG.contains("/usr/bin/jobtrace report"));
    fs::write(to, EPILOG.replace("/usr/bin/jobtrace report", &command)).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).unwrap();
    format!("TaskEpilog={}", to.display())
}

#[test]
fn slurm_tells_the_rest_of_a_job_and_its_log_ends_with_ten_lines() {
    let place = folder("epilog").unwrap();
    let files = place.path().join("agent");
    let epilog = install_epilog(&files, &place.path().join("epilog.sh"));
    // An epilog has five seconds, in which none is for a disk.
    let _held = Pages::held_file(&program().unwrap());
    let slurm = Slurm::start_with(Mode::V2, &epilog).unwrap();
    let agent = Agent::start("hierarchy = \"v2\"").unwrap();
    fs::write(files.with_extension("records"), agent.records_dir().to_str().unwrap()).unwrap();
    fs::write(files.with_extension("socket"), agent.socket().to_str().unwrap()).unwrap();

    let options = ["--ntasks=2", "--mem=100", "--time=7", "--job-name=uneven"];
    let uneven = slurm.sbatch(UNEVEN, &options).unwrap();
    let cancelled = slurm.sbatch("exec sleep 601", &[]).unwrap();
    let running = || (slurm.job_state(cancelled).ok()?.state == "RUNNING").then_some(());
    wait_for("the job to be cancelled", MOMENT, running).unwrap();
    slurm.wait(uneven).unwrap();
    // The epilog asked while the job was there still.
    let log = wait_for("ten lines in the job's log", MOMENT, || {
        slurm.output(uneven).ok().filter(|text| text.contains("all of it: "))
    });
    let log = log.unwrap_or_else(|error| panic!("{error}: {:?}", slurm.output(uneven)));
    let said: Vec<_> = log.lines().skip_while(|line| !line.starts_with("jobtrace: ")).collect();
    assert!((4..=10).contains(&said.len()), "once, not for each step: {log}");
    assert!(said[0].starts_with("jobtrace: uneven so far, after "), "{log}");
    // Neither cores nor memory are limited in the rig's v2, so that there is no share of them.
    assert!(said[1].starts_with("  * ") || said[1].starts_with("  • "), "{log}");
    let last =
        format!("  all of it: jobtrace report {uneven} --from {}", agent.records_dir().display());
    assert_eq!(said.last(), Some(&last.as_str()), "{log}");

    slurm.scancel(cancelled).unwrap();
    for job in [uneven, cancelled] {
        slurm.wait(job).unwrap();
        let gone = || slurm.job_cgroups(job).is_empty().then_some(());
        wait_for("a job's last directory", MOMENT, gone).unwrap();
        let saved = || agent.recorded().ok().filter(|jobs| jobs.contains(&job.to_string()));
        wait_for("its record", MOMENT, saved).unwrap();
    }
    let told = json(&slurm, &agent, uneven, &[]);
    let scheduler = &told["scheduler"];
    // There is no accounting, so that sacct tells nothing.
    assert_eq!(scheduler["source"], "scontrol", "{told}");
    assert_eq!(scheduler["state"], "FAILED");
    assert_eq!(scheduler["end_reason"], "itself");
    assert_eq!((&scheduler["cores"], &scheduler["nodes"]), (&2.into(), &1.into()));
    assert_eq!(scheduler["memory_per_node_bytes"], 100_u64 << 20);
    assert_eq!(scheduler["time_limit_ns"], 420_000_000_000_u64);
    assert_eq!(scheduler["partition"], "main");
    let time = |of: &str| scheduler[of].as_u64().unwrap_or_else(|| panic!("no {of}: {scheduler}"));
    assert!(time("submit") <= time("start") && time("start") < time("end"), "{scheduler}");
    assert!(time("start").abs_diff(told["who"]["start"].as_u64().unwrap()) < 20_000_000_000);
    assert_eq!(told["who"]["state"], "failed (exit status 3)");
    let says = told["scheduler_says"].to_string();
    let given = "given 2 cores, 100 MiB of memory a node, at most 7 min 0 s";
    assert!(says.contains(given), "{says}");
    let queued_ns = told["who"]["queued_ns"].as_u64().unwrap_or_else(|| panic!("{told}"));
    assert!(queued_ns < 600_000_000_000, "{queued_ns}");

    let parts = told["parts"].as_array().unwrap();
    let tasks: Vec<_> = parts
        .iter()
        .filter_map(|part| part["name"].as_str().filter(|name| name.starts_with("task ")))
        .collect();
    assert_eq!(tasks, ["task 1 of step 0", "task 0 of step 0"], "the busiest first: {parts:?}");
    let balance = told["parts_balance"].as_str().unwrap();
    assert!(balance.ends_with("most: task 1 of step 0"), "{balance}");
    let text = report(&slurm, &agent, uneven, &[]);
    for expected in ["Steps and tasks", "task 1 of step 0", "scontrol says FAILED", "page faults: "]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }

    let without = json(&slurm, &agent, uneven, &["--no-sched"]);
    assert!(without["scheduler"].is_null() && without["scheduler_says"] == Value::Array(vec![]));
    assert_eq!(without["who"]["state"], "ended");
    let told = json(&slurm, &agent, cancelled, &[]);
    assert_eq!(told["who"]["state"], "was cancelled", "{}", told["scheduler"]);
    agent.stop().unwrap();
}
