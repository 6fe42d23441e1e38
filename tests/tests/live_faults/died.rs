//! A node that dies, as by a power cut: its agent is killed, and none comes after it.

use std::{
    process::{Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jobtrace::model::tables::fact;
use jobtrace_tests::{
    agent::records,
    daemon::{PATIENCE, Setup, site::Site, site::enter},
    rig::wait_for,
    traced::program,
};

use super::are_saved;

/// Between two records of the job, and what a busy machine may add.
const EVERY: Duration = Duration::from_secs(2);
const LATE: Duration = Duration::from_secs(6);

#[test]
fn the_last_record_of_a_node_that_died_says_when_its_job_was_seen_last() {
    let site = Site::new().unwrap();
    let setup = Setup::new("records.every = \"2s\"").unwrap();
    let mut agent = setup.start().unwrap();
    site.fork(0, 17).unwrap();
    let mut command = Command::new("sleep");
    enter(command.arg("600").stdin(Stdio::null()), &site.task(0).unwrap());
    let mut sleeper = command.spawn().unwrap();
    let seen = || -> Option<Duration> {
        are_saved(setup.records(), &site, &[0])?;
        let all = records(setup.records()).ok()?;
        let record = all.iter().find(|record| record.job().job == site.job(0))?;
        Some(Duration::from_nanos(record.timeline.end_ns()))
    };
    let first = wait_for("its first record", PATIENCE, seen).unwrap();
    wait_for("its next one", PATIENCE, || seen().filter(|next| *next > first)).unwrap();
    agent.end_by(libc::SIGKILL).unwrap();
    let died = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();

    let all = records(setup.records()).unwrap();
    let [record] =
        &*all.iter().filter(|record| record.job().job == site.job(0)).collect::<Vec<_>>()
    else {
        panic!("of {} records", all.len())
    };
    assert!(!record.facts.has(const { fact("end") }), "it did not end");
    let seen = Duration::from_nanos(record.timeline.end_ns());
    assert!((died - EVERY - LATE..=died).contains(&seen), "seen {seen:?}, died {died:?}");
    let report = |words: &[&str]| {
        let mut command = Command::new(program().unwrap());
        let output = command.args(words).arg("--from").arg(setup.records()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let s = seen.as_secs() % 86_400;
    let time = format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
    let text = report(&["report", &site.job(0)]);
    assert!(text.contains("last seen ") && text.contains(&format!("{time} UTC")), "{text}");
    // Jobs of others may be newer.
    let list = report(&["jobs", "--all"]);
    assert!(list.contains(&site.job(0)), "{list}");
}
