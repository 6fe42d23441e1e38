//! Records of jobs: whole, on the disk when a job has ended, and the sum of its lines to the unit.

use std::{collections::BTreeSet, time::Instant};

use jobtrace::{
    model::{
        group::Value,
        info::Facts,
        tables::{Fact, SCHED, Sched, fact},
    },
    record::{Record, head::Head, running},
};
use jobtrace_tests::{
    agent::{Agent, Points},
    agree::Agreement,
    rig::wait_for,
};
use tracer_ebpf::table::Kind;

use super::{MOMENT, life::quiet, shaped::Shaped};

const MIXED: &str = env!("CARGO_BIN_EXE_mixed");
const TEST_JOB: &str = env!("CARGO_BIN_EXE_test_job");

pub fn of<'a>(records: &'a [Record], job: &str) -> &'a Record {
    let found: Vec<_> = records.iter().filter(|record| record.job().job == job).collect();
    assert_eq!(found.len(), 1, "records of {job}: {found:?}");
    found[0]
}

/// Every counter and every sum of a histogram of the record's against the lines. Gives how many are not zero.
pub fn agrees(agree: &mut Agreement, points: &Points, record: &Record) -> usize {
    let (job, mut some) = (record.job().job.clone(), 0);
    for group in &record.totals.stats.groups {
        let tags: Vec<_> = group.own_tags().collect();
        let series = points.only(|point| tags.iter().all(|(key, value)| point.tag(key) == value));
        for (field, value) in group.fields() {
            let (name, total) = match (field.kind, value) {
                (Kind::Counter, Some(Value::Number(total))) => (field.name.to_owned(), *total),
                (_, Some(Value::Histogram(hist))) => (format!("{}_sum", field.name), hist.sum),
                _ => continue,
            };
            if field.unit.per_public() > 1 {
                continue;
            }
            let lines = series.sum(&job, group.measurement.name, &name);
            agree.exact(&format!("{job} {} {tags:?} {name}", group.measurement.name), lines, total);
            some += usize::from(total > 0);
        }
    }
    some
}

#[test]
fn a_record_is_the_sum_of_the_jobs_lines() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let disk = jobtrace_tests::disk::RamDisk::new(8 << 20);
    let pages = disk.path();
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let begin = Instant::now();
    let [mixed, forks, runs] = [9_401, 9_402, 9_403].map(|job| shaped.job(0, job, "step_0"));
    let mut sleeper = runs.command("sleep").arg("600").spawn().unwrap();
    mixed.run(&[MIXED, "2", &pages, &pages]);
    forks.run(&[TEST_JOB, "forks", "41"]);
    [9_401, 9_402].into_iter().for_each(|job| shaped.remove_job(0, job));
    // Without the agent's end: a job's own is enough.
    let ended = |jobs: &BTreeSet<String>| ["9401", "9402"].iter().all(|job| jobs.contains(*job));
    let recorded = || agent.recorded().ok().filter(ended);
    wait_for("the records of two jobs", MOMENT, recorded).unwrap();
    let most_s = begin.elapsed().as_secs_f64();
    assert!(
        !agent.recorded().unwrap().contains("9403"),
        "it runs, for less than a quarter of an hour"
    );
    let seen = running::heads(&agent.socket()).unwrap();
    let seen: Vec<_> = seen.iter().filter(|head| head.job.as_deref() == Some("9403")).collect();
    assert!(seen.len() == 1 && seen[0].end.is_none(), "{seen:?}");
    let now = running::records(&agent.socket(), "9403").unwrap();
    assert_eq!(Head::from(&now[0]).file, seen[0].file);
    assert!(running::records(&agent.socket(), "9401").unwrap().is_empty(), "it has ended");
    let (points, records) = agent.stop_with_records().unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();

    let mut agree = Agreement::new();
    let [mixed, forks, runs] = ["9401", "9402", "9403"].map(|job| of(&records, job));
    assert!(agrees(&mut agree, &points, mixed) > 10);
    assert!(agrees(&mut agree, &points, forks) > 5);
    agrees(&mut agree, &points, runs);
    agree.end();
    let facts = |record: &Record| -> Facts { record.facts.clone() };
    let end = const { fact("end") };
    assert!(facts(mixed).has(end) && facts(forks).has(end) && !facts(runs).has(end));
    let on_cpu: u64 = mixed.timeline.columns().filter_map(|column| column[0]).sum();
    assert_eq!(on_cpu, points.sum("9401", "job_sched", "on_cpu_ns"));
    let elapsed_s = mixed.totals.elapsed_ns as f64 / 1e9;
    assert!((1.9..most_s).contains(&elapsed_s), "{elapsed_s} s of 2 and a little");
    let told = |record: &Record| record.facts.number(const { fact("start") });
    assert_eq!(told(mixed), points.fact("9401", "start").and_then(|start| start.parse().ok()));
    assert!(records.iter().all(|record| record.job().job != "_system"));
}

