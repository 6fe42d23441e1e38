//! Reading the maps: a snapshot of every slot.

use std::{
    collections::{BTreeMap, HashMap},
    os::fd::AsFd,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use aya::maps::IterableMap;
use tracer_ebpf::{
    block::{BlockKey, OPS},
    job::JobBank,
    latency::LatencyBank,
    records::CpuRecord,
    table::Place,
};

use super::{
    block_cells::CellReader,
    clock::ahead_of_run_queues,
    decode::{Sums, Unwrapper},
    events::Cgroup,
    gap::Stale,
    hooks::{FaultMode, HookState},
    leases::Leases,
    load::Options,
    log::BpfLog,
    lookup::CpuValues,
    maps::{Maps, Plain},
    own,
    programs::Programs,
    running::{Reported, read_account, uncharged_ns},
};
use crate::{
    base::{
        clock::{monotonic_ns, wall_ns},
        devices::Devices,
        layout::Layout,
    },
    model::{
        group::{Group, merge_all},
        job::{Lease, Slot},
        snapshot::Snapshot,
        source::Source,
        tables::{FAULT, Fault, Own, SCHED},
    },
};

/// The attached programs and their maps. Dropping it detaches everything.
pub struct Probes {
    pub(super) programs: Programs,
    pub(super) maps: Maps,
    pub(super) states: Vec<HookState>,
    pub(super) faults: FaultMode,
    pub(super) layout: Layout,
    pub(super) unknown: Vec<&'static str>,
    pub(super) leases: Leases,
    pub(super) decoders: HashMap<Lease, Decoders>,
    /// Last values of the leases that ended since the last snapshot.
    pub(super) closed: BTreeMap<Lease, Vec<Group>>,
    /// One minor fault in this many is timed.
    sample_every: u64,
    pub(super) cells: BTreeMap<usize, (BlockKey, CellReader)>,
    devices: Devices,
    pub(super) running: Reported,
    /// Whether snapshots free what has ended; the whole node's agent does so itself.
    reclaims: bool,
    /// Programs whose attachment this kernel cannot pin.
    pub(super) unpinned: Vec<&'static str>,
    /// Last values of block I/O that the agent before this one reported.
    pub(super) seeds: Vec<(Lease, Group)>,
    pub(super) stale: Stale,
    /// From when on all programs were attached, CLOCK_MONOTONIC.
    since_ns: u64,
    /// Cgroups that this side found no room for in the kernel's table.
    pub(super) no_room: u64,
    /// Cgroups removed, and when; the oldest first.
    pub(super) removed: Vec<(Instant, Cgroup)>,
    drain: Duration,
    log: Option<BpfLog>,
    values: CpuValues,
    scratch: Vec<u64>,
    map_bytes: own::MapBytes,
}

/// What is remembered of one lease's banks.
pub(super) struct Decoders {
    sched: Unwrapper,
    fault: Unwrapper,
    bank: Sums,
    latency: Sums,
    /// The values at the last read.
    groups: [Group; 2],
}

impl Decoders {
    /// For banks whose values were `last` when they were read last, or began with zeros.
    pub(super) fn after(last: &[Group]) -> Self {
        Self {
            sched: Unwrapper::after(&SCHED, last),
            fault: Unwrapper::after(&FAULT, last),
            bank: Sums::default(),
            latency: Sums::default(),
            groups: [&SCHED, &FAULT].map(|table| Group::unknown(table, Vec::new())),
        }
    }
}

/// What loading or taking over found.
pub(super) struct Parts {
    pub programs: Programs,
    pub maps: Maps,
    pub states: Vec<HookState>,
    /// Fields, or whole measurements, that cannot be known here.
    pub unknown: Vec<&'static str>,
    pub sample_every: u64,
    /// From when on all programs were attached, CLOCK_MONOTONIC; 0 where an agent before this one did it.
    pub since_ns: u64,
    pub log: Option<BpfLog>,
}

impl Probes {
    pub(super) fn new(parts: Parts, options: &Options, layout: &Layout) -> Self {
        let Parts { programs, maps, states, unknown, sample_every, since_ns, log } = parts;
        Self {
            programs,
            maps,
            states,
            unknown,
            sample_every,
            faults: options.faults,
            layout: layout.clone(),
            leases: Leases::new(options.most_slots),
            decoders: HashMap::new(),
            closed: BTreeMap::new(),
            cells: BTreeMap::new(),
            devices: Devices::default(),
            running: Reported::default(),
            reclaims: !options.whole_node,
            unpinned: Vec::new(),
            seeds: Vec::new(),
            stale: Stale::default(),
            since_ns,
            no_room: 0,
            removed: Vec::new(),
            drain: Duration::ZERO,
            log,
            values: CpuValues::default(),
            scratch: Vec::new(),
            map_bytes: own::MapBytes::default(),
        }
    }

    /// How each of [`HOOKS`](super::HOOKS) fared.
    pub fn states(&self) -> &[HookState] {
        &self.states
    }

    /// From when on all programs were attached, CLOCK_MONOTONIC; 0 where an agent before this one did it.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Whether block I/O is known on this kernel.
    pub fn knows_block(&self) -> bool {
        !self.unknown.contains(&"job_block")
    }

    /// Run statistics of the loaded programs.
    pub fn program_runs(&self) -> Vec<own::ProgramRuns> {
        own::program_runs(&self.programs)
    }

    pub(super) fn read_cpus(&self) -> Option<Vec<CpuRecord>> {
        let map = self.maps.cpus.map().fd().as_fd();
        let records = CpuValues::default().copy::<Plain<CpuRecord>>(map).ok()?;
        Some(records.into_iter().map(|Plain(record)| record).collect())
    }

    fn read_slot(&mut self, lease: Lease, slot: Slot) -> Result<Vec<Group>> {
        let maps =
            self.maps.slots.get(&slot).with_context(|| format!("slot {slot} has no bank"))?;
        let Decoders { sched: of_sched, fault: of_fault, bank, latency, groups } =
            self.decoders.entry(lease).or_insert_with(|| Decoders::after(&[]));
        let [sched, fault] = groups;
        let cpus = self
            .values
            .read::<JobBank>(maps.bank_fd())
            .with_context(|| format!("cannot read the bank of slot {slot}"))?;
        if bank.moved(&cpus, &mut self.scratch) {
            let job = |place| if let Place::Job(at) = place { Some(at) } else { None };
            of_sched.read(sched, &cpus, job);
            of_fault.read(fault, &cpus, job);
        }
        if let Some(map) = maps.latency_fd() {
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

    /// The last values of `lease`, which has ended.
    pub(super) fn read_last(&mut self, lease: Lease, slot: Slot) -> Result<Vec<Group>> {
        let mut slots = BTreeMap::from([(lease, self.read_slot(lease, slot)?)]);
        if self.knows_block() {
            self.read_blocks(&mut slots, |of| of == slot);
        }
        let mut groups = slots.remove(&lease).unwrap_or_default();
        self.running.report(lease, &mut groups, 0);
        Ok(groups)
    }

    fn read_blocks(&mut self, slots: &mut BTreeMap<Lease, Vec<Group>>, of: impl Fn(Slot) -> bool) {
        for (number, key) in self.maps.blocks.used() {
            // A spare slot, taken a moment ago: next time it is known whose it is.
            let Some(lease) = self.leases.holder(key.slot).filter(|_| of(key.slot)) else {
                continue;
            };
            let device = self.devices.get(key.device);
            let seeds = &self.seeds;
            let (_, reader) = self.cells.entry(number).or_insert_with(|| {
                let op = OPS[usize::from(key.op) % OPS.len()];
                let same = |(of, group): &&(Lease, Group)| {
                    *of == lease && group.tags == [device.name.as_str(), op]
                };
                (key, CellReader::after(seeds.iter().find(same).map(|(_, group)| group)))
            });
            let group = reader.read(&self.maps.blocks.read(number), device, key.op);
            merge_all(slots.entry(lease).or_default(), std::slice::from_ref(group));
        }
    }

    /// What the tasks of `leases` have done up to now, cumulative: scheduling and page faults alone, of
    /// these slots alone, so that it can be asked each second. `None` while the switch hook is detached.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn look(&mut self, leases: &[Lease]) -> Result<Option<BTreeMap<Lease, Vec<Group>>>> {
        if !self.runs_switches() {
            return Ok(None);
        }
        let begin = Instant::now();
        let mut slots = BTreeMap::new();
        for lease in leases {
            if let Some(slot) = self.leases.slot(*lease) {
                slots.insert(*lease, self.read_slot(*lease, slot)?);
            }
        }
        if !slots.is_empty() {
            let cpus = self.read_cpus().context("cannot read the CPUs' records")?;
            self.add_running(&mut slots, &cpus);
        }
        self.drain += begin.elapsed();
        Ok(Some(slots))
    }

    /// Adds what runs now to `on_cpu_ns`.
    fn add_running(&mut self, slots: &mut BTreeMap<Lease, Vec<Group>>, cpus: &[CpuRecord]) {
        let ahead = ahead_of_run_queues(|| self.read_cpus());
        let now = ahead.map_or(0, |ahead| (monotonic_ns() as i64 - ahead) as u64);
        let mut uncharged = BTreeMap::<Lease, u64>::new();
        for cpu in &self.running_now(cpus) {
            let lease = self.leases.holder(cpu.slot as Slot);
            let Some(lease) = lease.filter(|lease| slots.contains_key(lease)) else { continue };
            *uncharged.entry(lease).or_default() += uncharged_ns(cpu, now, read_account);
        }
        for (lease, groups) in slots {
            let running = uncharged.get(lease).copied().unwrap_or(0);
            self.running.report(*lease, groups, running);
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
        if self.reclaims {
            self.reclaim(begin, |_, _| Ok(()))?;
        }
        let mut slots = BTreeMap::new();
        for (lease, slot) in self.leases.used().collect::<Vec<_>>() {
            slots.insert(lease, self.read_slot(lease, slot)?);
        }
        if self.knows_block() {
            self.read_blocks(&mut slots, |_| true);
        }
        // After the banks: a task that leaves between the two is missed now and counted next time;
        // the other way round it would be counted twice.
        let cpus = self.read_cpus().context("cannot read the CPUs' records")?;
        self.add_running(&mut slots, &cpus);
        slots.append(&mut self.closed);
        let map_bytes = self.map_bytes.read(self.maps.slots.values());
        self.drain += begin.elapsed();
        let drain_ns = self.drain.as_nanos() as u64;
        let mut own = own::read(&self.programs, &self.states, &cpus, map_bytes, drain_ns);
        let dropped = own.number(Own::dropped_cgroup).unwrap_or(0);
        own.set(Own::dropped_cgroup, dropped + self.no_room);
        Ok(Some(Snapshot {
            wall_ns: wall_ns(),
            monotonic_ns: monotonic_ns(),
            slots,
            own: vec![own],
        }))
    }
}
