//! Slots on offer: the kernel takes one for a cgroup that nobody knows yet.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use aya::maps::{MapData, Queue};

use crate::{bpf::maps::TakeMap, model::lease::Slot};

/// The queue that the kernel takes them from.
pub struct Offers(Queue<MapData, u32>);

impl Offers {
    /// Those of loaded or pinned programs.
    ///
    /// # Errors
    /// When the map is missing or of another kind.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        Ok(Self(take("SPARE_SLOTS")?.try_into().context("map SPARE_SLOTS")?))
    }

    /// All of them. The queue is turned round once, and never found empty meanwhile.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn all(&mut self) -> Result<BTreeSet<Slot>> {
        let mut offered = BTreeSet::new();
        while let Ok(slot) = self.0.pop(0) {
            self.make(slot as Slot)?;
            if !offered.insert(slot as Slot) {
                break;
            }
        }
        Ok(offered)
    }

    /// Offers `slot`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn make(&mut self, slot: Slot) -> Result<()> {
        self.0.push(u32::from(slot), 0).with_context(|| format!("cannot offer slot {slot}"))
    }

    /// Takes back a slot on offer; `None` where there is none.
    pub fn withdraw(&mut self) -> Option<Slot> {
        self.0.pop(0).ok().map(|slot| slot as Slot)
    }
}
