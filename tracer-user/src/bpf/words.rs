//! An array map in our own memory, word by word: what the kernel writes beside is never touched.

use std::{os::fd::AsFd, ptr::NonNull};

use anyhow::{Context, Result, anyhow};
use aya::maps::{Map, MapData};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The words of a memory-mapped array map.
pub struct Words {
    base: NonNull<u64>,
    len: usize,
    map: MapData,
}

// SAFETY: on our side the mapping belongs to this value alone; all accesses are volatile.
unsafe impl Send for Words {}

impl Words {
    /// Maps the array map `name`.
    ///
    /// # Errors
    /// When it is no array, or the kernel refuses to map it.
    pub fn map(map: Map, name: &str) -> Result<Self> {
        let Map::Array(map) = map else {
            return Err(anyhow!("map {name} of the BPF object is no array"));
        };
        let info = map.info().with_context(|| format!("cannot ask about the map {name}"))?;
        let len = info.max_entries() as usize * (info.value_size() as usize / 8);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping; the kernel refuses one that is longer than the map.
        let base = unsafe {
            mmap(std::ptr::null_mut(), len * 8, protection, MapFlags::SHARED, map.fd().as_fd(), 0)
        };
        let base = base.with_context(|| format!("cannot map the map {name}"))?;
        let base = NonNull::new(base.cast()).with_context(|| format!("map {name} is at 0"))?;
        Ok(Self { base, len, map })
    }

    /// The map.
    pub fn data(&self) -> &MapData {
        &self.map
    }

    /// The word at `index`; 0 past the end.
    pub fn get(&self, index: usize) -> u64 {
        if index >= self.len {
            return 0;
        }
        // SAFETY: within the mapping.
        unsafe { self.base.as_ptr().add(index).read_volatile() }
    }

    /// Sets all words to 0.
    pub fn clear(&mut self) {
        (0..self.len).for_each(|index| self.set(index, 0));
    }

    /// Sets the word at `index`; nothing past the end.
    pub fn set(&mut self, index: usize, word: u64) {
        if index < self.len {
            // SAFETY: within the mapping.
            unsafe { self.base.as_ptr().add(index).write_volatile(word) }
        }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, not used after this. Failing leaves it to the exit.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len * 8) };
    }
}
