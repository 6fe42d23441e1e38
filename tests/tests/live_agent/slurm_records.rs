//! Records of real Slurm jobs: an array, a step with a slow task, a cancelled job, one that was killed for memory, one
//! that was requeued and so has its number twice.

use std::{process::Command, thread::sleep, time::Duration};

use jobtrace::{
    cgroup::hierarchies::Hierarchies,
    model::{
        parts::Part,
        tables::{FAULT, Fact, Fault, SCHED, Sched, fact},
    },
    record::Record,
};
use jobtrace_tests::{
    agent::Agent,
    agree::Agreement,
    rig::{
        slurm::{JobId, Mode, Slurm},
        wait_for,
    },
};

use tracer_ebpf::handle::{Handle, Number};

use super::MOMENT;

const TOUCH: &str = env!("CARGO_BIN_EXE_touch");
const BREED: &str = env!("CARGO_BIN_EXE_breed");
/// Of two tasks one works for two seconds, then both wait: each is read once more after it has done its work.
const UNEVEN: &str = "srun --overlap --ntasks=2 sh -c '\
    if [ $SLURM_PROCID = 1 ]; then timeout 2 sh -c \"while :; do :; done\"; fi; \
    touch done.$SLURM_JOB_ID.$SLURM_PROCID; while [ ! -e done.$SLURM_JOB_ID.1 ]; do sleep 0.2; done; sleep 3'";

const END: &Fact = fact("end");

fn of(records: &[Record], job: JobId) -> Vec<&Record> {
    let mut of: Vec<_> =
        records.iter().filter(|record| record.job().job == job.to_string()).collect();
    of.sort_by_key(|record| record.timeline.begin_ns());
    of
}

fn number(record: &Record, field: Handle<Number>) -> u64 {
    record.totals.stats.group(field.measurement()).and_then(|group| group.number(field)).unwrap()
}

/// What a failure is told by: when each began and ended, what is known of it and which steps it had.
fn shown(records: &[&Record]) -> String {
    let one = |record: &&Record| {
        let (timeline, forks) = (&record.timeline, number(record, Sched::forks));
        let step = |part: &Part| format!("{} {} to {:?}", part.step, part.begin, part.end);
        let steps: Vec<_> = record.totals.parts.listed.iter().map(step).collect();
        format!(
            "\n{} to {}: {forks} forks, {:?}, steps {steps:?}",
            timeline.begin_ns(),
            timeline.end_ns(),
            record.facts
        )
    };
    records.iter().map(one).collect()
}

/// Runs `scontrol` with `words`.
fn scontrol(slurm: &Slurm, words: &[&str]) {
    let mut command: Command = slurm.command("scontrol");
    let output = command.args(words).output().unwrap();
    assert!(output.status.success(), "scontrol {words:?}: {output:?}");
}

/// A job that makes so many children and waits: more in its second run.
fn breeds(slurm: &Slurm) -> JobId {
    let script =
        format!("{BREED} forks $((20 + 40 * ${{SLURM_RESTART_COUNT:-0}}))\necho bred\nsleep 600");
    slurm.sbatch(&script, &["--requeue", "--open-mode=append"]).unwrap()
}

fn await_bred(slurm: &Slurm, job: JobId, times: usize) {
    let is_done = |text: String| text.matches("bred").count() == times;
    wait_for("the work of the requeued job", 3 * MOMENT, || {
        slurm.output(job).is_ok_and(is_done).then_some(())
    })
    .unwrap_or_else(|error| panic!("{error}: {:?}\n{}", slurm.jobs(job), slurm.last_log()));
}

fn requeue(slurm: &Slurm, job: JobId) {
    scontrol(slurm, &["requeue", &job.to_string()]);
}

/// Its directories may be gone while Slurm still tidies it up: begun again then, it fails at once.
fn await_end_of_first(slurm: &Slurm, job: JobId) {
    let state = || Some(slurm.job_state(job).ok()?.state);
    wait_for("the end of its first run", MOMENT, || {
        let is_over = slurm.job_cgroups(job).is_empty() && state()? == "PENDING";
        is_over.then_some(())
    })
    .unwrap();
    // The node refuses what is begun in the second in which it was told to kill it.
    sleep(Duration::from_secs(2));
}

fn begin_again(slurm: &Slurm, job: JobId) {
    // Slurm would wait two minutes.
    scontrol(slurm, &["update", &format!("JobId={job}"), "StartTime=now"]);
    await_bred(slurm, job, 2);
}

