//! Reading the maps: a snapshot of every slot.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use aya::Ebpf;
use tracer_ebpf::{block::BlockKey, records::CpuRecord, settings, table::Place};

use super::{
    block_cells::CellReader,
    clock::ahead_of_run_queues,
    decode::{Unwrapper, bytes_of},
    hooks::{FaultMode, HookState},
    load::{Layout, Options},
    log::BpfLog,
    maps::{Maps, Plain},
    own,
    running::{read_account, uncharged_ns},
    unknown::unknown_fields,
};
use crate::{
    clock::{monotonic_ns, wall_ns},
    model::{
        group::{Group, merge_all},
        job::Slot,
        snapshot::Snapshot,
        source::Source,
        tables::{FAULT, SCHED},
    },
    node::devices::Devices,
};

/// The attached programs and their maps. Dropping it detaches everything.
pub struct Probes {
    ebpf: Ebpf,
    pub(super) maps: Maps,
    states: Vec<HookState>,
    pub(super) faults: FaultMode,
    pub(super) layout: Layout,
    unknown: Vec<&'static str>,
    /// One minor fault in this many is timed.
    sample_every: u64,
    pub(super) cpus: HashMap<(Slot, &'static str, usize), Unwrapper>,
    pub(super) cells: BTreeMap<usize, (BlockKey, CellReader)>,
    devices: Devices,
    /// `on_cpu_ns` as last reported: what runs now is an estimate and must not make it shrink.
    pub(super) on_cpu_ns: BTreeMap<Slot, u64>,
    /// Cgroups removed: when, table and id.
    pub(super) removed: Vec<(Instant, u32, u64)>,
    /// Slots whose jobs have ended: when, and which.
    pub(super) ended: Vec<(Instant, Slot)>,
    drain: Duration,
    log: Option<BpfLog>,
}

impl Probes {
    pub(super) fn new(
        ebpf: Ebpf,
        maps: Maps,
        states: Vec<HookState>,
        globals: &BTreeMap<&'static str, u64>,
        options: &Options,
        layout: &Layout,
        log: Option<BpfLog>,
    ) -> Self {
        let unknown = unknown_fields(&states, globals, options.faults);
        Self {
            ebpf,
            maps,
            states,
            unknown,
            sample_every: globals[settings::MINOR_LATENCY_EVERY],
            faults: options.faults,
            layout: layout.clone(),
            cpus: HashMap::new(),
            cells: BTreeMap::new(),
            devices: Devices::default(),
            on_cpu_ns: BTreeMap::new(),
            removed: Vec::new(),
            ended: Vec::new(),
            drain: Duration::ZERO,
            log,
        }
    }

    /// How each of [`HOOKS`](super::HOOKS) fared.
    pub fn states(&self) -> &[HookState] {
        &self.states
    }

    /// Whether block I/O is known on this kernel.
    pub fn knows_block(&self) -> bool {
        !self.unknown.contains(&"job_block")
    }

    /// Run statistics of the loaded programs.
    pub fn program_runs(&self) -> Vec<own::ProgramRuns> {
        own::program_runs(&self.ebpf)
    }

    pub(super) fn read_cpus(&self) -> Option<Vec<CpuRecord>> {
        Some(self.maps.cpus.get(&0, 0).ok()?.iter().map(|record| record.0).collect())
    }

