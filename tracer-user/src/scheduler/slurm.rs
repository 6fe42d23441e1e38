//! Slurm: `sacct`, and where it keeps no accounts `scontrol show job`, which knows a job for some minutes after its end.

use super::{
    EndReason, Told, Way, bytes, clock::moment, known, number, number_of, of_list, span_ns,
};
use crate::model::info::Exit;

/// What is asked of sacct, in this order. None of it is a text that the job's owner writes.
const FIELDS: [&str; 14] = [
    "JobIDRaw",
    "State",
    "ExitCode",
    "Submit",
    "Start",
    "End",
    "AllocCPUS",
    "NNodes",
    "ReqTRES",
    "AllocTRES",
    "TimelimitRaw",
    "Partition",
    "Account",
    "QOS",
];
const MINUTE_NS: u64 = 60_000_000_000;
const MIB: u64 = 1 << 20;
/// Seconds since the epoch, so that nobody has to know the time zone.
const TIMES: &[(&str, &str)] = &[("SLURM_TIME_FORMAT", "%s")];

pub const WAYS: &[Way] = &[
    Way {
        program: "sacct",
        words: |job| {
            let options = ["--allocations", "--duplicates", "--noheader", "--parsable2"];
            let mut words: Vec<String> = options.map(str::to_owned).into();
            words.extend([format!("--format={}", FIELDS.join(",")), format!("--jobs={job}")]);
            words
        },
        environment: TIMES,
        parse: |text, job, _| sacct(text, job),
    },
    Way {
        program: "scontrol",
        words: |job| ["show", "job", job].map(str::to_owned).into(),
        environment: TIMES,
        parse: |text, job, _| scontrol(text, job),
    },
];

/// A line for each run.
pub(super) fn sacct(text: &str, job: &str) -> Vec<Told> {
    let lines = text.lines().map(|line| line.split('|').collect::<Vec<_>>());
    let of_job = lines.filter(|line| line.len() == FIELDS.len() && line[0] == number_of(job));
    let run = |line: Vec<&str>| {
        let of = |name: &str| {
            let at = FIELDS.iter().position(|field| *field == name);
            at.map_or("", |at| line[at])
        };
        let minutes = number::<u64>(of("TimelimitRaw"));
        Run {
            state: of("State"),
            exit: of("ExitCode"),
            times: [of("Submit"), of("Start"), of("End")],
            nodes: number(of("NNodes")),
            cores: number(of("AllocCPUS")),
            asked: of("ReqTRES"),
            given: of("AllocTRES"),
            time_limit_ns: minutes.and_then(|minutes| minutes.checked_mul(MINUTE_NS)),
            texts: [of("Partition"), of("Account"), of("QOS")],
        }
        .told()
    };
    of_job.take(super::MOST_RUNS).map(run).collect()
}

/// A block for each job of an array; what its owner writes is on the first line or after all that is read here.
pub(super) fn scontrol(text: &str, job: &str) -> Vec<Told> {
    let is_of = |block: &&str| {
        let id = block.split_whitespace().next().and_then(|word| word.strip_prefix("JobId="));
        id == Some(number_of(job))
    };
    let run = |block: &str| {
        let words = || block.lines().skip(1).flat_map(str::split_whitespace);
        let of = |name: &str| {
            words().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
        };
        // Up to 22.05 there is one list: what was asked of a job that waits, what it was given of one that runs.
        let list =
            |name: &str| Some(of(name)).filter(|list| !list.is_empty()).unwrap_or(of("TRES"));
        let is_given = of("StartTime").parse::<u64>().is_ok();
        Run {
            state: of("JobState"),
            exit: of("ExitCode"),
            times: [of("SubmitTime"), of("StartTime"), of("EndTime")],
            nodes: number(number_of(of("NumNodes"))),
            cores: number(number_of(of("NumCPUs"))).filter(|_| is_given),
            asked: list("ReqTRES"),
            given: list("AllocTRES"),
            time_limit_ns: span_ns(of("TimeLimit")),
            texts: [of("Partition"), of("Account"), of("QOS")],
        }
        .told()
    };
    text.split("\n\n").filter(is_of).take(super::MOST_RUNS).map(run).collect()
}

/// What both commands tell, still in words.
struct Run<'t> {
    state: &'t str,
    exit: &'t str,
    /// Handed in, begun, ended.
    times: [&'t str; 3],
    nodes: Option<u64>,
    cores: Option<u64>,
    /// `cpu=8,mem=4000M,node=1,gres/gpu=2`, over all nodes.
    asked: &'t str,
    given: &'t str,
    time_limit_ns: Option<u64>,
    /// Partition, account, quality of service.
    texts: [&'t str; 3],
}

impl Run<'_> {
    fn told(self) -> Told {
        // `CANCELLED by 1000`
        let state = self.state.split_whitespace().next().unwrap_or_default();
        let end_reason = end_reason(state);
        let [submit, start, end] = self.times.map(moment);
        let nodes = self.nodes.filter(|nodes| *nodes > 0);
        let list = |name: &str| of_list(self.asked, name).or_else(|| of_list(self.given, name));
        let memory = list("mem").and_then(|mem| bytes(mem, MIB));
        let gpus = of_list(self.given, "gres/gpu").and_then(number);
        let [partition, account, qos] = self.texts.map(known);
        Told {
            state: state.to_owned(),
            end_reason,
            exit: exit(self.exit).filter(|_| end_reason.is_some()),
            submit,
            start,
            // Of a job that runs, scontrol says when it has to end.
            end: end.filter(|_| end_reason.is_some()),
            nodes,
            cores: self.cores.filter(|cores| *cores > 0),
            memory_per_node_bytes: memory.map(|all| all / nodes.unwrap_or(1)),
            gpus,
            time_limit_ns: self.time_limit_ns,
            partition,
            account,
            qos,
            ..Told::default()
        }
    }
}

/// `None` while it has not ended.
fn end_reason(state: &str) -> Option<EndReason> {
    Some(match state {
        "COMPLETED" | "FAILED" | "BOOT_FAIL" | "REVOKED" => EndReason::Itself,
        "TIMEOUT" | "DEADLINE" => EndReason::TimeLimit,
        "OUT_OF_MEMORY" => EndReason::OutOfMemory,
        "CANCELLED" => EndReason::Cancelled,
        "PREEMPTED" => EndReason::Preempted,
        "NODE_FAIL" => EndReason::NodeFailed,
        "REQUEUED" => EndReason::Requeued,
        _ => return None,
    })
}

/// `3:0`: status and signal.
fn exit(text: &str) -> Option<Exit> {
    let (code, signal) = text.split_once(':')?;
    let signal = number::<i32>(signal).filter(|signal| *signal > 0);
    let code = number::<i32>(code).filter(|_| signal.is_none());
    (code.is_some() || signal.is_some()).then_some(Exit { code, signal })
}
