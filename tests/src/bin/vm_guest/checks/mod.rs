//! What is checked: each number against the kernel's own account of the same work. Amounts and
//! conservation, never times of the emulation.

mod agent;
mod block;
mod faults;
mod files;
mod hooks;
mod net;
mod remote;
mod scheduling;
mod software;
mod waits;

use std::panic::{AssertUnwindSafe, catch_unwind};

use jobtrace_tests::{agree::Agreement, traced::Traced};
use xtask::guest::{Line, Outcome};

use crate::{stuck::Watch, tell};

/// Comparisons made, or what this kernel lacks for them.
type Found = Result<Agreement, String>;

/// One check.
type Check = fn() -> Found;

/// All checks, by the name that the table shows.
const CHECKS: &[(&str, Check)] = &[
    ("forks, threads and execs", scheduling::tasks_made),
    ("switches, waits and time on CPU", scheduling::crowd),
    ("sleeps", scheduling::sleeps),
    ("causes of waits", waits::few),
    ("more causes of waits", waits::more),
    ("sleeps that go on after a stop", waits::after_a_stop),
    ("reads by file system", waits::reads),
    ("minor faults", faults::minor),
    ("major faults", faults::major),
    ("latencies of faults", faults::latencies),
    ("direct writes", block::writes),
    ("direct reads", block::reads),
    ("write-back", block::write_back),
    ("discards", block::discards),
    ("failed requests", block::failures),
    ("operations on files", files::local),
    ("overlays in turn", files::in_turn),
    ("software that a job runs", software::census),
    ("messages", net::messages),
    ("splices from a socket", net::spliced),
    ("segments sent again", net::sent_again),
    ("jobs of the agent", agent::jobs_agree),
    ("jobs of milliseconds", agent::short_jobs),
    ("kill for memory", agent::out_of_memory_read),
    ("kill for memory, job gone at once", agent::out_of_memory),
    ("the node is the sum of its jobs", agent::conservation),
    // Last: where the kernel's own server of NFS crashes in emulation, all else has been checked.
    ("waits for a network file system", remote::network_file_system),
    ("copies of records on NFS", remote::copies_of_records),
    ("operations on NFS", files::network),
];

/// One check of each kind.
pub const QUICK: [&str; 12] = [
    "switches, waits and time on CPU",
    "causes of waits",
    "reads by file system",
    "major faults",
    "direct reads",
    "operations on files",
    "software that a job runs",
    "messages",
    "splices from a socket",
    "segments sent again",
    "jobs of the agent",
    "kill for memory, job gone at once",
];

/// The hooks, then the checks that are meant, whatever became of those before.
pub fn run(is_meant: impl Fn(&str) -> bool) {
    if !hooks::tell() {
        return;
    }
    for (name, check) in CHECKS.iter().filter(|(name, _)| is_meant(name)) {
        tell::say(&Line::Start { check: (*name).into() });
        let _watch = Watch::check(name);
        let (outcome, lines) = match catch_unwind(AssertUnwindSafe(check)) {
            Ok(Ok(agreement)) => match agreement.verdict() {
                (lines, true) => (Outcome::Ok, lines),
                (lines, false) => (Outcome::Failed, lines),
            },
            Ok(Err(lacking)) => (Outcome::Absent, vec![lacking]),
            Err(panic) => (Outcome::Failed, vec![words(panic.as_ref())]),
        };
        tell::say(&Line::Check { check: (*name).into(), outcome, lines });
    }
}

/// What a panic said.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

/// The note of a job that says that `what` is unknown on this kernel.
fn unknown(job: &Traced, what: &str) -> Option<String> {
    let notes = job.json["notes"].as_array().map_or(&[][..], Vec::as_slice);
    let mut texts = notes.iter().filter_map(|note| note.as_str());
    texts
        .find(|note| note.starts_with("unknown on this kernel") && note.contains(what))
        .map(str::to_owned)
}

/// The file of a workload.
fn workload(name: &str) -> String {
    format!("{}/{name}", xtask::guest::PROGRAMS)
}
