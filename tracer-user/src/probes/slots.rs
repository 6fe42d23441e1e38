//! The life of a slot: given to a job's cgroups, ended with the job, free for the next.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use aya::maps::{MapData, RingBuf};
use tracer_ebpf::records::{CgroupEvent, CpuRecord, cgroup_event};

use super::drain::Probes;
use crate::model::job::Slot;

/// A removed cgroup is remembered this long: completions of its write-back come late.
const FORGET_AFTER: Duration = Duration::from_secs(120);

/// An ended slot is read until this has passed: programs that had found it before are long done.
const FREE_AFTER: Duration = Duration::from_millis(100);

/// How often and how long [`Probes::settle`] looks.
const SETTLE_TRIES: u32 = 10;
const SETTLE_PAUSE: Duration = Duration::from_micros(500);

impl Probes {
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
    /// When there is no memory for the slot, no room for its cgroups, or the slot's last job has ended
    /// too recently.
    pub fn track(&mut self, slot: Slot, tasks: u64, block: Option<u64>) -> Result<()> {
        ensure!(
            !self.ended.iter().any(|&(_, ended)| ended == slot),
            "slot {slot} has ended and is not free yet"
        );
        if !self.maps.slots.contains_key(&slot) {
            self.maps.add_slot(slot, self.faults)?;
        }
        self.maps.ids.insert(0, tasks, slot)?;
        if let (table @ 1.., Some(block)) = (self.layout.block_table(), block) {
            self.maps.ids.insert(table, block, slot)?;
        }
        Ok(())
    }

    /// Ends the job in `slot`: its cgroups are tracked no longer, and what its last tasks still do goes
    /// to the rest of the node. Snapshots hold the slot until one taken 100 ms or more from now, whose
    /// values are its last; then its memory is freed and it may be given to another job.
    ///
    /// # Errors
    /// When the slot is not in use, is the rest of the node's, or the kernel refuses.
    pub fn end(&mut self, slot: Slot) -> Result<()> {
        ensure!(slot != 0 && self.maps.slots.contains_key(&slot), "slot {slot} holds no job");
        if !self.ended.iter().any(|&(_, ended)| ended == slot) {
            self.maps.end_slot(slot)?;
            self.ended.push((Instant::now(), slot));
        }
        Ok(())
    }

    /// Frees the slots that ended a while before `read`, the moment their values were read last.
    pub(super) fn free_ended(&mut self, read: Instant) {
        let late = |&&(at, _): &&(Instant, Slot)| read.duration_since(at) >= FREE_AFTER;
        let free: Vec<_> = self.ended.iter().filter(late).map(|&(_, slot)| slot).collect();
        for slot in &free {
            self.maps.free_slot(*slot);
            self.cpus.retain(|(of, _, _), _| of != slot);
            self.cells.retain(|_, (key, _)| key.slot != *slot);
            self.on_cpu_ns.remove(slot);
        }
        self.ended.retain(|(_, slot)| !free.contains(slot));
    }

    /// Clears the entries of cgroups removed a while ago.
    pub(super) fn forget_removed(&mut self) {
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
                maps.ids.remove(hierarchy, id);
            }
            keep
        });
    }
}

fn drain_events(ring: &mut RingBuf<MapData>) -> Vec<CgroupEvent> {
    let mut events = Vec::new();
    while let Some(item) = ring.next() {
        if item.len() >= size_of::<CgroupEvent>() {
            // SAFETY: the kernel wrote a CgroupEvent; all integers.
            events.push(unsafe { item.as_ptr().cast::<CgroupEvent>().read_unaligned() });
        }
    }
    events
}
