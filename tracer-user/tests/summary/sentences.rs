//! What is said of each cause of sleep and of blocks.

use jobtrace::view::{Style, render};

use crate::fixtures::waits::{asleep_below_shells, asleep_for, blocked_for};

const STYLE: Style = Style { width: 100, color: false, unicode: true };

/// The summary of a run, its lines joined.
fn said(totals: &jobtrace::model::totals::RunTotals) -> String {
    render(totals, &STYLE).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_cause_of_sleep_is_named_and_explained() {
    for (cause, (named, explained)) in [
        ("timers", "mostly until a timer ran out: it paused by itself (sleep)"),
        ("locks", "mostly for locks: its threads waited for each other, or for work"),
        ("in poll", "mostly in poll: it waited for the network or other programs, as MPI ranks do"),
        ("sockets", "mostly on sockets: it waited for the network or other programs"),
        (
            "pipes",
            "mostly reading or writing pipes or sockets: it waited for input, or for whom it feeds",
        ),
        ("waiting for children", "mostly for children, which did not compute either"),
        ("signals", "mostly for a signal of another program or a timer"),
        ("messages", "mostly for messages or semaphores of other programs"),
        ("asynchronous I/O", "mostly for asynchronous I/O to complete"),
        ("drivers (ioctl)", "mostly in drivers (ioctl), as those of GPUs"),
        ("stopped", "mostly stopped or frozen: by a signal, a debugger or its scheduler"),
        ("other", "mostly in page faults that a program serves, or in calls that do not tell"),
    ]
    .into_iter()
    .enumerate()
    {
        let text = said(&asleep_for(cause));
        let line = format!("asleep 98 % of its tasks' lifetimes (58.0 s): {named} 98 %");
        assert!(text.contains(&line) && text.contains(explained), "{named}: {text}");
    }
}

#[test]
fn parents_do_not_hide_what_their_children_wait_for() {
    let text = said(&asleep_below_shells(2));
    assert!(text.contains("mostly in poll: it waited for the network"), "{text}");
}

#[test]
fn a_cause_of_blocks_is_named_and_is_io_or_not() {
    for (cause, (named, is_io)) in [
        ("reading", true),
        ("writing", true),
        ("fsync", true),
        ("metadata", true),
        ("in page faults", true),
        ("changing memory maps", false),
        ("starting children (vfork)", false),
        ("loading programs", true),
        ("exiting", false),
        ("in drivers (ioctl)", false),
        ("other", false),
    ]
    .into_iter()
    .enumerate()
    {
        let text = said(&blocked_for(cause));
        assert!(text.contains(&format!("blocked 97 %: 97 % {named}")), "{named}: {text}");
        let io = if is_io { "97 % 58.0 s" } else { "0 % none" };
        let bar = text.split("blocked (I/O)").nth(1).unwrap().trim_start_matches(['█', '▏', ' ']);
        let bar = bar.trim_start_matches(['▎', '▍', '▌', '▋', '▊', '▉', ' ']);
        assert!(bar.starts_with(io), "{named}: {text}");
        assert_eq!(text.contains("blocked otherwise"), !is_io, "{named}: {text}");
        assert_eq!(text.contains("blocked on I/O"), is_io && !matches!(cause, 2 | 3), "{text}");
    }
}
