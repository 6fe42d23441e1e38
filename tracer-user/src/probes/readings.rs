//! What the banks of a lease come to: decoded, unwrapped, with what cannot be known left out.

use std::{
    collections::{BTreeMap, HashMap},
    mem::offset_of,
};

use anyhow::{Context, Result};
use tracer_ebpf::{
    table::{Measurement, Place},
    tables::{
        job::JobBank,
        latency::LatencyBank,
        net::{FAMILIES, NetCounts, family},
    },
};

use super::{
    bank::SlotBanks,
    decode::{Unwrapper, word},
    moves::{EmptyBanks, LastRead, Moves},
    running::Reported,
    slot_sum::{CpuBanks, SlotSum, job_place, latency_place},
};
use crate::{
    bpf::lookup::CpuValues,
    model::{
        group::Group,
        lease::{Lease, Slot},
        tables::{FAULT, Fault, NET, SCHED, Sched},
    },
};

/// Tasks only pass by a CPU, mostly while they start, where they have had less than this part of the time on the
/// busiest one.
const LEAST_PART: u64 = 100;

/// What is remembered of one lease's banks.
struct Decoders {
    sched: Unwrapper,
    fault: Unwrapper,
    net: Unwrapper,
    last_read: LastRead,
    empty: EmptyBanks,
    /// The values at the last read.
    groups: [Group; 2],
    /// Those of the network, of each family that has any.
    families: Vec<Group>,
}

impl Decoders {
    /// For banks whose values were `last` when they were read last, or began with zeros.
    fn after(last: &[Group]) -> Self {
        Self {
            sched: Unwrapper::after(&SCHED, last),
            fault: Unwrapper::after(&FAULT, last),
            net: Unwrapper::after(&NET, last),
            last_read: LastRead::default(),
            empty: EmptyBanks::default(),
            groups: [&SCHED, &FAULT].map(|table| Group::unknown(table, Vec::new())),
            families: Vec::new(),
        }
    }
}

/// What is remembered of all leases between two readings.
pub struct Readings {
    decoders: HashMap<Lease, Decoders>,
    running: Reported,
    /// Fields, or whole measurements, that cannot be known here.
    unknown: Vec<&'static str>,
    /// Those of them that banks have, by measurement and place there.
    unknown_values: Vec<(&'static Measurement, usize)>,
    /// One minor fault in this many is timed.
    sample_every: u64,
    banks: CpuValues,
    latencies: CpuValues,
    sum: SlotSum,
}

impl Readings {
    /// Of leases that begin with zeros, where the fields `unknown` cannot be known and one minor fault in
    /// `sample_every` is timed.
    pub fn new(unknown: Vec<&'static str>, sample_every: u64) -> Self {
        let fields = [&SCHED, &FAULT, &NET].into_iter().flat_map(|table: &'static Measurement| {
            table.fields.iter().enumerate().map(move |(at, field)| (table, at, field.name))
        });
        let of_banks = fields.filter(|(.., name)| unknown.contains(name));
        Self {
            decoders: HashMap::new(),
            running: Reported::default(),
            unknown_values: of_banks.map(|(table, at, _)| (table, at)).collect(),
            unknown,
            sample_every,
            banks: CpuValues::default(),
            latencies: CpuValues::default(),
            sum: SlotSum::default(),
        }
    }

    /// Goes on where another agent ended, whose values of `lease` were `last`.
    pub fn go_on(&mut self, lease: Lease, last: &[Group]) {
        self.decoders.insert(lease, Decoders::after(last));
    }

    /// Goes on with what another agent reported of `on_cpu_ns`.
    pub fn set_reported(&mut self, reported: Reported) {
        self.running = reported;
    }

    /// `on_cpu_ns` as last reported.
    pub fn reported(&self) -> &Reported {
        &self.running
    }

    /// Fields, or whole measurements, that cannot be known here.
    pub fn unknown(&self) -> &[&'static str] {
        &self.unknown
    }

