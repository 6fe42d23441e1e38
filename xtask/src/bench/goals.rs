//! What jobtrace is to cost, each goal with the figures that tell whether it is met. Pure.

use super::events::{Cost, Costs};
use super::found::{Found, figure_of};
use super::pairs::Pairs;
use super::shares::Shares;
use std::fmt::Write as _;

/// Of a switch, over what an empty program takes.
const MOST_SWITCH_NS: f64 = 45.0;
/// Of a message, sent or received, over what an empty program takes.
const MOST_MESSAGE_NS: f64 = 60.0;
/// A peer's run-queue histogram by cgroup takes so many times more over it.
const LEAST_TIMES: f64 = 8.0;
/// Of `perf bench sched pipe`.
const MOST_PIPE_RATIO: f64 = 0.05;
/// Of jobs that compile and compute, and of one with steps of 50 us.
const MOST_JOB_RATIO: f64 = 0.003;
const MOST_STEPS_RATIO: f64 = 0.007;
/// Jobs, by the workload's name, what they are called and how much slower they may be.
const JOBS: [(&str, &str, f64); 4] = [
    ("compile", "a compile job", MOST_JOB_RATIO),
    ("compute", "a compute job", MOST_JOB_RATIO),
    ("steps-50us", "a job with a barrier each 50 µs", MOST_STEPS_RATIO),
    ("steps-1ms", "a job with a barrier each millisecond", MOST_JOB_RATIO),
];

/// Whether a goal is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Met,
    /// It is not.
    NotMet,
    /// The figures do not tell: there are none, or they are too coarse.
    Open,
}

/// One goal.
#[derive(Debug, PartialEq)]
pub struct Goal {
    /// Whether it is met.
    pub verdict: Verdict,
    /// What it says.
    pub text: String,
    /// What was found.
    pub found: String,
}

/// All goals, by these figures; `by_cgroup` names the peers with a run-queue histogram by cgroup.
pub fn check(
    events: &[Found<Costs>],
    slowdowns: &[Found<Pairs>],
    shares: &[Found<Shares>],
    by_cgroup: &[&str],
) -> Vec<Goal> {
    let mut goals = vec![switch(events), times(events, by_cgroup), pipe(slowdowns)];
    goals.extend(JOBS.map(|which| job(slowdowns, shares, which)));
    goals.push(message(events));
    goals
}

fn of_pipe<'a>(events: &'a [Found<Costs>], tracer: &str) -> Option<&'a Cost> {
    figure_of(events, "pipe", tracer).map(|costs| &costs.median)
}

fn switch(events: &[Found<Costs>]) -> Goal {
    let text = format!(
        "the switch path with all of `job_sched` takes at most {MOST_SWITCH_NS:.0} ns over the \
         empty program's"
    );
    let (mut found, mut met) = (String::new(), None);
    for tracer in ["jobtrace agent", "jobtrace run"] {
        let Some(cost) = of_pipe(events, tracer) else { continue };
        let (gross, empty) = (cost.gross_ns, cost.empty_ns);
        let _ = write!(found, "{tracer} {:.1} ns ({gross:.1} less {empty:.1}); ", cost.net_ns());
        met = Some(met.unwrap_or(true) && cost.net_ns() <= MOST_SWITCH_NS);
    }
    goal(met, text, &found)
}

fn message(events: &[Found<Costs>]) -> Goal {
    let text = format!(
        "a message takes at most {MOST_MESSAGE_NS:.0} ns over the empty program's where it is sent, and \
         as much where it is received"
    );
    let (mut found, mut met) = (String::new(), None);
    for tracer in ["jobtrace agent", "jobtrace run"] {
        let Some(costs) = figure_of(events, "messages", tracer) else { continue };
        for program in &costs.median.programs {
            let Some(empty_ns) = program.empty_ns.filter(|_| program.name.starts_with("sock_"))
            else {
                continue;
            };
            let net_ns = program.gross_ns - empty_ns;
            let (name, gross) = (&program.name, program.gross_ns);
            let _ =
                write!(found, "{tracer} {name} {net_ns:.1} ns ({gross:.1} less {empty_ns:.1}); ");
            met = Some(met.unwrap_or(true) && net_ns <= MOST_MESSAGE_NS);
        }
    }
    goal(met, text, &found)
}

