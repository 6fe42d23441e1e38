//! A job of a real Slurm that runs until its time limit, beside one that ends before: the record says so, and so does
//! the report. Asleep for a minute and a half, and so beside the other tests.

use std::{
    process::Command,
    thread::sleep,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jobtrace::{
    model::tables::{Fact, fact},
    record::Record,
    report::{Report, Whole},
};
use jobtrace_tests::{
    agent::Agent,
    agree::Agreement,
    rig::{
        slurm::{JobId, Mode, Slurm},
        wait_for,
    },
};

const SECOND_NS: u64 = 1_000_000_000;
/// The shortest that Slurm knows.
const LIMIT_S: u64 = 60;
/// Until jobs begin: longer than it takes to hand them in.
const AHEAD_S: u64 = 10;
/// Slurm looks for jobs beyond their limit every 30 s.
const LOOKS_S: u64 = 30;
/// The rig's KillWait, and time for a busy machine.
const KILLS_S: u64 = 30;

/// Hands in `script` to begin at `begin_s` and to end a minute later at most. Slurm 24.11 and later tell the tasks both
/// times; for older ones the submission does.
fn submit(slurm: &Slurm, script: &str, begin_s: u64) -> JobId {
    let mut date = Command::new("date");
    let date = date.args(["-d", &format!("@{begin_s}"), "+%Y-%m-%dT%H:%M:%S"]).output().unwrap();
    let begin = format!("--begin={}", String::from_utf8_lossy(&date.stdout).trim());
    let export = format!(
        "--export=ALL,SLURM_JOB_START_TIME={begin_s},SLURM_JOB_END_TIME={}",
        begin_s + LIMIT_S
    );
    slurm.sbatch(script, &["--time=1", &begin, &export]).unwrap()
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn of(records: &[Record], job: JobId) -> Record {
    let is_its = |record: &&Record| record.job().job == job.to_string();
    records.iter().find(is_its).unwrap_or_else(|| panic!("no record of {job}")).clone()
}

#[test]
fn a_job_ends_at_its_time_limit() {
    let slurm = Slurm::start(Mode::V2).unwrap();
    let agent = Agent::start("hierarchy = \"v2\"").unwrap();
    let begin_s = now_s() + AHEAD_S;
    let short = submit(&slurm, "exec sleep 2", begin_s);
    let long = submit(&slurm, "exec sleep 600", begin_s);
    // Nothing is to be seen before; to ask Slurm again and again would keep a CPU busy.
    sleep(Duration::from_secs((begin_s + LIMIT_S).saturating_sub(now_s())));
    let patience = Duration::from_secs(LOOKS_S + KILLS_S);
    for job in [short, long] {
        let gone = || slurm.job_cgroups(job).is_empty().then_some(());
        wait_for("a job's last directory", patience, gone)
            .unwrap_or_else(|error| panic!("{error}\n{}", slurm.last_log()));
    }
    let states = [short, long].map(|job| slurm.wait(job).unwrap()[0].state.clone());
    assert_eq!(states, ["COMPLETED", "TIMEOUT"], "{}", slurm.last_log());
    let (_, records) = agent.stop_with_records().unwrap();

    const REASON: &Fact = fact("end_reason");
    let mut agree = Agreement::new();
    let number = |record: &Record, fact| record.facts.number(fact).unwrap();
    let speaks = |record: &Record| {
        let report = Report::of(&Whole::of(vec![record.clone()]).unwrap(), true);
        report.rules().contains(&"time_limit")
    };
    let (short, long) = (of(&records, short), of(&records, long));
    for record in [&short, &long] {
        let limit_ns = number(record, const { fact("time_limit_ns") });
        agree.between("the limit, s", limit_ns / SECOND_NS, LIMIT_S..=LIMIT_S);
    }
    assert_eq!((short.facts.text(REASON), speaks(&short)), ("", false));
    assert_eq!((long.facts.text(REASON), speaks(&long)), ("time_limit", true));
    let end_s = number(&long, const { fact("end") }) / SECOND_NS;
    let limit_s = begin_s + LIMIT_S;
    agree.between("its end, s", end_s, limit_s..=limit_s + LOOKS_S + KILLS_S);
    agree.end();
}
