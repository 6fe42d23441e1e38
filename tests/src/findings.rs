//! What jobtrace finds in a really traced job: the names of the rules that speak (docs/FINDINGS.md).

use std::{collections::BTreeSet, process::Command};

use jobtrace::{
    record::{Record, parse},
    report::{Report, Whole},
};

use crate::{
    agree::tried_again,
    traced::{Traced, program},
    turns::turn,
};

/// How a job is begun so that its own tasks take turns, before all others: what it does then is its own, however busy
/// the machine is.
const CALM: [&str; 3] = ["chrt", "--rr", "1"];

/// The rules that speak of a job.
pub type Said = BTreeSet<&'static str>;

/// A rule, a job that it speaks of, and one that just misses it.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub rule: &'static str,
    /// Runs the one and tells what was found.
    pub speaks: fn() -> Said,
    /// The other.
    pub silent: fn() -> Said,
}

/// Runs the jobs of each case, as one turn.
///
/// # Panics
/// When a rule is silent about the one, or speaks of the other, again and again.
pub fn check(cases: &[Case]) {
    let _turn = turn();
    for Case { rule, speaks, silent } in cases {
        tried_again(|| {
            let said = speaks();
            assert!(said.contains(rule), "{rule} is silent: {said:?}");
        });
        tried_again(|| {
            let said = silent();
            assert!(!said.contains(rule), "{rule} speaks of the other: {said:?}");
        });
    }
}

/// What is found in a job of these records.
pub fn said(records: Vec<Record>) -> Said {
    let whole = Whole::of(records).expect("a job has a record");
    Report::of(&whole, true).rules().into_iter().collect()
}

/// What is found in `words` under `jobtrace run`.
pub fn said_of(words: &[&str]) -> Said {
    said_by(Command::new(program().unwrap()), &[], words)
}

/// The same by `start`, which becomes jobtrace, with `options` of `run`'s.
pub fn said_by(start: Command, options: &[&str], words: &[&str]) -> Said {
    said_beside_others(start, options, &[&CALM[..], words].concat())
}

/// The same of a job whose tasks are like any others on the machine.
pub fn said_beside_others(start: Command, options: &[&str], words: &[&str]) -> Said {
    let traced = Traced::run_by(start, options, words);
    let record = parse(traced.json.to_string().as_bytes()).expect("a record");
    let said = said(vec![record]);
    eprintln!("{words:?}, {}: {said:?}", traced.output.status);
    said
}
