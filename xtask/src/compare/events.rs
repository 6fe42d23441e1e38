//! Nanoseconds that a tracer's BPF programs take for one event of the workload, all of them added
//! up: a tracer with a program on `sched_wakeup` and one on `sched_switch` pays for both at each
//! switch.

use super::cases::{Case, Kind};
use super::floor::{Floor, HOOKS, Hook, Runs, counter_of, hook_of, kind_of};
use super::subjects::{Place, Subject, USUAL_INTERVAL_S};
use crate::bench::watch::Watch;
use crate::bench::workloads::Tracing;
use crate::bpf::{self, Program};
use crate::process::say;
use anyhow::{Context, Result, ensure};
use std::process::Stdio;

/// Runs with jobtrace, of which the median counts; peers have half as many.
pub const ROUNDS: usize = 5;
/// Programs that ran at fewer than one in so many events are left out of the table.
const SELDOM: u64 = 100;

/// One program of a tracer.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramCost {
    /// Its name as the kernel has it.
    pub name: String,
    /// How often it ran.
    pub runs: u64,
    /// Mean time of a run, statistics' own included.
    pub gross_ns: f64,
    /// The same of an empty program on its hook; unknown where the hook is.
    pub empty_ns: Option<f64>,
}

/// What a tracer takes for each event of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// How many events there were.
    pub events: u64,
    /// Time in its programs for each, statistics' own included.
    pub gross_ns: f64,
    /// The same of empty programs on the same hooks that ran as often.
    pub empty_ns: f64,
    /// Its programs that ran at one in a hundred events or more.
    pub programs: Vec<ProgramCost>,
}

impl Cost {
    /// What is its own.
    pub fn net_ns(&self) -> f64 {
        self.gross_ns - self.empty_ns
    }
}

/// One tracer under one workload.
pub struct Row {
    /// The workload.
    pub case: &'static str,
    /// The tracer.
    pub subject: &'static str,
    /// The run with the median of what is its own, or why there is none.
    pub cost: Result<Cost, String>,
    /// What was its own in each run, the least first.
    pub net_ns: Vec<f64>,
}

/// Runs each workload with each tracer that looks at its kind, in turns, with statistics on.
///
/// # Errors
/// When statistics cannot be switched on or empty programs not be attached.
pub fn measure(
    place: &Place,
    cases: &[Case],
    subjects: &[Subject],
    rounds: usize,
) -> Result<Vec<Row>> {
    let _statistics = bpf::enable_stats()?;
    let mut rows = Vec::new();
    for case in cases.iter().filter(|case| case.events.is_some()) {
        let concerned = |subject: &&Subject| subject.looks_at(case.kind) && subject.has_programs();
        let subjects: Vec<_> = subjects.iter().filter(concerned).collect();
        let mut costs: Vec<Result<Vec<Cost>, String>> = vec![Ok(Vec::new()); subjects.len()];
        for round in 0..rounds.max(1) {
            say(format_args!("{}: with statistics, round {}", case.workload.name, round + 1));
            for (subject, costs) in subjects.iter().zip(&mut costs) {
                let Ok(found) = costs else { continue };
                if subject.is_peer() && found.len() >= rounds.div_ceil(2) {
                    continue;
                }
                let floor = Floor::attach(HOOKS.into_iter())?;
                match run(place, case, subject, &floor) {
                    Ok(cost) => found.push(cost),
                    Err(error) => *costs = Err(format!("{error:#}")),
                }
            }
        }
        let row = |(subject, costs): (&&Subject, _)| Row::new(case.id, subject.id(), costs);
        rows.extend(subjects.iter().zip(costs).map(row));
    }
    Ok(rows)
}

impl Row {
    fn new(case: &'static str, subject: &'static str, costs: Result<Vec<Cost>, String>) -> Self {
        let mut costs = match costs {
            Ok(costs) => costs,
            Err(why) => return Self { case, subject, cost: Err(why), net_ns: Vec::new() },
        };
        costs.sort_by(|a, b| a.net_ns().total_cmp(&b.net_ns()));
        let net_ns = costs.iter().map(Cost::net_ns).collect();
        let middle = costs.len().saturating_sub(1) / 2;
        let cost = costs.into_iter().nth(middle).ok_or_else(|| "not run".to_owned());
        Self { case, subject, cost, net_ns }
    }
}

