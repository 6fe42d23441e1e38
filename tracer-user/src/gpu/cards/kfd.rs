//! AMD's compute driver (kfd): which of its nodes a card is, and the processes that compute on it. Needs no
//! ROCm.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::files::{number_in, numbered, read_number, read_text, value_of};

/// A card as the compute driver knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KfdNode {
    /// Its place among the GPUs, as HIP counts them.
    pub order: u32,
    /// The driver's id of it, in the names of the processes' files.
    pub gpu_id: u64,
    /// Compute units.
    pub compute_units: u64,
}

/// What a process does on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Compute {
    /// Device memory that it holds.
    pub vram_bytes: Option<u64>,
    /// Compute units that its waves would fill, now.
    pub compute_units: Option<u64>,
}

fn folder(root: &Path) -> PathBuf {
    root.join("sys/class/kfd/kfd")
}

/// The GPUs by the number of their render node.
pub fn nodes(root: &Path) -> BTreeMap<u32, KfdNode> {
    let mut nodes = BTreeMap::new();
    for (_, node) in numbered(&folder(root).join("topology/nodes"), "") {
        let Some(text) = read_text(&node.join("properties")) else { continue };
        let property = |key| value_of(&text, key, ' ').and_then(|text| text.parse::<u64>().ok());
        // A node without SIMD units is a CPU.
        let Some(simd @ 1..) = property("simd_count") else { continue };
        let minor = property("drm_render_minor").and_then(|minor| u32::try_from(minor).ok());
        let gpu_id = read_number(&node.join("gpu_id"));
        if let (Some(minor), Some(gpu_id)) = (minor, gpu_id) {
            let compute_units = simd / property("simd_per_cu").unwrap_or(1).max(1);
            let order = nodes.len() as u32;
            nodes.insert(minor, KfdNode { order, gpu_id, compute_units });
        }
    }
    nodes
}

/// The processes that the compute driver knows, each with its folder.
pub fn processes(root: &Path) -> Vec<(u32, PathBuf)> {
    numbered(&folder(root).join("proc"), "")
}

/// What a process does on the card `gpu_id`; `None` where it only opened it, as the runtime does with all.
pub fn compute(process: &Path, gpu_id: u64) -> Option<Compute> {
    let vram_bytes = read_number(&process.join(format!("vram_{gpu_id}")));
    let occupancy = process.join(format!("stats_{gpu_id}/cu_occupancy"));
    let compute_units = read_number(&occupancy);
    let is_used = vram_bytes.is_some_and(|bytes| bytes > 0) || compute_units.is_some_and(|n| n > 0);
    is_used.then_some(Compute { vram_bytes, compute_units })
}

/// The number of a card's render node, by the folder of its device.
pub fn render_minor(device: &Path) -> Option<u32> {
    let entries = fs::read_dir(device.join("drm")).ok()?.flatten();
    let minor = |entry: fs::DirEntry| number_in(entry.file_name().to_str()?, "renderD");
    entries.filter_map(minor).min()
}
