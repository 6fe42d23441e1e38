//! What was measured as the sections of docs/OVERHEAD.md and docs/COMPARE.md; what the tables mean stands
//! there, around them. Pure.

#[cfg(test)]
mod tests;

use super::events::{Costs, Memory};
use super::footprint;
use super::found::Found;
use super::goals::{Goal, Verdict, slowdown};
use super::pairs::Pairs;
use super::roll;
use super::shares::Shares;
use std::fmt::{Display, Write as _};
use xtask::markdown::{Table, mib, or_dash};
use xtask::sections::Section;

/// All that was found.
#[derive(Default)]
pub struct Report {
    /// Where, when, how long and beside whom.
    pub machine: String,
    /// Who was there.
    pub roll: Vec<roll::Entry>,
    /// What each workload's id stands for.
    pub workloads: Vec<(&'static str, &'static str)>,
    /// Time in BPF programs.
    pub events: Vec<Found<Costs>>,
    /// Of one `jobtrace run`.
    pub memory: Memory,
    /// Whole workloads.
    pub slowdowns: Vec<Found<Pairs>>,
    /// The agent's programs in jobs.
    pub shares: Vec<Found<Shares>>,
    /// The tracers themselves.
    pub footprints: Vec<footprint::Row>,
    /// How large our programs are.
    pub sizes: Option<Table>,
    /// What of the workloads was wanted.
    pub goals: Vec<Goal>,
    /// What of the agent itself was.
    pub agent_goals: Vec<Goal>,
}

impl Report {
    /// The sections by their names in the documents, those that were measured.
    pub fn sections(&self) -> Vec<Section> {
        let mut all = Vec::new();
        let mut add = |name, is_measured: bool, text: &dyn Fn() -> String| {
            if is_measured {
                all.push((name, text()));
            }
        };
        // The agent's part, which is measured alone as well, has its own.
        add("machine", !self.workloads.is_empty(), &|| self.machine.clone());
        add("goals", !self.workloads.is_empty(), &|| list(&self.goals));
        add("who", !self.roll.is_empty(), &|| self.who());
        add("workloads", !self.workloads.is_empty(), &|| self.workloads());
        add("events", !self.events.is_empty(), &|| self.events());
        add("programs", !self.events.is_empty(), &|| self.programs());
        add("memory", self.memory != Memory::default(), &|| self.memory());
        add("slowdowns", !self.slowdowns.is_empty(), &|| self.slowdowns());
        add("shares", !self.shares.is_empty(), &|| self.shares());
        let agents = || format!("{}\n{}", self.machine, list(&self.agent_goals));
        add("agent_goals", !self.footprints.is_empty(), &agents);
        add("tracers", !self.footprints.is_empty(), &|| self.footprints());
        add("sizes", self.sizes.is_some(), &|| or_dash(self.sizes.as_ref(), Table::to_string));
        all
    }

    fn who(&self) -> String {
        let mut table = Table::new("id | tells | version | BPF programs | >BPF maps");
        for roll::Entry { id, tells, version, seen } in &self.roll {
            let (programs, maps) = match seen {
                Ok(seen) => (seen.programs.join(", "), in_mib(seen.map_bytes)),
                Err(why) => (format!("skipped: {why}"), "–".to_owned()),
            };
            table.row([id, tells, version, &programs, &maps]);
        }
        table.to_string()
    }

    fn workloads(&self) -> String {
        let mut table = Table::new("workload | is");
        self.workloads.iter().for_each(|(id, name)| table.row([id, name]));
        table.to_string()
    }

    fn events(&self) -> String {
        let mut table = Table::new(
            "workload | tracer | >events | >ns per event | >empty programs | >over them",
        );
        for Found { workload, tracer, figure, .. } in &self.events {
            let Costs { median, net_ns } = match figure {
                Ok(costs) => costs,
                Err(why) => {
                    let why = format!("failed: {why}");
                    table.row([workload, tracer, &why, &"–", &"–", &"–"]);
                    continue;
                }
            };
            let ends = |ns: Option<&f64>| or_dash(ns, |ns| format!("{ns:.1}"));
            table.row([
                workload,
                tracer,
                &median.events,
                &format_args!("{:.1}", median.gross_ns),
                &format_args!("{:.1}", median.empty_ns),
                &format_args!(
                    "**{:.1}** ({} to {})",
                    median.net_ns(),
                    ends(net_ns.first()),
                    ends(net_ns.last())
                ),
            ]);
        }
        table.to_string()
    }

