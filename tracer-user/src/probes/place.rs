//! Slots' banks put into their places. For each the kernel waits until no program runs that may have seen the
//! place empty: a grace period, 10 ms or so. Waits at one time are one wait.

use std::{panic::resume_unwind, thread};

use anyhow::{Context, Result};
use aya::maps::{ArrayOfMaps, MapData, PerCpuArray};
use tracer_ebpf::{job::JobBank, latency::LatencyBank};

use super::maps::{Plain, SlotMaps};
use crate::model::job::Slot;

/// The places of one kind of bank.
pub type Banks<T> = ArrayOfMaps<MapData, PerCpuArray<MapData, Plain<T>>>;

/// Puts the banks of `made` into the places of their slots, those of both kinds at once.
///
/// # Errors
/// When a slot is past the last, or there can be no further thread.
pub fn place(
    banks: &mut Banks<JobBank>,
    latencies: &mut Banks<LatencyBank>,
    made: &[(Slot, SlotMaps)],
) -> Result<()> {
    let mut place_banks = || {
        made.iter().try_for_each(|(slot, maps)| {
            let placed = banks.set((*slot).into(), &maps.bank, 0);
            placed.with_context(|| format!("cannot place the bank of slot {slot}"))
        })
    };
    if made.iter().all(|(_, maps)| maps.latency.is_none()) {
        return place_banks();
    }
    let place_latencies = || {
        made.iter().try_for_each(|(slot, maps)| {
            let Some(latency) = &maps.latency else { return Ok(()) };
            let placed = latencies.set((*slot).into(), latency, 0);
            placed.with_context(|| format!("cannot place the latency bank of slot {slot}"))
        })
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("place".into());
        let beside = builder.spawn_scoped(scope, place_latencies);
        let beside = beside.context("cannot start a thread")?;
        let placed = place_banks();
        beside.join().unwrap_or_else(|panic| resume_unwind(panic)).and(placed)
    })
}
