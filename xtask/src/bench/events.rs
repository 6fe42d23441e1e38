//! Nanoseconds that a tracer's BPF programs take for one event of the workload, all of them added
//! up: a tracer with a program on `sched_wakeup` and one on `sched_switch` pays for both at each
//! switch.

use super::empties::{Empties, Floor, Runs, counter_of, hook_of, kind_of};
use super::found::Found;
use super::tracers::{Place, Setting, Tracer};
use super::watch::Watch;
use super::workload::Kind;
use super::workload::{Workload, jobtrace};
use crate::bpf::{self, Program};
use crate::process::say;
use anyhow::{Context, Result, ensure};
use std::process::Stdio;

/// Programs that ran at fewer than one in so many events have no row.
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

/// The costs of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// The run with the median of what is the tracer's own.
    pub median: Cost,
    /// What was its own in each run, the least first.
    pub net_ns: Vec<f64>,
}

impl Costs {
    fn of(mut costs: Vec<Cost>) -> Option<Self> {
        costs.sort_by(|a, b| a.net_ns().total_cmp(&b.net_ns()));
        let net_ns = costs.iter().map(Cost::net_ns).collect();
        let middle = costs.len().checked_sub(1)? / 2;
        Some(Self { median: costs.swap_remove(middle), net_ns })
    }
}

/// The largest memory that was seen of one `jobtrace run`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Of its maps.
    pub map_bytes: u64,
    /// Resident, at its peak.
    pub peak_rss_bytes: u64,
}

/// Runs each workload that events dominate with each tracer that looks at its kind, in turns, with
/// statistics on.
///
/// # Errors
/// When statistics cannot be switched on or empty programs not be attached.
pub fn measure(
    place: &Place,
    workloads: &[Workload],
    tracers: &[Tracer],
    rounds: usize,
) -> Result<(Vec<Found<Costs>>, Memory)> {
    let _statistics = bpf::enable_stats()?;
    let empties = Empties::on_all()?;
    let (mut all, mut memory) = (Vec::new(), Memory::default());
    for workload in workloads.iter().filter(|workload| workload.events.is_some()) {
        let concerned = |it: &&Tracer| it.looks_at(workload.kind) && it.has_programs();
        let tracers: Vec<_> = tracers.iter().filter(concerned).collect();
        let mut costs: Vec<Result<Vec<Cost>, String>> = vec![Ok(Vec::new()); tracers.len()];
        for round in 0..rounds {
            say(format_args!("{}: with statistics, round {}", workload.name, round + 1));
            for (tracer, costs) in tracers.iter().zip(&mut costs) {
                let Ok(found) = costs else { continue };
                if found.len() >= tracer.share_of(rounds) {
                    continue;
                }
                match run(place, workload, tracer, &empties, &mut memory) {
                    Ok(cost) => found.push(cost),
                    Err(error) => *costs = Err(format!("{error:#}")),
                }
            }
        }
        for (tracer, costs) in tracers.into_iter().zip(costs) {
            let costs = costs.and_then(|costs| Costs::of(costs).ok_or("not run".to_owned()));
            all.push(Found::new(workload, tracer, costs));
        }
    }
    Ok((all, memory))
}

