//! What stands out and what to change, from the table of rules, and what to ask for next time.

use serde::Serialize;

use super::{idle, text::hours_shown};
use crate::{
    base::units::{bytes, cores as shown, long_duration},
    model::{
        end_reason::EndReason,
        tables::{Cpu, GPU, Gpu},
    },
    view::{
        facts::Facts,
        line::Tone,
        request::{self, Ask, LEAST_MEMORY_BYTES},
        rules::{self, FACT, Finding, REQUEST_NS, Rule, Saves, memory_enough},
    },
};

/// Findings at most.
const MOST: usize = 5;
/// Runs whose cost is stated beside this one's.
const RUNS: f64 = 100.0;
const HOUR_NS: f64 = 3.6e12;
/// Core time and GPU time below this saves nothing worth a word.
const LEAST_HOURS: f64 = 0.1;

/// A finding.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Name of its rule (docs/FINDINGS.md); `nothing_stands_out` and `too_short` where none speaks.
    pub rule: &'static str,
    /// Whether it holds for jobs of any length.
    #[serde(skip)]
    pub(super) is_fact: bool,
    #[serde(skip)]
    pub(crate) tone: Tone,
    /// What was seen.
    pub text: String,
    /// What to do about it; nothing about good news.
    pub advice: &'static str,
    /// The scheduler's option with a number.
    pub option: Option<String>,
    /// Core hours that it would save, at most.
    pub core_hours: Option<f64>,
    /// GPU hours.
    pub gpu_hours: Option<f64>,
    #[serde(skip)]
    ask: Option<Ask>,
}

impl Advice {
    /// Core hours that it would save, a GPU hour counting as some.
    pub(super) fn weight(&self) -> f64 {
        idle::weight(self.core_hours.unwrap_or(0.0), self.gpu_hours.unwrap_or(0.0))
    }

    /// `saves up to 9.70 core hours and 1.38 GPU hours`; nothing where that is nothing.
    pub(super) fn saves(&self) -> Option<String> {
        let hours = [(self.core_hours, "core hours"), (self.gpu_hours, "GPU hours")];
        let hours: Vec<_> = hours
            .iter()
            .filter_map(|(hours, what)| Some(format!("{} {what}", hours_shown((*hours)?))))
            .collect();
        (!hours.is_empty()).then(|| format!("saves up to {}", hours.join(" and ")))
    }
}

/// What the report says of what the rules find.
pub(super) fn advice(facts: &Facts) -> Vec<Advice> {
    let mut advice = all(facts);
    advice.truncate(MOST);
    let otherwise = rules::otherwise(facts, advice.is_empty());
    advice.extend(otherwise.map(|(rule, finding)| Advice {
        rule,
        is_fact: false,
        tone: finding.tone,
        text: finding.text,
        advice: "",
        option: None,
        core_hours: None,
        gpu_hours: None,
        ask: None,
    }));
    advice
}

/// What the rules find: facts first, then by the hours that it would save.
pub(super) fn all(facts: &Facts) -> Vec<Advice> {
    let saves = |finding: &Finding| finding.saves.unwrap_or_else(|| share_of_held(facts, finding));
    let mut found = rules::findings(facts);
    found.sort_by(|(_, a), (_, b)| {
        let key = |finding: &Finding| (finding.weight >= FACT, saves(finding).weight_ns());
        key(b).cmp(&key(a)).then(b.weight.total_cmp(&a.weight))
    });
    found.into_iter().map(|(rule, finding)| of(rule, saves(&finding), finding, facts)).collect()
}

/// A finding that says nothing else would save its share of the core time held; a good one nothing.
fn share_of_held(facts: &Facts, finding: &Finding) -> Saves {
    let held_ns = facts.core_held_ns().unwrap_or(0) as f64;
    let share = if finding.tone == Tone::Good { 0.0 } else { finding.weight.clamp(0.0, 1.0) };
    Saves { core_ns: (held_ns * share) as u64, gpu_ns: 0 }
}

