//! Which slots have banks that must be read: what a bank holds changes while a task of its slot is on a CPU, and the
//! programs count for each slot when one leaves, on each CPU. Pure.

use tracer_ebpf::{ids::SLOTS, records::Cpu};

use crate::model::lease::Slot;

/// What all CPUs tell of all slots.
pub struct Moves {
    cpus: Vec<Cpu>,
    /// How often each slot has moved, on all CPUs; wraps.
    counts: Box<[u32; SLOTS]>,
    /// Whether a task of it is on a CPU.
    runs: Box<[bool; SLOTS]>,
}

/// What they, or one of them, tell of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// How often it has moved; wraps.
    pub count: u32,
    /// Whether a task of it is on a CPU: its bank may change at any time.
    pub runs: bool,
}

impl Moves {
    /// What `cpus`, all of them, keep.
    pub fn of(cpus: Vec<Cpu>) -> Self {
        let mut counts = Box::new([0_u32; SLOTS]);
        let mut runs = Box::new([false; SLOTS]);
        for Cpu { record, moves } in &cpus {
            for (count, moves) in counts.iter_mut().zip(moves) {
                *count = count.wrapping_add(*moves);
            }
            if let Some(runs) = runs.get_mut(record.slot as usize) {
                *runs |= record.pid != 0;
            }
        }
        Self { cpus, counts, runs }
    }

    /// What they tell of `slot`, below [`SLOTS`].
    pub fn mark(&self, slot: Slot) -> Mark {
        Mark { count: self.counts[usize::from(slot)], runs: self.runs[usize::from(slot)] }
    }

    /// What CPU number `cpu` tells of `slot`, below [`SLOTS`]; `None` where there is no such CPU.
    pub fn mark_on(&self, cpu: usize, slot: Slot) -> Option<Mark> {
        let Cpu { record, moves } = self.cpus.get(cpu)?;
        let runs = record.pid != 0 && record.slot == u32::from(slot);
        Some(Mark { count: moves[usize::from(slot)], runs })
    }

    /// The CPUs as they were given.
    pub fn into_cpus(self) -> Vec<Cpu> {
        self.cpus
    }
}

/// What is remembered of one slot's banks between two readings.
#[derive(Debug, Default)]
pub struct LastRead {
    /// The count by the last reading, where no task ran.
    count: Option<u32>,
    /// Whether the reading before had the same: the banks were read once more after they had moved, so that nothing is
    /// missing that was written at that very moment.
    is_again: bool,
}

impl LastRead {
    /// Whether banks marked `mark` hold what was read last; `None`: nobody counts.
    pub fn is_all(&self, mark: Option<Mark>) -> bool {
        self.is_again && self.is_same(mark)
    }

    /// They were read after they were marked `mark`.
    pub fn note(&mut self, mark: Option<Mark>) {
        self.is_again = self.is_same(mark);
        self.count = at_rest(mark);
    }

    fn is_same(&self, mark: Option<Mark>) -> bool {
        self.count.is_some() && at_rest(mark) == self.count
    }
}

/// Of which CPUs the bank of one lease holds nothing: a job runs on some CPUs of a large node, and of all the others
/// nothing is gone through again until its slot moves there.
#[derive(Debug, Default)]
pub struct EmptyBanks {
    /// By CPU; of a bank with something in it nothing is remembered.
    last_read: Vec<LastRead>,
}

impl EmptyBanks {
    /// Whether the bank of CPU number `cpu`, marked `mark` before it was copied, holds anything. `is_empty` looks, and is
    /// asked only where the bank may have changed since it was empty.
    pub fn holds(
        &mut self,
        cpu: usize,
        mark: Option<Mark>,
        is_empty: impl FnOnce() -> bool,
    ) -> bool {
        if self.last_read.len() <= cpu {
            self.last_read.resize_with(cpu + 1, LastRead::default);
        }
        let last_read = &mut self.last_read[cpu];
        if last_read.is_all(mark) {
            return false;
        }
        if !is_empty() {
            *last_read = LastRead::default();
            return true;
        }
        last_read.note(mark);
        false
    }
}

