//! What tasks slept and were blocked for, a line each below the bars: the largest causes.
//!
//! Shares of sleep are of the time that the tasks lived, for idle threads sleep longer than the job lasts;
//! shares of blocked time are the bars'. Refuses to say anything where the kernel does not tell causes.

use std::cmp::Reverse;

use tracer_ebpf::handle::{Handle, Number};

use super::{Style, facts::Facts, file_wait::Part, line::Line};
use crate::{
    base::{
        text,
        units::{count, duration, long_duration, percent},
    },
    model::{
        hist::Hist,
        tables::{Fault, Sched},
    },
};

/// Causes named; the rest is other.
const MOST: usize = 3;
/// Less than this share is not worth a word.
const LEAST: f64 = 0.01;

type Named = (Handle<Number>, &'static str);

/// Causes of sleep by the words for them; any other is other.
const SLEEPS: [Named; 11] = [
    (Sched::sleep_timer_ns, "timers"),
    (Sched::sleep_lock_ns, "locks"),
    (Sched::sleep_poll_ns, "in poll"),
    (Sched::sleep_socket_ns, "sockets"),
    (Sched::sleep_pipe_ns, "pipes"),
    (Sched::sleep_child_ns, "waiting for children"),
    (Sched::sleep_signal_ns, "signals"),
    (Sched::sleep_message_ns, "messages"),
    (Sched::sleep_ring_ns, "asynchronous I/O"),
    (Sched::sleep_ioctl_ns, "drivers (ioctl)"),
    (Sched::sleep_stopped_ns, "stopped"),
];

/// The other causes of blocks.
const ELSEWHERE: [Named; 6] = [
    (Sched::blocked_fault_ns, "in page faults"),
    (Sched::blocked_memory_ns, "changing memory maps"),
    (Sched::blocked_child_ns, "starting children (vfork)"),
    (Sched::blocked_exec_ns, "loading programs"),
    (Sched::blocked_exit_ns, "exiting"),
    (Sched::blocked_ioctl_ns, "in drivers (ioctl)"),
];

/// The lines for sleep; `None` where causes are unknown or there is next to none.
pub fn asleep(facts: &Facts, style: &Style) -> Option<Vec<Line>> {
    asleep_in_words(facts).map(|text| wrapped(&text, style))
}

/// What tasks slept for; `None` as for [`asleep`].
pub fn asleep_in_words(facts: &Facts) -> Option<String> {
    let asleep_ns = facts.asleep_ns.filter(|ns| facts.share_of_lives(*ns) >= LEAST)?;
    let share = |ns| facts.share_of_lives(ns);
    let mut parts = named(facts, &SLEEPS)?;
    parts.extend(facts.asleep_on_files()?);
    let parts = largest(parts, asleep_ns, share, |what, share| format!("{what} {share}"));
    let (whole, time) = (percent(share(asleep_ns)), long_duration(asleep_ns));
    Some(format!("asleep {whole} of its tasks' lifetimes ({time}): {parts}"))
}

/// The lines for blocks; nothing where causes are unknown or there are next to none.
pub fn blocked(facts: &Facts, style: &Style) -> Vec<Line> {
    blocked_in_words(facts).map_or_else(Vec::new, |text| wrapped(&text, style))
}

/// What tasks were blocked on; `None` as for [`asleep`].
pub fn blocked_in_words(facts: &Facts) -> Option<String> {
    let blocked_ns = facts.blocked_ns.filter(|ns| facts.share(*ns) >= LEAST)?;
    let mut parts = facts.blocked_on_files()?;
    parts.extend(named(facts, &ELSEWHERE)?);
    let share = |ns| facts.share(ns);
    let parts = largest(parts, blocked_ns, share, |what, share| format!("{share} {what}"));
    Some(format!("blocked {}: {parts}", percent(share(blocked_ns))))
}

/// All causes of blocks and of sleep, each with its time; nothing where they are unknown.
pub fn causes(facts: &Facts) -> Vec<Part> {
    let all = |facts: &Facts| {
        let mut blocks = facts.blocked_on_files()?;
        blocks.extend(named(facts, &ELSEWHERE)?);
        blocks.extend(named(facts, &[(Sched::blocked_other_ns, "other")])?);
        let mut sleeps = named(facts, &SLEEPS)?;
        let on_files = facts.asleep_on_files()?;
        let ns = on_files.iter().fold(facts.number(Sched::sleep_other_ns)?, |rest: u64, part| {
            rest.saturating_sub(part.ns)
        });
        sleeps.extend(on_files);
        sleeps.push(Part { what: "other".to_owned(), ns });
        let said = |how: &str, parts: Vec<Part>| {
            let part = |part: Part| Part { what: format!("{how}: {}", part.what), ns: part.ns };
            parts.into_iter().map(part).collect::<Vec<_>>()
        };
        Some([said("blocked", blocks), said("asleep", sleeps)].concat())
    };
    all(facts).unwrap_or_default()
}

/// Page faults: how many, and what the major ones cost; `None` where that is unknown or there were none.
pub fn faults_in_words(facts: &Facts) -> Option<String> {
    let minor = facts.number(Fault::minor)?;
    let major = facts.number(Fault::major)?;
    let mut text = format!("page faults: {} minor (memory touched first)", count(minor));
    if let Some(mean_ns) = facts.hist(Fault::minor_latency_ns).and_then(Hist::mean) {
        text += &format!(" of {} each", duration(mean_ns as u64));
    }
    text += &format!(", {} major (read from disk)", count(major));
    if let Some(ns) = facts.major_ns.filter(|ns| *ns > 0) {
        text += &format!(", which blocked it for {}", long_duration(ns));
    }
    (minor > 0 || major > 0).then_some(text)
}

fn wrapped(text: &str, style: &Style) -> Vec<Line> {
    let lines = text::wrap(text, style.width - 2);
    lines.iter().map(|line| Line::new().plain("  ").faint(line)).collect()
}

/// The known causes; `None` where any is not known.
fn named(facts: &Facts, causes: &[Named]) -> Option<Vec<Part>> {
    let part =
        |(field, what): &Named| Some(Part { what: (*what).to_owned(), ns: facts.number(*field)? });
    causes.iter().map(part).collect()
}

/// The largest of `parts` that are worth a word, and what they leave of `whole_ns`.
fn largest(
    mut parts: Vec<Part>,
    whole_ns: u64,
    share: impl Fn(u64) -> f64,
    word: impl Fn(&str, &str) -> String,
) -> String {
    parts.sort_by_key(|part| Reverse(part.ns));
    parts.truncate(MOST);
    // What most of it was is said, however little that is.
    let is_most = |part: &Part| part.ns > whole_ns / 2;
    parts.retain(|part| share(part.ns) >= LEAST || is_most(part));
    let named_ns = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.ns));
    let rest_ns = whole_ns.saturating_sub(named_ns);
    if parts.is_empty() || share(rest_ns) >= LEAST {
        parts.push(Part { what: "other".into(), ns: rest_ns });
    }
    let words: Vec<_> =
        parts.iter().map(|part| word(&part.what, &percent(share(part.ns)))).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_of_it_was_is_said_however_little_that_is() {
        let told = |ns: [u64; 2]| {
            let parts = [("fsync", ns[0]), ("stat", ns[1])];
            let parts = parts.map(|(what, ns)| Part { what: what.into(), ns });
            let share = |ns| ns as f64 / 10_000.0;
            largest(parts.into(), 120, share, |what, share| format!("{share} {what}"))
        };
        assert_eq!(told([80, 20]), "<1 % fsync");
        assert_eq!(told([20, 80]), "<1 % stat");
        assert_eq!(told([50, 50]), "1 % other", "none is most of it");
        assert_eq!(told([110, 10]), "1 % fsync");
    }
}
