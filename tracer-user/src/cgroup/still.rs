//! A job none of whose tasks ran since its files were read: they tell what they told. Stalls alone grow without a task
//! that runs, as long as one waits: those of two readings with nothing between are the same, or it goes on.
//!
//! What the probes do not see is compared every few seconds: limits, what is charged, the number of tasks.
//! What neither shows, a task that wants a CPU and has none for seconds, is seen when it runs, or after [`AGAIN_NS`].
//! `memory.stat` is that of up to two seconds ago (Linux 5.16 and later): what is told was read later than that.
//!
//! Pure: times, signs and what was read come as arguments.

use crate::model::{
    group::Group,
    tables::{Cpu, Memory},
};

/// After this all is read again.
pub const AGAIN_NS: u64 = 30_000_000_000;
/// So long what the probes do not see is taken for what it was: limits not longer than those of a job that does
/// something, which are read with what its memory is of.
/// At intervals of five seconds each time: times scatter.
const COMPARED_NS: u64 = 4_500_000_000;
/// After this `memory.stat` holds all that tasks did: the kernel adds it up every two seconds, or as much comes together.
const ADDED_UP_NS: u64 = 2_500_000_000;
/// What grows without a task that runs, and what shows that it is no longer the same.
const SIGNS: usize = 9;

/// The limit of a job's own cgroup, and the smallest of those above it, in bytes.
pub(super) type Limits = [Option<u64>; 2];

/// What was read of a job that does nothing.
pub(super) struct Told {
    /// `job_memory` and `job_cpu`.
    pub groups: [Group; 2],
    /// The limit of its own cgroup, and the smallest of those above it.
    pub limits: Limits,
    read_ns: u64,
    /// When what the probes do not see was last found to be as told.
    compared_ns: u64,
}

/// Whether a job does anything.
#[derive(Default)]
pub(super) struct Still {
    /// By the probes, a number that grows with all that its tasks do; `None` where nobody counts.
    moved: Option<u64>,
    /// The first reading at which it was that.
    since_ns: u64,
    /// It is the same as at the reading before.
    is_quiet: bool,
    signs: Option<[Option<u64>; SIGNS]>,
    /// The signs are the same, and all is to be read to be told.
    is_due: bool,
    told: Option<Told>,
}

impl Still {
    /// The readings to come are of `now_ns` (CLOCK_MONOTONIC), when its tasks had `moved` so much.
    pub fn set_now(&mut self, now_ns: u64, moved: Option<u64>) {
        self.is_quiet = moved.is_some() && moved == self.moved;
        self.moved = moved;
        if !self.is_quiet {
            self.since_ns = now_ns;
        }
        let is_old = |told: &Told| now_ns.saturating_sub(told.read_ns) >= AGAIN_NS;
        if !self.is_quiet || self.told.as_ref().is_some_and(is_old) {
            self.is_over();
        }
    }

    /// What is told without a reading, as long as what was compared last is what it was.
    pub fn told(&self) -> Option<&Told> {
        self.told.as_ref()
    }

    /// Whether what the probes do not see is to be read at `now_ns` (CLOCK_MONOTONIC), to be compared with what it told
    /// where it did; it is then.
    pub fn compares(&mut self, now_ns: u64) -> bool {
        let Some(told) = &mut self.told else { return true };
        let is_due = now_ns.saturating_sub(told.compared_ns) >= COMPARED_NS;
        if is_due {
            told.compared_ns = now_ns;
        }
        is_due
    }

    /// It is not what it was.
    pub fn is_over(&mut self) {
        (self.told, self.is_due) = (None, false);
    }

    /// Whether all is to be read, as it is told from then on.
    pub fn wants_all(&self) -> bool {
        self.is_quiet && self.is_due
    }

    /// This was read at `now_ns` (CLOCK_MONOTONIC), where all was wanted after `limits`.
    pub fn note(&mut self, groups: &[Group; 2], limits: Limits, now_ns: u64) {
        let signs = Some(signs(groups));
        let is_added_up = now_ns.saturating_sub(self.since_ns) >= ADDED_UP_NS;
        let is_same = self.is_quiet && is_added_up && signs == self.signs;
        self.signs = signs;
        if is_same && self.is_due {
            self.told =
                Some(Told { groups: groups.clone(), limits, read_ns: now_ns, compared_ns: now_ns });
        }
        self.is_due = is_same;
    }
}

fn signs([memory, cpu]: &[Group; 2]) -> [Option<u64>; SIGNS] {
    let of_memory = [
        Memory::current_bytes,
        Memory::peak_bytes,
        Memory::cpu_some_stall_ns,
        Memory::cpu_full_stall_ns,
        Memory::memory_some_stall_ns,
        Memory::memory_full_stall_ns,
        Memory::io_some_stall_ns,
        Memory::io_full_stall_ns,
    ];
    let mut signs = [cpu.number(Cpu::throttled_ns); SIGNS];
    for (sign, field) in signs.iter_mut().zip(of_memory) {
        *sign = memory.number(field);
    }
    signs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tables::{CPU, MEMORY};

    const S: u64 = 1_000_000_000;

    fn groups(io_stall_ns: u64) -> [Group; 2] {
        let mut memory = Group::unknown(&MEMORY, Vec::new());
        memory.set(Memory::current_bytes, 4096);
        memory.set(Memory::io_some_stall_ns, io_stall_ns);
        [memory, Group::unknown(&CPU, Vec::new())]
    }

    /// At which of these readings, one a second, of what moved and stalled, it is told without.
    fn told(readings: &[(Option<u64>, u64)]) -> Vec<usize> {
        let mut still = Still::default();
        let mut told = Vec::new();
        for (at, (moved, stall_ns)) in readings.iter().enumerate() {
            let now_ns = at as u64 * S;
            still.set_now(now_ns, *moved);
            match still.told() {
                Some(_) => told.push(at),
                None => still.note(&groups(*stall_ns), Limits::default(), now_ns),
            }
        }
        told
    }

    #[test]
    fn readings_with_nothing_between_are_told_again_once_the_kernel_has_added_up() {
        let quiet = (Some(7), 5);
        // At the fourth it is known to be so, and the fifth reads all, as it is told.
        assert_eq!(told(&[quiet; 8]), [5, 6, 7]);
        let runs = (Some(8), 5);
        assert_eq!(told(&[&[quiet; 7][..], &[runs; 7]].concat()), [5, 6, 12, 13]);
        assert!(told(&[(None, 5); 9]).is_empty(), "nobody counts");
    }

    #[test]
    fn what_the_probes_do_not_see_is_compared_every_five_seconds() {
        let mut still = Still::default();
        let compared = (0..20).filter(|second| {
            let now_ns = second * S;
            still.set_now(now_ns, Some(7));
            if still.told().is_none() {
                still.note(&groups(5), Limits::default(), now_ns);
            }
            still.compares(now_ns)
        });
        // Up to the fourth it is read with all else.
        assert_eq!(compared.collect::<Vec<_>>(), [0, 1, 2, 3, 9, 14, 19]);
    }

    #[test]
    fn while_a_task_waits_all_is_read() {
        let waits: Vec<_> = (0..9).map(|second| (Some(7), second * S)).collect();
        assert!(told(&waits).is_empty());
    }

    #[test]
    fn after_a_while_all_is_read_again() {
        let told = told(&[(Some(7), 5); 70]);
        let read: Vec<_> = (0..70).filter(|at| !told.contains(at)).collect();
        assert_eq!(read, [0, 1, 2, 3, 4, 34, 35, 65, 66]);
    }
}
