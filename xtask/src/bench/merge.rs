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
        moves::{EmptyBanks, LastRead, Moves},
        slot_sum::{CpuBanks, SlotSum, job_place},
    },
};
use tracer_ebpf::{
    ids::SLOTS,
    records::{Cpu, CpuRecord},
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

/// A job of which all is said runs on each CPU, or on one of so many, as pinned jobs do.
const EACH: [usize; 2] = [4, 1];

/// One row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    cpus: usize,
    slots: usize,
    /// Nanoseconds of a reading in which no slot moved.
    still_ns: f64,
    /// Nanoseconds of one in which all did, on those CPUs that are [`EACH`].
    moved_ns: [f64; 2],
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
    empty: EmptyBanks,
    of_sched: Unwrapper,
    of_fault: Unwrapper,
    sched: Group,
    fault: Group,
    /// The banks of all CPUs, one behind the other.
    banks: Vec<u8>,
}

const BANK: usize = size_of::<JobBank>();

fn measure(cpus: usize, slots: usize) -> Result<Row> {
    say(format_args!("{cpus} CPUs, {slots} slots"));
    let [(still, part), (_, all)] =
        [measure_on(cpus, slots, EACH[0])?, measure_on(cpus, slots, EACH[1])?];
    Ok(Row { cpus, slots, still_ns: still, moved_ns: [part, all] })
}

/// Nanoseconds of a reading of jobs that run on one CPU of `each`: where none moved, where all did.
fn measure_on(cpus: usize, slots: usize, each: usize) -> Result<(f64, f64)> {
    let mut all: Vec<Slot> = (0..slots).map(|slot| Slot::new(slot, cpus, each)).collect();
    let mut cpus = vec![Cpu { record: CpuRecord::default(), moves: [0; SLOTS] }; cpus];
    let mut sum = SlotSum::default();
    let mut reading = |all: &mut Vec<Slot>, cpus: &mut Vec<Cpu>| {
        let begin = Instant::now();
        let moves = Moves::of(std::mem::take(cpus));
        let read = |(slot, of): (usize, &mut Slot)| of.read(&mut sum, &moves, slot as u16);
        let moved = all.iter_mut().enumerate().filter_map(read).count();
        *cpus = moves.into_cpus();
        (begin.elapsed().as_nanos() as f64, moved)
    };
    // What moved is read once more.
    for round in ["first", "second"] {
        let (_, moved) = reading(&mut all, &mut cpus);
        ensure!(moved == slots, "{moved} slots of {slots} were read in the {round} reading");
    }
    let (mut still, mut busy) = (Vec::new(), Vec::new());
    for round in 1..=READINGS {
        let (ns, moved) = reading(&mut all, &mut cpus);
        ensure!(moved == 0, "{moved} slots moved by themselves");
        still.push(ns);
        let before = all[0].sched.number(Sched::on_cpu_ns);
        for slot in &mut all {
            let at = std::mem::offset_of!(JobBank, on_cpu_ns);
            slot.banks[at] = slot.banks[at].wrapping_add(1);
        }
        for cpu in cpus.iter_mut().step_by(each) {
            cpu.moves.iter_mut().for_each(|moves| *moves += 1);
        }
        let (ns, moved) = reading(&mut all, &mut cpus);
        ensure!(moved == slots, "{moved} slots of {slots} moved in reading {round}");
        let after = all[0].sched.number(Sched::on_cpu_ns);
        ensure!(after == before.map(|before| before + 1), "a bank is added up wrong: {after:?}");
        busy.push(ns);
        reading(&mut all, &mut cpus);
    }
    black_box(&all);
    Ok((median(&still), median(&busy)))
}

impl Slot {
    /// Number `slot`, which holds something on one CPU of `each`. Any small numbers will do.
    fn new(slot: usize, cpus: usize, each: usize) -> Self {
        let byte = |at: usize| match (at / BANK).is_multiple_of(each) {
            true => (at * 31 + slot) as u8 & 15,
            false => 0,
        };
        Self {
            last_read: LastRead::default(),
            empty: EmptyBanks::default(),
            of_sched: Unwrapper::after(&SCHED, &[]),
            of_fault: Unwrapper::after(&FAULT, &[]),
            sched: Group::unknown(&SCHED, vec![]),
            fault: Group::unknown(&FAULT, vec![]),
            banks: (0..cpus * BANK).map(byte).collect(),
        }
    }

    /// As `probes/readings.rs` does it with what it copied from the map.
    fn read(&mut self, sum: &mut SlotSum, moves: &Moves, slot: u16) -> Option<()> {
        let mark = Some(moves.mark(slot));
        if self.last_read.is_all(mark) {
            return None;
        }
        let cpus = self.banks.chunks_exact(BANK).enumerate();
        let cpus = cpus.map(|(cpu, bank)| CpuBanks {
            mark: moves.mark_on(cpu, slot),
            bank,
            latency: None,
        });
        sum.read(cpus, &mut self.empty);
        self.of_sched.read(&mut self.sched, &[sum.bank()], job_place);
        self.of_fault.read(&mut self.fault, &[sum.bank()], job_place);
        self.last_read.note(mark);
        Some(())
    }
}

fn median(values: &[f64]) -> f64 {
    spread(values.iter().copied()).map_or(0.0, |spread| spread.median)
}

fn document(rows: &[Row], machine: &str) -> String {
    let mut table = Table::new(
        ">possible CPUs | >slots | >banks | >a reading, all still | >all moved, jobs on a quarter of the CPUs | \
         >all moved, jobs on all CPUs | >a bank of these",
    );
    for Row { cpus, slots, still_ns, moved_ns: [part_ns, all_ns] } in rows {
        let banks = (cpus * slots) as f64;
        let ms = |ns: f64| format!("{:.2} ms", ns / 1e6);
        let bank = format!("{:.0} ns", all_ns / banks);
        table.row([cpus, slots, &banks, &ms(*still_ns), &ms(*part_ns), &ms(*all_ns), &bank]);
    }
    format!("{machine}.\n\n{table}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_node_is_added_up_right() {
        let row = measure(4, 3).unwrap();
        assert!(row.still_ns > 0.0 && row.still_ns < row.moved_ns[1], "{row:?}");
        let text = document(&[Row { still_ns: 12e6, moved_ns: [24e6, 36e6], ..row }], "x");
        assert!(text.contains("| 4 | 3 | 12 | 12.00 ms | 24.00 ms | 36.00 ms | 3000000 ns |"));
    }
}
