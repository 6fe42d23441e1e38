//! What the banks of one slot come to on all CPUs, of which those that hold nothing are left out. Pure.

use std::mem::offset_of;

use tracer_ebpf::{
    table::Place,
    tables::{job::JobBank, latency::LatencyBank},
};

use super::{
    added_up::AddedUp,
    decode::word,
    moves::{EmptyBanks, Mark},
};
use crate::model::tables::{FAULT, NET, SCHED};

/// The banks of one slot on one CPU.
pub struct CpuBanks<'a> {
    /// What told of them before they were copied.
    pub mark: Option<Mark>,
    /// A [`JobBank`].
    pub bank: &'a [u8],
    /// A [`LatencyBank`]; full mode only.
    pub latency: Option<&'a [u8]>,
}

/// The sum over all CPUs.
pub struct SlotSum {
    bank: AddedUp,
    latency: AddedUp,
    /// Time on CPU, of each that had something.
    on_cpu_ns: Vec<u64>,
}

impl Default for SlotSum {
    fn default() -> Self {
        let bank = AddedUp::of(size_of::<JobBank>(), &[&SCHED, &FAULT, &NET], job_place);
        let latency = AddedUp::of(size_of::<LatencyBank>(), &[&FAULT], latency_place);
        Self { bank, latency, on_cpu_ns: Vec::new() }
    }
}

impl SlotSum {
    /// Adds up what `cpus`, all of them, have, where `empty` does not tell that it is nothing.
    pub fn read<'a>(&mut self, cpus: impl Iterator<Item = CpuBanks<'a>>, empty: &mut EmptyBanks) {
        self.bank.clear();
        self.latency.clear();
        self.on_cpu_ns.clear();
        for (cpu, CpuBanks { mark, bank, latency }) in cpus.enumerate() {
            let is_empty = || is_zero(bank) && latency.is_none_or(is_zero);
            if !empty.holds(cpu, mark, is_empty) {
                continue;
            }
            self.bank.add(bank);
            self.on_cpu_ns.push(word(bank, offset_of!(JobBank, on_cpu_ns)));
            if let Some(latency) = latency {
                self.latency.add(latency);
            }
        }
    }

    /// A [`JobBank`].
    pub fn bank(&self) -> &[u8] {
        self.bank.bytes()
    }

    /// A [`LatencyBank`]; zeros where faults are not timed.
    pub fn latency(&self) -> &[u8] {
        self.latency.bytes()
    }

    /// Time on CPU of each CPU that had something.
    pub fn on_cpu_ns(&self) -> &[u64] {
        &self.on_cpu_ns
    }
}

/// Where a [`JobBank`] keeps what is in `place`; what it keeps by protocol family aside.
pub fn job_place(place: Place) -> Option<usize> {
    if let Place::Job(at) = place { Some(at) } else { None }
}

/// Where a [`LatencyBank`] keeps what is in `place`.
pub fn latency_place(place: Place) -> Option<usize> {
    if let Place::Latency(at) = place { Some(at) } else { None }
}

/// Whether all of `bytes`, whole words, are zeros.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.as_chunks().0.iter().all(|word| u64::from_ne_bytes(*word) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::decode::bytes_of;

    fn bank(on_cpu_ns: u64) -> JobBank {
        // SAFETY: all integers.
        let mut bank: JobBank = unsafe { std::mem::zeroed() };
        bank.on_cpu_ns = on_cpu_ns;
        bank
    }

    #[test]
    fn what_moves_is_added_up_and_what_is_empty_and_still_is_not_looked_at() {
        // SAFETY: all integers.
        let mut timed: LatencyBank = unsafe { std::mem::zeroed() };
        timed.minor_sampled = 3;
        // SAFETY: all integers.
        let none: LatencyBank = unsafe { std::mem::zeroed() };
        let (mut sum, mut empty) = (SlotSum::default(), EmptyBanks::default());
        let mut read = |cpus: &[(u32, JobBank, &LatencyBank)]| {
            let cpus = cpus.iter().map(|(count, bank, latency)| CpuBanks {
                mark: Some(Mark { count: *count, runs: false }),
                bank: bytes_of(bank),
                latency: Some(bytes_of(*latency)),
            });
            sum.read(cpus, &mut empty);
            let sampled = word(sum.latency(), offset_of!(LatencyBank, minor_sampled));
            (sum.on_cpu_ns().to_vec(), word(sum.bank(), 0), sampled)
        };
        for _ in 0..2 {
            let found = read(&[(1, bank(5), &none), (0, bank(0), &none), (0, bank(0), &timed)]);
            assert_eq!(found, (vec![5, 0], 5, 3));
        }
        // Nothing tells that the second CPU has moved.
        let found = read(&[(1, bank(6), &none), (0, bank(9), &none), (0, bank(0), &timed)]);
        assert_eq!(found, (vec![6, 0], 6, 3));
        let found = read(&[(1, bank(6), &none), (1, bank(9), &none), (0, bank(0), &timed)]);
        assert_eq!(found, (vec![6, 9, 0], 15, 3));
    }
}
