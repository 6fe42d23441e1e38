//! What BPF programs are loaded, attached and what they cost, of all tracers: aya's lists of them.

use anyhow::{Context, Result};
use aya::programs::links::LinkError;
use aya::programs::{ProgramError, ProgramInfo, loaded_links, loaded_programs};
use aya::sys::{Stats, SyscallError};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;

/// A loaded program's name, cut to 15 bytes by the kernel, and what it has run so far; the times
/// stand still unless statistics are on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The name that the kernel kept.
    pub name: String,
    /// Time in the program, statistics' own included.
    pub run_time_ns: u64,
    /// Number of runs.
    pub run_count: u64,
    /// Length of its machine code; 0 where programs are interpreted.
    pub machine_code_bytes: u32,
    /// Length of its BPF code as the verifier left it.
    pub translated_bytes: u32,
    /// Instructions that the verifier walked through; `None` before Linux 5.16.
    pub verified: Option<u32>,
}

impl From<&ProgramInfo> for Program {
    fn from(info: &ProgramInfo) -> Self {
        Self {
            name: String::from_utf8_lossy(info.name()).into_owned(),
            run_time_ns: info.run_time().as_nanos() as u64,
            run_count: info.run_count(),
            machine_code_bytes: info.size_jitted(),
            translated_bytes: info.size_translated().unwrap_or(0),
            verified: info.verified_instruction_count(),
        }
    }
}

/// What the kernel says, of all; a program or link that went between two questions is left out.
fn all<T, E: Into<anyhow::Error>>(
    found: impl Iterator<Item = Result<T, E>>,
    is_gone: impl Fn(&E) -> bool,
) -> Result<Vec<T>> {
    let there = found.filter(|one| !one.as_ref().is_err_and(&is_gone));
    there
        .map(|one| one.map_err(Into::into).context("list what BPF holds: this needs root"))
        .collect()
}

fn is_not_found(error: &SyscallError) -> bool {
    error.io_error.kind() == ErrorKind::NotFound
}

fn infos() -> Result<Vec<ProgramInfo>> {
    all(loaded_programs(), |e| matches!(e, ProgramError::SyscallError(e) if is_not_found(e)))
}

/// All loaded programs by their ids, which the kernel hands out in sequence.
///
/// # Errors
/// When the kernel refuses, as it does to all but root.
pub fn programs() -> Result<BTreeMap<u32, Program>> {
    Ok(infos()?.iter().map(|info| (info.id(), info.into())).collect())
}

/// Ids of all links, each with its program's id.
///
/// # Errors
/// When the kernel refuses, as it does to all but root.
pub fn links() -> Result<Vec<(u32, u32)>> {
    let links =
        all(loaded_links(), |e| matches!(e, LinkError::SyscallError(e) if is_not_found(e)))?;
    Ok(links.iter().map(|link| (link.id(), link.program_id())).collect())
}

/// Programs that are held, so that their figures can be read after their owner has ended.
#[derive(Default)]
pub struct Held(BTreeMap<u32, aya::programs::ProgramFd>);

impl Held {
    /// Holds these too, but for those that are gone already.
    ///
    /// # Errors
    /// When the kernel refuses, as it does to all but root.
    pub fn add(&mut self, ids: &BTreeSet<u32>) -> Result<()> {
        if ids.iter().all(|id| self.0.contains_key(id)) {
            return Ok(());
        }
        for info in infos()?.iter().filter(|info| ids.contains(&info.id())) {
            if let Ok(held) = info.fd() {
                self.0.entry(info.id()).or_insert(held);
            }
        }
        Ok(())
    }

    /// Their ids.
    pub fn ids(&self) -> BTreeSet<u32> {
        self.0.keys().copied().collect()
    }

    /// Their names and figures, in the order of loading.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn programs(&self) -> Result<Vec<Program>> {
        let all = programs()?;
        Ok(self.0.keys().filter_map(|id| all.get(id).cloned()).collect())
    }
}

/// Switches run statistics on until the result is dropped or this process ends, however it ends:
/// unlike the sysctl, which a crash would leave on.
///
/// # Errors
/// When the kernel refuses or is older than 5.8.
pub fn enable_stats() -> Result<OwnedFd> {
    let on = aya::sys::enable_stats(Stats::RunTime);
    on.context("switch BPF statistics on: this needs root and Linux 5.8")
}
