//! The comparison as Markdown. Pure.

use super::goals::{Goal, Verdict, slowdown};
use super::{events, footprint, roll, shares, slowdowns};
use std::fmt::Write as _;

/// All that was found.
pub struct Report {
    /// Where and when.
    pub machine: String,
    /// The command that repeats it, and how long it took.
    pub repeat: String,
    /// Names of others' programs that were attached meanwhile.
    pub strangers: Vec<String>,
    /// Who was there.
    pub roll: Vec<roll::Entry>,
    /// What each workload's id stands for.
    pub cases: Vec<(&'static str, &'static str)>,
    /// Time in BPF programs.
    pub events: Vec<events::Row>,
    /// Whole workloads.
    pub slowdowns: Vec<slowdowns::Row>,
    /// The agent's programs in jobs.
    pub shares: Vec<shares::Row>,
    /// The tracers themselves.
    pub footprints: Vec<footprint::Row>,
    /// What of it was wanted.
    pub goals: Vec<Goal>,
}

const ROLL: &str = "
## Who
Each by its BPF programs and the memory of its BPF maps once attached. What is not installed, or
what this kernel refuses, says so and is left out below.

| id | tells | version | BPF programs | BPF maps |
| --- | --- | --- | --- | ---: |
";

const EVENTS: &str = "
## Time in BPF programs for one event
The kernel's own statistics (`kernel.bpf_stats_enabled`): the median of five runs of the workload
(peers three), in turns, in brackets the least and the greatest. All programs of a tracer that ran
meanwhile, but for those on hooks of another family, for each switch, page fault or block request.
Empty programs on the same hooks ran at the same time (for a hook without one, that of the first
hook of the family stands in), and the statistics add about 50 ns to each run of either: the last
column is what the tracer's programs take themselves. What the kernel does around a program, which
is more on a classic tracepoint, shows only in the slowdowns.

| workload | tracer | events | ns per event | empty programs | over them |
| --- | --- | ---: | ---: | ---: | ---: |
";

const PROGRAMS: &str = "
### Program by program
| workload | tracer | program | runs | ns per run | empty |
| --- | --- | --- | ---: | ---: | ---: |
";

const SLOWDOWNS: &str = "
## Slowdown of whole workloads
Each run with a tracer lies between two runs with nothing attached and is compared to their mean,
all in cgroups of the same kind, statistics off, the order changing from round to round. The median;
where it lies with 95 % confidence (six pairs or more); and from the least to the greatest. No pair
is dropped. Peers have half as many pairs. With the agent, `compile` and `compute` go on until the
median is known to 0.1 % either way or their time is up. A tracer has rows where the workload runs
its programs.

| workload | tracer | plain | slowdown | least to greatest |
| --- | --- | ---: | ---: | ---: |
";

const SHARES: &str = "
### What the agent's programs take of these jobs
Too little for pairs to show, so by the kernel's statistics: time in all of jobtrace's programs, on all
CPUs, while the job ran, as a part of the job's time on CPUs. The statistics are in it (about 50 ns a
run), the way into a program and the caches are not. The median of five runs; from the least to the
greatest.

| workload | time on CPUs | runs of programs | share of it | least to greatest |
| --- | ---: | ---: | ---: | ---: |
";

const FOOTPRINTS: &str = "
## What the tracers take themselves
Beside 100 jobs of one process that wakes ten times a second. User and system time as a part of one
core.

| tracer | interval | watched | of one core | resident | at its peak | BPF maps |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
";

impl Report {
    /// The report as docs/COMPARE.md has it.
    pub fn to_markdown(&self) -> String {
        let mut text = format!(
            "# jobtrace beside its peers\n\nWritten by `cargo xtask compare --write`. {}.\n{}\n",
            self.machine, self.repeat
        );
        if !self.strangers.is_empty() {
            let names = self.strangers.join(", ");
            let _ = write!(
                text,
                "\n**Others' BPF programs were attached and are in all figures:** {names}.\n"
            );
        }
        text.push_str("\n## Goals\n");
        for Goal { verdict, text: goal, found } in &self.goals {
            let (mark, word) = match verdict {
                Verdict::Met => ("x", "met"),
                Verdict::NotMet => (" ", "not met"),
                Verdict::Open => (" ", "not shown"),
            };
            let _ = writeln!(text, "- [{mark}] **{word}**: {goal}: {found}");
        }
        self.add_roll(&mut text);
        self.add_events(&mut text);
        self.add_slowdowns(&mut text);
        self.add_shares(&mut text);
        self.add_footprints(&mut text);
        text
    }

