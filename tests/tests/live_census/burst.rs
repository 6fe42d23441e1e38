//! Many jobs that begin at once: one that is said to have been watched from its begin on has each of its programs.

use jobtrace::model::software::{Level, Software};
use jobtrace_tests::{agent::Agent, rig::shaped::Running};

use crate::{
    agent::{json, shaped, software, start, wait_for_records},
    made::executions,
};

/// Jobs of a burst.
const JOBS: u32 = 40;
/// What each executes at its begin, and how often; then it stays so long that somebody can ask it.
const SCRIPT: &str = "env true; env true; env true; sleep 6; exit 0";
const EXECUTED: [(&str, u64); 4] = [("bash", 1), ("env", 3), ("true", 3), ("sleep", 1)];

/// What is told of the jobs from `first` on, which begin as fast as they can be made, by an agent that keeps so many
/// slots ready.
fn burst(first: u32, spare_slots: u32) -> Vec<Software> {
    let (shaped, settings) = shaped();
    let settings = format!("{settings}slots = 1000\nspare_slots = {spare_slots}\n");
    let agent = Agent::start(&settings).unwrap();
    let jobs: Vec<_> = (first..first + JOBS).collect();
    let begin = |job: &u32| {
        Running(start(&shaped.job(0, *job, "step_0"), *job, &["bash", "-c", SCRIPT], &[]))
    };
    let running: Vec<_> = jobs.iter().map(begin).collect();
    for mut process in running {
        assert!(process.0.wait().unwrap().success());
    }
    jobs.iter().for_each(|job| shaped.remove_job(0, *job));
    wait_for_records(&agent, &jobs);
    let (_, records) = agent.stop_with_records().unwrap();
    jobs.iter().map(|job| software(&records, *job)).collect()
}

/// Whether all that a job executed is told of it: in numbers alone where nobody could ask its first program.
fn is_whole(software: &Software) -> bool {
    if software.level == Level::Counts {
        return software.other_programs == EXECUTED.len() as u64;
    }
    let json = json(software);
    EXECUTED.iter().all(|(name, times)| executions(&json, name) == *times)
}

#[test]
fn jobs_that_begin_at_once_are_watched_from_their_begin_on_where_there_are_slots() {
    let told = burst(12_100, 200);
    for software in &told {
        assert_eq!((software.since_begin, software.lost), (true, 0), "{software:?}");
        assert!(is_whole(software) && !software.is_partial(), "{software:?}");
    }
    assert!(told.iter().any(|of| of.level == Level::Names), "none was asked: {told:?}");
}

/// Where no slot is ready, what a job executes first is not seen: that must be said.
#[test]
fn jobs_of_which_something_may_be_missing_are_said_to_be_partial() {
    let told = burst(12_200, 2);
    let (whole, partial): (Vec<_>, Vec<_>) = told.iter().partition(|of| of.since_begin);
    assert!(!partial.is_empty(), "the burst found slots for all: it shows nothing");
    for software in partial {
        assert!(software.is_partial(), "{software:?}");
    }
    for software in whole {
        assert!(software.lost > 0 || is_whole(software), "{software:?}");
    }
    assert!(told.iter().any(|of| !is_whole(of)), "nothing was missed: it shows nothing");
}
