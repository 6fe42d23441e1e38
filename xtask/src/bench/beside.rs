//! Two builds of jobtrace on the same events: one traces the other and its workload, then the other way
//! round, so that both see each event and a moment of the machine spoils neither alone. For changes of the
//! programs: what a nanosecond is worth shows here, not in two runs minutes apart.

use super::empties::{Empties, Floor, Runs, hook_of};
use super::pairs::{Spread, spread};
use super::workload::{Workload, jobtrace};
use crate::bpf::{self, Held, Program};
use crate::process::say;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;
use xtask::markdown::Table;

/// Fewer runs than this say more of the machine than of the program.
const ENOUGH_RUNS: u64 = 5_000;

/// Mean time of a run of one program: this checkout's, the other's, and the empty one's.
type Sample = [f64; 3];

/// The table: each workload `pairs` times in either order.
///
/// # Errors
/// When a workload fails, or `other` cannot be run.
pub fn table(workloads: &[Workload], other: &Path, pairs: usize) -> Result<Table> {
    let (ours, other) = (jobtrace(), std::path::absolute(other)?);
    let _statistics = bpf::enable_stats()?;
    let empties = Empties::on_ours()?;
    let mut table = Table::new(
        "workload | program | >runs compared | >this one | >the other | >difference | >least to greatest",
    );
    for workload in workloads {
        let mut samples: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
        for pair in 0..pairs * 2 {
            let is_outer = pair % 2 == 0;
            say(format_args!("{}: run {} of {}", workload.name, pair + 1, pairs * 2));
            let nesting = if is_outer { [&*ours, &other] } else { [&*other, &ours] };
            for (program, [outer, inner, empty]) in run(workload, nesting, &empties)? {
                let ns = if is_outer { [outer, inner, empty] } else { [inner, outer, empty] };
                samples.entry(program).or_default().push(ns);
            }
        }
        for (program, samples) in samples {
            add_row(&mut table, workload.id, &program, &samples);
        }
    }
    Ok(table)
}

/// Times of each program that ran often: the outer build's, the inner one's, the empty one's.
fn run(
    workload: &Workload,
    nesting: [&Path; 2],
    empties: &Empties,
) -> Result<BTreeMap<String, Sample>> {
    let known = bpf::programs()?;
    let before = empties.read_runs()?;
    let mut command = workload.command(&nesting);
    let mut child = command.stdout(Stdio::null()).spawn().context("start")?;
    let mut held = Held::default();
    let status = loop {
        held.add(&bpf::programs()?.into_keys().filter(|id| !known.contains_key(id)).collect())?;
        if let Some(status) = child.try_wait()? {
            break status;
        }
        sleep(Duration::from_millis(20));
    };
    if !status.success() {
        bail!("{} in {}: {status}", nesting[1].display(), nesting[0].display());
    }
    Ok(both(&held.programs()?, &empties.read_since(&before)?))
}

/// Of the programs in order of loading (the outer build's come first), those that are there twice and ran
/// often.
fn both(programs: &[Program], floor: &Floor) -> BTreeMap<String, Sample> {
    let mut by_name: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for program in programs.iter().filter(|program| program.run_count >= ENOUGH_RUNS) {
        let runs = Runs { count: program.run_count, time_ns: program.run_time_ns };
        by_name.entry(&program.name).or_default().extend(runs.mean_ns());
    }
    let times = |(name, found): (&str, Vec<f64>)| {
        let [outer, inner] = found[..] else { return None };
        let empty = floor.get(hook_of(name)?.name)?.mean_ns()?;
        Some((name.to_owned(), [outer, inner, empty]))
    };
    by_name.into_iter().filter_map(times).collect()
}

fn add_row(table: &mut Table, workload: &str, program: &str, samples: &[Sample]) {
    let of = |value: fn(&Sample) -> f64| spread(samples.iter().map(value));
    let (Some(this), Some(other), Some(difference)) = (
        of(|sample| sample[0] - sample[2]),
        of(|sample| sample[1] - sample[2]),
        of(|sample| sample[0] - sample[1]),
    ) else {
        return;
    };
    let Spread { median, min, max } = difference;
    table.row([
        &workload,
        &format_args!("`{program}`"),
        &samples.len(),
        &format_args!("{:.1} ns", this.median),
        &format_args!("{:.1} ns", other.median),
        &format_args!("{median:+.1} ns"),
        &format_args!("{min:+.1} to {max:+.1}"),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_two_is_the_outer_ones_and_what_is_there_once_is_left_out() {
        let program = |name: &str, run_time_ns, run_count| Program {
            name: name.to_owned(),
            run_time_ns,
            run_count,
            ..Program::default()
        };
        let programs = [
            program("sched_switch", 900_000, 10_000),
            program("page_fault_user", 900_000, 10_000),
            program("sched_switch", 850_000, 10_000),
            program("block_rq_comple", 9, 1),
            program("block_rq_comple", 9, 1),
        ];
        let runs = Runs { count: 10_000, time_ns: 400_000 };
        let hooks = ["sched_switch", "page_fault_user", "block_rq_complete"];
        let found = both(&programs, &hooks.map(|hook| (hook.to_owned(), runs)).into());
        assert_eq!(found, BTreeMap::from([("sched_switch".to_owned(), [90.0, 85.0, 40.0])]));
    }

    #[test]
    fn medians_of_differences_in_each_run() {
        let samples = [90.0, 83.0, 86.0].map(|this| [this, 85.0, 40.0]);
        let mut table = Table::new("a");
        add_row(&mut table, "w", "p", &samples);
        let row = "| w | `p` | 3 | 46.0 ns | 45.0 ns | +1.0 ns | -2.0 to +5.0 |\n";
        assert!(table.to_string().ends_with(row), "{table}");
    }
}
