//! What is not in the numbers of a report, said aloud.

use super::Who;
use crate::{
    base::{text::clean, units::long_duration},
    model::{
        gaps::{Gap, NO_AGENT, NO_SLOT, SCHED},
        tables::{Fact, GPU, WAIT, fact},
    },
    record::Record,
    view::{facts::Facts, footer, rules::REQUEST_NS},
};

/// A sentence for each thing.
pub(super) fn unseen(facts: &Facts, record: &Record, who: &Who) -> Vec<String> {
    let mut said: Vec<String> =
        record.totals.notes.iter().map(|note| clean(note, facts.unicode)).collect();
    let unknown: Vec<_> =
        record.totals.unknown.iter().map(|key| clean(key, facts.unicode)).collect();
    if !unknown.is_empty() {
        said.push(format!("unknown there (docs/RECORD.md): {}", unknown.join(", ")));
    }
    said.extend(record.totals.gaps.iter().map(|gap| not_counted(gap, facts.unicode)));
    if record.facts.has(const { fact("counted_from") }) {
        said.push("what the job did before it was counted is in no number here".into());
    }
    if who.is_set_back() {
        said.push(
            "its end is before its start: a clock of the node was set back while it ran. How long things took is \
             measured by another one, which nobody sets"
                .into(),
        );
    }
    let request = &facts.request;
    if request.has_ended && !request.ended_itself && request.took_ns >= REQUEST_NS {
        said.push("it was ended or failed, so what it needs to the end is not known".into());
    }
    if facts.request.memory_bytes.is_none() && facts.request.time_ns.is_none() {
        let has = |row: &'static Fact| record.facts.has(row);
        if !has(const { fact("time_limit_end") }) && record.job().manager != "run" {
            said.push("what was asked for (memory, time) is not known".into());
        }
    }
    if record.totals.stats.group(&WAIT).is_none() {
        said.push("disks are the node's own: network file systems bypass them".into());
    }
    if record.totals.stats.groups(&GPU).next().is_some() {
        said.push("a GPU is busy while any kernel runs on it, however small".into());
    }
    let of_whom = match record.job().manager.as_str() {
        "run" => "",
        _ => "; of all jobs on its nodes: `dropped_slot` and the like in docs/METRICS.md",
    };
    said.extend(footer::lost(facts).map(|lost| lost + of_whom));
    said.extend(footer::missing(facts).map(|missing| format!("hooks: {missing}")));
    said
}

/// What was not counted for a part of the time, and why.
fn not_counted(gap: &Gap, unicode: bool) -> String {
    let time = long_duration(gap.for_ns);
    match gap.what.as_str() {
        NO_AGENT => format!("for {time} no agent ran: what the job did then is in no number here"),
        NO_SLOT => format!(
            "for {time} no slot was free for the job: what it did then is in no number here"
        ),
        what => {
            let what = match what {
                SCHED => "time on CPU, waits and sleep were".to_owned(),
                other => format!("`{}` was", clean(other, unicode)),
            };
            format!(
                "for {time} {what} not counted: the agent had detached its probes, to keep its cost within bounds"
            )
        }
    }
}
