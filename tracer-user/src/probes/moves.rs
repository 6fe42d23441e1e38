//! Which slots have banks that must be read: what a bank holds changes while a task of its slot is on a CPU, and the
//! programs count for each slot when one leaves. Pure.

use tracer_ebpf::{ids::SLOTS, records::Cpu};

use crate::model::lease::Slot;

/// What all CPUs tell of all slots.
pub struct Moves {
    /// How often each slot has moved, on all CPUs; wraps.
    counts: Box<[u32; SLOTS]>,
    /// Whether a task of it is on a CPU.
    runs: Box<[bool; SLOTS]>,
}

/// What they tell of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// How often it has moved; wraps.
    pub count: u32,
    /// Whether a task of it is on a CPU: its bank may change at any time.
    pub runs: bool,
}

impl Default for Moves {
    fn default() -> Self {
        Self { counts: Box::new([0; SLOTS]), runs: Box::new([false; SLOTS]) }
    }
}

impl Moves {
    /// Adds what one CPU keeps.
    pub fn add(&mut self, Cpu { record, moves }: &Cpu) {
        for (count, moves) in self.counts.iter_mut().zip(moves) {
            *count = count.wrapping_add(*moves);
        }
        if let Some(runs) = self.runs.get_mut(record.slot as usize) {
            *runs |= record.pid != 0;
        }
    }

    /// What they tell of `slot`, below [`SLOTS`].
    pub fn of(&self, slot: Slot) -> Mark {
        Mark { count: self.counts[usize::from(slot)], runs: self.runs[usize::from(slot)] }
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
    fn what_all_cpus_keep_is_one_mark() {
        let cpu = |slot, pid, moves: &[(usize, u32)]| {
            let mut cpu =
                Cpu { record: CpuRecord { slot, pid, ..CpuRecord::default() }, moves: [0; SLOTS] };
            moves.iter().for_each(|(slot, count)| cpu.moves[*slot] = *count);
            cpu
        };
        let mut moves = Moves::default();
        moves.add(&cpu(3, 0, &[(3, u32::MAX), (1023, 5)]));
        moves.add(&cpu(4, 100, &[(3, 2)]));
        moves.add(&cpu(u32::MAX, 100, &[]));
        assert_eq!(moves.of(3), Mark { count: 1, runs: false });
        assert_eq!(moves.of(4), Mark { count: 0, runs: true });
        assert_eq!(moves.of(1023), Mark { count: 5, runs: false });
    }
}