fn of(rule: &'static Rule, saves: Saves, finding: Finding, facts: &Facts) -> Advice {
    let is_saved = |hours: &f64| *hours >= LEAST_HOURS && !finding.has_price;
    let hours = |ns: u64| Some(ns as f64 / HOUR_NS).filter(is_saved);
    let is_whole = facts.request.took_ns >= REQUEST_NS && facts.request.ended_itself;
    let ask = finding.ask.filter(|_| is_whole || finding.weight >= FACT);
    Advice {
        rule: rule.id,
        is_fact: finding.weight >= FACT,
        tone: finding.tone,
        text: finding.text,
        advice: rule.advice,
        option: ask.map(|ask| ask.option(&facts.request.manager)),
        core_hours: hours(saves.core_ns),
        gpu_hours: hours(saves.gpu_ns),
        ask,
    }
}

/// What to ask for next time, or know before it.
#[derive(Debug, Serialize)]
pub struct Next {
    /// The scheduler's option, or what is told.
    pub what: String,
    /// Why that much.
    pub why: String,
}

/// What to ask for; nothing for jobs too short to tell, or that have not ended. Of one that did not end by itself only
/// what it lacked is known.
pub(super) fn next(facts: &Facts, advice: &[Advice]) -> Vec<Next> {
    let request = &facts.request;
    if request.took_ns < REQUEST_NS || !request.has_ended {
        return Vec::new();
    }
    let asks = [memory(facts, advice), cores(facts, advice), time(facts, advice), gpus(advice)];
    let mut next = options(asks.into_iter().flatten().collect(), &request.manager);
    next.extend(copies(facts, advice));
    next.extend(cost(facts));
    next
}

/// Each with its option; PBS has one for all that it wants of a node.
fn options(asks: Vec<(Ask, String)>, manager: &str) -> Vec<Next> {
    let is_chunk = |(ask, _): &(Ask, String)| manager == "pbs" && !matches!(ask, Ask::Time(_));
    let (chunk, others): (Vec<_>, Vec<_>) = asks.into_iter().partition(is_chunk);
    let (chunk, why): (Vec<_>, Vec<_>) = chunk.into_iter().unzip();
    let select = (!chunk.is_empty())
        .then(|| Next { what: request::pbs_select(&chunk), why: why.join("; ") });
    let others = others.into_iter().map(|(ask, why)| Next { what: ask.option(manager), why });
    select.into_iter().chain(others).collect()
}

fn asked(advice: &[Advice], is: fn(&Ask) -> bool) -> Option<Ask> {
    advice.iter().filter_map(|one| one.ask).find(is)
}

fn memory(facts: &Facts, advice: &[Advice]) -> Option<(Ask, String)> {
    let by_rule = asked(advice, |ask| matches!(ask, Ask::Memory(_)));
    if facts.oom_kills() > 0 {
        return Some((by_rule?, "1.5 times what was not enough".to_owned()));
    }
    let needed = facts.memory_needed().filter(|needed| needed.most_bytes > 0)?;
    let is_short = advice.iter().any(|one| one.rule == "memory_short");
    let enough = || memory_enough(facts).filter(|_| !is_short).map(Ask::Memory);
    let ask = by_rule.or_else(enough).filter(|_| facts.request.ended_itself)?;
    let (did, most) =
        if needed.is_seen() { ("it needed", "") } else { ("it was charged", " at most") };
    let used = bytes(needed.most_bytes);
    let why =
        if ask == Ask::Memory(LEAST_MEMORY_BYTES) && needed.most_bytes < LEAST_MEMORY_BYTES / 2 {
            format!("{did} {used}{most}, and less than this is not worth asking for")
        } else if ask == Ask::memory_for(needed.most_bytes) {
            format!("1.2 times the {used} that {did}{most}")
        } else if facts.request.memory_for(needed.most_bytes) == Some(ask) {
            // Of what a node has Slurm keeps a part for itself.
            let all =
                if facts.request.manager == "slurm" { " (--mem=0 asks for all of it)" } else { "" };
            format!("{did} {used}{most}, and the node has no more{all}")
        } else {
            let Ask::Memory(enough) = ask else { return None };
            format!("{did} {used}{most}, and the {} allowed were enough", bytes(enough))
        };
    Some((ask, why))
}