    fn programs(&self) -> String {
        let mut table =
            Table::new("workload | tracer | program | >runs | >ns per run | >empty | >cost, ns");
        for Found { workload, tracer, figure, .. } in &self.events {
            for program in figure.iter().flat_map(|costs| &costs.median.programs) {
                let ns = |ns: Option<f64>| or_dash(ns, |ns| format!("{ns:.1}"));
                let net = program.empty_ns.map(|empty| program.gross_ns - empty);
                table.row([
                    workload,
                    tracer,
                    &format_args!("`{}`", program.name),
                    &program.runs,
                    &ns(Some(program.gross_ns)),
                    &ns(program.empty_ns),
                    &ns(net),
                ]);
            }
        }
        table.to_string()
    }

    fn memory(&self) -> String {
        let mut table = Table::new(">BPF maps | >peak resident memory of the process");
        table.row([&in_mib(self.memory.map_bytes), &in_mib(self.memory.peak_rss_bytes)]);
        table.to_string()
    }

    fn slowdowns(&self) -> String {
        let mut table = Table::new("workload | tracer | >plain | >slowdown | >least to greatest");
        for Found { workload, tracer, figure, .. } in &self.slowdowns {
            match figure {
                Ok(pairs) => {
                    let plain = or_dash(pairs.off_ns(), |spread| time(spread.median));
                    let ends = or_dash(pairs.slowdown_ratio(), |spread| {
                        format!("{:+.1} to {:+.1} %", 100.0 * spread.min, 100.0 * spread.max)
                    });
                    table.row([workload, tracer, &plain, &slowdown(pairs), &ends]);
                }
                Err(why) => {
                    table.row([workload, tracer, &"–", &format_args!("failed: {why}"), &"–"]);
                }
            }
        }
        table.to_string()
    }

    fn shares(&self) -> String {
        let mut table = Table::new(
            "workload | >time on CPUs | >runs of programs | >share of it | >least to greatest",
        );
        for Found { workload, figure, .. } in &self.shares {
            let Ok(Shares { median, least_and_greatest }) = figure else { continue };
            let [least, greatest] = least_and_greatest.map(|ratio| 100.0 * ratio);
            table.row([
                workload,
                &format_args!("{:.0} ms", median.job_ns as f64 / 1e6),
                &median.runs,
                &format_args!("{:.3} %", 100.0 * median.ratio()),
                &format_args!("{least:.3} to {greatest:.3} %"),
            ]);
        }
        table.to_string()
    }

    fn footprints(&self) -> String {
        let mut table = Table::new(
            "tracer | >jobs | cgroups | they | >interval | >watched | >of one core | >resident | \
             >at its peak | >BPF maps | >drain | >late | >programs a second | >for each",
        );
        for footprint::Row { tracer, scene, taken } in &self.footprints {
            let interval = format!("{} s", scene.interval_s);
            let (jobs, shape, load) = (&scene.jobs, scene.shape.name(), scene.load.name());
            let taken = match taken {
                Ok(taken) => taken,
                Err(why) => {
                    let (why, no) = (format!("failed: {why}"), &"–");
                    let mut row: Vec<&dyn Display> =
                        vec![tracer, jobs, &shape, &load, &interval, &why];
                    row.resize(14, no);
                    table.cells(row);
                    continue;
                }
            };
            let said = taken.said.as_ref();
            let ms = |ns: u64| ns as f64 / 1e6;
            table.row([
                tracer,
                jobs,
                &shape,
                &load,
                &interval,
                &format_args!("{:.0} s", taken.span.as_secs_f64()),
                &format_args!("{:.3} %", 100.0 * taken.core_ratio),
                &in_mib(taken.rss_bytes),
                &in_mib(taken.peak_rss_bytes),
                &in_mib(taken.map_bytes),
                &or_dash(said, |said| {
                    format!("{:.2} ms ({:.2})", ms(said.drain_ns), ms(said.least_drain_ns))
                }),
                &or_dash(said, |said| said.late.to_string()),
                &or_dash(said, |said| format!("{:.0}", said.execs_per_s)),
                &or_dash(said.and_then(|said| said.exec_ns), |ns| format!("{:.1} µs", ns / 1e3)),
            ]);
        }
        table.to_string()
    }
}

fn list(goals: &[Goal]) -> String {
    let mut text = String::new();
    for Goal { verdict, text: goal, found } in goals {
        let (mark, word) = match verdict {
            Verdict::Met => ("x", "met"),
            Verdict::NotMet => (" ", "not met"),
            Verdict::Open => (" ", "not shown"),
        };
        let _ = writeln!(text, "- [{mark}] **{word}**: {goal}: {found}");
    }
    text
}

fn time(ns: f64) -> String {
    match ns {
        ..1e4 => format!("{ns:.0} ns"),
        ..1e7 => format!("{:.1} µs", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

fn in_mib(bytes: u64) -> String {
    format!("{:.1} MiB", mib(bytes))
}