    fn add_shares(&self, text: &mut String) {
        if self.shares.is_empty() {
            return;
        }
        text.push_str(SHARES);
        for shares::Row { case, median, least_and_greatest, .. } in &self.shares {
            let [least, greatest] = least_and_greatest.map(|ratio| 100.0 * ratio);
            let shares::Share { job_ns, runs, .. } = median;
            let (ms, ratio) = (*job_ns as f64 / 1e6, 100.0 * median.ratio());
            let _ = writeln!(
                text,
                "| {case} | {ms:.0} ms | {runs} | {ratio:.3} % | {least:.3} to {greatest:.3} % |"
            );
        }
    }

    fn add_roll(&self, text: &mut String) {
        text.push_str(ROLL);
        for roll::Entry { id, tells, version, seen } in &self.roll {
            let _ = match seen {
                Ok(seen) => {
                    let programs = seen.programs.join(", ");
                    let maps = mib(seen.map_bytes);
                    writeln!(text, "| {id} | {tells} | {version} | {programs} | {maps} |")
                }
                Err(why) => writeln!(text, "| {id} | {tells} | {version} | skipped: {why} | – |"),
            };
        }
        text.push_str("\n| workload | is |\n| --- | --- |\n");
        for (id, name) in &self.cases {
            let _ = writeln!(text, "| {id} | {name} |");
        }
    }

    fn add_events(&self, text: &mut String) {
        if self.events.is_empty() {
            return;
        }
        text.push_str(EVENTS);
        for events::Row { case, subject, cost, net_ns } in &self.events {
            let _ = match cost {
                Ok(cost) => writeln!(
                    text,
                    "| {case} | {subject} | {} | {:.1} | {:.1} | **{:.1}** ({:.1} to {:.1}) |",
                    cost.events,
                    cost.gross_ns,
                    cost.empty_ns,
                    cost.net_ns(),
                    net_ns.first().unwrap_or(&cost.net_ns()),
                    net_ns.last().unwrap_or(&cost.net_ns()),
                ),
                Err(why) => writeln!(text, "| {case} | {subject} | failed: {why} | – | – | – |"),
            };
        }
        text.push_str(PROGRAMS);
        for events::Row { case, subject, cost, .. } in &self.events {
            for program in cost.iter().flat_map(|cost| &cost.programs) {
                let empty = program.empty_ns.map_or("–".to_owned(), |ns| format!("{ns:.1}"));
                let _ = writeln!(
                    text,
                    "| {case} | {subject} | `{}` | {} | {:.1} | {empty} |",
                    program.name, program.runs, program.gross_ns,
                );
            }
        }
    }

    fn add_slowdowns(&self, text: &mut String) {
        if self.slowdowns.is_empty() {
            return;
        }
        text.push_str(SLOWDOWNS);
        for slowdowns::Row { case, subject, pairs, .. } in &self.slowdowns {
            let found = pairs.as_ref().map(|pairs| {
                let plain = pairs.off_ns().map_or("–".to_owned(), |s| time(s.median));
                let ends = pairs.slowdown_ratio().map_or("–".to_owned(), |spread| {
                    format!("{:+.1} to {:+.1} %", 100.0 * spread.min, 100.0 * spread.max)
                });
                format!("{plain} | {} | {ends}", slowdown(pairs))
            });
            let found = found.unwrap_or_else(|why| format!("– | failed: {why} | –"));
            let _ = writeln!(text, "| {case} | {subject} | {found} |");
        }
    }