fn cores(facts: &Facts, advice: &[Advice]) -> Option<(Ask, String)> {
    let ask = asked(advice, |ask| matches!(ask, Ask::Cores(_)))?;
    let tasks = facts.request.tasks_per_node();
    let most = facts.nodes.iter().map(|node| node.busiest_of_task(tasks)).max()?;
    let of_each = if tasks > 1 { " for each task" } else { "" };
    Some((ask, format!("it filled {}{of_each} at its busiest moment", shown(most))))
}

fn time(facts: &Facts, advice: &[Advice]) -> Option<(Ask, String)> {
    let by_rule = asked(advice, |ask| matches!(ask, Ask::Time(_)));
    let took_ns = facts.request.took_ns;
    let took = long_duration(took_ns);
    if facts.request.end_reason == EndReason::TimeLimit.word() {
        return Some((by_rule?, format!("1.5 times the {took} that were not enough")));
    }
    let ask = by_rule.unwrap_or_else(|| Ask::time_for(took_ns));
    facts.request.ended_itself.then(|| (ask, format!("1.2 times the {took} that it took")))
}

fn gpus(advice: &[Advice]) -> Option<(Ask, String)> {
    let ask = asked(advice, |ask| matches!(ask, Ask::Gpus(_)))?;
    Some((ask, "it used no more".to_owned()))
}

/// How many of this job fit on a node.
fn copies(facts: &Facts, advice: &[Advice]) -> Option<Next> {
    let request = &facts.request;
    // How many GPUs the node has nobody tells.
    let is_plain = request.ended_itself && facts.nodes.iter().all(|node| node.gpus == 0);
    // Each as large as it is told to ask for.
    let asked = advice.iter().find_map(|one| match one.ask {
        Some(Ask::Memory(bytes)) => Some(bytes),
        _ => None,
    });
    let memory = asked.or_else(|| memory_enough(facts)).filter(|_| is_plain)?;
    let fewer = advice.iter().find_map(|one| match one.ask {
        Some(Ask::Cores(cores)) => Some(cores.saturating_mul(request.tasks_per_node())),
        _ => None,
    });
    let held = facts.number(Cpu::cores_held)?.div_ceil(1000);
    let cores = fewer.unwrap_or(held).max(1);
    let by_memory = request.node_memory_bytes? / memory.max(1);
    let by_cores = request.node_cores? / cores;
    let copies = by_memory.min(by_cores);
    let bound = if by_memory < by_cores { "memory runs out" } else { "cores run out" };
    (request.nodes == 1 && copies > 1).then(|| Next {
        what: format!("{copies} copies fit on a node"),
        why: format!(
            "{cores} {} and {} each; {bound} first",
            if cores == 1 { "core" } else { "cores" },
            bytes(memory)
        ),
    })
}

/// Core hours in thousands, as many sites count them.
fn cost(facts: &Facts) -> Option<Next> {
    let hours = facts.core_held_ns()? as f64 / HOUR_NS;
    let gpus = facts.totals.stats.groups(&GPU).filter_map(|gpu| gpu.number(Gpu::held_ns));
    let gpu_hours = gpus.reduce(u64::saturating_add).map(|ns| ns as f64 / HOUR_NS);
    let gpus =
        gpu_hours.map_or(String::new(), |hours| format!(" and {} GPU hours", hours_shown(hours)));
    Some(Next {
        what: ksu(hours),
        why: format!(
            "{} core hours{gpus} for this run; {} for {RUNS} such runs",
            hours_shown(hours),
            ksu(hours * RUNS)
        ),
    })
}

/// `0.008 kSU`; less than can be shown so is not nothing.
fn ksu(core_hours: f64) -> String {
    match core_hours {
        0.5.. => format!("{:.3} kSU", core_hours / 1000.0),
        _ => "<0.001 kSU".to_owned(),
    }
}
