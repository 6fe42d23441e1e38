//! A file system that does not answer: nothing returns that an operation could be counted by.

use std::{process::Stdio, time::Duration};

use jobtrace::record::parse;
use jobtrace_tests::{
    agent::Agent,
    findings::{Case, Said, check, said},
    rig::{
        fuse::{FILE, Fuse, Request},
        shaped::Shaped,
        wait_for,
    },
    traced::program,
};

pub const CASES: &[Case] =
    &[Case { rule: "file_hangs", speaks: || looks_up(HANGS), silent: || looks_up(LATE) }];

const USER: u32 = 65_534;
const JOB: u32 = 9_931;
/// Longer than counting takes, and far shorter.
const HANGS: Duration = Duration::from_secs(20);
const LATE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);

/// What is said of a job that looks for a file again and again, each time for so long, after three seconds of counting.
fn looks_up(each: Duration) -> Said {
    let fuse = Fuse::mount(&[(Request::Lookup, each)]).unwrap();
    let shaped = Shaped::make(&[""]);
    let agent = Agent::start("hierarchy = \"v2\"").unwrap();
    let looks = "import os, sys\nwhile True: os.access(sys.argv[1], os.R_OK)";
    let file = fuse.file(FILE);
    let mut job = shaped
        .job(USER, JOB, "step_0")
        .command("python3")
        .args(["-c", looks, &file])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let job_id = JOB.to_string();
    let told = wait_for("what was counted", PATIENCE, || {
        let mut io = std::process::Command::new(program().unwrap());
        io.args(["io", &job_id, "--for", "3s", "--json", "--socket"]).arg(agent.socket());
        let output = io.output().unwrap();
        // The agent meets the job a moment after it began.
        output.status.success().then_some(output.stdout)
    });
    job.kill().unwrap();
    job.wait().unwrap();
    let told = told.unwrap_or_else(|error| panic!("{error:#}: {}", agent.log()));
    agent.stop().unwrap();
    let said = said(vec![parse(&told).expect("a record")]);
    eprintln!("{each:?}: {said:?}");
    said
}

#[test]
fn what_does_not_return_is_told() {
    check(CASES);
}
