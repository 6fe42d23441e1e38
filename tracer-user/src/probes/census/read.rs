//! The programs and their maps: what is new is taken out of the ring, and kept by lease.

use std::{collections::BTreeMap, os::fd::AsRawFd};

use anyhow::{Context, Result};
use aya::maps::{HashMap, MapData};
use tracer_ebpf::tables::{
    census::{SightKey, SlotCensus, kind},
    io_file::FileId,
};

use super::{event, older, sighted::Sighted};
use crate::{
    base::mounts::Mounts,
    bpf::{hook::HookState, maps::TakeMap, preemption::Ahead, ring::Ring, set::Set, words::Words},
    model::{
        lease::{Lease, Slot},
        seen::{Means, Seen},
    },
    probes::hooks::HookRow,
};

const KEY_WORDS: usize = size_of::<SightKey>() / 8;
const SLOT_WORDS: usize = size_of::<SlotCensus>() / 8;

/// The programs, and what they saw.
pub struct Census {
    pub(in crate::probes) set: Set,
    maps: Maps,
    means: Means,
    since_ns: u64,
    mounts: Mounts,
    leases: BTreeMap<Lease, Sighted>,
    /// Sightings of leases that are gone that found no room.
    lost: u64,
    /// Whether the programs were detached for a while: nothing since is known from its begin on.
    has_gap: bool,
}

/// The maps.
pub(super) struct Maps {
    sights: HashMap<MapData, [u64; KEY_WORDS], u64>,
    slots: Words,
    ring: Ring,
}

impl Maps {
    /// Those of a loaded object.
    ///
    /// # Errors
    /// When one is missing or of another kind.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        Ok(Self {
            sights: take("SIGHTS")?.try_into().context("map SIGHTS")?,
            slots: Words::map(take("SLOT_CENSUS")?, "SLOT_CENSUS")?,
            ring: Ring::map(take("SIGHTINGS")?, "SIGHTINGS")?,
        })
    }
}

impl Census {
    pub(super) fn new(set: Set, maps: Maps, means: Means, since_ns: u64) -> Self {
        let (mounts, leases) = (Mounts::default(), BTreeMap::new());
        Self { set, maps, means, since_ns, mounts, leases, lost: 0, has_gap: false }
    }

    /// How Python modules are seen.
    pub fn means(&self) -> Means {
        self.means
    }

    /// From when on it sees, CLOCK_MONOTONIC.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Every hook, and how it fared.
    pub fn hooks(&self) -> impl Iterator<Item = (&'static HookRow, &HookState)> {
        super::CENSUS_HOOKS.iter().zip(self.set.states())
    }

    /// The descriptor that tells when much is to be taken.
    pub(super) fn ring_fd(&self) -> i32 {
        self.maps.ring.as_raw_fd()
    }

    /// `lease` began at `at_ns` (CLOCK_MONOTONIC): is watched from its begin on, where the programs were attached then.
    pub fn begin(&mut self, lease: Lease, at_ns: u64) {
        let since_begin = !self.has_gap && at_ns >= self.since_ns;
        let sighted = self.leases.entry(lease).or_default();
        (sighted.since_begin, sighted.is_new) = (since_begin, true);
    }

    /// `lease` began before: what its `processes` have mapped now is its own.
    pub fn begin_older(&mut self, lease: Lease, processes: &[u32]) {
        let sighted = self.leases.entry(lease).or_default();
        sighted.is_new = true;
        for mapped in older::read(processes) {
            for library in mapped.libraries {
                sighted.had(library, mapped.id, &mapped.program);
            }
        }
    }

    /// Takes what was seen since the last time.
    pub fn drain(&mut self) {
        let Self { maps, mounts, leases, .. } = self;
        // What is next stays in the ring where it cannot be mapped, and what finds no room then is counted.
        let _ = maps.ring.drain(|item| {
            let Some(event) = event::parse(item) else { return };
            let device = match event.key.kind {
                kind::PROGRAM => event.key.program.device,
                _ => event.key.file.device,
            };
            let path = event.inner.as_deref().map(|inner| mounts.get(device, 0).full(inner));
            leases.entry(event.key.lease).or_default().take(&event, path);
        });
    }

    /// What was seen of `lease`, which has `slot`, so far; `None` where nothing was.
    pub fn seen(&mut self, lease: Lease, slot: Option<Slot>) -> Option<Seen> {
        let sighted = self.leases.get_mut(&lease)?;
        let _ahead = Ahead::begin();
        for (program, executions) in sighted.counted() {
            *executions =
                self.maps.sights.get(&program_key(lease, *program), 0).unwrap_or(*executions);
        }
        if let Some(slot) = slot {
            let word = |at: usize| self.maps.slots.get(usize::from(slot) * SLOT_WORDS + at);
            if word(0) == u64::from(lease) {
                sighted.lost = word(1);
                let most = word(3);
                sighted.pythons_most = Some(most);
            } else {
                sighted.pythons_most.get_or_insert(0);
            }
        }
        sighted.is_new = false;
        Some(sighted.seen(self.means))
    }

    /// Drops what was seen of `lease` so far: nobody is to be told.
    pub fn silence(&mut self, lease: Lease) {
        if let Some(sighted) = self.leases.get_mut(&lease) {
            sighted.silence();
        }
    }

    /// The leases of which something is known, each with whether something new is.
    pub fn leases(&self) -> impl Iterator<Item = (Lease, bool)> {
        self.leases.iter().map(|(lease, sighted)| (*lease, sighted.is_new))
    }

    /// Whether something is known of `lease`.
    pub fn knows(&self, lease: Lease) -> bool {
        self.leases.contains_key(&lease)
    }

    /// Sightings that found no room, of all leases.
    pub fn lost(&self) -> u64 {
        self.lost + self.leases.values().map(|of| of.lost + of.cut_off).sum::<u64>()
    }

    /// The kernel forgets `lease`, whose slot is free from now on: nothing of it comes any more.
    pub(in crate::probes) fn end(&mut self, lease: Lease, slot: Option<Slot>) {
        self.drain();
        self.seen(lease, slot);
        let Some(sighted) = self.leases.get_mut(&lease) else { return };
        sighted.is_new = true;
        for key in std::mem::take(&mut sighted.keys) {
            // One that is gone has made room already.
            let _ = self.maps.sights.remove(&words(key));
        }
    }

    /// `lease` is forgotten here too.
    pub fn forget(&mut self, lease: Lease) {
        if let Some(sighted) = self.leases.remove(&lease) {
            self.lost += sighted.lost + sighted.cut_off;
        }
    }

    /// The programs were detached: of what runs now not all will be known.
    pub(in crate::probes) fn detached(&mut self) {
        self.has_gap = true;
        self.leases.values_mut().for_each(|sighted| sighted.since_begin = false);
    }

    /// They are attached again.
    pub(in crate::probes) fn attached(&mut self) {
        self.has_gap = false;
    }
}

fn program_key(lease: Lease, program: FileId) -> [u64; KEY_WORDS] {
    let file = FileId::default();
    words(SightKey { lease, kind: kind::PROGRAM, program, file, name: 0 })
}

fn words(key: SightKey) -> [u64; KEY_WORDS] {
    // SAFETY: as large, and integers without padding.
    unsafe { std::mem::transmute::<SightKey, [u64; KEY_WORDS]>(key) }
}