/// A Slurm job with a number that was used before, on the same node within two minutes: requeued.
#[test]
fn an_id_that_is_used_again_is_another_record() {
    used_again(true);
}

/// The same before any interval has told of the end of the first.
#[test]
fn an_id_that_is_used_again_at_once_is_another_record() {
    used_again(false);
}

fn used_again(is_told: bool) {
    const JOB: u32 = 9_404;
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let run = |forks: &str, restarts: &str, account: &str| {
        let job = shaped.job(0, JOB, "step_batch");
        let script = format!("sleep 1; exec {TEST_JOB} forks {forks}");
        let mut command = job.command("sh");
        command.args(["-c", &script]).env("SLURM_JOB_ID", JOB.to_string());
        command.env("SLURM_RESTART_COUNT", restarts).env("SLURM_JOB_ACCOUNT", account);
        assert!(command.status().unwrap().success());
        shaped.remove_job(0, JOB);
    };
    run("30", "0", "physics");
    // Its end is told at a tick.
    let ended = || agent.recorded().ok().filter(|jobs| jobs.contains("9404"));
    if is_told {
        wait_for("the record of the first", MOMENT, ended).unwrap();
    }
    let begin = Instant::now();
    run("70", "1", "chemistry");
    run("70", "1", "chemistry");
    let (points, records) = agent.stop_with_records().unwrap();
    let most_s = begin.elapsed().as_secs_f64();

    let mut of: Vec<_> = records.iter().filter(|record| record.job().job == "9404").collect();
    of.sort_by_key(|record| record.timeline.begin_ns());
    let [first, second] = of[..] else { panic!("{} records", of.len()) };
    let of_sched = |record: &Record, field| {
        record.totals.stats.group(&SCHED).and_then(|sched| sched.number(field)).unwrap()
    };
    let mut agree = Agreement::new();
    // Each shell forks one that sleeps, and three programs are executed: also those before it is known whose they are.
    for (name, field, [expected, later]) in
        [("forks", Sched::forks, [31, 2 * 71]), ("execs", Sched::execs, [3, 2 * 3])]
    {
        agree.exact(&format!("{name} of the first"), of_sched(first, field), expected);
        agree.exact(&format!("{name} of the second"), of_sched(second, field), later);
        let lines = points.sum("9404", "job_sched", name);
        agree.exact(&format!("{name} of both"), lines, expected + later);
    }
    agree.end();
    let steps = |record: &Record| record.totals.parts.listed.len();
    assert_eq!((steps(first), steps(second)), (1, 2), "the steps of each");
    let text = |record: &Record, fact| record.facts.text(fact).to_owned();
    const ACCOUNT: &Fact = fact("account");
    assert_eq!(
        (text(first, ACCOUNT), text(second, ACCOUNT)),
        ("physics".into(), "chemistry".into())
    );
    let end = first.facts.number(const { fact("end") }).unwrap();
    assert!(end <= second.timeline.begin_ns(), "one ends before the other begins");
    assert!(second.facts.has(const { fact("end") }));
    let second_s = second.totals.elapsed_ns as f64 / 1e9;
    assert!((1.8..most_s).contains(&second_s), "{second_s} s of two times one and a little");
}

/// How processes ended, by their number; a sibling's are its own.
#[test]
fn how_processes_ended_is_counted() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let [job, sibling] = [9_405, 9_406].map(|job| shaped.job(0, job, "step_0"));
    // Seven processes, the shell that waits for them among them.
    job.run(&["sh", "-c", "/bin/true; /bin/false; sh -c 'exit 7'; sh -c 'kill -9 $$'; sh -c 'kill -15 $$'; /bin/true; exit 0"]);
    sibling.run(&[TEST_JOB, "forks", "5"]);
    [9_405, 9_406].into_iter().for_each(|job| shaped.remove_job(0, job));
    let (points, records) = agent.stop_with_records().unwrap();
    let mut agree = Agreement::new();
    let mut exits = |job: &str, expected: [u64; 3]| {
        let record = of(&records, job);
        let sched = record.totals.stats.group(&SCHED).unwrap();
        let fields = [Sched::exits, Sched::exits_failed, Sched::exits_killed];
        for (field, expected) in fields.into_iter().zip(expected) {
            let name = field.field().name;
            agree.exact(&format!("{job} {name}"), sched.number(field).unwrap(), expected);
            agree.exact(
                &format!("{job} {name}, lines"),
                points.sum(job, "job_sched", name),
                expected,
            );
        }
    };
    exits("9405", [7, 2, 2]);
    exits("9406", [6, 0, 0]);
    agree.end();
}