fn run(place: &Place, case: &Case, subject: &Subject, floor: &Floor) -> Result<Cost> {
    let (programs, before, after);
    if let Subject::Run = subject {
        before = floor.read_runs()?;
        let mut command = case.workload.command(Tracing::On);
        let watch = Watch::run(command.stdout(Stdio::null()))?;
        after = floor.read_runs()?;
        let all = watch.programs.values().map(bpf::program).collect::<Result<Vec<_>>>()?;
        // A look between its fork and its exec shows the empty programs, which this process holds.
        programs = all.into_iter().filter(|program| !program.name.starts_with("empty_")).collect();
    } else {
        let beside = subject.start(place, USUAL_INTERVAL_S)?;
        let earlier = beside.attached.read_programs()?;
        before = floor.read_runs()?;
        case.workload.run(Tracing::Off)?;
        after = floor.read_runs()?;
        programs = since(&earlier, &beside.attached.read_programs()?);
        beside.end()?;
    }
    let floor: Vec<_> = before
        .iter()
        .zip(&after)
        .map(|((hook, before), (_, after))| {
            let count = after.count - before.count;
            (*hook, Runs { count, time_ns: after.time_ns - before.time_ns })
        })
        .collect();
    check_floor(case, &floor)?;
    let cost = cost(case.kind, &programs, &floor).context("no event was counted")?;
    // jobtrace has modes with no program on the path of some events; a peer is chosen for its own.
    ensure!(!subject.is_peer() || cost.gross_ns > 0.0, "none of its programs ran");
    Ok(cost)
}

/// Had the empty programs missed events, every figure beside them would be wrong.
fn check_floor(case: &Case, floor: &[(Hook, Runs)]) -> Result<()> {
    let least = case.events.unwrap_or(0);
    let counter = floor.iter().find(|(hook, _)| hook.name == counter_of(case.kind));
    let counted = counter.map_or(0, |(_, runs)| runs.count);
    ensure!(counted >= least, "{} ran {counted} times of {least} at least", counter_of(case.kind));
    Ok(())
}

/// What each program ran between two looks, which list the same programs in the same order.
fn since(before: &[Program], after: &[Program]) -> Vec<Program> {
    let less = |(before, after): (&Program, &Program)| Program {
        name: after.name.clone(),
        run_time_ns: after.run_time_ns - before.run_time_ns,
        run_count: after.run_count - before.run_count,
        ..after.clone()
    };
    before.iter().zip(after).map(less).collect()
}

/// Adds up the programs on hooks of this kind, and those on hooks that we do not know: for these the
/// empty program that counts the events stands in. Pure.
fn cost(kind: Kind, programs: &[Program], floor: &[(Hook, Runs)]) -> Option<Cost> {
    let runs_of =
        |name: &str| floor.iter().find(|(hook, _)| hook.name == name).map(|(_, runs)| runs);
    let of_kind: Vec<(Option<Hook>, &Program)> = programs
        .iter()
        .filter(|program| program.run_count > 0)
        .filter(|program| kind_of(&program.name).is_none_or(|its| its == kind))
        .map(|program| (hook_of(&program.name), program))
        .collect();
    // The tracer may have come later than the floor, as `jobtrace run` does, and have seen fewer.
    let is_counter = |hook: &Option<Hook>| hook.is_some_and(|hook| hook.name == counter_of(kind));
    let seen = of_kind.iter().filter(|(hook, _)| is_counter(hook)).map(|(_, p)| p.run_count).max();
    let events = seen.or_else(|| Some(runs_of(counter_of(kind))?.count))?;
    // Statistics are in what programs on other hooks took, too.
    let stand_in_ns = runs_of(counter_of(kind)).and_then(|runs| mean(runs.time_ns, runs.count));
    let mut cost = Cost { events, gross_ns: 0.0, empty_ns: 0.0, programs: Vec::new() };
    for (hook, program) in of_kind {
        let empty_ns = hook
            .and_then(|hook| runs_of(hook.name))
            .and_then(|runs| mean(runs.time_ns, runs.count));
        let gross_ns = mean(program.run_time_ns, program.run_count)?;
        let runs_per_event = program.run_count as f64 / events as f64;
        cost.gross_ns += gross_ns * runs_per_event;
        cost.empty_ns += empty_ns.or(stand_in_ns).unwrap_or(0.0) * runs_per_event;
        if program.run_count >= events / SELDOM {
            let (name, runs) = (program.name.clone(), program.run_count);
            cost.programs.push(ProgramCost { name, runs, gross_ns, empty_ns });
        }
    }
    cost.programs.sort_by(|a, b| a.name.cmp(&b.name));
    (events > 0).then_some(cost)
}