fn times(events: &[Found<Costs>], by_cgroup: &[&str]) -> Goal {
    let text = format!(
        "that is at least {LEAST_TIMES:.0} times less than any peer's run-queue histogram by cgroup"
    );
    let Some(ours) = of_pipe(events, "jobtrace agent") else { return goal(None, text, "") };
    let (mut found, mut met) = (String::new(), None);
    for peer in by_cgroup {
        let Some(cost) = of_pipe(events, peer) else { continue };
        // Below 1 ns the empty program's own noise would make any factor.
        let times = cost.net_ns() / ours.net_ns().max(1.0);
        let _ = write!(found, "{peer} {:.1} ns, {times:.1} times; ", cost.net_ns());
        met = Some(met.unwrap_or(true) && times >= LEAST_TIMES);
    }
    goal(met, text, &found)
}

fn pipe(slowdowns: &[Found<Pairs>]) -> Goal {
    let text = format!(
        "all families together slow `perf bench sched pipe` by at most {} %",
        100.0 * MOST_PIPE_RATIO
    );
    let (mut found, mut met) = (String::new(), None);
    for tracer in ["jobtrace agent", "jobtrace run", "empty programs"] {
        let Some(pairs) = figure_of(slowdowns, "pipe", tracer) else { continue };
        let Some(median) = pairs.slowdown_ratio().map(|spread| spread.median) else { continue };
        let _ = write!(found, "{tracer} {}; ", slowdown(pairs));
        if tracer != "empty programs" {
            met = Some(met.unwrap_or(true) && median <= MOST_PIPE_RATIO);
        }
    }
    goal(met, text, &found)
}

/// Met where the whole interval lies below the limit; or where the pairs cannot tell it from nothing
/// attached, and by the kernel's account the programs take less. Noise alone is no proof.
fn job(
    slowdowns: &[Found<Pairs>],
    shares: &[Found<Shares>],
    (name, what, most): (&str, &str, f64),
) -> Goal {
    let text = format!("{what} is slowed by less than {:.1} %", 100.0 * most);
    let Some(pairs) = figure_of(slowdowns, name, "jobtrace agent") else {
        return goal(None, text, "");
    };
    let interval = pairs.slowdown_interval();
    let is_told = interval.map(|(low, high)| low > 0.0 || high < 0.0);
    let shares = figure_of(shares, name, "jobtrace agent");
    let taken = shares.map(|shares| shares.least_and_greatest[1]);
    let met = match interval {
        Some((_, high)) if high < most => Some(true),
        Some((low, _)) if low >= most => Some(false),
        Some(_) if is_told == Some(false) && taken.is_some_and(|taken| taken < most) => Some(true),
        _ => None,
    };
    let mut found = slowdown(pairs);
    if let Some(is_told) = is_told {
        let told = if is_told { "" } else { "not " };
        let _ = write!(found, "; {told}to be told from nothing attached");
    }
    if let Some(taken) = taken {
        let _ = write!(found, "; its programs take at most {:.3} % of it", 100.0 * taken);
    }
    goal(met, text, &found)
}

/// Median, interval and number of pairs.
pub fn slowdown(pairs: &Pairs) -> String {
    let Some(spread) = pairs.slowdown_ratio() else { return "–".to_owned() };
    let interval = pairs.slowdown_interval().map_or(String::new(), |(low, high)| {
        format!(", 95 %: {:+.2} to {:+.2}", 100.0 * low, 100.0 * high)
    });
    format!("{:+.2} % ({} pairs{interval})", 100.0 * spread.median, pairs.count())
}

