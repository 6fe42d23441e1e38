//! The rule for operations on files that had not returned when the counting ended.

use super::{DIVE, FACT, Facts, Finding, LEAST_NS, Rule, Tone};
use crate::{
    base::units::{counted, long_duration, percent},
    view::slow_ops::SlowRow,
};

/// What is under way for so long is no slow operation, but one that hangs.
const HANGS_NS: u64 = 1_000_000_000;
const HANGS: f64 = 0.25;

pub(super) const FILE_HANGS: Rule = Rule {
    id: "file_hangs",
    least_ns: LEAST_NS,
    threshold: || {
        format!(
            "with `jobtrace io`: at the end an operation on a file had not returned for {}, and {} of the time counted",
            long_duration(HANGS_NS),
            percent(HANGS)
        )
    },
    source: "",
    advice: "see whether the server or device behind that mount answers (`stat -f`, `dmesg`); of a lock, see who holds it \
             (`lslocks`); tell the administrator: the job cannot go on by itself",
    shown: DIVE,
    find: file_hangs,
};

fn file_hangs(facts: &Facts) -> Option<Finding> {
    let least_ns = HANGS_NS.max((facts.totals.elapsed_ns as f64 * HANGS) as u64);
    let mut hanging = SlowRow::all(facts);
    hanging.retain(|row| row.under_way && row.took_ns >= least_ns);
    let longest = hanging.first()?;
    let others = match hanging.len() - 1 {
        0 => String::new(),
        others => format!(", nor had {}", counted(others as u64, "other operation")),
    };
    let text = format!(
        "{} of {} had not returned after {}{others}",
        longest.name,
        longest.by,
        long_duration(longest.took_ns)
    );
    Some(Finding::new(FACT, Tone::Bad, text))
}
