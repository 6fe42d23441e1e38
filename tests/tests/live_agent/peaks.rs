//! The most memory that a job held is told, though nobody read its files after it took it: the kernel tells when
//! its directories are removed.

use std::{fs, path::Path, thread::sleep, time::Duration};

use jobtrace::{
    cgroup::hierarchies::Hierarchies,
    model::tables::{MEMORY, Memory},
    record::Record,
};
use jobtrace_tests::{
    agent::{Agent, Points},
    agree::Agreement,
    work::PAGE,
};

use super::{life::quiet, records::of, shaped::Shaped};

const TOUCH: &str = env!("CARGO_BIN_EXE_touch");
const MIB: u64 = 1 << 20;

/// Where memory is counted here: the controllers of a job's directories, of which the last one's count it, its
/// files of peak and limit, and the agent's hierarchies by which it is told apart.
fn layouts() -> Vec<(Vec<&'static str>, [&'static str; 2], &'static str)> {
    match Hierarchies::read().unwrap().v1("memory") {
        None => vec![(vec![""], ["memory.peak", "memory.max"], "v2")],
        Some(_) => {
            let files = ["memory.max_usage_in_bytes", "memory.limit_in_bytes"];
            let (hierarchy, controller) = quiet();
            let apart = (vec![controller, "memory"], files, hierarchy);
            vec![(vec!["memory"], files, "memory"), apart]
        }
    }
}

fn peak(points: &Points, job: &str) -> Option<u64> {
    let memory = points.of(job).filter(|point| point.measurement == "job_memory");
    memory.filter_map(|point| point.number("peak_bytes")).max()
}

/// That of a record.
fn saved(record: &Record) -> Option<u64> {
    record.totals.stats.group(&MEMORY)?.number(Memory::peak_bytes)
}

/// A command that holds so many MiB.
fn holding(mib: u64) -> [String; 3] {
    [TOUCH.to_owned(), "fresh".to_owned(), (mib * MIB / PAGE as u64).to_string()]
}