fn run(
    place: &Place,
    workload: &Workload,
    tracer: &Tracer,
    empties: &Empties,
    memory: &mut Memory,
) -> Result<Cost> {
    let (programs, floor);
    if let Tracer::Run = tracer {
        let before = empties.read_runs()?;
        let mut command = workload.command(&[&jobtrace()]);
        let watch = Watch::run(command.stdout(Stdio::null()))?;
        floor = empties.read_since(&before)?;
        programs = watch.programs.programs()?;
        memory.map_bytes = memory.map_bytes.max(watch.all_map_bytes());
        memory.peak_rss_bytes = memory.peak_rss_bytes.max(watch.peak_rss_bytes);
    } else {
        let beside = tracer.start(place, Setting::default())?;
        let earlier = beside.attached.read_programs()?;
        let before = empties.read_runs()?;
        workload.run_plain()?;
        floor = empties.read_since(&before)?;
        programs = since(&earlier, &beside.attached.read_programs()?);
        beside.attached.end()?;
    }
    // Had the empty programs missed events, every figure beside them would be wrong.
    let (least, counter) = (workload.events.unwrap_or(0), counter_of(workload.kind));
    let counted = floor.get(counter).map_or(0, |runs| runs.count);
    ensure!(counted >= least, "{counter} ran {counted} times of {least} at least");
    let cost = cost(workload.kind, &programs, &floor).context("no event was counted")?;
    // jobtrace has modes with no program on the path of some events; a peer is chosen for its own.
    let is_peer = matches!(tracer, Tracer::Peer(_));
    ensure!(!is_peer || cost.gross_ns > 0.0, "none of its programs ran");
    Ok(cost)
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
/// empty program that counts the events stands in. Programs on hooks of other kinds are told of and do not
/// count. Pure.
fn cost(kind: Kind, programs: &[Program], floor: &Floor) -> Option<Cost> {
    let ran: Vec<&Program> = programs.iter().filter(|program| program.run_count > 0).collect();
    let hook_name = |program: &Program| hook_of(&program.name).map(|hook| hook.name);
    // The tracer may have come later than the floor, as `jobtrace run` does, and have seen fewer.
    let is_counter = |program: &&&Program| hook_name(program) == Some(counter_of(kind));
    let seen = ran.iter().filter(is_counter).map(|program| program.run_count).max();
    let counter = floor.get(counter_of(kind)).copied().unwrap_or_default();
    let events = seen.unwrap_or(counter.count);
    let mut cost = Cost { events, gross_ns: 0.0, empty_ns: 0.0, programs: Vec::new() };
    for program in ran {
        let runs = Runs { count: program.run_count, time_ns: program.run_time_ns };
        let gross_ns = runs.mean_ns()?;
        let empty_ns =
            hook_name(program).and_then(|hook| floor.get(hook)).and_then(|runs| runs.mean_ns());
        if kind_of(&program.name).is_none_or(|its| its == kind) {
            let runs_per_event = runs.count as f64 / events as f64;
            cost.gross_ns += gross_ns * runs_per_event;
            // Statistics are in what programs on other hooks took, too.
            cost.empty_ns += empty_ns.or(counter.mean_ns()).unwrap_or(0.0) * runs_per_event;
        }
        if runs.count >= events / SELDOM {
            let name = program.name.clone();
            cost.programs.push(ProgramCost { name, runs: runs.count, gross_ns, empty_ns });
        }
    }
    cost.programs.sort_by(|a, b| a.name.cmp(&b.name));
    (events > 0).then_some(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, run_time_ns: u64, run_count: u64) -> Program {
        Program { name: name.to_owned(), run_time_ns, run_count, ..Program::default() }
    }

    fn floor(figures: &[(&str, u64, u64)]) -> Floor {
        let runs = |&(name, time_ns, count): &(&str, _, _)| (name.into(), Runs { count, time_ns });
        figures.iter().map(runs).collect()
    }

    #[test]
    fn a_switch_costs_what_all_programs_take_for_it() {
        // Half as many wakeups as switches; one that ran seldom counts and has no row; one of another kind
        // has a row and does not count.
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
        assert_eq!(names, ["block_rq_comple", "sched_switch", "sched_wakeup"]);
        assert_eq!(cost.programs[2].empty_ns, Some(40.0));
    }

    #[test]
    fn programs_on_unknown_hooks_count_and_no_events_are_no_cost() {
        let programs = [program("major_fault_lat", 2_000, 10)];
        let floor = floor(&[("page_fault_user", 32_000, 640)]);
        let cost = cost(Kind::Fault, &programs, &floor).expect("events");
        assert_eq!((cost.gross_ns, cost.empty_ns), (2_000.0 / 640.0, 500.0 / 640.0));
        assert_eq!(cost.programs[0].empty_ns, None, "not measured on its own hook");
        assert!(super::cost(Kind::Block, &programs, &floor).is_none(), "not counted");
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
        let costs = Costs::of(vec![of(90.0), of(140.0), of(85.0)]).expect("three");
        assert_eq!(costs.median, of(90.0));
        assert_eq!(costs.net_ns, [45.0, 50.0, 100.0]);
        assert!(Costs::of(Vec::new()).is_none());
    }

    #[test]
    fn only_what_ran_meanwhile_counts() {
        let (before, after) = ([program("a", 100, 1)], [program("a", 350, 6)]);
        assert_eq!(since(&before, &after), [program("a", 250, 5)]);
    }
}
