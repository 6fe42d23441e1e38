//! `jobtrace_self`: what the tracing itself costs and lost.

use std::{path::Path, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use tracer_ebpf::records::CpuRecord;

use super::bank::SlotBanks;
use crate::{
    base::kept::KeptFile,
    bpf::{
        fdinfo::{all_map_bytes, map_bytes},
        hook::HookState,
        set::Set,
    },
    model::{
        group::Group,
        tables::{Own, SELF},
    },
};

/// What reading the probes has cost so far.
pub struct Spent {
    /// Time spent reading the maps.
    pub drain: Duration,
    /// Memory of the maps.
    pub map_bytes: MapBytes,
    /// Memory of this process, in pages.
    statm: KeptFile,
}

impl Default for Spent {
    fn default() -> Self {
        Self {
            drain: Duration::ZERO,
            map_bytes: MapBytes::default(),
            statm: KeptFile::new(Path::new("/proc/self"), "statm"),
        }
    }
}

impl Spent {
    /// The group, all cumulative since start: of `set`, the CPUs' records, memory of the maps and cgroups that
    /// this side found no room for.
    pub fn read(
        &mut self,
        set: &Set,
        cpus: &[CpuRecord],
        map_bytes: Option<u64>,
        no_room: u64,
    ) -> Group {
        let mut own = Group::unknown(&SELF, Vec::new());
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        own.set(Own::cpu_ns, cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64);
        let resident_pages = |text: &str| text.split(' ').nth(1)?.parse::<u64>().ok();
        let resident_pages = self.statm.read(resident_pages);
        own.set(
            Own::rss_bytes,
            resident_pages.map(|pages| pages * rustix::param::page_size() as u64),
        );
        own.set(Own::map_bytes, map_bytes);
        own.set(Own::drain_ns, self.drain.as_nanos() as u64);
        let runs = set.runs();
        // No run of any program: the kernel does not count them.
        if runs.iter().any(|run| run.count > 0) {
            own.set(Own::bpf_ns, runs.iter().map(|run| run.time_ns).sum::<u64>());
            own.set(Own::bpf_runs, runs.iter().map(|run| run.count).sum::<u64>());
        }
        own.set(Own::bpf_missed, runs.iter().map(|run| run.missed).sum::<u64>());
        let total = |field: fn(&CpuRecord) -> u64| cpus.iter().map(field).sum::<u64>();
        own.set(Own::dropped_no_bank, total(|cpu| cpu.no_bank));
        own.set(Own::dropped_task_record, total(|cpu| cpu.task_evictions));
        own.set(Own::dropped_cgroup, total(|cpu| cpu.ids_full) + no_room);
        own.set(Own::dropped_slot, total(|cpu| cpu.no_spare));
        own.set(Own::dropped_block_cell, total(|cpu| cpu.block_full));
        own.set(Own::dropped_wait_cell, total(|cpu| cpu.wait_full));
        own.set(Own::dropped_cgroup_event, total(|cpu| cpu.ring_full));
        let missing =
            set.states().iter().filter(|state| matches!(state, HookState::Missing(_))).count();
        own.set(Own::hooks_missing, missing as u64);
        own
    }
}

/// Memory of the maps. Asking the kernel for that of each takes longer than reading them all: it is
/// asked once, and slots, which are all alike, are counted.
#[derive(Default)]
pub struct MapBytes {
    /// Of the maps that no slot owns.
    fixed: Option<u64>,
    /// Of one slot's maps.
    slot: Option<u64>,
}

impl MapBytes {
    /// Memory of all BPF maps this process holds now, `slots` among them.
    pub fn read<'a>(
        &mut self,
        mut slots: impl ExactSizeIterator<Item = &'a SlotBanks>,
    ) -> Option<u64> {
        let count = slots.len() as u64;
        if self.slot.is_none() {
            self.slot = slots.next().and_then(slot_bytes);
            self.fixed =
                all_map_bytes().map(|all| all.saturating_sub(count * self.slot.unwrap_or(0)));
        }
        Some(self.fixed? + count * self.slot?)
    }
}

fn slot_bytes(slot: &SlotBanks) -> Option<u64> {
    let fds = std::iter::once(slot.bank_fd()).chain(slot.latency_fd());
    fds.map(map_bytes).sum()
}
