//! PBS Professional, OpenPBS and Torque: `qstat -f`, and for PBS jobs that have ended `qstat -x -f`.
//!
//! The form is that of qstat(1B) of OpenPBS, and of outputs of PBS Professional and Torque that users and sites have
//! published; no PBS runs in the tests.

use super::{EndReason, Told, Way, bytes, clock::dated, known, number, number_of, span_ns};
use crate::model::info::Exit;

/// Exit statuses by which PBS tells that it ended the job (`JOB_EXEC_KILL_…` in its job.h).
const KILLED_FOR_MEMORY: [i32; 2] = [-26, -27];
const KILLED_AT_LIMIT: i32 = -29;
/// 256 and a signal's number: the signal ended it.
const SIGNALLED: i32 = 256;
/// Of PBS without a unit.
const BYTE: u64 = 1;

pub const WAYS: &[Way] = &[
    Way { program: "qstat", words: |job| words(&["-f"], job), environment: &[], parse: qstat },
    // To Torque, which shows ended jobs anyway, -x means XML: none of it is read.
    Way {
        program: "qstat",
        words: |job| words(&["-x", "-f"], job),
        environment: &[],
        parse: qstat,
    },
];

fn words(options: &[&str], job: &str) -> Vec<String> {
    options.iter().chain([&job]).map(|word| (*word).to_owned()).collect()
}

/// `Job Id: 4711.server`, then a line for each value, those that are too long continued behind a tab.
pub(super) fn qstat(text: &str, job: &str, near_ns: u64) -> Vec<Told> {
    let blocks = text.split("Job Id:").skip(1);
    let of_job = |block: &&str| {
        let id = block.lines().next().unwrap_or_default().trim();
        number_of(id) == number_of(job) && index_of(id) == index_of(job)
    };
    blocks.filter(of_job).take(super::MOST_RUNS).map(|block| run(block, near_ns)).collect()
}

/// `[3]` of `4711[3].server`.
fn index_of(job: &str) -> Option<&str> {
    let (_, rest) = job.split_once('[')?;
    rest.split_once(']').map(|(index, _)| index).filter(|index| !index.is_empty())
}

fn run(block: &str, near_ns: u64) -> Told {
    let of = |name: &str| {
        let value = |line: &'_ str| -> Option<String> {
            let (key, value) = line.strip_prefix("    ")?.split_once(" = ")?;
            (key == name).then(|| value.trim().to_owned())
        };
        block.lines().skip(1).find_map(value).unwrap_or_default()
    };
    let first = |names: &[&str]| names.iter().map(|name| of(name)).find(|text| !text.is_empty());
    let time = |names: &[&str]| {
        let text = first(names)?;
        // `history_timestamp` is in seconds.
        super::clock::moment(&text).or_else(|| dated(&text, near_ns))
    };
    let state = of("job_state");
    let has_ended = matches!(&*state, "F" | "C" | "X" | "M");
    let status = first(&["Exit_status", "exit_status"]).and_then(|text| number::<i32>(&text));
    let end_reason = match status {
        _ if !has_ended => None,
        Some(KILLED_AT_LIMIT) => Some(EndReason::TimeLimit),
        Some(status) if KILLED_FOR_MEMORY.contains(&status) => Some(EndReason::OutOfMemory),
        _ => Some(EndReason::Itself),
    };
    let nodes = number::<u64>(&of("Resource_List.nodect")).filter(|nodes| *nodes > 0);
    let memory = bytes(&of("Resource_List.mem"), BYTE);
    let project = of("project");
    let account = first(&["Account_Name"]).unwrap_or_else(|| known_project(&project).to_owned());
    Told {
        state,
        end_reason,
        exit: status.and_then(exit).filter(|_| has_ended),
        submit: time(&["ctime"]),
        start: time(&["stime", "start_time"]),
        end: time(&["obittime", "comp_time", "history_timestamp", "mtime"]).filter(|_| has_ended),
        nodes,
        cores: number(&of("Resource_List.ncpus")),
        memory_per_node_bytes: memory.map(|all| all / nodes.unwrap_or(1)),
        gpus: number(&of("Resource_List.ngpus")).filter(|gpus| *gpus > 0),
        time_limit_ns: span_ns(&of("Resource_List.walltime")),
        partition: known(&of("queue")),
        account: known(&account),
        ..Told::default()
    }
}

/// PBS writes a name for no project.
fn known_project(project: &str) -> &str {
    if project == "_pbs_project_default" { "" } else { project }
}

/// What is below zero is PBS's own, and no exit of the job's.
fn exit(status: i32) -> Option<Exit> {
    match status {
        ..0 => None,
        0..=SIGNALLED => Some(Exit { code: Some(status), signal: None }),
        _ => Some(Exit { code: None, signal: Some((status - SIGNALLED) & 0x7f) }),
    }
}
