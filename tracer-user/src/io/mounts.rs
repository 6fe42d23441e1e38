//! The mounts as the programs look paths up in them, kept as they are now.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use aya::maps::{
    HashMap, MapData,
    lpm_trie::{Key, LpmTrie},
};
use tracer_ebpf::tables::io::IO_PATH_BYTES;

use crate::{base::mountinfo, bpf::maps::TakeMap};

/// Beginnings of paths, with the file system that they lead to.
type Prefixes = BTreeMap<Vec<u8>, u32>;

/// What the programs know of mounts.
pub struct Mounted {
    prefixes: LpmTrie<MapData, [u8; IO_PATH_BYTES], u32>,
    devices: HashMap<MapData, u32, u32>,
    /// What is in the maps.
    text: String,
    known: Prefixes,
}

impl Mounted {
    /// With the mounts as they are.
    ///
    /// # Errors
    /// When a map is missing, or refuses the first of them.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        let mut mounted = Self {
            prefixes: take("MOUNTS")?.try_into().context("map MOUNTS")?,
            devices: take("DEVICES")?.try_into().context("map DEVICES")?,
            text: String::new(),
            known: Prefixes::new(),
        };
        mounted.update()?;
        Ok(mounted)
    }

    /// Follows what was mounted and unmounted since.
    ///
    /// # Errors
    /// When /proc cannot be read, or a map refuses what is new.
    pub fn update(&mut self) -> Result<()> {
        let text = mountinfo::read().context("cannot read the mounts")?;
        if text == self.text {
            return Ok(());
        }
        let now = prefixes(&text);
        for prefix in self.known.keys().filter(|prefix| !now.contains_key(*prefix)) {
            // Where it is gone already, all the better.
            let _ = self.prefixes.remove(&key(prefix));
        }
        for (prefix, device) in &now {
            if self.known.get(prefix) != Some(device) {
                let told = self.prefixes.insert(&key(prefix), device, 0);
                told.context("there are too many mounts to tell the programs")?;
                self.devices.insert(device, device, 0).context("there are too many mounts")?;
            }
        }
        (self.text, self.known) = (text, now);
        Ok(())
    }
}

/// How paths begin that lead to each of the mounts of `text`: a mount point's own and those of what is below it.
/// What was mounted last hides what was there before.
fn prefixes(text: &str) -> Prefixes {
    let mut prefixes = Prefixes::new();
    for mount in mountinfo::mounts(text) {
        if mount.point == "/" {
            prefixes.insert(b"/".into(), mount.device);
            continue;
        }
        for end in [b'/', 0] {
            let mut prefix = mount.point.clone().into_bytes();
            prefix.push(end);
            if prefix.len() <= IO_PATH_BYTES {
                prefixes.insert(prefix, mount.device);
            }
        }
    }
    prefixes
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
        let found = prefixes(&format!(
            "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
             30 22 0:44 / /data rw - tmpfs a rw\n\
             31 22 0:45 / /data rw - tmpfs b rw\n\
             32 22 0:46 / /{long} rw - tmpfs c rw\n"
        ));
        let all: Vec<_> = found.iter().map(|(prefix, device)| (&prefix[..], *device)).collect();
        assert_eq!(all, [(&b"/"[..], 254 << 20), (b"/data\0", 45), (b"/data/", 45)]);
    }

    #[test]
    fn a_key_is_as_long_as_its_prefix() {
        let key = key(b"/data/");
        let (bits, bytes) = (key.prefix_len(), key.data());
        assert_eq!((bits, &bytes[..7]), (48, &b"/data/\0"[..]));
    }
}
