//! Rules for calls that move no data: attributes, folders and names asked for or changed, and locks waited for.

use super::{
    DIVE, Facts, Finding, LEAST_NS, Rule,
    files::{All, MANY, NAMES_TIME, in_a_dive, missing_files, small_files, sum},
};
use crate::{
    base::units::{count, percent},
    model::{group::Group, tables::Io},
    view::{
        file_ops::{ops, time_ns},
        io_threads::metadata,
    },
};

/// Waiting for locks matters from this part of the time in I/O on.
const LOCKS_TIME: f64 = 0.20;

pub(super) const MANY_NAMES: Rule = Rule {
    id: "many_names",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "more than {} of the time in I/O goes into {} calls or more that ask for or change names and attributes, \
             opens left out; where neither `small_files` nor `missing_files` speaks",
            percent(NAMES_TIME),
            count(MANY)
        ))
    },
    source: "",
    advice: "ask once and keep the answer (Python: os.scandir gives types with the names, in place of os.stat of each); \
             write to the final name, not to one that is renamed; keep fewer and larger files; work in a folder in memory \
             or on a local disk",
    shown: DIVE,
    find: many_names,
};

pub(super) const FILE_LOCKS: Rule = Rule {
    id: "file_locks",
    least_ns: LEAST_NS,
    threshold: || {
        in_a_dive(&format!(
            "{} of the time in I/O goes into waiting for locks of files",
            percent(LOCKS_TIME)
        ))
    },
    source: "",
    advice: "let one process write what the others send it, or give each a file of its own; keep a lock for as short as \
             the write takes; of a database that many write to, use one with a server",
    shown: DIVE,
    find: file_locks,
};

fn many_names(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    if small_files(facts).or_else(|| missing_files(facts)).is_some() {
        return None;
    }
    let kinds: Vec<_> =
        metadata().into_iter().filter(|op| !["open", "close"].contains(op)).collect();
    all.dearest(|mount, groups| {
        let (calls, cost_ns) = (sum(groups, &kinds, ops), sum(groups, &kinds, time_ns));
        let of_names = groups.iter().filter(|group| kinds.contains(&&*group.tags[2]));
        let dearest = of_names.max_by_key(|group| time_ns(group))?;
        (calls >= MANY && all.of_io(cost_ns) > NAMES_TIME).then(|| {
            let text = format!(
                "{} goes into names and attributes on {}: {} calls, most of it {}",
                all.cost(cost_ns),
                all.place(mount),
                count(calls),
                dearest.tags[2]
            );
            (cost_ns, text)
        })
    })
}

fn file_locks(facts: &Facts) -> Option<Finding> {
    let all = All::of(facts)?;
    all.dearest(|mount, groups| {
        let waited = |group: &Group| group.number(Io::waited_ns).unwrap_or(0);
        let cost_ns = sum(groups, &["lock"], waited);
        (cost_ns > 0 && all.of_io(cost_ns) >= LOCKS_TIME).then(|| {
            let text = format!(
                "{} goes into waiting for locks of files on {}: {} calls",
                all.cost(cost_ns),
                all.place(mount),
                count(sum(groups, &["lock"], ops))
            );
            (cost_ns, text)
        })
    })
}
