//! What the whole node asked of file servers while a job's file operations were counted, in words.

use std::cmp::Reverse;

use tracer_ebpf::handle::{Handle, Number};

use super::{facts::Facts, file_ops::name};
use crate::{
    base::units::{bytes, count, counted, duration},
    model::{
        group::Group,
        tables::{NODE_MOUNT, NodeMount},
    },
};

/// Kinds of requests at most.
const MOST: usize = 4;

/// What took longest first: `the whole node's requests to the server: 1.20k of read /home (nfs), 3.10 ms each, 2.90 ms
/// of it until the answer, 1.17 GiB received, 12 sent again, 1 failed`.
pub fn in_words(facts: &Facts) -> Vec<String> {
    let mut groups: Vec<&Group> = facts.totals.stats.groups(&NODE_MOUNT).collect();
    let cost = |group: &Group| [NodeMount::time_ns, NodeMount::ops].map(|of| known(group, of));
    groups.sort_by_key(|group| (Reverse(cost(group)), group.tags.clone()));
    let mut lines: Vec<_> =
        groups.iter().take(MOST).filter_map(|group| line(group, facts.unicode)).collect();
    if groups.len() > MOST {
        let rest = counted((groups.len() - MOST) as u64, "more kind");
        lines.push(format!("and {rest} of requests to servers"));
    }
    lines
}

fn known(group: &Group, field: Handle<Number>) -> u64 {
    group.number(field).unwrap_or(0)
}

fn line(group: &Group, unicode: bool) -> Option<String> {
    let [fs, mount, op] = &group.tags[..] else { return None };
    let ops = known(group, NodeMount::ops);
    let each = |field| known(group, field).checked_div(ops).filter(|ns| *ns > 0).map(duration);
    let some = |field| Some(known(group, field)).filter(|number| *number > 0);
    let parts = [
        each(NodeMount::time_ns).map(|ns| format!("{ns} each")),
        each(NodeMount::round_trip_ns).map(|ns| format!("{ns} of it until the answer")),
        some(NodeMount::sent_bytes).map(|number| format!("{} sent", bytes(number))),
        some(NodeMount::received_bytes).map(|number| format!("{} received", bytes(number))),
        some(NodeMount::retransmits).map(|number| format!("{} sent again", count(number))),
        some(NodeMount::timeouts).map(|number| format!("{} timed out", count(number))),
        some(NodeMount::errors).map(|number| format!("{} failed", count(number))),
    ];
    let parts: String = parts.into_iter().flatten().map(|part| format!(", {part}")).collect();
    let name = name(op, fs, mount, unicode);
    Some(format!("the whole node's requests to the server: {} of {name}{parts}", count(ops)))
}