fn mean(time_ns: u64, runs: u64) -> Option<f64> {
    (runs > 0).then(|| time_ns as f64 / runs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, run_time_ns: u64, run_count: u64) -> Program {
        Program { name: name.to_owned(), run_time_ns, run_count, ..Program::default() }
    }

    fn floor(figures: &[(&str, u64, u64)]) -> Vec<(Hook, Runs)> {
        let find = |name| HOOKS.into_iter().find(|hook| hook.name == name).expect("a hook");
        figures
            .iter()
            .map(|&(name, time_ns, count)| (find(name), Runs { count, time_ns }))
            .collect()
    }

    #[test]
    fn a_switch_costs_what_all_programs_take_for_it() {
        // Half as many wakeups as switches; a program that ran seldom counts but has no row.
        let programs = [
            program("sched_switch", 450_000, 1_000),
            program("sched_wakeup", 150_000, 500),
            program("sched_wakeup_ne", 900, 3),
            program("block_rq_comple", 1_000_000, 900),
        ];
        let floor = floor(&[
            ("sched_switch", 50_000, 1_000),
            ("sched_wakeup", 20_000, 500),
            ("sched_wakeup_new", 300, 3),
            ("block_rq_complete", 1, 1),
        ]);
        let cost = cost(Kind::Switch, &programs, &floor).expect("events");
        assert_eq!(cost.events, 1_000);
        assert!((cost.gross_ns - 600.9).abs() < 1e-9, "{}", cost.gross_ns);
        assert!((cost.empty_ns - 70.3).abs() < 1e-9, "{}", cost.empty_ns);
        assert!((cost.net_ns() - 530.6).abs() < 1e-9);
        let names: Vec<_> = cost.programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["sched_switch", "sched_wakeup"]);
        assert_eq!(cost.programs[1].empty_ns, Some(40.0));
    }

    #[test]
    fn programs_on_unknown_hooks_count_and_no_events_are_no_cost() {
        let programs = [program("minor_fault_lat", 2_000, 10)];
        let floor = floor(&[("page_fault_user", 32_000, 640)]);
        let cost = cost(Kind::Fault, &programs, &floor).expect("events");
        assert_eq!((cost.gross_ns, cost.empty_ns), (2_000.0 / 640.0, 500.0 / 640.0));
        assert_eq!(cost.programs[0].empty_ns, None, "not measured on its own hook");
        assert!(super::cost(Kind::Block, &programs, &floor).is_none(), "not counted");
        assert!(super::cost(Kind::Fault, &programs, &[]).is_none());
    }

    #[test]
    fn a_tracer_that_came_late_is_charged_for_what_it_saw() {
        let floor = floor(&[("page_fault_user", 40_000, 1_000)]);
        let late = cost(Kind::Fault, &[program("page_fault_user", 32_000, 400)], &floor);
        let late = late.expect("events");
        assert_eq!((late.events, late.gross_ns, late.empty_ns), (400, 80.0, 40.0));
        let without = cost(Kind::Fault, &[], &floor).expect("events");
        assert_eq!((without.events, without.gross_ns), (1_000, 0.0));
    }

    #[test]
    fn of_several_runs_the_median_counts() {
        let of = |gross_ns| Cost { events: 1, gross_ns, empty_ns: 40.0, programs: Vec::new() };
        let row = Row::new("pipe", "a", Ok(vec![of(90.0), of(140.0), of(85.0)]));
        assert_eq!(row.cost, Ok(of(90.0)));
        assert_eq!(row.net_ns, [45.0, 50.0, 100.0]);
        assert!(Row::new("pipe", "a", Ok(Vec::new())).cost.is_err());
    }

    #[test]
    fn only_what_ran_meanwhile_counts() {
        let (before, after) = ([program("a", 100, 1)], [program("a", 350, 6)]);
        assert_eq!(since(&before, &after), [program("a", 250, 5)]);
    }
}