    fn read_slot(&mut self, slot: Slot) -> Result<Vec<Group>> {
        let mut sched = Group::unknown(&SCHED, Vec::new());
        let mut fault = Group::unknown(&FAULT, Vec::new());
        let maps = &self.maps.slots[&slot];
        let job = |place| if let Place::Job(at) = place { Some(at) } else { None };
        let latency = |place| if let Place::Latency(at) = place { Some(at) } else { None };
        let banks =
            maps.bank.get(&0, 0).with_context(|| format!("cannot read the bank of slot {slot}"))?;
        for (cpu, Plain(bank)) in banks.iter().enumerate() {
            for group in [&mut sched, &mut fault] {
                unwrapper(&mut self.cpus, slot, group, cpu, "job").add_to(
                    group,
                    bytes_of(bank),
                    job,
                );
            }
        }
        if let Some(map) = &maps.latency {
            let banks = map
                .get(&0, 0)
                .with_context(|| format!("cannot read the latencies of slot {slot}"))?;
            for (cpu, Plain(bank)) in banks.iter().enumerate() {
                unwrapper(&mut self.cpus, slot, &fault, cpu, "latency").add_to(
                    &mut fault,
                    bytes_of(bank),
                    latency,
                );
            }
            fault.set("latency_sample_every", self.sample_every);
        }
        for group in [&mut sched, &mut fault] {
            for (index, field) in group.measurement.fields.iter().enumerate() {
                if self.unknown.contains(&field.name) {
                    group.values[index] = None;
                }
            }
        }
        Ok(vec![sched, fault])
    }

    fn read_blocks(&mut self, slots: &mut BTreeMap<Slot, Vec<Group>>) {
        for (number, key, cell) in self.maps.blocks.read() {
            let device = self.devices.get(key.device);
            let (_, reader) = self.cells.entry(number).or_insert_with(|| (key, CellReader::new()));
            let group = reader.read(&cell, device, key.op);
            merge_all(slots.entry(key.slot).or_default(), &[group]);
        }
    }

    /// Adds what runs now to the slots' `on_cpu_ns`.
    fn add_running(&mut self, slots: &mut BTreeMap<Slot, Vec<Group>>, cpus: &[CpuRecord]) {
        let ahead = ahead_of_run_queues(|| self.read_cpus());
        let now = ahead.map_or(0, |ahead| (monotonic_ns() as i64 - ahead) as u64);
        for (slot, groups) in slots {
            let running = cpus.iter().filter(|cpu| cpu.pid != 0 && cpu.slot == u32::from(*slot));
            let running: u64 = running.map(|cpu| uncharged_ns(cpu, now, read_account)).sum();
            let Some(sched) =
                groups.iter_mut().find(|group| std::ptr::eq(group.measurement, &SCHED))
            else {
                continue;
            };
            let Some(charged) = sched.number("on_cpu_ns") else { continue };
            let reported = self.on_cpu_ns.entry(*slot).or_default();
            *reported = (*reported).max(charged + running);
            sched.set("on_cpu_ns", *reported);
        }
    }
}

impl Source for Probes {
    fn snapshot(&mut self) -> Result<Option<Snapshot>> {
        let begin = Instant::now();
        if let Some(log) = &mut self.log {
            log.flush();
        }
        self.forget_removed();
        let mut slots = BTreeMap::new();
        for slot in self.maps.slots.keys().copied().collect::<Vec<_>>() {
            slots.insert(slot, self.read_slot(slot)?);
        }
        if self.knows_block() {
            self.read_blocks(&mut slots);
        }
        // After the banks: a task that leaves between the two is missed now and counted next time;
        // the other way round it would be counted twice.
        let cpus = self.read_cpus().context("cannot read the CPUs' records")?;
        self.add_running(&mut slots, &cpus);
        self.free_ended(begin);
        self.drain += begin.elapsed();
        Ok(Some(Snapshot {
            wall_ns: wall_ns(),
            monotonic_ns: monotonic_ns(),
            slots,
            own: vec![own::read(&self.ebpf, &self.states, &cpus, self.drain.as_nanos() as u64)],
        }))
    }
}

fn unwrapper<'a>(
    all: &'a mut HashMap<(Slot, &'static str, usize), Unwrapper>,
    slot: Slot,
    group: &Group,
    cpu: usize,
    bank: &'static str,
) -> &'a mut Unwrapper {
    let fields = group.measurement.fields;
    // Two tables read one bank, one table reads two banks: tell them apart by both.
    let key = if bank == "latency" { "latency" } else { group.measurement.key };
    all.entry((slot, key, cpu)).or_insert_with(|| Unwrapper::new(fields))
}