    /// The values of `lease`, which has `slot`, from its banks, which are read where `moves` do not tell that they are
    /// the same as before; `None`: nobody counts.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn read(
        &mut self,
        lease: Lease,
        slot: Slot,
        banks: &SlotBanks,
        moves: Option<&Moves>,
    ) -> Result<Vec<Group>> {
        let Decoders { sched: of_sched, fault: of_fault, net, last_read, empty, groups, families } =
            self.decoders.entry(lease).or_insert_with(|| Decoders::after(&[]));
        let [sched, fault] = groups;
        let mark = moves.map(|moves| moves.mark(slot));
        if !last_read.is_all(mark) {
            let cpus = self
                .banks
                .read::<JobBank>(banks.bank_fd())
                .with_context(|| format!("cannot read the bank of slot {slot}"))?;
            let mut latencies = banks
                .latency_fd()
                .map(|map| self.latencies.read::<LatencyBank>(map))
                .transpose()
                .with_context(|| format!("cannot read the latencies of slot {slot}"))?;
            let cpus = cpus.enumerate().map(|(cpu, bank)| CpuBanks {
                mark: moves.and_then(|moves| moves.mark_on(cpu, slot)),
                bank,
                latency: latencies.as_mut().and_then(Iterator::next),
            });
            self.sum.read(cpus, empty);
            let bank = self.sum.bank();
            of_sched.read(sched, &[bank], job_place);
            of_fault.read(fault, &[bank], job_place);
            set_spread(sched, self.sum.on_cpu_ns());
            families.clear();
            for (index, name) in FAMILIES.iter().enumerate() {
                let is_in_bank = |place| in_bank(place, index);
                if has_any(&NET, bank, is_in_bank) {
                    let mut group = Group::unknown(&NET, vec![(*name).into()]);
                    net.read(&mut group, &[bank], is_in_bank);
                    families.push(group);
                }
            }
            if banks.latency_fd().is_some() {
                of_fault.read(fault, &[self.sum.latency()], latency_place);
                fault.set(Fault::latency_sample_every, self.sample_every);
            }
            for (table, at) in &self.unknown_values {
                let known = groups.iter_mut().chain(&mut *families);
                known.filter(|group| group.is(table)).for_each(|group| group.values[*at] = None);
            }
            last_read.note(mark);
        }
        Ok(groups.iter().chain(&*families).cloned().collect())
    }

    /// Adds to the `on_cpu_ns` of each lease of `slots` what it runs now, `uncharged` nanoseconds.
    pub fn report(
        &mut self,
        slots: &mut BTreeMap<Lease, Vec<Group>>,
        uncharged: &BTreeMap<Lease, u64>,
    ) {
        for (lease, groups) in slots {
            let running = uncharged.get(lease).copied().unwrap_or(0);
            self.running.report(*lease, groups, running);
        }
    }

    /// The tasks were forgotten ([`Reported::resume`]).
    pub fn resume(&mut self) {
        self.running.resume();
    }

    /// Forgets a lease that has ended, whose last values were read.
    pub fn forget(&mut self, lease: Lease) {
        self.running.forget(lease);
        self.decoders.remove(&lease);
    }
}

/// Sets in `sched` how the time on CPU is spread over CPUs, of which some had `on_cpu_ns` each, the others none.
fn set_spread(sched: &mut Group, on_cpu_ns: &[u64]) {
    let most_ns = on_cpu_ns.iter().copied().max().unwrap_or(0);
    let least_ns = (most_ns / LEAST_PART).max(1);
    sched.set(Sched::cpus_used, on_cpu_ns.iter().filter(|ns| **ns >= least_ns).count() as u64);
    sched.set(Sched::busiest_cpu_ns, most_ns);
}

/// Whether one of the fields of `measurement` that `offset` gives a place in `bank` is not zero there.
fn has_any(
    measurement: &Measurement,
    bank: &[u8],
    offset: impl Fn(Place) -> Option<usize>,
) -> bool {
    let mut places = measurement.fields.iter().filter_map(|field| offset(field.place));
    places.any(|at| word(bank, at) != 0)
}

/// Where the bank keeps what is in `place` of family number `index` of the network. What is not kept by family
/// is TCP's.
fn in_bank(place: Place, index: usize) -> Option<usize> {
    match place {
        Place::Net(at) => Some(offset_of!(JobBank, net) + index * size_of::<NetCounts>() + at),
        Place::Job(at) => (index == family::TCP as usize).then_some(at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_on_cpu_is_spread_over_cpus() {
        for (on_cpu_ns, used, busiest_ns) in [
            (&[][..], 0, 0),
            (&[0, 0], 0, 0),
            (&[0, 1], 1, 1),
            (&[99, 1], 2, 99),
            (&[4_000, 40, 39, 0, 3_000], 3, 4_000),
        ] {
            let mut sched = Group::unknown(&SCHED, Vec::new());
            set_spread(&mut sched, on_cpu_ns);
            let told = (sched.number(Sched::cpus_used), sched.number(Sched::busiest_cpu_ns));
            assert_eq!(told, (Some(used), Some(busiest_ns)), "{on_cpu_ns:?}");
        }
    }
}