fn at_rest(mark: Option<Mark>) -> Option<u32> {
    mark.filter(|mark| !mark.runs).map(|mark| mark.count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracer_ebpf::records::CpuRecord;

    /// At which of `marks`, one after the other, the banks are read.
    fn read_at(marks: &[Option<Mark>]) -> Vec<usize> {
        let mut last = LastRead::default();
        let mut is_read = |mark: &Option<Mark>| {
            let is_read = !last.is_all(*mark);
            if is_read {
                last.note(*mark);
            }
            is_read
        };
        (0..marks.len()).filter(|at| is_read(&marks[*at])).collect()
    }

    #[test]
    fn banks_are_read_twice_after_they_moved_and_always_while_a_task_runs() {
        let rests = |count| Some(Mark { count, runs: false });
        let runs = |count| Some(Mark { count, runs: true });
        assert_eq!(read_at(&[rests(0); 5]), [0, 1]);
        let moves = [rests(0), rests(0), rests(0), rests(1), rests(1), rests(1), rests(2)];
        assert_eq!(read_at(&moves), [0, 1, 3, 4, 6]);
        assert_eq!(
            read_at(&[rests(7), rests(7), runs(7), rests(7), rests(8), rests(8), rests(8)]),
            [0, 1, 2, 3, 4, 5]
        );
        assert_eq!(read_at(&[runs(1); 4]), [0, 1, 2, 3]);
        assert_eq!(read_at(&[None; 3]), [0, 1, 2]);
        assert_eq!(
            read_at(&[rests(1), rests(1), None, rests(1), rests(1), rests(1)]),
            [0, 1, 2, 3, 4]
        );
    }

    #[test]
    fn an_empty_bank_is_looked_at_again_once_its_slot_moved_on_that_cpu() {
        let rests = |count| Some(Mark { count, runs: false });
        let runs = |count| Some(Mark { count, runs: true });
        let mut empty = EmptyBanks::default();
        // What is told of it, whether it is empty then, and whether that is looked at.
        for (at, (mark, is_empty, is_looked_at)) in [
            (rests(3), true, true),
            (rests(3), true, true),
            (rests(3), true, false),
            (runs(3), true, true),
            (rests(3), true, true),
            (rests(3), true, true),
            (rests(3), true, false),
            (None, true, true),
            (rests(3), true, true),
            (rests(3), true, true),
            (rests(3), true, false),
            (rests(4), false, true),
            (rests(4), false, true),
            (rests(4), false, true),
        ]
        .into_iter()
        .enumerate()
        {
            let mut looked_at = false;
            let holds = empty.holds(5, mark, || {
                looked_at = true;
                is_empty
            });
            assert_eq!((holds, looked_at), (!is_empty, is_looked_at), "reading {at}");
        }
        assert!(empty.holds(0, rests(3), || false), "another CPU");
    }

    #[test]
    fn what_all_cpus_keep_is_one_mark() {
        let cpu = |slot, pid, moves: &[(usize, u32)]| {
            let mut cpu =
                Cpu { record: CpuRecord { slot, pid, ..CpuRecord::default() }, moves: [0; SLOTS] };
            moves.iter().for_each(|(slot, count)| cpu.moves[*slot] = *count);
            cpu
        };
        let moves = Moves::of(vec![
            cpu(3, 0, &[(3, u32::MAX), (1023, 5)]),
            cpu(4, 100, &[(3, 2)]),
            cpu(u32::MAX, 100, &[]),
        ]);
        assert_eq!(moves.mark(3), Mark { count: 1, runs: false });
        assert_eq!(moves.mark(4), Mark { count: 0, runs: true });
        assert_eq!(moves.mark(1023), Mark { count: 5, runs: false });
        assert_eq!(moves.mark_on(0, 3), Some(Mark { count: u32::MAX, runs: false }));
        assert_eq!(moves.mark_on(1, 3), Some(Mark { count: 2, runs: false }));
        assert_eq!(moves.mark_on(1, 4), Some(Mark { count: 0, runs: true }));
        assert_eq!(moves.mark_on(3, 4), None);
    }
}
