//! The same of the agent's jobs: each has its own software and no other's, in its lines and in its record.

use std::{
    fs,
    io::{self, Write},
    os::{fd::AsRawFd, unix::process::CommandExt},
    path::Path,
    process::{Child, Command},
    time::Duration,
};

use jobtrace::{
    cgroup::hierarchies::Hierarchies,
    model::software::{Level, Software},
    record::Record,
};
use jobtrace_tests::{
    agent::{Agent, Point, Points, Value},
    rig::{
        shaped::{Directories, Running, Shaped},
        wait_for,
    },
};
use serde_json::Value as Json;

use crate::{
    made::{Made, SECRET, executions, packages},
    programs::copies,
};

/// How long what a job did may take to be told.
pub const MOMENT: Duration = Duration::from_secs(30);

/// A hierarchy in which no scheduler's jobs are told apart, and the controller of its directories.
fn quiet() -> (&'static str, &'static str) {
    let has_pids = Hierarchies::read().unwrap().v1("pids").is_some();
    if has_pids { ("pids", "pids") } else { ("v2", "") }
}

/// A node of a test's own, and settings of an agent that watches what its jobs run.
pub fn shaped() -> (Shaped, String) {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    shaped.directory("slurm/uid_0");
    (shaped, format!("hierarchy = {hierarchy:?}\ncensus = \"names\"\n"))
}

/// Begins `words` in `directory`, whose job is `job`, with more environment.
pub fn start(
    directory: &Directories,
    job: u32,
    words: &[&str],
    environment: &[(&str, &str)],
) -> Child {
    command(directory, job, words, environment).spawn().unwrap()
}

fn command(
    directory: &Directories,
    job: u32,
    words: &[&str],
    environment: &[(&str, &str)],
) -> Command {
    let mut command = directory.command(words[0]);
    command.args(&words[1..]).env("SLURM_JOB_ID", job.to_string());
    command.envs(environment.iter().copied());
    command
}

/// The same, to its good end.
pub fn run(directory: &Directories, job: u32, words: &[&str], environment: &[(&str, &str)]) {
    let status = start(directory, job, words, environment).wait().unwrap();
    assert!(status.success(), "{words:?}: {status}");
}

/// What the only record of `job` tells of its software.
pub fn software(records: &[Record], job: u32) -> Software {
    let of_job: Vec<_> =
        records.iter().filter(|record| record.job().job == job.to_string()).collect();
    assert_eq!(of_job.len(), 1, "records of {job}");
    let software = of_job[0].totals.software.clone();
    software.unwrap_or_else(|| panic!("nobody watched {job}"))
}

pub fn json(software: &Software) -> Json {
    serde_json::to_value(software).unwrap()
}

/// The last line of its software.
fn line(points: &Points, job: u32) -> &Point {
    let job = job.to_string();
    let found = points.of(&job).rfind(|point| point.measurement == "job_software");
    found.unwrap_or_else(|| panic!("no line of {job}"))
}

fn text<'a>(point: &'a Point, field: &str) -> &'a str {
    match point.fields.get(field) {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}

/// Waits until the agent has saved a record of the end of each of `jobs`.
pub fn wait_for_records(agent: &Agent, jobs: &[u32]) {
    let saved = || {
        let recorded = agent.recorded().ok()?;
        jobs.iter().all(|job| recorded.contains(&job.to_string())).then_some(())
    };
    wait_for("records", MOMENT, saved).unwrap();
}

/// Every byte that is in files below `folder`.
fn all_text(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => text += &all_text(&path),
            false => {
                let bytes = fs::read(&path).unwrap_or_default();
                let mut plain = Vec::new();
                let mut gzip = flate2::read::MultiGzDecoder::new(&*bytes);
                let is_gzip = std::io::Read::read_to_end(&mut gzip, &mut plain).is_ok();
                text += &String::from_utf8_lossy(if is_gzip { &plain } else { &bytes });
            }
        }
    }
    text
}

