//! What the programs of the census take for each event of a load, by the kernel's own statistics, over what empty programs
//! on the same hooks took meanwhile. Pure.

use std::collections::BTreeMap;

use super::empties::{Floor, Runs};
use crate::bpf::Program;

/// The programs, as the kernel cuts their names, and the tracepoint of each; functions have none.
const PROGRAMS: [(&str, &str); 11] = [
    ("census_exec", "sched_process_exec"),
    ("census_exec_map", "sched_prepare_exec"),
    ("census_fork", "sched_process_fork"),
    ("census_exit", "sched_process_exit"),
    ("census_exit_2", "sched_process_exit"),
    ("census_exit_map", "sched_process_exit"),
    ("census_read", "mm_filemap_get_pages"),
    ("census_open", ""),
    ("census_open_pro", ""),
    ("census_map", ""),
    ("census_map_prob", ""),
];
/// Whose empty program stands in for that of a function.
const STAND_IN: &str = "sched_process_exec";

/// The tracepoints of all of them.
pub fn tracepoints() -> Vec<&'static str> {
    let mut all: Vec<_> = PROGRAMS.map(|(_, hook)| hook).into();
    all.retain(|hook| !hook.is_empty());
    all.dedup();
    all
}

/// What an event runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A program that is executed: as it begins, and what it gives up.
    Execution,
    /// A process that is made.
    Begin,
    /// One that ends, all its threads.
    End,
    /// Files that are opened, read and mapped.
    Files,
}

impl Part {
    fn of(program: &str) -> Self {
        match program {
            "census_exec" | "census_exec_map" => Self::Execution,
            "census_fork" => Self::Begin,
            "census_exit" | "census_exit_2" | "census_exit_map" => Self::End,
            _ => Self::Files,
        }
    }
}

/// Time in programs, and what empty ones would have taken.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Took {
    pub runs: u64,
    pub gross_ns: f64,
    pub empty_ns: f64,
}

/// What each part took between two looks at the same programs.
pub fn took(before: &[Program], after: &[Program], floor: &Floor) -> BTreeMap<Part, Took> {
    let mut all: BTreeMap<Part, Took> = BTreeMap::new();
    let mean_ns = |hook: &str| floor.get(hook).copied().and_then(Runs::mean_ns);
    for (before, after) in before.iter().zip(after) {
        let Some((name, hook)) = PROGRAMS.iter().find(|(name, _)| *name == after.name) else {
            continue;
        };
        let runs = after.run_count - before.run_count;
        let took = all.entry(Part::of(name)).or_default();
        // Of a function that is met, and of a tracepoint that nothing met, how often is known and no more.
        let empty_ns = mean_ns(hook).or_else(|| mean_ns(STAND_IN)).unwrap_or(0.0);
        took.runs += runs;
        took.gross_ns += (after.run_time_ns - before.run_time_ns) as f64;
        took.empty_ns += empty_ns * runs as f64;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_programs_are_taken_off_run_by_run_and_others_do_not_count() {
        let program = |name: &str, run_count, run_time_ns| Program {
            name: name.to_owned(),
            run_count,
            run_time_ns,
            ..Program::default()
        };
        let names = ["census_exec", "census_exec_map", "sched_switch", "census_exit_2"];
        let before = names.map(|name| program(name, 10, 1_000));
        let after = names.map(|name| program(name, 30, 9_000));
        let floor = |hook: &str, count, time_ns| (hook.to_owned(), Runs { count, time_ns });
        let floor = Floor::from([
            floor("sched_process_exec", 25, 1_250),
            floor("sched_prepare_exec", 20, 1_200),
        ]);
        let found = took(&before, &after, &floor);
        let execution = Took { runs: 40, gross_ns: 16_000.0, empty_ns: 20.0 * 50.0 + 20.0 * 60.0 };
        assert_eq!(found[&Part::Execution], execution);
        assert_eq!(found[&Part::End].empty_ns, 20.0 * 50.0);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn each_tracepoint_has_one_empty_program() {
        let all = tracepoints();
        assert_eq!(all.len(), 5);
        assert!(!all.contains(&""));
    }
}
