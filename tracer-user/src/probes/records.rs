//! The records of CPUs and tasks, and page faults in progress: what runs now, and what must be forgotten of
//! it before probes that were detached run again.
//!
//! While the switch hook is detached nobody reads or writes the tasks' records (`cgroup_attach_task` goes
//! with it). They are cleared before it runs again: each task is then adopted at its next switch, as one
//! that began before jobtrace. The CPUs' records cannot be cleared, other programs count in them; they are
//! left out until a switch has renewed them.

use std::{mem::offset_of, os::fd::AsFd};

use anyhow::{Context, Result};
use aya::{
    Pod,
    maps::{IterableMap, Map, MapData, PerCpuArray},
};
use tracer_ebpf::records::{BEFORE_TASKS, Cpu, CpuRecord, TaskRecord, left, task_index};

use super::{bank::Plain, moves::Moves};
use crate::bpf::{
    lookup::{clear, read, read_values},
    maps::TakeMap,
    words::Words,
};

/// Name of the map that the programs' variables lie in: the tasks' records, and nothing else.
const VARIABLES: &str = ".bss";

// SAFETY: a struct of integers, valid for any bytes.
unsafe impl Pod for Plain<Cpu> {}

/// The records.
pub struct Records {
    /// What runs on each CPU.
    cpus: PerCpuArray<MapData, Plain<Cpu>>,
    /// The tasks' records.
    tasks: Map,
    /// Page faults in progress; full mode only.
    faults: Words,
    stale: Stale,
}

impl Records {
    /// Those of loaded or pinned programs.
    ///
    /// # Errors
    /// When a map is missing or of another kind: the object and the agent do not fit.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        Ok(Self {
            cpus: take("CPUS")?.try_into().context("map CPUS")?,
            tasks: take(VARIABLES)?,
            faults: Words::map(take("FAULTS")?, "FAULTS")?,
            stale: Stale::default(),
        })
    }

    /// Lets go of the zeros that aya filled the tasks' records with, 4 MiB. Call it when all programs are loaded: until
    /// then they name the map by this descriptor of it.
    ///
    /// # Errors
    /// When there is no other descriptor.
    pub fn let_go_of_zeros(&mut self) -> Result<()> {
        let Map::Array(filled) = &self.tasks else { return Ok(()) };
        let fd = filled.fd().as_fd().try_clone_to_owned().context("cannot hold a map")?;
        self.tasks = Map::Array(MapData::from_fd(fd).context("cannot hold a map")?);
        Ok(())
    }

    /// What runs on each CPU; `None` where the kernel does not tell.
    pub fn read_cpus(&self) -> Option<Vec<CpuRecord>> {
        Some(self.read_all()?.iter().map(|cpu| cpu.record).collect())
    }

    /// Which slots have moved; `None` where the kernel does not tell.
    pub fn read_moves(&self) -> Option<Moves> {
        self.read_all().map(Moves::of)
    }

    /// All that CPUs keep.
    fn read_all(&self) -> Option<Vec<Cpu>> {
        // SAFETY: the map's values are `Cpu`s, structs of integers.
        unsafe { read_values(self.cpus.map().fd().as_fd()) }.ok()
    }

    /// Those of `cpus` of which it is known what they run, while the switch hook is attached.
    pub fn running_now(&self, cpus: &[CpuRecord]) -> Vec<CpuRecord> {
        let renewed =
            |(index, cpu): &(usize, &CpuRecord)| cpu.pid != 0 && self.stale.is_renewed(*index, cpu);
        cpus.iter().enumerate().filter(renewed).map(|(_, cpu)| *cpu).collect()
    }

    /// Whether the task that `cpu` shows has left that CPU though no switch there says so: one that was withheld. The
    /// CPU that the task ran on last wrote its record. Copies 4 MiB: not for each task of each reading.
    pub fn has_left(&self, cpu: &CpuRecord) -> bool {
        let record = read(&self.tasks).ok().and_then(|tasks| record(&tasks, cpu.pid));
        record.is_some_and(|(task, how)| is_elsewhere(cpu, task, how))
    }

    /// Forgets what the tasks did before the switch hook runs again.
    ///
    /// # Errors
    /// When the records cannot be cleared or read.
    pub fn forget_tasks(&mut self) -> Result<()> {
        clear(&self.tasks).context("cannot clear the records of the tasks")?;
        let cpus = self.read_cpus().context("cannot read the CPUs' records")?;
        self.stale = Stale(cpus.iter().map(shown).collect());
        Ok(())
    }

    /// Forgets the page faults whose end nobody will tell.
    pub fn forget_faults(&mut self) {
        self.faults.clear();
    }
}

