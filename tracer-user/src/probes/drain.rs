//! Reading the maps: a snapshot of every slot.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use aya::{Ebpf, maps::RingBuf};
use tracer_ebpf::{
    block::{BlockKey, OPS},
    records::{CgroupEvent, CpuRecord, cgroup_event},
    settings,
    table::Place,
};

use super::{
    clock::{ahead_of_run_queues, monotonic_ns},
    decode::{Unwrapper, bytes_of, derive},
    hooks::{FaultMode, HOOKS, HookState},
    load::{Layout, MINOR_LATENCY_EVERY, Options},
    log::BpfLog,
    maps::{Maps, Plain},
    own,
};
use crate::{
    model::{
        group::Group,
        job::Slot,
        snapshot::Snapshot,
        source::Source,
        tables::{BLOCK, FAULT, SCHED},
    },
    node::devices::Devices,
};

/// A removed cgroup is remembered this long: completions of its write-back come late.
const FORGET_AFTER: Duration = Duration::from_secs(120);

/// How often and how long [`Probes::settle`] looks.
const SETTLE_TRIES: u32 = 10;
const SETTLE_PAUSE: Duration = Duration::from_micros(500);

/// The attached programs and their maps. Dropping it detaches everything.
pub struct Probes {
    ebpf: Ebpf,
    maps: Maps,
    states: Vec<HookState>,
    faults: FaultMode,
    layout: Layout,
    unknown: Vec<&'static str>,
    cpus: HashMap<(Slot, &'static str, usize), Unwrapper>,
    cells: BTreeMap<BlockKey, Unwrapper>,
    devices: Devices,
    /// `on_cpu_ns` as last reported: what runs now is an estimate and must not make it shrink.
    on_cpu_ns: BTreeMap<Slot, u64>,
    removed: Vec<(Instant, u32, u64)>,
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
            faults: options.faults,
            layout: layout.clone(),
            cpus: HashMap::new(),
            cells: BTreeMap::new(),
            devices: Devices::default(),
            on_cpu_ns: BTreeMap::new(),
            removed: Vec::new(),
            drain: Duration::ZERO,
            log,
        }
    }

    /// How each of [`HOOKS`] fared.
    pub fn states(&self) -> &[HookState] {
        &self.states
    }

    /// Run statistics of the loaded programs.
    pub fn program_runs(&self) -> Vec<own::ProgramRuns> {
        own::program_runs(&self.ebpf)
    }

    /// Waits until no CPU is seen running a task of `slot`, for a few milliseconds at most: a task that
    /// ended has been waited for a moment before it leaves its CPU for the last time and is charged.
    pub fn settle(&self, slot: Slot) {
        for _ in 0..SETTLE_TRIES {
            let of_slot = |cpu: &CpuRecord| cpu.pid != 0 && cpu.slot == u32::from(slot);
            if !self.read_cpus().is_some_and(|cpus| cpus.iter().any(of_slot)) {
                return;
            }
            std::thread::sleep(SETTLE_PAUSE);
        }
    }

    /// Charges to `slot` what happens in the cgroups `tasks` (of the tasks' hierarchy) and `block` (of
    /// block I/O's, where the job has one there), and in those made inside them from now on.
    ///
    /// # Errors
    /// When there is no memory for the slot, or no room for its cgroups.
    pub fn track(&mut self, slot: Slot, tasks: u64, block: Option<u64>) -> Result<()> {
        if !self.maps.slots.contains_key(&slot) {
            self.maps.add_slot(slot, self.faults)?;
        }
        self.maps.track(0, tasks, slot)?;
        if let (table @ 1.., Some(block)) = (self.layout.block_table(), block) {
            self.maps.track(table, block, slot)?;
        }
        Ok(())
    }

    fn read_cpus(&self) -> Option<Vec<CpuRecord>> {
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
            fault.set("latency_sample_every", MINOR_LATENCY_EVERY);
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

    fn read_blocks(&mut self, slots: &mut BTreeMap<Slot, Vec<Group>>) -> Result<()> {
        let place = |place| if let Place::Block(at) = place { Some(at) } else { None };
        for (key, cell) in self.maps.block_cells()? {
            let device = self.devices.get(key.device);
            let op = OPS[usize::from(key.op) % OPS.len()];
            let mut group = Group::unknown(&BLOCK, vec![device.name.clone(), op.into()]);
            let fields = group.measurement.fields;
            let unwrapper = self.cells.entry(key).or_insert_with(|| Unwrapper::new(fields));
            unwrapper.add_to(&mut group, bytes_of(&cell), place);
            derive(&mut group);
            if !device.counts_queue_time {
                group.set("queue_latency_ns", None);
            }
            slots.entry(key.slot).or_default().push(group);
        }
        Ok(())
    }

    /// Adds what runs now to the slots' `on_cpu_ns`.
    fn add_running(&mut self, slots: &mut BTreeMap<Slot, Vec<Group>>, cpus: &[CpuRecord]) {
        let ahead = ahead_of_run_queues(|| self.read_cpus());
        let now = ahead.map_or(0, |ahead| (monotonic_ns() as i64 - ahead) as u64);
        for (slot, groups) in slots {
            let running = cpus.iter().filter(|cpu| cpu.pid != 0 && cpu.slot == u32::from(*slot));
            let running: u64 = running.map(|cpu| now.saturating_sub(cpu.since_ns)).sum();
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

    /// Clears the entries of cgroups removed a while ago.
    fn forget_removed(&mut self) {
        let now = Instant::now();
        for event in drain_events(&mut self.maps.events) {
            if event.kind == cgroup_event::REMOVED {
                self.removed.push((now, event.hierarchy, event.id));
            }
        }
        let maps = &mut self.maps;
        self.removed.retain(|&(at, hierarchy, id)| {
            let keep = now.duration_since(at) < FORGET_AFTER;
            if !keep {
                maps.forget(hierarchy, id);
            }
            keep
        });
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
        if !self.unknown.contains(&"job_block") {
            self.read_blocks(&mut slots)?;
        }
        // After the banks: a task that leaves between the two is missed now and counted next time;
        // the other way round it would be counted twice.
        let cpus = self.read_cpus().context("cannot read the CPUs' records")?;
        self.add_running(&mut slots, &cpus);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.drain += begin.elapsed();
        Ok(Some(Snapshot {
            wall_ns: wall.as_nanos() as u64,
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

fn drain_events(ring: &mut RingBuf<aya::maps::MapData>) -> Vec<CgroupEvent> {
    let mut events = Vec::new();
    while let Some(item) = ring.next() {
        if item.len() >= size_of::<CgroupEvent>() {
            // SAFETY: the kernel wrote a CgroupEvent; all integers.
            events.push(unsafe { item.as_ptr().cast::<CgroupEvent>().read_unaligned() });
        }
    }
    events
}

/// Fields (or whole measurements) that cannot be known on this kernel, which is not zero.
fn unknown_fields(
    states: &[HookState],
    globals: &BTreeMap<&'static str, u64>,
    faults: FaultMode,
) -> Vec<&'static str> {
    let attached = |program: &str| {
        HOOKS
            .iter()
            .zip(states)
            .any(|(hook, state)| hook.program == program && *state == HookState::Attached)
    };
    let entry = attached("page_fault_user") || attached("handle_mm_fault");
    let rules: &[(bool, &[&'static str])] = &[
        (
            globals[settings::TIMES_KNOWN] == 0,
            &["run_queue_wait_ns", "on_cpu_slice_ns", "sleep_ns", "blocked_ns", "major_wait_ns"],
        ),
        (!attached("sched_process_fork"), &["forks"]),
        (!attached("sched_process_exec"), &["execs"]),
        (!attached("mark_victim"), &["oom_kills"]),
        (!attached("major_fault"), &["major_wait_ns"]),
        (!attached("block_rq_complete"), &["job_block"]),
        (
            faults == FaultMode::Full && !(entry && attached("minor_fault_latency")),
            &["minor_latency_ns", "latency_sample_every"],
        ),
        (
            faults == FaultMode::Full && !(entry && attached("major_fault_latency")),
            &["major_latency_ns"],
        ),
    ];
    rules.iter().filter(|(lost, _)| *lost).flat_map(|(_, fields)| fields.iter().copied()).collect()
}
