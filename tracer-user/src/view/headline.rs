//! The first lines: what ran, how it ended, how long it took.

use super::{
    Style,
    facts::Facts,
    line::{Line, Tone},
};
use crate::{
    base::{text, units},
    model::{end_reason::EndReason, info::Exit},
};

/// Columns of a name; a longer one is cut, so that how it ended stays on the line.
const MAX_NAME: usize = 48;

/// Signals by number: name and what it means to whoever ran the job.
static SIGNALS: [(i32, &str, &str); 15] = [
    (libc::SIGHUP, "SIGHUP", "its terminal or session went away"),
    (libc::SIGINT, "SIGINT", "interrupted, Ctrl-C"),
    (libc::SIGQUIT, "SIGQUIT", "quit from the keyboard"),
    (libc::SIGILL, "SIGILL", "an instruction this CPU lacks"),
    (libc::SIGTRAP, "SIGTRAP", "a trap"),
    (libc::SIGABRT, "SIGABRT", "it gave up on an error of its own"),
    (libc::SIGBUS, "SIGBUS", "the memory behind an address is gone"),
    (libc::SIGFPE, "SIGFPE", "a division by zero"),
    (libc::SIGKILL, "SIGKILL", "killed by force"),
    (libc::SIGSEGV, "SIGSEGV", "an invalid memory address"),
    (libc::SIGPIPE, "SIGPIPE", "its output was no longer read"),
    (libc::SIGALRM, "SIGALRM", "a timer ran out"),
    (libc::SIGTERM, "SIGTERM", "asked to end"),
    (libc::SIGXCPU, "SIGXCPU", "its CPU time limit was reached"),
    (libc::SIGXFSZ, "SIGXFSZ", "its file size limit was reached"),
];

/// Name, end and elapsed time; below it the command.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    let info = &facts.totals.info;
    let (tone, ended) = state(facts);
    let name = text::clean(&info.name, facts.unicode);
    let name = if name.trim().is_empty() { "unnamed job" } else { name.trim() };
    let took = format!("after {}", units::long_duration(facts.totals.elapsed_ns));
    let room = style.width.saturating_sub(text::width(&ended) + text::width(&took) + 2);
    let mut lines = Vec::new();
    if room >= 12.min(text::width(name)) {
        let name = text::truncate(name, room.min(MAX_NAME));
        let line = Line::new().strong(name).plain(" ").with(tone, ended);
        lines.push(line.plain(format!(" {took}")));
    } else {
        lines.push(Line::new().strong(text::truncate(name, style.width)));
        for line in text::wrap(&format!("{ended} {took}"), style.width) {
            lines.push(Line::new().with(tone, line));
        }
    }
    let command = text::clean(&info.command, facts.unicode);
    if !command.trim().is_empty() {
        lines
            .push(Line::new().faint(text::truncate(&format!("$ {}", command.trim()), style.width)));
    }
    lines
}

/// How it ended, if it has.
pub fn state(facts: &Facts) -> (Tone, String) {
    let request = &facts.request;
    match (facts.totals.exit, EndReason::of(&request.end_reason)) {
        (None, Some(EndReason::TimeLimit)) => (Tone::Bad, "ended at its time limit".to_owned()),
        (None, Some(EndReason::OutOfMemory)) => (Tone::Bad, "ran out of memory".to_owned()),
        (None, Some(EndReason::Cancelled)) => (Tone::Warn, "was cancelled".to_owned()),
        (None, Some(EndReason::Preempted)) => {
            (Tone::Warn, "was ended for a job of higher priority".to_owned())
        }
        (None, Some(EndReason::Requeued)) => (Tone::Warn, "was put back into the queue".to_owned()),
        (None, Some(EndReason::NodeFailed)) => (Tone::Bad, "ended as a node failed".to_owned()),
        // Its scheduler alone knows its exit status.
        (None, _) if request.has_ended => (Tone::Plain, "ended".to_owned()),
        (exit, _) => ending(exit, facts.oom_kills() > 0),
    }
}

fn ending(exit: Option<Exit>, out_of_memory: bool) -> (Tone, String) {
    match exit {
        None => (Tone::Plain, "had not ended".to_owned()),
        Some(Exit { code: Some(0), .. }) => (Tone::Good, "succeeded (exit status 0)".to_owned()),
        Some(Exit { code: Some(code), .. }) => (Tone::Bad, format!("failed (exit status {code})")),
        Some(Exit { signal: Some(libc::SIGKILL), .. }) if out_of_memory => {
            (Tone::Bad, "was ended by SIGKILL (out of memory)".to_owned())
        }
        Some(Exit { signal: Some(number), .. }) => {
            let known = SIGNALS.iter().find(|(signal, ..)| *signal == number);
            let what = known.map_or_else(
                || format!("signal {number}"),
                |(_, name, meaning)| format!("{name} ({meaning})"),
            );
            (Tone::Bad, format!("was ended by {what}"))
        }
        Some(Exit { code: None, signal: None }) => (Tone::Warn, "ended, unknown how,".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
        let exit = |code, signal| Some(Exit { code, signal });
        for (exit, text) in [
            (None, "had not ended"),
            (exit(Some(0), None), "succeeded (exit status 0)"),
            (exit(Some(3), None), "failed (exit status 3)"),
            (exit(None, Some(11)), "was ended by SIGSEGV (an invalid memory address)"),
            (exit(None, Some(64)), "was ended by signal 64"),
            (exit(None, None), "ended, unknown how,"),
        ] {
            assert_eq!(ending(exit, false).1, text);
        }
        assert!(ending(exit(None, Some(9)), true).1.contains("out of memory"));
    }
}
