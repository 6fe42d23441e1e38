//! The measurement as Markdown. Pure.

use super::agent;
use super::pairs::{Pairs, Spread};
use super::programs::{Cost, Memory};
use super::sizes::{self, Size};
use std::fmt::Write as _;

/// One workload's pairs.
pub struct Slowdown {
    /// Its name.
    pub workload: String,
    /// Its figures.
    pub pairs: Pairs,
}

/// All that a benchmark found.
pub struct Report {
    /// Where and when.
    pub machine: String,
    /// Each program's cost.
    pub programs: Vec<Cost>,
    /// Each workload's slowdown.
    pub slowdowns: Vec<Slowdown>,
    /// Memory of one jobtrace.
    pub memory: Memory,
    /// How large each program is.
    pub sizes: Vec<Size>,
    /// What agents took of a node full of jobs.
    pub agent: Vec<agent::Cost>,
}

const PROGRAMS: &str = "\
## Each BPF program
The kernel's own statistics, in one run with an empty program on the same hook. They add about 50 ns
to each run of either, so the last column is the program's cost. Programs that ran fewer than 5,000
times under a workload are left out.

| workload | program | runs | ns per run | empty | cost, ns |
| --- | --- | ---: | ---: | ---: | ---: |
";

const SLOWDOWNS: &str = "
## Slowdown of whole workloads
Pairs of one run under `jobtrace run --quiet` and one plain in cgroups of the same kind, seconds apart,
the order alternating, statistics off. Medians; in brackets the least and the greatest; no run is dropped.

| workload | pairs | ns per operation, plain | traced | slowdown |
| --- | ---: | ---: | ---: | ---: |
";

const AGENT: &str = "\
## `jobtrace agent`
Beside jobs of one process that wakes ten times a second. A drain is one reading of all maps (a slot for
each job and one for the rest of the node), by the agent's own account: the median, in brackets the
least. The peak of memory is while it starts. In the last row each job executes ten programs a second
instead, and nothing ever tells whose they are: what the agent takes more than in the first row, for each.

| jobs | interval | watched | of one core | resident | at its peak | BPF maps | drain | programs a second | for each |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

impl Report {
    /// The report as docs/OVERHEAD.md has it.
    pub fn to_markdown(&self) -> String {
        let mut text = format!(
            "# What tracing costs\n\nWritten by `cargo xtask bench --write`. {}.\n\n\
             [COMPARE.md](COMPARE.md), by `cargo xtask compare --write`, lays it beside bpftrace and \
             others.\n\n\
             {PROGRAMS}",
            self.machine
        );
        for cost in &self.programs {
            let empty = cost.empty_ns.map_or("–".to_owned(), |ns| format!("{ns:.1}"));
            let net =
                cost.empty_ns.map_or("–".to_owned(), |ns| format!("{:.1}", cost.gross_ns - ns));
            let Cost { workload, program, runs, gross_ns, .. } = cost;
            let _ = writeln!(
                text,
                "| {workload} | `{program}` | {runs} | {gross_ns:.1} | {empty} | {net} |"
            );
        }
        text.push_str(SLOWDOWNS);
        for Slowdown { workload, pairs } in &self.slowdowns {
            let _ = writeln!(
                text,
                "| {workload} | {} | {} | {} | {} |",
                pairs.count(),
                time(pairs.off_ns()),
                time(pairs.on_ns()),
                per_cent(pairs.slowdown_ratio()),
            );
        }
        let _ = write!(
            text,
            "\n## Memory\n| BPF maps | peak resident memory of the process |\n| ---: | ---: |\n\
             | {:.1} MiB | {:.1} MiB |\n",
            mib(self.memory.map_bytes),
            mib(self.memory.peak_rss_bytes),
        );
        text.push_str(&sizes::table(&self.sizes));
        if !self.agent.is_empty() {
            let _ = write!(text, "\n{}", agent_table(&self.agent));
        }
        text
    }
}

