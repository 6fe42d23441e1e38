//! Probes that do not run for a while: detached, attached again, and what must be forgotten in between,
//! so that nothing of the gap is charged when they run again.
//!
//! While the switch hook is detached nobody reads or writes the tasks' records (`cgroup_attach_task` goes
//! with it). They are cleared before it runs again: each task is then adopted at its next switch, as one
//! that began before jobtrace. The CPUs' records cannot be cleared, other programs count in them; they are
//! left out until a switch has renewed them.

use std::os::fd::{AsFd, AsRawFd};

use anyhow::{Context, Result, anyhow, ensure};
use aya::maps::Map;
use tracer_ebpf::records::CpuRecord;

use super::{
    drain::Probes,
    hooks::{FAULT_BEGINS, HOOKS, Hook, HookState, REQUIRED_GROUP},
};

/// Name of the map that the programs' variables lie in: the tasks' records, and nothing else.
pub const VARIABLES: &str = ".bss";

const MAP_UPDATE_ELEM: libc::c_int = 2;

/// `union bpf_attr` as BPF_MAP_UPDATE_ELEM uses it.
#[repr(C)]
struct Update {
    map_fd: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// What a CPU's record shows until the next switch there.
type Shown = (u32, u64, u64);

/// CPU records that no switch has renewed since the switch hook was attached again.
#[derive(Debug, Default)]
pub struct Stale(Vec<Shown>);

impl Stale {
    /// Whether the record of CPU `index` is of now.
    fn is_renewed(&self, index: usize, cpu: &CpuRecord) -> bool {
        self.0.get(index).is_none_or(|stale| *stale != shown(cpu))
    }
}

fn shown(cpu: &CpuRecord) -> Shown {
    (cpu.pid, cpu.since_ns, cpu.sum_exec_ns)
}

impl Probes {
    /// Detaches the programs named, in their order: what they give does not grow until they are attached
    /// again.
    ///
    /// # Errors
    /// When a pinned attachment cannot be removed.
    pub fn detach(&mut self, programs: &[&str]) -> Result<()> {
        programs.iter().try_for_each(|program| self.programs.detach(program))?;
        let begins = |hook: &&Hook| FAULT_BEGINS.contains(&hook.group);
        if HOOKS.iter().filter(begins).any(|hook| programs.contains(&hook.program)) {
            // Of these nobody would tell the end of one and the begin of the next apart.
            self.maps.faults.clear();
        }
        Ok(())
    }

    /// Attaches those of the programs named that this kernel can, in the order of [`HOOKS`]; one that is
    /// attached stays as it is.
    ///
    /// # Errors
    /// When the kernel refuses one that it took before, or the tasks' records cannot be cleared.
    pub fn attach(&mut self, programs: &[&str]) -> Result<()> {
        for (hook, state) in HOOKS.iter().zip(self.states.clone()) {
            if state == HookState::Attached && programs.contains(&hook.program) {
                if hook.group == REQUIRED_GROUP && !self.programs.is_attached(hook.program) {
                    self.forget_tasks()?;
                }
                self.programs.attach(hook)?;
            }
        }
        Ok(())
    }

    /// Whether the kernel lets any of the programs named run here.
    pub fn has(&self, programs: &[&str]) -> bool {
        let mut hooks = HOOKS.iter().zip(&self.states);
        hooks.any(|(hook, state)| *state == HookState::Attached && programs.contains(&hook.program))
    }

    /// Whether the switch hook is attached.
    pub(super) fn runs_switches(&self) -> bool {
        let mut hooks = HOOKS.iter().filter(|hook| hook.group == REQUIRED_GROUP);
        hooks.any(|hook| self.programs.is_attached(hook.program))
    }

    /// The records of those CPUs of which it is known what they run.
    pub(super) fn running_now(&self, cpus: &[CpuRecord]) -> Vec<CpuRecord> {
        if !self.runs_switches() {
            return Vec::new();
        }
        let renewed =
            |(index, cpu): &(usize, &CpuRecord)| cpu.pid != 0 && self.stale.is_renewed(*index, cpu);
        cpus.iter().enumerate().filter(renewed).map(|(_, cpu)| *cpu).collect()
    }

    /// Forgets what the tasks did before the switch hook runs again.
    fn forget_tasks(&mut self) -> Result<()> {
        clear(&self.maps.tasks).context("cannot clear the records of the tasks")?;
        let cpus = self.read_cpus().context("cannot read the CPUs' records")?;
        self.stale = Stale(cpus.iter().map(shown).collect());
        self.running.resume();
        Ok(())
    }
}

/// Sets the only value of an array map to zeros.
fn clear(map: &Map) -> Result<()> {
    let Map::Array(map) = map else { return Err(anyhow!("map {VARIABLES} is no array")) };
    let bytes = vec![0_u8; map.info()?.value_size() as usize];
    let key = 0_u32;
    let attr = Update {
        map_fd: map.fd().as_fd().as_raw_fd().cast_unsigned(),
        _pad: 0,
        key: std::ptr::from_ref(&key) as u64,
        value: bytes.as_ptr() as u64,
        flags: 0,
    };
    // SAFETY: the kernel reads `attr`, the key, and as many bytes of the value as the map's values have.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, MAP_UPDATE_ELEM, &attr, size_of::<Update>()) };
    ensure!(result == 0, "{}", std::io::Error::last_os_error());
    Ok(())
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
