//! An inode.

use tracer_ebpf::{
    kernel_fields::{Marked, fields::*},
    settings::globals::CAST_TO_INODE,
};

use crate::{kernel::Word, typed::Typed};

/// The type in an inode's mode, and those of a regular file and of a pipe (linux/stat.h).
pub const TYPE: u32 = 0o170_000;
pub const REGULAR: u32 = 0o100_000;
pub const PIPE: u32 = 0o010_000;

/// An inode.
pub struct Inode(Typed);

impl Inode {
    /// That at `address`; none at 0.
    #[inline(always)]
    pub fn at(address: u64) -> Option<Self> {
        if address == 0 { None } else { Some(Self(Typed::at(address, &CAST_TO_INODE))) }
    }

    /// The field `F`; what follows a small one may come with it.
    #[inline(always)]
    fn field<T: Word + Into<u64>, F: Marked>(&self, field: F) -> u64 {
        self.0.field::<T, F>(field)
    }

    /// Where it lies.
    #[inline(always)]
    pub fn address(&self) -> u64 {
        self.0.address()
    }

    /// Address of its super block.
    #[inline(always)]
    pub fn system(&self) -> u64 {
        self.field::<u64, _>(INODE_SUPER)
    }

    /// Its type and rights.
    #[inline(always)]
    pub fn mode(&self) -> u32 {
        self.field::<u16, _>(INODE_MODE) as u16 as u32
    }

    /// Whether it is a file with contents.
    #[inline(always)]
    pub fn is_regular(&self) -> bool {
        self.mode() & TYPE == REGULAR
    }

    /// Whether it is a pipe, with a name or without.
    #[inline(always)]
    pub fn is_pipe(&self) -> bool {
        self.mode() & TYPE == PIPE
    }

    /// Its number.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        self.field::<u64, _>(INODE_NUMBER)
    }

    /// What tells it from others that had its number before.
    #[inline(always)]
    pub fn generation(&self) -> u32 {
        self.field::<u32, _>(INODE_GENERATION) as u32
    }

    /// Its size.
    #[inline(always)]
    pub fn size_bytes(&self) -> u64 {
        self.field::<u64, _>(INODE_SIZE)
    }
}
