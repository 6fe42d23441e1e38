//! The mounts as the programs look paths up in them, kept as they are now.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use aya::maps::{
    Array, HashMap, MapData,
    lpm_trie::{Key, LpmTrie},
};
use tracer_ebpf::tables::io::{IO_MOUNTS, IO_PATH_BYTES};

use crate::{
    base::mountinfo,
    bpf::{maps::TakeMap, preemption::Ahead},
};

/// Most beginnings of paths: each mount point has two.
const MOST_PREFIXES: usize = 2 * IO_MOUNTS as usize;

/// Beginnings of paths, with the file system that they lead to.
type Prefixes = BTreeMap<Vec<u8>, u32>;

/// What the programs know of mounts.
pub struct Mounted {
    prefixes: LpmTrie<MapData, [u8; IO_PATH_BYTES], u32>,
    devices: HashMap<MapData, u32, u32>,
    /// How often one was removed from these: what programs remember of them holds until the next.
    changed: Array<MapData, u32>,
    removals: u32,
    /// What is in the maps.
    known: Prefixes,
    systems: BTreeMap<u32, u32>,
}

impl Mounted {
    /// With none yet.
    ///
    /// # Errors
    /// When a map is missing.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        Ok(Self {
            prefixes: take("MOUNTS")?.try_into().context("map MOUNTS")?,
            devices: take("DEVICES")?.try_into().context("map DEVICES")?,
            changed: take("MOUNTS_CHANGED")?.try_into().context("map MOUNTS_CHANGED")?,
            removals: 0,
            known: Prefixes::new(),
            systems: BTreeMap::new(),
        })
    }

    /// Has them as in `text`, as mountinfo has it; gives whether all found room.
    pub fn follow(&mut self, text: &str) -> bool {
        let (now, all) = prefixes(text, MOST_PREFIXES);
        let _ahead = Ahead::begin();
        let (prefixes, devices) = (&mut self.prefixes, &mut self.devices);
        let told = follow(&mut self.known, &now, |prefix, device| match device {
            Some(device) => prefixes.insert(&key(prefix), device, 0).is_ok(),
            None => prefixes.remove(&key(prefix)).is_ok(),
        });
        let systems = now.values().map(|device| (*device, *device)).collect();
        let removals = &mut self.removals;
        let known = follow(&mut self.systems, &systems, |device, to| match to {
            Some(to) => devices.insert(device, to, 0).is_ok(),
            None => {
                *removals = removals.wrapping_add(1);
                devices.remove(device).is_ok()
            }
        });
        // Also where not all found room.
        let is_noted = self.changed.set(0, self.removals, 0).is_ok();
        all && told && known && is_noted
    }
}

/// Makes `known`, which is what a map holds, what there is `now`, by `change`s of that map to another value or none:
/// those that are gone first, for they make room. Gives whether all found room.
fn follow<K: Ord + Clone>(
    known: &mut BTreeMap<K, u32>,
    now: &BTreeMap<K, u32>,
    mut change: impl FnMut(&K, Option<u32>) -> bool,
) -> bool {
    known.retain(|key, _| {
        let is_there = now.contains_key(key);
        if !is_there {
            // Where it is gone already, all the better.
            change(key, None);
        }
        is_there
    });
    let mut has_all = true;
    for (key, value) in now {
        if known.get(key) == Some(value) {
            continue;
        }
        if change(key, Some(*value)) {
            known.insert(key.clone(), *value);
        } else {
            has_all = false;
        }
    }
    has_all
}

/// How paths begin that lead to each of the mounts of `text`, `most` of them: a mount point's own and those of what is
/// below it. What was mounted last hides what was there before. Gives also whether there are no more.
fn prefixes(text: &str, most: usize) -> (Prefixes, bool) {
    let (mut prefixes, mut is_all) = (Prefixes::new(), true);
    let mut add = |prefix: Vec<u8>, device| {
        if prefixes.len() < most || prefixes.contains_key(&prefix) {
            prefixes.insert(prefix, device);
        } else {
            is_all = false;
        }
    };
    for mount in mountinfo::mounts(text) {
        if mount.point == "/" {
            add(b"/".into(), mount.device);
            continue;
        }
        for end in [b'/', 0] {
            let mut prefix = mount.point.clone().into_bytes();
            prefix.push(end);
            if prefix.len() <= IO_PATH_BYTES {
                add(prefix, mount.device);
            }
        }
    }
    (prefixes, is_all)
}

/// The key of the trie for paths that begin with `prefix`.
fn key(prefix: &[u8]) -> Key<[u8; IO_PATH_BYTES]> {
    let mut bytes = [0; IO_PATH_BYTES];
    bytes[..prefix.len()].copy_from_slice(prefix);
    Key::new(8 * prefix.len() as u32, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_its_name_and_by_what_is_below_it() {
        let long = "x".repeat(300);
        let text = format!(
            "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
             30 22 0:44 / /data rw - tmpfs a rw\n\
             31 22 0:45 / /data rw - tmpfs b rw\n\
             32 22 0:46 / /{long} rw - tmpfs c rw\n"
        );
        let all = [(b"/".to_vec(), 254 << 20), (b"/data\0".into(), 45), (b"/data/".into(), 45)];
        assert_eq!(prefixes(&text, 3), (all.clone().into(), true));
        // The last one has no room, but hides what was there before.
        assert_eq!(prefixes(&text, 2), ([all[0].clone(), all[2].clone()].into(), false));
    }

    /// A map with room for three.
    #[test]
    fn what_is_gone_makes_room_and_what_has_none_is_told() {
        let (mut map, mut known) = (BTreeMap::new(), BTreeMap::new());
        let mut now = |values: &[(u32, u32)]| {
            let now = values.iter().copied().collect();
            let has_all = follow(&mut known, &now, |key, value| match value {
                Some(_) if map.len() == 3 && !map.contains_key(key) => false,
                Some(value) => {
                    map.insert(*key, value);
                    true
                }
                None => map.remove(key).is_some(),
            });
            assert_eq!(map, known);
            (has_all, map.clone().into_iter().collect::<Vec<_>>())
        };
        assert_eq!(now(&[(1, 1), (2, 2), (3, 3)]), (true, vec![(1, 1), (2, 2), (3, 3)]));
        assert_eq!(now(&[(4, 4), (5, 5), (3, 9)]), (true, vec![(3, 9), (4, 4), (5, 5)]));
        assert_eq!(now(&[(4, 7), (5, 5), (3, 9), (6, 6)]), (false, vec![(3, 9), (4, 7), (5, 5)]));
        assert_eq!(now(&[(6, 6), (7, 7)]), (true, vec![(6, 6), (7, 7)]));
    }

    #[test]
    fn a_key_is_as_long_as_its_prefix() {
        let key = key(b"/data/");
        let (bits, bytes) = (key.prefix_len(), key.data());
        assert_eq!((bits, &bytes[..7]), (48, &b"/data/\0"[..]));
    }
}
