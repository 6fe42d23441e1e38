//! Why the job was slow, in one to three sentences: a table of rules over the facts.
//!
//! A rule says what was measured and what that usually means; it never guesses past that. Rules that
//! state facts (an out-of-memory kill) hold for any run, all others need [`LEAST_NS`] of it.

mod asleep;
mod calls;
mod cpu;
mod io;
mod memory;

use super::{
    Style,
    facts::Facts,
    finding::Finding,
    gpu_idle,
    line::{Line, Tone, labelled},
};
use crate::base::units::{duration, percent};

/// Sentences shown.
const MOST: usize = 3;
/// Starting a program takes tens of milliseconds; below this there is nothing but the start.
const LEAST_NS: u64 = 100_000_000;
/// Time on CPU from which a job is called CPU-bound.
const CPU_BOUND: f64 = 0.80;
/// Weight of facts: they come before any share of the time.
const FACT: f64 = 10.0;

/// One rule: whether it holds for a run however short, and its sentence where it applies.
struct Rule {
    is_fact: bool,
    find: fn(&Facts) -> Option<Finding>,
}

const fn fact(find: fn(&Facts) -> Option<Finding>) -> Rule {
    Rule { is_fact: true, find }
}

const fn advice(find: fn(&Facts) -> Option<Finding>) -> Rule {
    Rule { is_fact: false, find }
}

static RULES: [Rule; 19] = [
    fact(memory::out_of_memory),
    fact(io::disk_errors),
    advice(io::blocked),
    advice(calls::sync),
    advice(calls::metadata),
    advice(calls::memory_maps),
    advice(calls::vfork),
    advice(calls::otherwise),
    advice(cpu::waited),
    advice(memory::major_faults),
    advice(memory::minor_faults),
    advice(asleep::all_asleep),
    advice(asleep::pool),
    advice(asleep::poll),
    advice(asleep::locks),
    advice(cpu::idle_cores),
    advice(memory::memory_short),
    advice(gpu_idle::finding),
    advice(gpu_idle::unused),
];

/// The sentences, the weightiest first.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    let elapsed_ns = facts.totals.elapsed_ns;
    let long_enough = elapsed_ns >= LEAST_NS;
    let rules = RULES.iter().filter(|rule| rule.is_fact || long_enough);
    let mut findings: Vec<_> = rules.filter_map(|rule| (rule.find)(facts)).collect();
    if !long_enough {
        let (took, least) = (duration(elapsed_ns), duration(LEAST_NS));
        let text = format!("too short to judge: {took}, where at least {least} are needed");
        findings.push(Finding { weight: 0.0, tone: Tone::Plain, text });
    } else if findings.is_empty() {
        findings.push(nothing(facts));
    }
    findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
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
    Finding { weight: 0.0, tone: Tone::Good, text }
}