/// `text`, which [`Report::to_markdown`] wrote on the same machine, with another part on the agent; `None` where
/// it is of another machine, or has no such part.
pub fn with_agent(text: &str, machine: &str, costs: &[agent::Cost]) -> Option<String> {
    let heading = AGENT.lines().next()?;
    let (before, _) = text.split_once(heading).filter(|_| text.contains(machine))?;
    Some(format!("{before}{}", agent_table(costs)))
}

/// The part on the agent.
pub fn agent_table(costs: &[agent::Cost]) -> String {
    let mut text = AGENT.to_owned();
    for cost in costs {
        let _ = writeln!(
            text,
            "| {} | {} s | {:.0} s | {:.2} % | {:.1} MiB | {:.1} MiB | {:.1} MiB | {:.2} ms ({:.2}) | {:.0} | {} |",
            cost.jobs,
            cost.interval.as_secs(),
            cost.span.as_secs_f64(),
            100.0 * cost.core_ratio,
            mib(cost.rss_bytes),
            mib(cost.peak_rss_bytes),
            mib(cost.map_bytes),
            cost.drain_ns as f64 / 1e6,
            cost.least_drain_ns as f64 / 1e6,
            cost.execs_per_s,
            cost.exec_ns.map_or("–".to_owned(), |ns| format!("{:.1} µs", ns / 1e3)),
        );
    }
    text
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn time(spread: Option<Spread>) -> String {
    spread.map_or("–".to_owned(), |s| format!("{:.0} ({:.0} to {:.0})", s.median, s.min, s.max))
}

fn per_cent(spread: Option<Spread>) -> String {
    spread.map_or("–".to_owned(), |s| {
        format!("{:+.1} % ({:+.1} to {:+.1})", 100.0 * s.median, 100.0 * s.min, 100.0 * s.max)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_figure_has_its_row() {
        let cost = |program: &str, empty_ns| Cost {
            workload: "pipe",
            program: program.to_owned(),
            runs: 10,
            gross_ns: 90.0,
            empty_ns,
        };
        let mut pairs = Pairs::default();
        pairs.add(5000.0, 5250.0);
        let report = Report {
            machine: "2 CPUs".to_owned(),
            programs: vec![cost("sched_switch", Some(50.0)), cost("mark_victim", None)],
            slowdowns: vec![Slowdown { workload: "pipe".to_owned(), pairs }],
            memory: Memory { map_bytes: 6 << 20, peak_rss_bytes: 21 << 20 },
            sizes: vec![Size {
                program: "mark_victim".to_owned(),
                instructions: 90,
                verified: None,
                machine_code_bytes: 500,
                stack_bytes: Some(48),
            }],
            agent: vec![agent::Cost {
                jobs: 100,
                interval: Duration::from_secs(10),
                span: Duration::from_millis(60_040),
                core_ratio: 0.001_23,
                rss_bytes: 20 << 20,
                peak_rss_bytes: 31 << 20,
                map_bytes: 6 << 20,
                drain_ns: 1_234_000,
                least_drain_ns: 900_000,
                execs_per_s: 980.2,
                exec_ns: Some(2_340.0),
            }],
        };
        let text = report.to_markdown();
        for row in [
            "| pipe | `sched_switch` | 10 | 90.0 | 50.0 | 40.0 |",
            "| pipe | `mark_victim` | 10 | 90.0 | – | – |",
            "| pipe | 1 | 5000 (5000 to 5000) | 5250 (5250 to 5250) | +5.0 % (+5.0 to +5.0) |",
            "| 6.0 MiB | 21.0 MiB |",
            "| `mark_victim` | 90 | unknown | 500 | 48 |",
            "| 100 | 10 s | 60 s | 0.12 % | 20.0 MiB | 31.0 MiB | 6.0 MiB | 1.23 ms (0.90) | 980 | 2.3 µs |",
        ] {
            assert!(text.contains(row), "{row}\n{text}");
        }
        assert_eq!(with_agent(&text, "2 CPUs", &report.agent).as_ref(), Some(&text));
        assert_eq!(with_agent(&text, "4 CPUs", &report.agent), None);
    }
}
