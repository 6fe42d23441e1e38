//! `jobtrace_self`: what the tracing itself costs and lost.

use std::{
    collections::BTreeMap,
    io::Read,
    os::fd::{AsFd, AsRawFd},
};

use rustix::time::{ClockId, clock_gettime};
use tracer_ebpf::records::CpuRecord;

use super::{hooks::HookState, maps::SlotMaps, programs::Programs};
use crate::model::{
    group::Group,
    tables::{Own, SELF},
};

/// The group, all cumulative since start.
pub fn read(
    programs: &Programs,
    states: &[HookState],
    cpus: &[CpuRecord],
    map_bytes: Option<u64>,
    drain_ns: u64,
) -> Group {
    let mut own = Group::unknown(&SELF, Vec::new());
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    own.set(Own::cpu_ns, cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64);
    own.set(Own::rss_bytes, resident_bytes());
    own.set(Own::map_bytes, map_bytes);
    own.set(Own::drain_ns, drain_ns);
    let runs = program_runs(programs);
    // No run of any program: the kernel does not count them.
    if runs.iter().any(|run| run.count > 0) {
        own.set(Own::bpf_ns, runs.iter().map(|run| run.time_ns).sum::<u64>());
        own.set(Own::bpf_runs, runs.iter().map(|run| run.count).sum::<u64>());
    }
    own.set(Own::bpf_missed, runs.iter().map(|run| run.missed).sum::<u64>());
    let total = |field: fn(&CpuRecord) -> u64| cpus.iter().map(field).sum::<u64>();
    own.set(Own::dropped_no_bank, total(|cpu| cpu.no_bank));
    own.set(Own::dropped_task_record, total(|cpu| cpu.task_evictions));
    own.set(Own::dropped_cgroup, total(|cpu| cpu.ids_full));
    own.set(Own::dropped_slot, total(|cpu| cpu.no_spare));
    own.set(Own::dropped_block_cell, total(|cpu| cpu.block_full));
    own.set(Own::dropped_cgroup_event, total(|cpu| cpu.ring_full));
    let missing = states.iter().filter(|state| matches!(state, HookState::Missing(_))).count();
    own.set(Own::hooks_missing, missing as u64);
    own
}

/// Run statistics of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRuns {
    /// Its name.
    pub name: String,
    /// Time it ran, while the kernel's statistics were on.
    pub time_ns: u64,
    /// Times it ran, while they were on.
    pub count: u64,
    /// Runs the kernel skipped because the program was running already.
    pub missed: u64,
}

/// Run statistics of every program that is loaded, from /proc/self/fdinfo.
pub fn program_runs(programs: &Programs) -> Vec<ProgramRuns> {
    let runs = |(name, program): (&str, &aya::programs::Program)| {
        let fd = program.fd().ok()?;
        let info = fdinfo(fd.as_fd().as_raw_fd())?;
        let number = |key| fdinfo_number(&info, key).unwrap_or(0);
        let (time_ns, count) = (number("run_time_ns"), number("run_cnt"));
        Some(ProgramRuns { name: name.into(), time_ns, count, missed: number("recursion_misses") })
    };
    programs.iter().filter_map(runs).collect()
}

fn resident_bytes() -> Option<u64> {
    let statm = procfs::process::Process::myself().ok()?.statm().ok()?;
    Some(statm.resident * rustix::param::page_size() as u64)
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
        mut slots: impl ExactSizeIterator<Item = &'a SlotMaps>,
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

fn slot_bytes(slot: &SlotMaps) -> Option<u64> {
    let fds = std::iter::once(slot.bank_fd()).chain(slot.latency_fd());
    fds.map(|fd| fdinfo_number(&fdinfo(fd.as_raw_fd())?, "memlock")).sum()
}

/// Memory of all BPF maps this process holds, each once.
fn all_map_bytes() -> Option<u64> {
    let fds = std::fs::read_dir("/proc/self/fdinfo").ok()?;
    let infos = fds.flatten().filter_map(|fd| fdinfo(fd.file_name().to_str()?.parse().ok()?));
    let of_map =
        |info: String| Some((fdinfo_number(&info, "map_id")?, fdinfo_number(&info, "memlock")?));
    let maps: BTreeMap<u64, u64> = infos.filter_map(of_map).collect();
    Some(maps.values().sum())
}

fn fdinfo(fd: i32) -> Option<String> {
    let mut file = std::fs::File::open(format!("/proc/self/fdinfo/{fd}")).ok()?;
    // The kernel gives it whole in one read; asking for its size first would double the time.
    let mut text = vec![0; 4096];
    let len = file.read(&mut text).ok()?;
    text.truncate(len);
    String::from_utf8(text).ok()
}

/// The number behind `key` in a /proc/PID/fdinfo/FD.
pub(crate) fn fdinfo_number(info: &str, key: &str) -> Option<u64> {
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok();
    info.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fdinfo_is_read_by_whole_keys() {
        let info = "pos:\t0\nmemlock_x:\t1\nmemlock:\t4096\nrun_cnt:\tgarbage\n";
        assert_eq!(fdinfo_number(info, "memlock"), Some(4096));
        assert_eq!(fdinfo_number(info, "run_cnt"), None);
        assert_eq!(fdinfo_number(info, "absent"), None);
    }
}
