//! What the banks of a lease come to: decoded, unwrapped, with what cannot be known left out.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result};
use tracer_ebpf::{
    table::Place,
    tables::{job::JobBank, latency::LatencyBank},
};

use super::{
    bank::SlotBanks,
    decode::{Sums, Unwrapper},
    running::Reported,
};
use crate::{
    bpf::lookup::CpuValues,
    model::{
        group::Group,
        lease::{Lease, Slot},
        tables::{FAULT, Fault, SCHED},
    },
};

/// What is remembered of one lease's banks.
struct Decoders {
    sched: Unwrapper,
    fault: Unwrapper,
    bank: Sums,
    latency: Sums,
    /// The values at the last read.
    groups: [Group; 2],
}

impl Decoders {
    /// For banks whose values were `last` when they were read last, or began with zeros.
    fn after(last: &[Group]) -> Self {
        Self {
            sched: Unwrapper::after(&SCHED, last),
            fault: Unwrapper::after(&FAULT, last),
            bank: Sums::default(),
            latency: Sums::default(),
            groups: [&SCHED, &FAULT].map(|table| Group::unknown(table, Vec::new())),
        }
    }
}

/// What is remembered of all leases between two readings.
pub struct Readings {
    decoders: HashMap<Lease, Decoders>,
    running: Reported,
    /// Fields, or whole measurements, that cannot be known here.
    unknown: Vec<&'static str>,
    /// One minor fault in this many is timed.
    sample_every: u64,
    values: CpuValues,
    scratch: Vec<u64>,
}

impl Readings {
    /// Of leases that begin with zeros, where the fields `unknown` cannot be known and one minor fault in
    /// `sample_every` is timed.
    pub fn new(unknown: Vec<&'static str>, sample_every: u64) -> Self {
        Self {
            decoders: HashMap::new(),
            running: Reported::default(),
            unknown,
            sample_every,
            values: CpuValues::default(),
            scratch: Vec::new(),
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

    /// The values of `lease`, which has `slot`, from its banks.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn read(&mut self, lease: Lease, slot: Slot, banks: &SlotBanks) -> Result<Vec<Group>> {
        let Decoders { sched: of_sched, fault: of_fault, bank, latency, groups } =
            self.decoders.entry(lease).or_insert_with(|| Decoders::after(&[]));
        let [sched, fault] = groups;
        let cpus = self
            .values
            .read::<JobBank>(banks.bank_fd())
            .with_context(|| format!("cannot read the bank of slot {slot}"))?;
        if bank.moved(&cpus, &mut self.scratch) {
            let job = |place| if let Place::Job(at) = place { Some(at) } else { None };
            of_sched.read(sched, &cpus, job);
            of_fault.read(fault, &cpus, job);
        }
        if let Some(map) = banks.latency_fd() {
            let cpus = self
                .values
                .read::<LatencyBank>(map)
                .with_context(|| format!("cannot read the latencies of slot {slot}"))?;
            if latency.moved(&cpus, &mut self.scratch) {
                let latency = |place| if let Place::Latency(at) = place { Some(at) } else { None };
                of_fault.read(fault, &cpus, latency);
                fault.set(Fault::latency_sample_every, self.sample_every);
            }
        }
        let mut groups = groups.to_vec();
        for group in &mut groups {
            for (index, field) in group.measurement.fields.iter().enumerate() {
                if self.unknown.contains(&field.name) {
                    group.values[index] = None;
                }
            }
        }
        Ok(groups)
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