#[test]
fn each_job_of_the_agent_is_told_its_own_software() {
    const IMPORTS: u32 = 12_001;
    const SILENT: u32 = 12_002;
    const BESIDE: u32 = 12_003;
    const OLDER: u32 = 12_004;
    let made = Made::new();
    let (shaped, settings) = shaped();
    // So long that somebody can ask it, on a machine that is at work.
    let script = made.imports("import time; time.sleep(2)");
    let command = made.command(&script);
    let older = shaped.job(0, OLDER, "step_0");
    let _runs = Running(start(&older, OLDER, &["sleep", "600"], &[]));
    let agent = Agent::start(&settings).unwrap();
    let [imports, silent, beside] =
        [IMPORTS, SILENT, BESIDE].map(|job| shaped.job(0, job, "step_0"));
    run(&imports, IMPORTS, &command, &[]);
    run(&silent, SILENT, &command, &[("JOBTRACE_CENSUS", "off")]);
    run(
        &beside,
        BESIDE,
        &["bash", "-c", "for i in 1 2 3; do env true; done; sleep 2; exit 0"],
        &[],
    );
    // What ends before anybody could ask it is told in numbers.
    agent.settle().unwrap();
    [IMPORTS, SILENT, BESIDE].into_iter().for_each(|job| shaped.remove_job(0, job));
    wait_for_records(&agent, &[IMPORTS, SILENT, BESIDE]);
    let folder = agent.records_dir().parent().unwrap().to_owned();
    let written = all_text(&folder.join("spool")) + &all_text(&folder.join("records"));
    let log = agent.log();
    let (points, records) = agent.stop_with_records().unwrap();

    let of_imports = software(&records, IMPORTS);
    assert_eq!(packages(&json(&of_imports)), made.expected, "{of_imports:#?}\n{log}");
    assert_eq!((of_imports.own_modules, of_imports.lost), (1, 0));
    assert!(of_imports.since_begin && of_imports.level == Level::Names);
    assert_eq!(of_imports.python_processes_most, Some(1));
    assert_eq!(executions(&json(&of_imports), "python"), 1);
    assert_eq!(software(&records, SILENT), Software::opted_out(Level::Names));
    let of_beside = json(&software(&records, BESIDE));
    assert_eq!(["bash", "env", "true"].map(|name| executions(&of_beside, name)), [1, 3, 3]);
    assert!(packages(&of_beside).is_empty(), "{of_beside:#}");
    let of_older = software(&records, OLDER);
    assert!(!of_older.since_begin && of_older.programs.is_empty(), "{of_older:?}");
    assert!(of_older.other_libraries > 0, "it has a C library: {of_older:?}");

    let imported = line(&points, IMPORTS);
    for package in &made.expected {
        let told = format!("{} {}", package[1], package[2]);
        assert!(text(imported, "packages").contains(&told), "{told}: {imported:?}");
    }
    let info = points.info(&IMPORTS.to_string()).unwrap();
    assert_eq!(imported.tags, info.tags, "one series");
    assert_eq!(imported.number("partial"), Some(0));
    let silent = line(&points, SILENT);
    assert_eq!(silent.number("opted_out"), Some(1));
    assert_eq!(silent.fields.len(), 2, "{silent:?}");
    assert!(written.contains("job_software") && written.contains("made00"), "it is searched");
    for secret in [SECRET, "token", "site-packages"] {
        assert!(!written.contains(secret), "{secret} is told");
    }
}

#[test]
fn a_thousand_programs_of_two_jobs_at_once_are_each_its_own() {
    const EACH: u64 = 500;
    let disk = jobtrace_tests::rig::mount::Ext4::mount(128 << 20).unwrap();
    let (shaped, settings) = shaped();
    let agent = Agent::start(&settings).unwrap();
    let jobs = [12_011, 12_012].map(|job| (job, shaped.job(0, job, "step_0")));
    // About 200 a second, of both.
    let pace = "n=0; for f in $0/*; do $f || exit 1; n=$((n+1)); [ $((n % 10)) = 0 ] && sleep 0.1; done; exit 0";
    let running: Vec<_> = jobs
        .iter()
        .map(|(job, directory)| {
            let folder = copies(&disk.path().join(job.to_string()), EACH);
            let words = ["bash", "-c", pace, folder.to_str().unwrap()];
            start(directory, *job, &words, &[])
        })
        .collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    agent.settle().unwrap();
    jobs.iter().for_each(|(job, _)| shaped.remove_job(0, *job));
    wait_for_records(&agent, &jobs.each_ref().map(|(job, _)| *job));
    let (_, records) = agent.stop_with_records().unwrap();
    for (job, _) in jobs {
        let software = software(&records, job);
        assert_eq!((software.other_programs, software.lost), (EACH, 0), "{software:?}");
        let json = json(&software);
        assert_eq!(["bash", "sleep"].map(|name| executions(&json, name)), [1, EACH / 10]);
    }
}

