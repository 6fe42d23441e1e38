//! Whose a task is, and what is counted of that job.

use tracer_ebpf::{kernel_fields::fields::*, tables::census::SlotCensus};

use crate::{
    kernel::{Pointer, load},
    maps::{lease_of, slot_census, slot_of},
    record::add_shared,
    task::cgroup_of,
};

/// A job.
#[derive(Clone, Copy)]
pub struct Job {
    pub slot: u32,
    pub lease: u32,
}

impl Job {
    /// That of `task`; `None` for the rest of the node.
    #[inline(always)]
    pub fn of<P: Pointer>(task: P) -> Option<Self> {
        let slot = slot_of(load(load::<P, _>(cgroup_of(task), CGROUP_KN), KERNFS_ID));
        if slot == 0 {
            return None;
        }
        let lease = lease_of(slot);
        (lease != 0).then_some(Self { slot: slot.into(), lease })
    }

    /// What is counted of it.
    #[inline(always)]
    pub fn census(self) -> Option<*mut SlotCensus> {
        let census = slot_census(self.slot)?;
        // SAFETY: words that several CPUs write. What the slot's job before had is gone with the first that is counted of
        // this one, before which there is but one process.
        unsafe {
            if (*census).lease != self.lease.into() {
                (&raw mut (*census).lost).write_volatile(0);
                (&raw mut (*census).pythons).write_volatile(0);
                (&raw mut (*census).pythons_most).write_volatile(0);
                (&raw mut (*census).lease).write_volatile(self.lease.into());
            }
        }
        Some(census)
    }

    /// A sighting found no room.
    #[inline(always)]
    pub fn lose(self) {
        if let Some(census) = self.census() {
            // SAFETY: in a map value.
            unsafe { add_shared(&raw mut (*census).lost, 1) };
        }
    }
}
