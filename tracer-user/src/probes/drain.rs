//! Reading the maps: a snapshot of every slot.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tracer_ebpf::records::CpuRecord;

use super::{
    blocks::Blocks,
    census::Census,
    clock::RunQueueClock,
    leases::Ended,
    moves::Moves,
    options::Options,
    own,
    readings::Readings,
    records::Records,
    running::{one_each, read_account, uncharged_ns},
    slots::Slots,
    waits::Waits,
};
use crate::{
    base::clock::{monotonic_ns, wall_ns},
    bpf::{fdinfo::ProgramRuns, pins::Pinning, preemption::Ahead, set::Set},
    model::{
        group::Group,
        lease::{Lease, Slot},
        snapshot::Snapshot,
        source::Source,
        tables::Own,
    },
};

/// How often and how long [`Probes::settle`] looks.
const SETTLE_TRIES: u32 = 10;
const SETTLE_PAUSE: Duration = Duration::from_micros(500);

/// The attached programs and their maps. Dropping it detaches everything.
pub struct Probes {
    pub(super) set: Set,
    pub(super) records: Records,
    /// The slots, and whose they are.
    pub slots: Slots,
    pub(super) readings: Readings,
    pub(super) blocks: Blocks,
    pub(super) waits: Waits,
    /// Which software jobs run, where somebody asks.
    pub census: Option<Census>,
    /// Last values of the leases that ended since the last snapshot.
    closed: BTreeMap<Lease, Vec<Group>>,
    /// Whether snapshots free what has ended; the whole node's agent does so itself.
    reclaims: bool,
    /// From when on all programs were attached, CLOCK_MONOTONIC.
    since_ns: u64,
    own: own::Spent,
    clock: RunQueueClock,
}

/// What loading or taking over found.
pub(super) struct Parts {
    pub set: Set,
    pub records: Records,
    pub slots: Slots,
    pub blocks: Blocks,
    pub waits: Waits,
    pub readings: Readings,
    /// From when on all programs were attached, CLOCK_MONOTONIC; 0 where an agent before this one did it.
    pub since_ns: u64,
}

impl Probes {
    pub(super) fn new(parts: Parts, options: &Options) -> Self {
        let Parts { set, records, slots, blocks, waits, readings, since_ns } = parts;
        Self {
            set,
            records,
            slots,
            readings,
            blocks,
            waits,
            census: None,
            closed: BTreeMap::new(),
            reclaims: !options.whole_node,
            since_ns,
            own: own::Spent::default(),
            clock: RunQueueClock::default(),
        }
    }

    /// Pins what is attached, and gives the set its name.
    pub(super) fn pin(&mut self, pinning: Pinning) -> Result<()> {
        self.set.pin(pinning.dir())?;
        self.slots.banks().pin(pinning.dir())?;
        let dir = pinning.finish()?;
        self.set.set_pins(&dir);
        self.slots.banks().set_pins(&dir);
        Ok(())
    }

    /// Programs that did not, or will not, run without an agent: shed by it, or beyond this kernel.
    pub fn unpinned(&self) -> &[&'static str] {
        self.set.unpinned()
    }

    /// From when on all programs were attached, CLOCK_MONOTONIC; 0 where an agent before this one did it.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Whether block I/O is known on this kernel.
    pub fn knows_block(&self) -> bool {
        !self.readings.unknown().contains(&"job_block")
    }

    /// Run statistics of the loaded programs.
    pub fn program_runs(&self) -> Vec<ProgramRuns> {
        let census = self.census.iter().flat_map(|census| census.set.runs());
        self.set.runs().into_iter().chain(census).collect()
    }

    /// Waits until no CPU is seen running a task of `lease`, for a few milliseconds at most: a task that
    /// ended has been waited for a moment before it leaves its CPU for the last time and is charged.
    pub fn settle(&self, lease: Lease) {
        let _ahead = Ahead::begin();
        let slot = self.slots.held().slot(lease).map(u32::from);
        for _ in 0..SETTLE_TRIES {
            let of_slot = |cpu: &CpuRecord| cpu.pid != 0 && Some(cpu.slot) == slot;
            if !self.records.read_cpus().is_some_and(|cpus| cpus.iter().any(of_slot)) {
                return;
            }
            std::thread::sleep(SETTLE_PAUSE);
        }
    }

    /// Which slots have moved, where that is counted. Before their banks are read: what comes between is read once more.
    fn read_moves(&self) -> Option<Moves> {
        self.runs_switches().then(|| self.records.read_moves())?
    }

    fn read_slot(&mut self, lease: Lease, slot: Slot, moves: Option<&Moves>) -> Result<Vec<Group>> {
        self.readings.read(lease, slot, self.slots.bank(slot)?, moves)
    }

    /// The last values of `lease`, which has ended.
    fn read_last(&mut self, lease: Lease, slot: Slot) -> Result<Vec<Group>> {
        let mut slots = BTreeMap::from([(lease, self.read_slot(lease, slot, None)?)]);
        if self.knows_block() {
            self.blocks.read(&mut slots, self.slots.held(), |of| of == slot);
        }
        self.waits.read(&mut slots, self.slots.held(), |of| of == slot);
        self.readings.report(&mut slots, &BTreeMap::new());
        Ok(slots.remove(&lease).unwrap_or_default())
    }

