//! How long it takes to tell which slots moved, by what a reading copied from the kernel, and to add up the banks of
//! those: one of each slot and possible CPU, which is what a reading costs on a large node. No BPF, no root.

use std::{hint::black_box, time::Instant};

use anyhow::{Result, ensure};
use jobtrace::{
    model::{
        group::Group,
        tables::{FAULT, SCHED, Sched},
    },
    probes::{
        decode::Unwrapper,
        moves::{LastRead, Mark, Moves},
    },
};
use tracer_ebpf::{
    ids::SLOTS,
    records::{Cpu, CpuRecord},
    table::Place,
    tables::job::JobBank,
};
use xtask::{machine, markdown::Table, sections};

use crate::{
    bench::pairs::spread,
    process::{is_optimised, say},
};

/// Possible CPUs and slots in use.
const SIZES: [(usize, usize); 4] = [(8, 64), (64, 256), (128, 512), (256, 1024)];
/// Readings that are timed, after one that is not; the median counts.
const READINGS: usize = 7;

/// One row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    cpus: usize,
    slots: usize,
    /// Nanoseconds of a reading in which no slot moved.
    still_ns: f64,
    /// Nanoseconds of one in which all did.
    moved_ns: f64,
}

/// Measures and prints it; into docs/SIZING.md where `write`.
///
/// # Errors
/// When what was added up is wrong, or the document cannot be written.
pub fn run(write: bool) -> Result<()> {
    if !is_optimised()? {
        return Ok(());
    }
    let rows =
        SIZES.into_iter().map(|(cpus, slots)| measure(cpus, slots)).collect::<Result<Vec<_>>>();
    let text = document(&rows?, &machine::describe()?);
    print!("{text}");
    if write { sections::write("docs/SIZING.md", &[("merge", text)]) } else { Ok(()) }
}

/// A slot as the reader keeps it.
struct Slot {
    last_read: LastRead,
    of_sched: Unwrapper,
    of_fault: Unwrapper,
    sched: Group,
    fault: Group,
    /// The banks of all CPUs, one behind the other.
    banks: Vec<u8>,
}

fn measure(cpus: usize, slots: usize) -> Result<Row> {
    say(format_args!("{cpus} CPUs, {slots} slots"));
    let bank = size_of::<JobBank>();
    let mut all: Vec<Slot> =
        (0..slots)
            .map(|slot| Slot {
                last_read: LastRead::default(),
                of_sched: Unwrapper::after(&SCHED, &[]),
                of_fault: Unwrapper::after(&FAULT, &[]),
                sched: Group::unknown(&SCHED, vec![]),
                fault: Group::unknown(&FAULT, vec![]),
                // A job runs on some of the CPUs: on each fourth. Any small numbers will do.
                banks: (0..cpus * bank)
                    .map(|at| {
                        if (at / bank).is_multiple_of(4) { (at * 31 + slot) as u8 & 15 } else { 0 }
                    })
                    .collect(),
            })
            .collect();
    let mut cpus = vec![Cpu { record: CpuRecord::default(), moves: [0; SLOTS] }; cpus];
    let reading = |all: &mut Vec<Slot>, cpus: &[Cpu]| {
        let begin = Instant::now();
        let mut moves = Moves::default();
        cpus.iter().for_each(|cpu| moves.add(cpu));
        let read = |(slot, of): (usize, &mut Slot)| of.read(bank, moves.of(slot as u16));
        let moved = all.iter_mut().enumerate().filter_map(read).count();
        (begin.elapsed().as_nanos() as f64, moved)
    };
    // What moved is read once more.
    for round in ["first", "second"] {
        let (_, moved) = reading(&mut all, &cpus);
        ensure!(moved == slots, "{moved} slots of {slots} were read in the {round} reading");
    }
    let (mut still, mut busy) = (Vec::new(), Vec::new());
    for round in 1..=READINGS {
        let (ns, moved) = reading(&mut all, &cpus);
        ensure!(moved == 0, "{moved} slots moved by themselves");
        still.push(ns);
        let before = all[0].sched.number(Sched::on_cpu_ns);
        for slot in &mut all {
            let at = std::mem::offset_of!(JobBank, on_cpu_ns);
            slot.banks[at] = slot.banks[at].wrapping_add(1);
        }
        cpus[0].moves.iter_mut().for_each(|moves| *moves += 1);
        let (ns, moved) = reading(&mut all, &cpus);
        ensure!(moved == slots, "{moved} slots of {slots} moved in reading {round}");
        let after = all[0].sched.number(Sched::on_cpu_ns);
        ensure!(after == before.map(|before| before + 1), "a bank is added up wrong: {after:?}");
        busy.push(ns);
        reading(&mut all, &cpus);
    }
    black_box(&all);
    Ok(Row { cpus: cpus.len(), slots, still_ns: median(&still), moved_ns: median(&busy) })
}

impl Slot {
    /// As `probes/readings.rs` does it with what it copied from the map.
    fn read(&mut self, bank: usize, mark: Mark) -> Option<()> {
        if self.last_read.is_all(Some(mark)) {
            return None;
        }
        let cpus: Vec<&[u8]> = self.banks.chunks_exact(bank).collect();
        let job = |place| if let Place::Job(at) = place { Some(at) } else { None };
        self.of_sched.read(&mut self.sched, &cpus, job);
        self.of_fault.read(&mut self.fault, &cpus, job);
        self.last_read.note(Some(mark));
        Some(())
    }
}

fn median(values: &[f64]) -> f64 {
    spread(values.iter().copied()).map_or(0.0, |spread| spread.median)
}

fn document(rows: &[Row], machine: &str) -> String {
    let mut table = Table::new(
        ">possible CPUs | >slots | >banks | >a bank, still | >a bank, moved | >a reading, all still | \
         >a reading, all moved",
    );
    for Row { cpus, slots, still_ns, moved_ns } in rows {
        let banks = (cpus * slots) as f64;
        let ns = |ns: f64| format!("{:.0} ns", ns / banks);
        let ms = |ns: f64| format!("{:.2} ms", ns / 1e6);
        table.row([
            cpus,
            slots,
            &banks,
            &ns(*still_ns),
            &ns(*moved_ns),
            &ms(*still_ns),
            &ms(*moved_ns),
        ]);
    }
    format!("{machine}.\n\n{table}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_node_is_added_up_right() {
        let row = measure(4, 3).unwrap();
        assert!(row.still_ns > 0.0 && row.still_ns < row.moved_ns, "{row:?}");
        let text = document(&[Row { still_ns: 12e6, moved_ns: 24e6, ..row }], "x");
        assert!(text.contains("| 4 | 3 | 12 | 1000000 ns | 2000000 ns | 12.00 ms | 24.00 ms |"));
    }
}
