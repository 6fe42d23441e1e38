//! Two builds of jobtrace on the same events: one traces the other and its workload, then the other way
//! round, so that both see each event and a moment of the machine spoils neither alone. For changes of the
//! programs: what a nanosecond is worth shows here, not in two runs minutes apart.

use super::pairs::{Spread, spread};
use super::programs::{ENOUGH_RUNS, Empties, mean};
use super::workloads::{Tracing, Workload};
use crate::bpf::{self, Program};
use crate::process::{say, target_dir};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Mean time of a run of one program: this checkout's, the other's, and the empty one's.
type Sample = [f64; 3];

/// The table, as Markdown: each workload `pairs` times in either order.
///
/// # Errors
/// When a workload fails, or `other` cannot be run.
pub fn table(workloads: &[Workload], other: &Path, pairs: u32) -> Result<String> {
    let ours = target_dir().join("release/jobtrace");
    let _statistics = bpf::enable_stats()?;
    let empties = Empties::start()?;
    let mut text = String::from(
        "| workload | program | runs compared | this one | the other | difference | least to greatest |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for workload in workloads {
        let mut samples: BTreeMap<String, Vec<Sample>> = BTreeMap::new();
        for pair in 0..pairs * 2 {
            let is_outer = pair % 2 == 0;
            say(format_args!("{}: run {} of {}", workload.name, pair + 1, pairs * 2));
            let nesting = if is_outer { [ours.as_path(), other] } else { [other, &ours] };
            for (program, [outer, inner, empty]) in run(workload, nesting, &empties)? {
                let ns = if is_outer { [outer, inner, empty] } else { [inner, outer, empty] };
                samples.entry(program).or_default().push(ns);
            }
        }
        for (program, samples) in samples {
            add_row(&mut text, workload.name, &program, &samples);
        }
    }
    Ok(text)
}

/// Times of each program that ran often: the outer build's, the inner one's, the empty one's.
fn run(
    workload: &Workload,
    nesting: [&Path; 2],
    empties: &Empties,
) -> Result<BTreeMap<String, [f64; 3]>> {
    let known = bpf::programs()?.into_iter().max().unwrap_or(0);
    let before = empties.figures()?;
    let plain = workload.command(Tracing::Off);
    let mut command = Command::new(nesting[0]);
    command.args(["run", "--quiet", "--"]).arg(nesting[1]).args(["run", "--quiet", "--"]);
    command.arg(plain.get_program()).args(plain.get_args());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().context("start")?;
    // By id, which the kernel hands out in sequence: the outer one loads first.
    let mut held: BTreeMap<u32, OwnedFd> = BTreeMap::new();
    let status = loop {
        for id in bpf::programs()?.into_iter().filter(|id| *id > known) {
            if let Ok(program) = bpf::hold(id) {
                held.entry(id).or_insert(program);
            }
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        sleep(Duration::from_millis(20));
    };
    if !status.success() {
        bail!("{} in {}: {status}", nesting[1].display(), nesting[0].display());
    }
    let after = empties.figures()?;
    let programs = held.values().map(bpf::program).collect::<Result<Vec<_>>>()?;
    Ok(both(&programs, &before, &after))
}

/// Of the programs in order of loading, those that are there twice and ran often.
fn both(
    programs: &[Program],
    before: &BTreeMap<String, Program>,
    after: &BTreeMap<String, Program>,
) -> BTreeMap<String, [f64; 3]> {
    let mut by_name: BTreeMap<&str, Vec<&Program>> = BTreeMap::new();
    for program in programs.iter().filter(|program| program.run_count >= ENOUGH_RUNS) {
        by_name.entry(&program.name).or_default().push(program);
    }
    let times = |(name, found): (&str, Vec<&Program>)| {
        let [outer, inner] = found[..] else { return None };
        let (before, after) = (before.get(name)?, after.get(name)?);
        let empty =
            mean(after.run_time_ns - before.run_time_ns, after.run_count - before.run_count)?;
        let ns = |program: &Program| mean(program.run_time_ns, program.run_count);
        Some((name.to_owned(), [ns(outer)?, ns(inner)?, empty]))
    };
    by_name.into_iter().filter_map(times).collect()
}

fn add_row(text: &mut String, workload: &str, program: &str, samples: &[Sample]) {
    let of = |value: fn(&Sample) -> f64| spread(samples.iter().map(value));
    let (Some(this), Some(other), Some(difference)) = (
        of(|sample| sample[0] - sample[2]),
        of(|sample| sample[1] - sample[2]),
        of(|sample| sample[0] - sample[1]),
    ) else {
        return;
    };
    let Spread { median, min, max } = difference;
    let _ = writeln!(
        text,
        "| {workload} | `{program}` | {} | {:.1} ns | {:.1} ns | {median:+.1} ns | {min:+.1} to {max:+.1} |",
        samples.len(),
        this.median,
        other.median,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, run_time_ns: u64, run_count: u64) -> Program {
        Program { name: name.to_owned(), run_time_ns, run_count, ..Program::default() }
    }

    #[test]
    fn the_first_of_two_is_the_outer_ones_and_what_is_there_once_is_left_out() {
        let programs = [
            program("sched_switch", 900_000, 10_000),
            program("only_outer", 900_000, 10_000),
            program("sched_switch", 850_000, 10_000),
            program("seldom", 9, 1),
            program("seldom", 9, 1),
        ];
        let table = |time_ns, count| {
            let empty = |name: &str| (name.to_owned(), program(name, time_ns, count));
            BTreeMap::from(["sched_switch", "only_outer", "seldom"].map(empty))
        };
        let found = both(&programs, &table(0, 0), &table(400_000, 10_000));
        assert_eq!(found, BTreeMap::from([("sched_switch".to_owned(), [90.0, 85.0, 40.0])]));
    }

    #[test]
    fn medians_of_differences_in_each_run() {
        let samples = [90.0, 83.0, 86.0].map(|this| [this, 85.0, 40.0]);
        let mut text = String::new();
        add_row(&mut text, "w", "p", &samples);
        assert_eq!(text, "| w | `p` | 3 | 46.0 ns | 45.0 ns | +1.0 ns | -2.0 to +5.0 |\n");
    }
}