/// Whose the record of task `pid` is, and how that left its CPU, in the value that holds all `tasks`.
fn record(tasks: &[u8], pid: u32) -> Option<(u32, u32)> {
    let at = BEFORE_TASKS + task_index(pid) as usize * size_of::<TaskRecord>();
    let word = |field: usize| {
        let bytes = tasks.get(at + field..at + field + size_of::<u32>())?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    Some((word(offset_of!(TaskRecord, task))?, word(offset_of!(TaskRecord, left))?))
}

/// Whether a record of `task` that left as `how` says that the task of `cpu` has left its CPU. It is gone where the
/// record is nobody's; where it is another's, it says nothing.
fn is_elsewhere(cpu: &CpuRecord, task: u32, how: u32) -> bool {
    task == 0 || task == cpu.task as u32 | 1 && left::how(how) != left::ON_CPU
}

/// What a CPU's record shows until the next switch there.
type Shown = (u32, u64, u64);

/// CPU records that no switch has renewed since the switch hook was attached again.
#[derive(Debug, Default)]
struct Stale(Vec<Shown>);

impl Stale {
    /// Whether the record of CPU `index` is of now.
    fn is_renewed(&self, index: usize, cpu: &CpuRecord) -> bool {
        self.0.get(index).is_none_or(|stale| *stale != shown(cpu))
    }
}

fn shown(cpu: &CpuRecord) -> Shown {
    (cpu.pid, cpu.since_ns, cpu.sum_exec_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_left_a_cpu_unseen_is_known_by_its_own_record() {
        let cpu =
            CpuRecord { pid: 65_535 + 65_536, task: 0xffff_8880_1234_5640, ..CpuRecord::default() };
        let mut tasks = vec![0; BEFORE_TASKS + 65_535 * size_of::<TaskRecord>()];
        let at = tasks.len() - size_of::<TaskRecord>();
        for (what, task, how, has_left) in [
            ("it ended", 0, left::ASLEEP, true),
            ("it runs there", 0x1234_5641, left::ON_CPU, false),
            (
                "it runs there, after a sleep",
                0x1234_5641,
                left::ON_CPU | 3 << left::LAST_SHIFT,
                false,
            ),
            ("it waits for a CPU", 0x1234_5641, left::RUNNABLE, true),
            ("it reads", 0x1234_5641, left::BLOCKED | left::IN_FAULT, true),
            ("the record is another's", 0x1234_5741, left::ASLEEP, false),
        ] {
            let mut put =
                |at: usize, word: u32| tasks[at..at + 4].copy_from_slice(&word.to_ne_bytes());
            put(at + offset_of!(TaskRecord, task), task);
            put(at + offset_of!(TaskRecord, left), how);
            let (task, how) = record(&tasks, cpu.pid).unwrap();
            assert_eq!(is_elsewhere(&cpu, task, how), has_left, "{what}");
        }
        assert_eq!(record(&tasks[..at], cpu.pid), None);
    }

    #[test]
    fn a_cpu_counts_again_with_its_first_switch() {
        let before = CpuRecord { pid: 7, since_ns: 100, sum_exec_ns: 5, ..CpuRecord::default() };
        let stale = Stale(vec![shown(&before)]);
        assert!(!stale.is_renewed(0, &before));
        let counted = CpuRecord { no_bank: 1, fault_blocked_ns: 3, ..before };
        assert!(!stale.is_renewed(0, &counted), "other programs write there too");
        let same_task = CpuRecord { since_ns: 200, ..before };
        assert!(stale.is_renewed(0, &same_task) && stale.is_renewed(1, &before));
        assert!(Stale::default().is_renewed(0, &before));
    }
}
