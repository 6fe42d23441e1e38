//! The records of CPUs and tasks, and page faults in progress: what runs now, and what must be forgotten of
//! it before probes that were detached run again.
//!
//! While the switch hook is detached nobody reads or writes the tasks' records (`cgroup_attach_task` goes
//! with it). They are cleared before it runs again: each task is then adopted at its next switch, as one
//! that began before jobtrace. The CPUs' records cannot be cleared, other programs count in them; they are
//! left out until a switch has renewed them.

use std::os::fd::AsFd;

use anyhow::{Context, Result};
use aya::{
    Pod,
    maps::{IterableMap, Map, MapData, PerCpuArray},
};
use tracer_ebpf::records::{Cpu, CpuRecord};

use super::{bank::Plain, moves::Moves};
use crate::bpf::{
    lookup::{clear, read_values},
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
