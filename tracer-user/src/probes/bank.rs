//! A slot's own maps: its banks, by CPU.

use std::{
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use aya::{
    Pod,
    maps::{IterableMap, MapData, PerCpuArray, PerCpuValues},
};
use tracer_ebpf::tables::{job::JobBank, latency::LatencyBank};

use crate::{bpf::pins::open_pin, model::lease::Slot};

/// A kernel-side struct, for maps that want plain data.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Plain<T>(pub T);

// SAFETY: all of them are structs of integers without padding that matters, valid for any bytes.
unsafe impl Pod for Plain<JobBank> {}
// SAFETY: as above.
unsafe impl Pod for Plain<LatencyBank> {}

/// Kinds of pinned banks.
pub const BANK: &str = "bank";
pub const LATENCY_BANK: &str = "latency";

/// File of a slot's pinned bank.
pub fn bank_pin(dir: &Path, kind: &str, slot: Slot) -> PathBuf {
    dir.join(format!("{kind}-{slot}"))
}

/// A slot's own maps; dropping them frees the memory once the kernel has let go.
pub struct SlotBanks {
    /// Scheduling and faults, per CPU.
    pub bank: PerCpuArray<MapData, Plain<JobBank>>,
    /// Fault latencies, per CPU; full mode only.
    pub latency: Option<PerCpuArray<MapData, Plain<LatencyBank>>>,
}

impl SlotBanks {
    /// Pins them in `dir`, which takes them apart: the same, opened again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pinned(self, dir: &Path, slot: Slot) -> Result<Self> {
        let (bank, latency) = (bank_pin(dir, BANK, slot), bank_pin(dir, LATENCY_BANK, slot));
        let pinning = |path: &Path| format!("cannot pin {}", path.display());
        self.bank.pin(&bank).with_context(|| pinning(&bank))?;
        if let Some(map) = self.latency {
            map.pin(&latency).with_context(|| pinning(&latency))?;
        }
        Self::open(dir, slot)
    }

    /// Empties them.
    ///
    /// # Errors
    /// When the kernel refuses to write them.
    pub fn clear(&mut self) -> Result<()> {
        let cpus = aya::util::nr_cpus().map_err(|(path, error)| {
            anyhow::Error::new(error).context(format!("cannot read {path}"))
        })?;
        // SAFETY: all integers.
        let bank: Plain<JobBank> = unsafe { std::mem::zeroed() };
        self.bank.set(0, PerCpuValues::try_from(vec![bank; cpus])?, 0)?;
        if let Some(latency) = &mut self.latency {
            // SAFETY: all integers.
            let bank: Plain<LatencyBank> = unsafe { std::mem::zeroed() };
            latency.set(0, PerCpuValues::try_from(vec![bank; cpus])?, 0)?;
        }
        Ok(())
    }

    /// Those of `slot` that are pinned in `dir`.
    ///
    /// # Errors
    /// When one is of another kind.
    pub fn open(dir: &Path, slot: Slot) -> Result<Self> {
        let bank = open_pin(&bank_pin(dir, BANK, slot))?.try_into().context("a bank")?;
        let latency = bank_pin(dir, LATENCY_BANK, slot);
        let latency = latency.exists().then(|| open_pin(&latency)).transpose()?;
        let latency = latency.map(TryInto::try_into).transpose().context("a latency bank")?;
        Ok(Self { bank, latency })
    }

    /// Descriptor of the bank.
    pub fn bank_fd(&self) -> BorrowedFd<'_> {
        self.bank.map().fd().as_fd()
    }

    /// Descriptor of the latencies; full mode only.
    pub fn latency_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.latency.as_ref()?.map().fd().as_fd())
    }
}
