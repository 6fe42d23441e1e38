//! Which slot is whose, and since when: pure bookkeeping, no map is touched here.
//!
//! A slot is free, kept ready for a new cgroup (spare), in use, or ended: nothing new is charged to it,
//! its last values are still to be read.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use tracer_ebpf::ids::{ENDED, HEIR_SHIFT, LEASE_SHIFT, SPARE};

use crate::model::lease::{Lease, Slot};

/// An ended slot is read until this has passed: programs that had found it before are long done.
const FREE_AFTER: Duration = Duration::from_millis(100);

/// A lease whose job has ended, or whose values go on in another lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whose last values are to be read.
    pub lease: Lease,
    /// Its slot.
    pub slot: Slot,
    /// Who is charged from now on; 0 is the rest of the node.
    pub heir: Lease,
    at: Instant,
}

/// The leases. Slot 0 is lease 0 for ever.
#[derive(Debug)]
pub struct Leases {
    /// First slot that is never given.
    limit: Slot,
    next: Lease,
    slots: BTreeMap<Lease, Slot>,
    holders: BTreeMap<Slot, Lease>,
    spare: BTreeSet<Slot>,
    ended: Vec<Ended>,
}

impl Leases {
    /// Slots `1..=most` to give, all free.
    pub fn new(most: Slot) -> Self {
        let (slots, holders) = ([(0, 0)].into(), [(0, 0)].into());
        let (spare, ended) = (BTreeSet::new(), Vec::new());
        Self { limit: most.saturating_add(1), next: 1, slots, holders, spare, ended }
    }

    /// What another agent left behind: the flags of each slot, as [`Self::word`] makes them.
    pub fn restore(most: Slot, words: impl IntoIterator<Item = (Slot, u64)>) -> Self {
        let mut leases = Self::new(most);
        let words: Vec<_> = words.into_iter().collect();
        let lease_of = |word: u64| (word >> LEASE_SHIFT) as Lease;
        let held: BTreeMap<Slot, Lease> = words
            .iter()
            .skip_while(|(slot, _)| *slot == 0)
            .map(|(slot, word)| (*slot, lease_of(*word)))
            .collect();
        for (slot, word) in words {
            let lease = lease_of(word);
            if slot == 0 {
                leases.next = leases.next.max(lease);
            }
            if slot == 0 || lease == 0 {
                continue;
            }
            leases.slots.insert(lease, slot);
            leases.holders.insert(slot, lease);
            leases.next = leases.next.max(lease + 1);
            if word & SPARE != 0 {
                leases.spare.insert(slot);
            }
            if word & ENDED != 0 {
                let heir_slot = (word >> HEIR_SHIFT) as Slot;
                // One that is gone has handed over to the rest of the node.
                let heir = held.get(&heir_slot).copied().unwrap_or(0);
                leases.ended.push(Ended { lease, slot, heir, at: Instant::now() });
            }
        }
        leases
    }

    /// The flags of `slot` as the next agent is to find them, with `own` of the kernel's.
    pub fn word(&self, slot: Slot, own: u64) -> u64 {
        // Slot 0 is nobody's lease: the next one stands there.
        if slot == 0 {
            return u64::from(self.next) << LEASE_SHIFT;
        }
        let Some(lease) = self.holder(slot) else { return 0 };
        let spare = if self.spare.contains(&slot) { SPARE } else { 0 };
        let ended =
            self.ended.iter().find(|ended| ended.slot == slot).map_or(0, |ended| {
                ENDED | u64::from(self.slot(ended.heir).unwrap_or(0)) << HEIR_SHIFT
            });
        u64::from(lease) << LEASE_SHIFT | ended | spare | own
    }

    /// Most slots to give.
    pub fn most(&self) -> Slot {
        self.limit - 1
    }

