//! Why the job was slow and what to change, in a few sentences: a table of rules over the facts, for the summary, the
//! report and docs/FINDINGS.md.
//!
//! A rule says what was measured and what that usually means; it never guesses past that. Rules that
//! state facts (an out-of-memory kill) hold for any run, all others from their own least time on.

mod asked;
mod asleep;
mod below;
mod by_file;
mod cache;
mod calls;
mod cpu;
mod files;
mod hangs;
mod io;
mod mapped;
mod memory;
mod names;
mod programs;
mod table;
mod together;
mod waited;

pub(crate) use super::finding::{CORES_OF_A_GPU, Finding, Saves};
pub(crate) use memory::memory_enough;
pub use table::RULES;

use super::{
    Style,
    facts::Facts,
    line::{Line, Tone, labelled},
};
use crate::base::units::{duration, percent};

/// Sentences shown in a summary.
const MOST: usize = 3;
/// Starting a program takes tens of milliseconds; below this there is nothing but the start.
pub(crate) const LEAST_NS: u64 = 100_000_000;
/// A course over time takes some readings.
const COURSE_NS: u64 = 8_000_000_000;
/// Advice on what to ask a scheduler for is worth it from here on, as others have it.
pub(crate) const REQUEST_NS: u64 = 300_000_000_000;
/// Time on CPU from which a job is called CPU-bound.
const CPU_BOUND: f64 = 0.80;
/// Weight of facts: they come before any share of the time.
pub(crate) const FACT: f64 = 10.0;

/// The live tests of the rules that speak of single file operations: those that a deep dive alone counts.
const DIVE: &str = "dive";

/// One rule: when it speaks, and its sentence.
pub struct Rule {
    /// Its name: never renamed.
    pub id: &'static str,
    /// It is silent about jobs shorter than this.
    pub least_ns: u64,
    /// From when on it speaks, from the very constants.
    pub threshold: fn() -> String,
    /// Whose threshold that is; empty: ours, by trying.
    pub source: &'static str,
    /// What to do about it; empty: it is good news.
    pub advice: &'static str,
    /// The file of `tests/tests/live_findings` with really traced jobs that it speaks of and is silent about.
    pub shown: &'static str,
    find: fn(&Facts) -> Option<Finding>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

/// What the rules find, each with its rule, the weightiest first.
pub(crate) fn findings(facts: &Facts) -> Vec<(&'static Rule, Finding)> {
    let elapsed_ns = facts.totals.elapsed_ns;
    let rules = RULES.iter().filter(|rule| elapsed_ns >= rule.least_ns);
    let mut findings: Vec<_> = rules.filter_map(|rule| Some((rule, (rule.find)(facts)?))).collect();
    findings.sort_by(|(_, a), (_, b)| b.weight.total_cmp(&a.weight));
    findings
}

/// Names of what is said where no rule speaks, or there is too little time for any.
pub static OTHERWISE: [&str; 2] = ["nothing_stands_out", "too_short"];

/// What is said then, with its name.
pub(crate) fn otherwise(facts: &Facts, is_silent: bool) -> Option<(&'static str, Finding)> {
    let elapsed_ns = facts.totals.elapsed_ns;
    if elapsed_ns < LEAST_NS {
        let (took, least) = (duration(elapsed_ns), duration(LEAST_NS));
        let text = format!("too short to judge: {took}, where at least {least} are needed");
        return Some((OTHERWISE[1], Finding::new(0.0, Tone::Plain, text)));
    }
    is_silent.then(|| (OTHERWISE[0], nothing(facts)))
}

/// The sentences, the weightiest first.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    sentences(findings(facts), facts, style)
}

/// Those of file operations alone.
pub(crate) fn lines_of_dive(facts: &Facts, style: &Style) -> Vec<Line> {
    let mut findings = findings(facts);
    findings.retain(|(rule, _)| rule.shown == DIVE);
    sentences(findings, facts, style)
}

fn sentences(findings: Vec<(&'static Rule, Finding)>, facts: &Facts, style: &Style) -> Vec<Line> {
    let mut findings: Vec<_> = findings.into_iter().map(|(_, finding)| finding).collect();
    findings.extend(otherwise(facts, findings.is_empty()).map(|(_, finding)| finding));
    findings.truncate(MOST);
    let mut lines = vec![Line::new().strong("In short")];
    for Finding { tone, text, .. } in findings {
        lines.extend(labelled("  • ", 4, tone, &text, style));
    }
    lines
}

fn nothing(facts: &Facts) -> Finding {
    let text = match facts.on_cpu_ns.map(|ns| facts.share(ns)) {
        None => "too little is known to judge".to_owned(),
        Some(share) if share >= CPU_BOUND => {
            format!("nothing stands out: CPU-bound, {} on CPU", percent(share))
        }
        Some(share) => format!("nothing stands out: {} on CPU", percent(share)),
    };
    Finding::new(0.0, Tone::Good, text)
}
