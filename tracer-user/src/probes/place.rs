//! Slots' banks put into their places. For each the kernel waits until no program runs that may have seen the
//! place empty: a grace period, 10 ms or so. Waits at one time are one wait.

use anyhow::{Context, Result};
use aya::maps::{ArrayOfMaps, MapData, PerCpuArray};
use tracer_ebpf::tables::{job::JobBank, latency::LatencyBank};

use super::bank::{Plain, SlotBanks};
use crate::{base::both, model::lease::Slot};

/// The places of one kind of bank.
pub type Places<T> = ArrayOfMaps<MapData, PerCpuArray<MapData, Plain<T>>>;

/// Puts the banks of `made` into the places of their slots, those of both kinds at once.
///
/// # Errors
/// When a slot is past the last.
pub fn place(
    banks: &mut Places<JobBank>,
    latencies: &mut Places<LatencyBank>,
    made: &[(Slot, SlotBanks)],
) -> Result<()> {
    let mut place_banks = || -> Result<()> {
        made.iter().try_for_each(|(slot, made)| {
            let placed = banks.set((*slot).into(), &made.bank, 0);
            placed.with_context(|| format!("cannot place the bank of slot {slot}"))
        })
    };
    if made.iter().all(|(_, made)| made.latency.is_none()) {
        return place_banks();
    }
    let place_latencies = || {
        made.iter().try_for_each(|(slot, made)| {
            let Some(latency) = &made.latency else { return Ok(()) };
            let placed = latencies.set((*slot).into(), latency, 0);
            placed.with_context(|| format!("cannot place the latency bank of slot {slot}"))
        })
    };
    let (latencies, banks) = both(place_latencies, place_banks);
    banks.and(latencies)
}