    /// The spare slots.
    pub fn spare(&self) -> impl Iterator<Item = Slot> + '_ {
        self.spare.iter().copied()
    }

    fn free_slot(&self) -> Option<Slot> {
        (1..self.limit).find(|slot| !self.holders.contains_key(slot))
    }

    /// Gives a free slot a new lease; `None` where all are taken.
    pub fn take(&mut self) -> Option<(Slot, Lease)> {
        let slot = self.free_slot()?;
        let lease = self.next;
        self.next += 1;
        self.slots.insert(lease, slot);
        self.holders.insert(slot, lease);
        Some((slot, lease))
    }

    /// Undoes [`Self::take`], or ends what has been read for the last time.
    pub fn free(&mut self, slot: Slot) {
        if let Some(lease) = self.holders.remove(&slot) {
            self.slots.remove(&lease);
        }
        self.spare.remove(&slot);
        self.ended.retain(|ended| ended.slot != slot);
    }

    /// Marks `slot` as ready for a new cgroup.
    pub fn set_spare(&mut self, slot: Slot) {
        self.spare.insert(slot);
    }

    /// The kernel took the spare `slot`; `None` where it was not spare.
    pub fn take_spare(&mut self, slot: Slot) -> Option<Lease> {
        self.spare.remove(&slot).then(|| self.holders.get(&slot).copied())?
    }

    /// Lease of `slot` where it is spare.
    pub fn spare_lease(&self, slot: Slot) -> Option<Lease> {
        self.holder(slot).filter(|_| self.spare.contains(&slot))
    }

    /// Number of spare slots.
    pub fn spares(&self) -> usize {
        self.spare.len()
    }

    /// Slot of `lease`; `None` where it has none any more.
    pub fn slot(&self, lease: Lease) -> Option<Slot> {
        self.slots.get(&lease).copied()
    }

    /// Lease of `slot`; `None` where nobody has it.
    pub fn holder(&self, slot: Slot) -> Option<Lease> {
        self.holders.get(&slot).copied()
    }

    /// Leases with values, and their slots: all but the spare ones.
    pub fn used(&self) -> impl Iterator<Item = (Lease, Slot)> + '_ {
        let used = self.slots.iter().filter(|(_, slot)| !self.spare.contains(slot));
        used.map(|(lease, slot)| (*lease, *slot))
    }

    /// Ends `lease` in favour of `heir`.
    pub fn end(&mut self, lease: Lease, heir: Lease, at: Instant) {
        if let (Some(slot), false) = (self.slot(lease), self.has_ended(lease)) {
            self.ended.push(Ended { lease, slot, heir, at });
        }
    }

    /// Whether `lease` has ended.
    pub fn has_ended(&self, lease: Lease) -> bool {
        self.ended.iter().any(|ended| ended.lease == lease)
    }

    /// Whether any has ended and is not freed yet.
    pub fn has_any_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Who is charged with what a task in the slot of `lease` does now.
    pub fn charged(&self, lease: Lease) -> Lease {
        let mut now = lease;
        // An heir may have ended since, never in favour of an earlier one: no circle.
        while let Some(ended) = self.ended.iter().find(|ended| ended.lease == now) {
            now = ended.heir;
        }
        now
    }

    /// Those that ended long enough before `now`.
    pub fn due(&self, now: Instant) -> Vec<Ended> {
        let is_due = |ended: &&Ended| now.duration_since(ended.at) >= FREE_AFTER;
        self.ended.iter().filter(is_due).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_given_again_and_a_lease_never() {
        let mut leases = Leases::new(2);
        assert_eq!(leases.take(), Some((1, 1)));
        assert_eq!(leases.take(), Some((2, 2)));
        assert_eq!(leases.take(), None);
        let now = Instant::now();
        leases.end(1, 2, now);
        assert_eq!(leases.charged(1), 2);
        assert_eq!(leases.take(), None, "its last values are to be read");
        assert_eq!(leases.due(now), []);
        assert_eq!(leases.due(now + FREE_AFTER).len(), 1);
        leases.free(1);
        assert_eq!(leases.take(), Some((1, 3)));
        assert_eq!((leases.slot(1), leases.slot(3), leases.holder(1)), (None, Some(1), Some(3)));
    }

    #[test]
    fn spare_slots_have_no_values_until_they_are_taken() {
        let mut leases = Leases::new(4);
        let (slot, lease) = leases.take().unwrap();
        leases.set_spare(slot);
        assert_eq!(leases.used().collect::<Vec<_>>(), [(0, 0)]);
        assert_eq!(leases.take_spare(slot), Some(lease));
        assert_eq!(leases.take_spare(slot), None);
        assert_eq!(leases.used().collect::<Vec<_>>(), [(0, 0), (lease, slot)]);
    }

    #[test]
    fn another_agent_finds_all_of_it_in_the_slots_flags() {
        let mut leases = Leases::new(9);
        let taken: Vec<_> = (0..4).filter_map(|_| leases.take()).collect();
        leases.set_spare(taken[0].0);
        leases.end(taken[1].1, taken[2].1, Instant::now());
        let words = (0..=9).map(|slot| (slot, leases.word(slot, 1)));
        let found = Leases::restore(9, words);
        assert_eq!(found.next, leases.next);
        assert_eq!(found.slots, leases.slots);
        assert_eq!(found.holders, leases.holders);
        assert_eq!(found.spare, leases.spare);
        assert_eq!(found.charged(taken[1].1), taken[2].1);
        assert_eq!(found.word(taken[3].0, 3), leases.word(taken[3].0, 3));
        assert_eq!(leases.word(8, 1), 0, "nobody's");
    }

    #[test]
    fn heirs_of_heirs_are_charged() {
        let mut leases = Leases::new(4);
        for _ in 0..3 {
            leases.take();
        }
        let now = Instant::now();
        leases.end(1, 2, now);
        leases.end(2, 3, now);
        leases.end(2, 0, now);
        assert_eq!((leases.charged(1), leases.charged(3)), (3, 3));
    }
}