    fn add_footprints(&self, text: &mut String) {
        if self.footprints.is_empty() {
            return;
        }
        text.push_str(FOOTPRINTS);
        for footprint::Row { subject, interval_s, taken } in &self.footprints {
            let _ = match taken {
                Ok(taken) => writeln!(
                    text,
                    "| {subject} | {interval_s} s | {:.0} s | {:.3} % | {} | {} | {} |",
                    taken.span.as_secs_f64(),
                    100.0 * taken.core_ratio,
                    mib(taken.rss_bytes),
                    mib(taken.peak_rss_bytes),
                    mib(taken.map_bytes),
                ),
                Err(why) => {
                    writeln!(text, "| {subject} | {interval_s} s | failed: {why} | – | – | – | – |")
                }
            };
        }
    }
}

fn time(ns: f64) -> String {
    match ns {
        ..1e4 => format!("{ns:.0} ns"),
        ..1e7 => format!("{:.1} µs", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::pairs::Pairs;
    use crate::compare::cases::Kind;
    use std::time::Duration;

    #[test]
    fn every_figure_has_its_row_and_so_has_every_failure() {
        let mut pairs = Pairs::default();
        [4.0, 5.0, 6.0].iter().for_each(|slower| pairs.add(100.0, 100.0 + slower));
        let program = events::ProgramCost {
            name: "sched_switch".to_owned(),
            runs: 1000,
            gross_ns: 90.0,
            empty_ns: Some(50.0),
        };
        let cost =
            events::Cost { events: 1000, gross_ns: 90.0, empty_ns: 50.0, programs: vec![program] };
        let taken = footprint::Taken {
            span: Duration::from_millis(10_004),
            core_ratio: 0.001_5,
            rss_bytes: 20 << 20,
            peak_rss_bytes: 30 << 20,
            map_bytes: 6 << 20,
        };
        let seen = roll::Seen { programs: vec!["a".into(), "b".into()], map_bytes: 3 << 19 };
        let entry = |id, seen| roll::Entry { id, tells: "all", version: "1.0".to_owned(), seen };
        let slow =
            |subject, pairs| slowdowns::Row { case: "pipe", kind: Kind::Switch, subject, pairs };
        let event = |subject, cost, net_ns| events::Row { case: "pipe", subject, cost, net_ns };
        let report = Report {
            machine: "2 CPUs".to_owned(),
            repeat: "Repeat it".to_owned(),
            strangers: vec!["foreign".to_owned()],
            roll: vec![entry("x", Ok(seen)), entry("y", Err("missing: get it".to_owned()))],
            cases: vec![("pipe", "a pipe")],
            events: vec![
                event("x", Ok(cost), vec![38.0, 40.0, 47.5]),
                event("y", Err("no".to_owned()), Vec::new()),
            ],
            slowdowns: vec![slow("x", Ok(pairs)), slow("y", Err("ended".to_owned()))],
            shares: vec![shares::Row {
                case: "compile",
                kind: Kind::Compile,
                median: shares::Share { programs_ns: 100_000, runs: 900, job_ns: 1_000_000_000 },
                least_and_greatest: [0.000_05, 0.000_2],
            }],
            footprints: vec![footprint::Row { subject: "x", interval_s: 10, taken: Ok(taken) }],
            goals: vec![Goal { verdict: Verdict::Met, text: "g".into(), found: "f".into() }],
        };
        let text = report.to_markdown();
        for row in [
            "are in all figures:** foreign.",
            "- [x] **met**: g: f",
            "| x | all | 1.0 | a, b | 1.5 MiB |",
            "| y | all | 1.0 | skipped: missing: get it | – |",
            "| pipe | a pipe |",
            "| pipe | x | 1000 | 90.0 | 50.0 | **40.0** (38.0 to 47.5) |",
            "| pipe | y | failed: no | – | – | – |",
            "| pipe | x | `sched_switch` | 1000 | 90.0 | 50.0 |",
            "| pipe | x | 100 ns | +5.00 % (3 pairs) | +4.0 to +6.0 % |",
            "| pipe | y | – | failed: ended | – |",
            "| compile | 1000 ms | 900 | 0.010 % | 0.005 to 0.020 % |",
            "| x | 10 s | 10 s | 0.150 % | 20.0 MiB | 30.0 MiB | 6.0 MiB |",
        ] {
            assert!(text.contains(row), "{row}\n{text}");
        }
    }
}