/// A goal that is met or not, if that is known.
pub fn goal(met: Option<bool>, text: String, found: &str) -> Goal {
    let verdict = match met {
        Some(true) => Verdict::Met,
        Some(false) => Verdict::NotMet,
        None => Verdict::Open,
    };
    let found = found.trim_end_matches("; ");
    let found = if found.is_empty() { "not measured" } else { found };
    Goal { verdict, text, found: found.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::shares::Share;
    use super::*;

    fn found<T>(workload: &'static str, tracer: &'static str, figure: T) -> Found<T> {
        Found { workload, tracer, figure: Ok(figure) }
    }

    fn event(tracer: &'static str, net_ns: f64) -> Found<Costs> {
        let median =
            Cost { events: 1, gross_ns: 50.0 + net_ns, empty_ns: 50.0, programs: Vec::new() };
        found("pipe", tracer, Costs { median, net_ns: vec![net_ns] })
    }

    fn slow(workload: &'static str, tracer: &'static str, per_cent: &[f64]) -> Found<Pairs> {
        let mut pairs = Pairs::default();
        per_cent.iter().for_each(|slower| pairs.add(100.0, 100.0 + slower));
        found(workload, tracer, pairs)
    }

    #[test]
    fn the_switch_is_measured_against_the_limit_and_each_peer() {
        let events = [event("jobtrace agent", 40.0), event("a", 400.0), event("b", 300.0)];
        let of = |peers: &[&str]| check(&events, &[], &[], peers);
        assert_eq!(of(&["a"])[0].verdict, Verdict::Met);
        assert_eq!(of(&["a"])[1].verdict, Verdict::Met);
        assert_eq!(of(&["a", "b"])[1].verdict, Verdict::NotMet);
        assert_eq!(of(&["a", "b"])[1].found, "a 400.0 ns, 10.0 times; b 300.0 ns, 7.5 times");
        assert_eq!(of(&["missing"])[1].verdict, Verdict::Open);
        let slower = check(&[event("jobtrace agent", 46.0)], &[], &[], &[]);
        assert_eq!(slower[0].verdict, Verdict::NotMet);
        let nothing = check(&[], &[], &[], &[]);
        assert!(nothing.iter().all(|goal| goal.verdict == Verdict::Open));
        assert!(nothing.iter().all(|goal| goal.found == "not measured"));
    }

    #[test]
    fn empty_programs_do_not_count_against_us() {
        let rows = [slow("pipe", "jobtrace agent", &[4.0]), slow("pipe", "empty programs", &[9.0])];
        let goal = &check(&[], &rows, &[], &[])[2];
        assert_eq!(goal.verdict, Verdict::Met);
        assert!(goal.found.contains("empty programs +9.00 % (1 pairs)"), "{}", goal.found);
    }

    #[test]
    fn a_job_is_only_shown_unslowed_by_an_interval_below_the_limit() {
        let by = |per_cent: &[f64], share: Option<f64>| {
            let median = Share { programs_ns: 0, runs: 0, job_ns: 1 };
            let shares = share.map(|most| {
                let shares = Shares { median, least_and_greatest: [0.0, most] };
                found("compute", "jobtrace agent", shares)
            });
            let rows = [slow("compute", "jobtrace agent", per_cent)];
            check(&[], &rows, shares.as_slice(), &[])[4].verdict
        };
        let verdict = |per_cent: &[f64]| by(per_cent, None);
        let noisy = [-1.0, 0.1, 0.1, 0.1, 0.1, 1.0];
        assert_eq!(by(&noisy, Some(0.002)), Verdict::Met, "by the kernel's account");
        assert_eq!(by(&noisy, Some(0.004)), Verdict::Open, "a share that is too large");
        assert_eq!(by(&[0.4; 6], Some(0.0)), Verdict::NotMet, "the pairs tell otherwise");
        assert_eq!(by(&[0.1, 0.1, 0.2, 0.3, 0.4, 0.5], Some(0.0)), Verdict::Open);
        assert_eq!(verdict(&[0.0; 6]), Verdict::Met);
        assert_eq!(verdict(&[0.0; 5]), Verdict::Open, "five pairs tell nothing");
        assert_eq!(verdict(&noisy), Verdict::Open, "too coarse");
        assert_eq!(verdict(&[0.4; 6]), Verdict::NotMet);
    }
}
