//! The most memory that a job held is told, though nobody read its files after it took it: the kernel tells when
//! its directories are removed.

use std::{fs, path::Path};

use jobtrace::{
    cgroup::hierarchies::Hierarchies,
    model::tables::{MEMORY, Memory},
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
                ENDED => _ = step.run(&[TOUCH, "fresh", &(80 * MIB / PAGE as u64).to_string()]),
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
            let totals = &of(&records, &name).totals;
            let saved = totals.stats.group(&MEMORY).and_then(|of| of.number(Memory::peak_bytes));
            agree.exact("in its record", saved.unwrap_or(0), truth);
            let step = totals.parts.listed.iter().find(|part| part.step == "0").unwrap();
            agree.exact("its step's", step.memory_peak_bytes.unwrap_or(0), step_truth);
        }
    }
    agree.end();
}
