//! Where a map comes from: a loaded object, or a folder in which a set is pinned.

use std::path::Path;

use anyhow::{Context, Result};
use aya::{Ebpf, maps::Map};

use super::pins::{map_pin, open_pin};

/// Gives the map of a name.
pub type TakeMap<'a> = dyn FnMut(&str) -> Result<Map> + 'a;

/// Takes maps of a loaded object.
pub fn of_loaded(ebpf: &mut Ebpf) -> impl FnMut(&str) -> Result<Map> {
    |name| ebpf.take_map(name).with_context(|| format!("the BPF object has no map {name}"))
}

/// Opens maps that are pinned in `dir`.
pub fn of_pinned(dir: &Path) -> impl FnMut(&str) -> Result<Map> {
    |name| open_pin(&map_pin(dir, name))
}
