//! What a process holds in the kernel's BPF, and what of it is still there.

use std::{
    collections::BTreeSet,
    fs,
    thread::sleep,
    time::{Duration, Instant},
};

use super::PATIENCE;
use anyhow::{Context, Result};
use aya::{
    maps::loaded_maps,
    programs::{loaded_links, loaded_programs},
};

/// Ids of BPF objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Programs.
    pub programs: BTreeSet<u32>,
    /// Maps.
    pub maps: BTreeSet<u32>,
    /// Links.
    pub links: BTreeSet<u32>,
}

impl Held {
    /// What process `pid` has open: `prog_id`, `map_id` and `link_id` of its descriptors.
    ///
    /// # Errors
    /// When it is gone.
    pub fn by(pid: i32) -> Result<Self> {
        let mut held = Self::default();
        let folder = format!("/proc/{pid}/fdinfo");
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))? {
            let text = fs::read_to_string(entry?.path()).unwrap_or_default();
            for line in text.lines() {
                let Some((key, value)) = line.split_once(':') else { continue };
                let Ok(id) = value.trim().parse() else { continue };
                match key {
                    "prog_id" => held.programs.insert(id),
                    "map_id" => held.maps.insert(id),
                    "link_id" => held.links.insert(id),
                    _ => continue,
                };
            }
        }
        Ok(held)
    }

    /// What of it the kernel still has after a while: it frees maps some time after their holder ended.
    pub fn left_in_the_end(&self) -> Self {
        let begin = Instant::now();
        loop {
            let left = self.left();
            if left == Self::default() || begin.elapsed() > PATIENCE {
                return left;
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// What of it the kernel still has, whoever holds it. Where the kernel tells nothing it seems to have
    /// nothing: look while the holder lives as well.
    pub fn left(&self) -> Self {
        // What others hold may go while it is listed, which is no failure.
        let mut left = Self {
            programs: loaded_programs().flatten().map(|program| program.id()).collect(),
            maps: loaded_maps().flatten().map(|map| map.id()).collect(),
            links: loaded_links().flatten().map(|link| link.id()).collect(),
        };
        left.programs.retain(|id| self.programs.contains(id));
        left.maps.retain(|id| self.maps.contains(id));
        left.links.retain(|id| self.links.contains(id));
        left
    }
}