    /// Reads those for the last time that ended a while before `now`, and frees their slots once `note` has
    /// seen the values: they are in the next snapshot.
    ///
    /// # Errors
    /// When a map cannot be read, or `note` fails: the slot is not freed then.
    pub fn reclaim(
        &mut self,
        now: Instant,
        mut note: impl FnMut(Lease, &[Group]) -> Result<()>,
    ) -> Result<()> {
        let due = self.slots.held().due(now);
        if due.is_empty() {
            return Ok(());
        }
        let _ahead = Ahead::begin();
        let Some(cpus) = self.records.read_cpus() else { return Ok(()) };
        let cpus = self.running_now(&cpus);
        // What its tasks run now is still its own.
        let is_shown = |ended: &Ended| cpus.iter().any(|cpu| cpu.slot == u32::from(ended.slot));
        for ended in due.into_iter().filter(|ended| !is_shown(ended)) {
            let groups = self.read_last(ended.lease, ended.slot)?;
            note(ended.lease, &groups)?;
            self.close(ended.lease, groups)?;
        }
        Ok(())
    }

    /// Frees the slot of `lease`, where it has one yet, whose last values are `groups`: read now, or by an
    /// agent before this one that did not live to report them.
    ///
    /// # Errors
    /// When the kernel refuses to empty the slot.
    pub fn close(&mut self, lease: Lease, groups: Vec<Group>) -> Result<()> {
        self.closed.insert(lease, groups);
        self.readings.forget(lease);
        let slot = self.slots.held().slot(lease);
        if let Some(census) = &mut self.census {
            census.end(lease, slot);
        }
        if let Some(slot) = slot {
            self.slots.banks().clear(slot)?;
            self.blocks.free(slot);
            self.waits.free(slot);
            self.slots.free(slot);
        }
        Ok(())
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
        let _ahead = Ahead::begin();
        let begin = Instant::now();
        let moves = self.read_moves();
        let mut slots = BTreeMap::new();
        for lease in leases {
            if let Some(slot) = self.slots.held().slot(*lease) {
                slots.insert(*lease, self.read_slot(*lease, slot, moves.as_ref())?);
            }
        }
        if !slots.is_empty() {
            let cpus = self.records.read_cpus().context("cannot read the CPUs' records")?;
            self.add_running(&mut slots, &cpus);
        }
        self.own.drain += begin.elapsed();
        Ok(Some(slots))
    }

    /// The records of those CPUs of which it is known what they run.
    fn running_now(&self, cpus: &[CpuRecord]) -> Vec<CpuRecord> {
        if self.runs_switches() { self.records.running_now(cpus) } else { Vec::new() }
    }

    /// Adds what runs now to `on_cpu_ns`.
    fn add_running(&mut self, slots: &mut BTreeMap<Lease, Vec<Group>>, cpus: &[CpuRecord]) {
        let ahead = self.clock.ahead(|| self.records.read_cpus());
        let now = ahead.map_or(0, |ahead| (monotonic_ns() as i64 - ahead) as u64);
        let mut uncharged = BTreeMap::<Lease, u64>::new();
        for cpu in &one_each(self.running_now(cpus)) {
            let lease = self.slots.held().holder(cpu.slot as Slot);
            let Some(lease) = lease.filter(|lease| slots.contains_key(lease)) else { continue };
            *uncharged.entry(lease).or_default() +=
                uncharged_ns(cpu, now, read_account, |cpu| self.records.has_left(cpu));
        }
        self.readings.report(slots, &uncharged);
    }
}

impl Source for Probes {
    fn snapshot(&mut self) -> Result<Option<Snapshot>> {
        let _ahead = Ahead::begin();
        let begin = Instant::now();
        self.set.flush_log();
        self.slots.forget_removed();
        if self.reclaims {
            self.reclaim(begin, |_, _| Ok(()))?;
        }
        let moves = self.read_moves();
        let mut slots = BTreeMap::new();
        for (lease, slot) in self.slots.held().used().collect::<Vec<_>>() {
            slots.insert(lease, self.read_slot(lease, slot, moves.as_ref())?);
        }
        if self.knows_block() {
            self.blocks.read(&mut slots, self.slots.held(), |_| true);
        }
        self.waits.read(&mut slots, self.slots.held(), |_| true);
        // After the banks: a task that leaves between the two is missed now and counted next time;
        // the other way round it would be counted twice.
        let cpus = self.records.read_cpus().context("cannot read the CPUs' records")?;
        self.add_running(&mut slots, &cpus);
        slots.append(&mut self.closed);
        let map_bytes = self.own.map_bytes.read(self.slots.banks().all());
        self.own.drain += begin.elapsed();
        let mut own = self.own.read(&self.set, &cpus, map_bytes, self.slots.no_room());
        own.set(Own::dropped_sighting, self.census.as_ref().map(Census::lost));
        Ok(Some(Snapshot {
            wall_ns: wall_ns(),
            monotonic_ns: monotonic_ns(),
            slots,
            own: vec![own],
        }))
    }
}
