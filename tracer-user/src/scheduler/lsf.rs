//! LSF: `bjobs -UF`, which keeps each statement on a line of its own.
//!
//! The form is that of the LSF command reference (bjobs, `-l` and `-UF`; termination reasons as in its table of
//! `TERM_…`) and of outputs that users and sites have published; no LSF runs in the tests.

use super::{EndReason, Told, Way, bytes, clock::dated, number, number_of};
use crate::model::info::Exit;

const MINUTE_NS: f64 = 6e10;
/// Dates: `Mon Nov 23 10:16:26`.
const DATE: usize = 19;

pub const WAYS: &[Way] = &[Way {
    program: "bjobs",
    words: |job| ["-UF", job].map(str::to_owned).into(),
    environment: &[],
    parse: bjobs,
}];

/// A block for each job, begun by `Job <4711>, …`.
pub(super) fn bjobs(text: &str, job: &str, near_ns: u64) -> Vec<Told> {
    let blocks = text.split("Job <").skip(1);
    let of_job = |block: &&str| {
        let id = block.split('>').next().unwrap_or_default();
        number_of(id) == number_of(job) && id.contains('[') == job.contains('[')
    };
    blocks.filter(of_job).take(super::MOST_RUNS).map(|block| run(block, near_ns)).collect()
}

fn run(block: &str, near_ns: u64) -> Told {
    let head = block.lines().next().unwrap_or_default();
    // The command, which its owner writes, comes after these.
    let of = |name: &str| {
        let rest = head.split_once(&format!(", {name} <"));
        rest.and_then(|(_, rest)| rest.split_once('>')).map_or("", |(value, _)| value)
    };
    let events = || {
        let event = |line: &'_ str| {
            let (date, rest) = line.split_at_checked(DATE)?;
            Some((dated(date, near_ns)?, rest.strip_prefix(": ")?.to_owned()))
        };
        block.lines().skip(1).filter_map(event)
    };
    let begun = |words: &[&str]| {
        events().filter(|(_, text)| words.iter().any(|word| text.starts_with(word))).last()
    };
    let state = of("Status").to_owned();
    let has_ended = matches!(&*state, "DONE" | "EXIT");
    let ended = begun(&["Done successfully", "Exited", "Completed <"]).filter(|_| has_ended);
    let started = begun(&["Started", "Starting", "[1] started"]);
    let slots = started.as_ref().and_then(|(_, text)| {
        let (_, rest) = text.split_once("Allocated ")?;
        number::<u64>(rest.split(' ').next()?)
    });
    let exit = match &*state {
        "DONE" => Some(0),
        "EXIT" => events().find_map(|(_, text)| {
            let (_, rest) = text.split_once("Exited with exit code ")?;
            number(rest.split('.').next()?)
        }),
        _ => None,
    };
    let minutes = limit(block, "RUNLIMIT").and_then(|(value, _)| number::<f64>(&value));
    let memory = limit(block, "MEMLIMIT");
    Told {
        end_reason: has_ended.then(|| end_reason(block)),
        exit: exit.map(|code| Exit { code: Some(code), signal: None }),
        submit: begun(&["Submitted"]).map(|(at, _)| at),
        start: started.as_ref().map(|(at, _)| *at),
        end: ended.map(|(at, _)| at),
        cores: slots,
        memory_per_node_bytes: memory
            .and_then(|(value, unit)| bytes(&format!("{value}{unit}"), 1 << 10)),
        time_limit_ns: minutes.map(|minutes| (minutes * MINUTE_NS) as u64).filter(|ns| *ns > 0),
        partition: of("Queue").to_owned(),
        account: of("Project").to_owned(),
        state,
        ..Told::default()
    }
}

fn end_reason(block: &str) -> EndReason {
    // In a statement of LSF's own, not in what a user calls his job.
    let is_in = |word: &str| {
        let own = block.lines().skip(1).filter(|line| line.contains("TERM_"));
        own.into_iter().any(|line| line.contains(word))
    };
    let reasons = [
        ("TERM_RUNLIMIT", EndReason::TimeLimit),
        ("TERM_MEMLIMIT", EndReason::OutOfMemory),
        ("TERM_OWNER", EndReason::Cancelled),
        ("TERM_ADMIN", EndReason::Cancelled),
        ("TERM_FORCE_", EndReason::Cancelled),
        ("TERM_PREEMPT", EndReason::Preempted),
    ];
    let of_reason = reasons.into_iter().find(|(word, _)| is_in(word));
    of_reason.map_or(EndReason::Itself, |(_, reason)| reason)
}

/// A limit's number and unit: its name is in a line of names, its value below it, `20.0 min of n1` or `4 G`.
fn limit(block: &str, name: &str) -> Option<(String, String)> {
    let lines: Vec<&str> = block.lines().skip(1).collect();
    let is_head = |line: &str| {
        let mut words = line.split_whitespace().peekable();
        words.peek().is_some() && words.all(|word| word.ends_with("LIMIT"))
    };
    let (at, column) = lines.iter().enumerate().find_map(|(at, line)| {
        let column = line.split_whitespace().position(|word| word == name)?;
        is_head(line).then_some((at, column))
    })?;
    let mut values = lines.get(at + 1)?.split_whitespace().skip(2 * column);
    Some((values.next()?.to_owned(), values.next().unwrap_or_default().to_owned()))
}
