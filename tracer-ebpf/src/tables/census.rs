//! What the kernel keeps of the software that jobs run: what was seen already, so that each thing is told once.

use super::io_file::FileId;

/// What is seen.
pub mod kind {
    /// A file that was executed, or whose program mapped or read what is seen.
    pub const PROGRAM: u32 = 1;
    /// A file that was mapped to be executed.
    pub const LIBRARY: u32 = 2;
    /// The topmost part of a Python module.
    pub const MODULE: u32 = 3;
}

/// By what something is seen.
pub mod means {
    /// As it was done.
    pub const DONE: u16 = 0;
    /// In what a process had mapped.
    pub const MAPPED: u16 = 1;
}

/// Things seen of all jobs at once, as many as find room. The kernel's own entry around each is 48 bytes, a bucket 16.
pub const SIGHTS: u32 = 16_384;
/// Python processes of all jobs at once.
pub const PYTHONS: u32 = 8_192;
/// Kinds of processes that are known to have mapped nothing new.
pub const LOOKED: u32 = 2_048;
/// Bytes of the ring.
pub const RING_BYTES: u32 = 512 * 1024;
/// The part of the ring that is filled before who reads it is woken: one in this many.
pub const WOKEN_AT: u64 = 4;

/// Bytes of a path.
pub const PATH_BYTES: usize = 512;
/// Bytes of a part of it: what may follow where a path is as long as it may be.
pub const PART_BYTES: usize = 256;
/// Folders above a file that are named.
pub const PATH_LEVELS: usize = 32;
/// Bytes of a module's name.
pub const NAME_BYTES: usize = 64;

/// A thing as it is told apart from others.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SightKey {
    /// Whose.
    pub lease: u32,
    /// [`kind`].
    pub kind: u32,
    /// The program that did it; of a program itself.
    pub program: FileId,
    /// The file; of a module the folder that it was found in; of a program none.
    pub file: FileId,
    /// Of a module a digest of its name; else 0.
    pub name: u64,
}

/// A first sighting.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// Of what.
    pub key: SightKey,
    /// Bytes of the path.
    pub path_bytes: u16,
    /// [`means`].
    pub means: u16,
    /// Whether the path is there up to its file system's root.
    pub is_whole: u32,
    /// A module's name, ended by a zero unless it is cut off.
    pub name: [u8; NAME_BYTES],
    /// The parts of the path of the file (of a module: of its folder) from the last one to the first, each ended by a
    /// zero; then what is left of others.
    pub path: [u8; PATH_BYTES + PART_BYTES],
}

/// A kind of processes, by how much they have mapped.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LookedKey {
    /// Whose.
    pub lease: u32,
    /// How many mappings.
    pub mappings: u32,
    /// Their program.
    pub program: FileId,
    /// Pages that are mapped to be executed.
    pub pages: u64,
}

/// What is counted of a slot's job; of the job before it until something is counted.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SlotCensus {
    /// Whose it is.
    pub lease: u64,
    /// Sightings that found no room.
    pub lost: u64,
    /// Python processes now.
    pub pythons: u64,
    /// The most of them at once.
    pub pythons_most: u64,
}

/// A Python process.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Python {
    /// Whose it is counted for.
    pub lease: u32,
    /// In which slot.
    pub slot: u32,
}