#[test]
fn owners_are_hashed_or_left_out_as_the_site_asks() {
    let (shaped, settings) = shaped();
    let secrets = tempfile::tempdir().unwrap();
    let secret = secrets.path().join("secret");
    fs::write(&secret, "a secret of some length\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&secret, mode).unwrap();
    for (number, user) in ["off", "hashed"].into_iter().enumerate() {
        let job = 12_021 + number as u32;
        let table = format!("[software]\nuser = {user:?}\nsecret_file = {secret:?}\n");
        let agent = Agent::start(&format!("{settings}{table}")).unwrap();
        let directory = shaped.job(0, job, "step_0");
        let runs = Running(start(&directory, job, &["sleep", "600"], &[]));
        agent.settle().unwrap();
        drop(runs);
        shaped.remove_job(0, job);
        wait_for_records(&agent, &[job]);
        let points = agent.stop().unwrap();
        let info = points.info(&job.to_string()).unwrap();
        assert_eq!(info.tag("user"), "root");
        let told = line(&points, job).tag("user");
        match user {
            "off" => assert_eq!(told, ""),
            _ => assert!(told.len() == 16 && told.bytes().all(|b| b.is_ascii_hexdigit()), "{told}"),
        }
    }
}

/// A first program that refuses, and is gone before anybody reads it, leaves one that does not.
const REFUSES_AND_GOES: [&str; 3] = ["sh", "-c", "unset JOBTRACE_CENSUS; sleep 3 & exit 0"];
const REFUSAL: (&str, &str) = ("JOBTRACE_CENSUS", "off");

/// Ends `jobs` in `shaped` once those programs have ended; nothing of them may be told by name.
fn end_untold(shaped: &Shaped, agent: Agent, jobs: &[u32]) {
    std::thread::sleep(Duration::from_secs(4));
    jobs.iter().for_each(|job| shaped.remove_job(0, *job));
    wait_for_records(&agent, jobs);
    let (_, records) = agent.stop_with_records().unwrap();
    for job in jobs {
        let software = software(&records, *job);
        assert!(software.opted_out || software.level == Level::Counts, "{job}: {software:?}");
        assert!(software.programs.is_empty(), "{job}: {software:?}");
    }
}

#[test]
fn what_a_first_program_asked_for_holds_though_it_is_gone() {
    let jobs: Vec<u32> = (12_041..12_049).collect();
    let (shaped, settings) = shaped();
    let agent = Agent::start(&settings).unwrap();
    for job in &jobs {
        run(&shaped.job(0, *job, "step_0"), *job, &REFUSES_AND_GOES, &[REFUSAL]);
    }
    end_untold(&shaped, agent, &jobs);
}

/// The programs begin while the agent finds out whose the cgroups are.
#[test]
fn what_a_first_program_asked_for_holds_though_the_agent_is_slow() {
    let jobs: Vec<u32> = (12_051..12_059).collect();
    let (shaped, settings) = shaped();
    let agent = Agent::start(&settings).unwrap();
    agent.signal(libc::SIGSTOP);
    let directories: Vec<_> = jobs.iter().map(|job| shaped.job(0, *job, "step_0")).collect();
    // Each is in its cgroup, and executes its program once it has read a byte.
    let (go, mut now) = io::pipe().unwrap();
    let waits = go.as_raw_fd();
    std::thread::scope(|scope| {
        let begin = |(job, directory): (&u32, &Directories)| {
            let mut command = command(directory, *job, &REFUSES_AND_GOES, &[REFUSAL]);
            let wait = move || {
                let mut byte = 0_u8;
                // SAFETY: one byte, which is there.
                match unsafe { libc::read(waits, (&raw mut byte).cast(), 1) } {
                    1 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            };
            // SAFETY: a system call alone.
            unsafe { command.pre_exec(wait) };
            scope.spawn(move || assert!(command.status().unwrap().success()));
        };
        jobs.iter().zip(&directories).for_each(begin);
        std::thread::sleep(Duration::from_millis(200));
        agent.signal(libc::SIGCONT);
        now.write_all(&[0; 8]).unwrap();
    });
    end_untold(&shaped, agent, &jobs);
}

#[test]
fn a_job_that_nobody_could_ask_is_told_in_numbers() {
    const JOB: u32 = 12_031;
    let (shaped, settings) = shaped();
    let agent = Agent::start(&settings).unwrap();
    let directory = shaped.job(0, JOB, "step_0");
    let mut command = directory.command("sleep");
    let runs = Running(command.arg("600").env_clear().spawn().unwrap());
    agent.settle().unwrap();
    drop(runs);
    shaped.remove_job(0, JOB);
    wait_for_records(&agent, &[JOB]);
    let (_, records) = agent.stop_with_records().unwrap();
    let software = software(&records, JOB);
    assert_eq!((software.level, software.programs.len()), (Level::Counts, 0), "{software:?}");
    assert!(software.other_programs > 0, "{software:?}");
}