fn one_mode(mode: Mode, hierarchy: &str) {
    let slurm = Slurm::start(mode).unwrap();
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let uneven = slurm.sbatch(UNEVEN, &["--ntasks=2"]).unwrap();
    let array = slurm.sbatch("sleep 2; exit $SLURM_ARRAY_TASK_ID", &["--array=0-1"]).unwrap();
    let cancelled = slurm.sbatch("exec sleep 601", &[]).unwrap();
    let greedy = (mode == Mode::V1).then(|| {
        let script = format!("exec {TOUCH} beyond {}", 256 << 20);
        slurm.sbatch(&script, &["--mem=64"]).unwrap()
    });
    let requeued = breeds(&slurm);
    await_bred(&slurm, requeued, 1);
    // What ends before anybody could ask its tasks may not be told apart, neither here nor below.
    agent.settle().unwrap();
    requeue(&slurm, requeued);
    await_end_of_first(&slurm, requeued);
    begin_again(&slurm, requeued);
    agent.settle().unwrap();
    slurm.scancel(cancelled).unwrap();
    slurm.scancel(requeued).unwrap();
    for job in
        [Some(uneven), Some(array), Some(cancelled), Some(requeued), greedy].into_iter().flatten()
    {
        slurm.wait(job).unwrap();
        let gone = || slurm.job_cgroups(job).is_empty().then_some(());
        wait_for("a job's last directory", MOMENT, gone).unwrap();
    }
    let tasks = slurm.jobs(array).unwrap();
    let log = agent.log();
    let (_, records) = agent.stop_with_records().unwrap();

    let mut agree = Agreement::new();
    slow_task(&mut agree, of(&records, uneven)[0]);
    for task in tasks {
        let index: u64 = task.all["ArrayTaskId"].parse().unwrap();
        let [record] = of(&records, task.id)[..] else { panic!("records of {}", task.id) };
        let text = |fact| record.facts.text(fact).to_owned();
        assert_eq!(text(const { fact("array_job") }), array.to_string());
        assert_eq!(text(const { fact("array_task") }), index.to_string());
        assert!(record.facts.has(END));
        // Slurm's daemon of the step ends too, on v2 inside the job.
        agree.between(
            &format!("failed of task {index}"),
            number(record, Sched::exits_failed),
            index..=index + 3,
        );
    }
    let [record] = of(&records, cancelled)[..] else { panic!("records of {cancelled}") };
    agree.between("killed of the cancelled", number(record, Sched::exits_killed), 1..=6);
    assert_eq!(record.facts.text(const { fact("end_reason") }), "", "its values do not show it");
    if let Some(greedy) = greedy {
        let [record] = of(&records, greedy)[..] else { panic!("records of {greedy}") };
        agree.between("killed for memory", number(record, Fault::oom_kills), 1..=4);
        assert_eq!(record.facts.text(const { fact("end_reason") }), "out_of_memory");
    }
    let [first, second] = of(&records, requeued)[..] else {
        panic!("not the two records of {requeued}: {}\n{log}", shown(&of(&records, requeued)))
    };
    agree.between("forks of the first run", number(first, Sched::forks), 20..=55);
    agree.between("forks of the second run", number(second, Sched::forks), 60..=95);
    let restarts = |record: &Record| record.facts.number(const { fact("restarts") }).unwrap_or(0);
    assert_eq!((restarts(first), restarts(second)), (0, 1));
    assert!(first.facts.number(END).unwrap() <= second.timeline.begin_ns());
    assert!(
        record.totals.stats.group(&SCHED).is_some() && record.totals.stats.group(&FAULT).is_some()
    );
    agree.end();
}

/// The task that worked is told by its name.
fn slow_task(agree: &mut Agreement, record: &Record) {
    let task = |name: &str| -> &Part {
        let is_it = |part: &&Part| part.step == "0" && part.task == name;
        record
            .totals
            .parts
            .listed
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("no task {name}: {:?}", record.totals.parts.listed))
    };
    let on_cpu_ms = |name: &str| task(name).on_cpu_ns.unwrap() / 1_000_000;
    // As much as a machine at work has to give.
    agree.between("the slow task's on_cpu_ns, ms", on_cpu_ms("1"), 300..=2_600);
    agree.between("the other's", on_cpu_ms("0"), 0..=on_cpu_ms("1") / 2);
    for name in ["0", "1"] {
        let part = task(name);
        assert!(part.begin < part.seen.unwrap() && part.seen <= part.end, "{part:?}");
    }
    let steps: Vec<_> = record.totals.parts.listed.iter().map(|part| part.step.as_str()).collect();
    for step in ["batch", "extern"] {
        assert!(steps.contains(&step), "{steps:?}");
    }
}

#[test]
fn records_of_slurm_on_v1() {
    let found = Hierarchies::read().unwrap();
    if ["freezer", "memory", "cpuset", "cpuacct"].iter().any(|name| found.v1(name).is_none()) {
        assert!(Slurm::start(Mode::V1).is_err(), "without v1 there is no Slurm on v1");
        return;
    }
    one_mode(Mode::V1, "memory");
}

#[test]
fn records_of_slurm_on_v2() {
    one_mode(Mode::V2, "v2");
}

/// An agent that had no CPU while the first run was there could ask none of its tasks.
#[test]
fn a_run_that_nobody_could_ask_has_a_record_of_its_own() {
    let slurm = Slurm::start(Mode::V2).unwrap();
    let agent = Agent::start("hierarchy = \"v2\"").unwrap();
    agent.signal(libc::SIGSTOP);
    let job = breeds(&slurm);
    await_bred(&slurm, job, 1);
    requeue(&slurm, job);
    await_end_of_first(&slurm, job);
    agent.signal(libc::SIGCONT);
    agent.settle().unwrap();
    begin_again(&slurm, job);
    agent.settle().unwrap();
    slurm.scancel(job).unwrap();
    slurm.wait(job).unwrap();
    let log = agent.log();
    let (_, records) = agent.stop_with_records().unwrap();
    let [first, second] = of(&records, job)[..] else {
        panic!("not the two records of {job}: {}\n{log}", shown(&of(&records, job)))
    };
    let mut agree = Agreement::new();
    agree.between("forks of the first run", number(first, Sched::forks), 20..=55);
    agree.between("forks of the second run", number(second, Sched::forks), 60..=95);
    agree.end();
}
