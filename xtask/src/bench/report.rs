//! The measurement as Markdown. Pure.

use super::pairs::{Pairs, Spread};
use super::programs::{Cost, Memory};
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

impl Report {
    /// The report as docs/OVERHEAD.md has it.
    pub fn to_markdown(&self) -> String {
        let mut text = format!(
            "# What tracing costs\n\nWritten by `cargo xtask bench --write`. {}.\n\n{PROGRAMS}",
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
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let _ = write!(
            text,
            "\n## Memory\n| BPF maps | peak resident memory of the process |\n| ---: | ---: |\n\
             | {:.1} MiB | {:.1} MiB |\n",
            mib(self.memory.map_bytes),
            mib(self.memory.peak_rss_bytes),
        );
        text
    }
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
        };
        let text = report.to_markdown();
        for row in [
            "| pipe | `sched_switch` | 10 | 90.0 | 50.0 | 40.0 |",
            "| pipe | `mark_victim` | 10 | 90.0 | – | – |",
            "| pipe | 1 | 5000 (5000 to 5000) | 5250 (5250 to 5250) | +5.0 % (+5.0 to +5.0) |",
            "| 6.0 MiB | 21.0 MiB |",
        ] {
            assert!(text.contains(row), "{row}\n{text}");
        }
    }
}