fn number(file: &Path) -> u64 {
    fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

#[test]
fn a_job_that_is_gone_before_anyone_reads_it_has_the_kernels_peak() {
    const ENDED: u32 = 9_460;
    const KILLED: u32 = 9_461;
    const SMALL: u32 = 9_462;
    let mut agree = Agreement::new();
    for (controllers, [peak_file, limit_file], hierarchy) in layouts() {
        let shaped = Shaped::make(&controllers);
        shaped.directory("slurm/uid_0");
        // Nothing is read in between.
        let settings = format!("hierarchy = {hierarchy:?}\ninterval = \"60s\"");
        let agent = Agent::start(&settings).unwrap();
        let mut truths = Vec::new();
        for job in [ENDED, KILLED, SMALL] {
            let step = shaped.job(0, job, "step_0");
            let directory = step.0.last().unwrap();
            let root = directory.parent().unwrap();
            match job {
                ENDED => _ = step.run(&holding(80).each_ref().map(String::as_str)),
                KILLED => {
                    fs::write(root.join(limit_file), (50 * MIB).to_string()).unwrap();
                    let beyond = (150 * MIB).to_string();
                    let status = step.command(TOUCH).args(["beyond", &beyond]).status().unwrap();
                    assert_eq!(status.code(), Some(137));
                }
                _ => _ = step.run(&["true"]),
            }
            truths.push([root, directory].map(|of| number(&of.join(peak_file))));
            shaped.remove_job(0, job);
        }
        let (points, records) = agent.stop_with_records().unwrap();
        for (job, [truth, step_truth]) in [ENDED, KILLED, SMALL].into_iter().zip(truths) {
            let name = job.to_string();
            let told = peak(&points, &name);
            agree.exact(&format!("{hierarchy}, {job}: peak_bytes"), told.unwrap_or(0), truth);
            let record = of(&records, &name);
            agree.exact("in its record", saved(record).unwrap_or(0), truth);
            let step = record.totals.parts.listed.iter().find(|part| part.step == "0").unwrap();
            agree.exact("its step's", step.memory_peak_bytes.unwrap_or(0), step_truth);
        }
    }
    agree.end();
}

/// Slots are short: those of jobs that have ended are others' before the directories where memory is counted go.
#[test]
fn a_job_whose_slot_is_anothers_already_has_the_kernels_peak() {
    const FIRST: u32 = 9_463;
    const COUNT: u32 = 20;
    let mut agree = Agreement::new();
    for (controllers, [peak_file, _], hierarchy) in layouts() {
        let shaped = Shaped::make(&controllers);
        shaped.directory("slurm/uid_0");
        let settings =
            format!("hierarchy = {hierarchy:?}\ninterval = \"60s\"\nslots = 8\nspare_slots = 2");
        let agent = Agent::start(&settings).unwrap();
        let jobs: Vec<_> = (FIRST..FIRST + COUNT).collect();
        let mut truths = Vec::new();
        let mut directories = vec![Vec::new(); controllers.len()];
        for job in &jobs {
            let step = shaped.job(0, *job, "step_0");
            step.run(&holding(u64::from(2 + job % 9)).each_ref().map(String::as_str));
            for (of, directory) in directories.iter_mut().zip(&step.0) {
                of.extend([directory.clone(), directory.parent().unwrap().to_owned()]);
            }
            truths.push(number(&step.0.last().unwrap().parent().unwrap().join(peak_file)));
        }
        for of in directories {
            of.iter().for_each(|directory| fs::remove_dir(directory).unwrap());
            // Slots are made ready for others meanwhile.
            sleep(Duration::from_millis(500));
        }
        let (points, records) = agent.stop_with_records().unwrap();
        for (job, truth) in jobs.into_iter().zip(truths) {
            let name = job.to_string();
            let told = peak(&points, &name).unwrap_or(0);
            agree.exact(&format!("{hierarchy}, {job}: peak_bytes"), told, truth);
            agree.exact("in its record", saved(of(&records, &name)).unwrap_or(0), truth);
        }
    }
    agree.end();
}

/// The same run goes on, or another follows, before anything was told of the first.
#[test]
fn what_comes_back_within_an_interval_hides_no_peak() {
    let mut agree = Agreement::new();
    for (controllers, [peak_file, _], hierarchy) in layouts() {
        let shaped = Shaped::make(&controllers);
        shaped.directory("slurm/uid_0");
        let settings = format!("hierarchy = {hierarchy:?}\ninterval = \"60s\"");
        let agent = Agent::start(&settings).unwrap();
        let runs = [(9_490, ["0", "0"]), (9_491, ["0", "1"])];
        let truths = runs.map(|(job, restarts)| {
            let one = |(restarts, mib)| {
                let step = shaped.job(0, job, "step_0");
                // The agent has time to ask whose it is.
                let script = format!("sleep 0.5; exec {}", holding(mib).join(" "));
                let mut command = step.command("sh");
                command.env("SLURM_JOB_ID", job.to_string()).env("SLURM_JOB_NUM_NODES", "1");
                command.args(["-c", &script]).env("SLURM_RESTART_COUNT", restarts);
                assert!(command.status().unwrap().success());
                let truth = number(&step.0.last().unwrap().parent().unwrap().join(peak_file));
                shaped.remove_job(0, job);
                truth
            };
            restarts.into_iter().zip([40, 5]).map(one).collect::<Vec<_>>()
        });
        let (points, records) = agent.stop_with_records().unwrap();
        for ((job, restarts), truths) in runs.into_iter().zip(truths) {
            let name = job.to_string();
            let what = format!("{hierarchy}, restarts {restarts:?}");
            let told = peak(&points, &name).unwrap_or(0);
            agree.exact(&format!("{what}: peak_bytes"), told, truths[0]);
            let mut of: Vec<_> = records.iter().filter(|of| of.job().job == name).collect();
            of.sort_by_key(|record| record.timeline.begin_ns());
            let lives = if restarts[0] == restarts[1] { 1 } else { 2 };
            assert_eq!(of.len(), lives, "{what}: records");
            for (record, truth) in of.into_iter().zip(truths) {
                agree.exact("in its record", saved(record).unwrap_or(0), truth);
            }
        }
    }
    agree.end();
}
