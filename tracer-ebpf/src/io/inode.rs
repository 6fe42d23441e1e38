//! An inode. Where its fields must be copied, the first bytes are copied at once: that costs about as much as one word.

use aya_ebpf::helpers::bpf_probe_read_kernel;
use tracer_ebpf::{
    kernel_fields::{Marked, fields::*},
    settings::globals::CAST_TO_INODE,
};

use crate::{
    file::word_at,
    kernel::{Word, global},
    typed::{Typed, casts},
};

/// The type in an inode's mode, and that of a regular file (linux/stat.h).
pub const TYPE: u32 = 0o170_000;
pub const REGULAR: u32 = 0o100_000;

/// Words that are copied at once.
const WORDS: usize = 16;

/// An inode: as it is, or as it was.
pub struct Inode {
    inode: Typed,
    begin: [u64; WORDS],
}

impl Inode {
    /// That at `address`; `None` where it cannot be read.
    #[inline(always)]
    pub fn at(address: u64) -> Option<Self> {
        let inode = Typed::at(address, &CAST_TO_INODE);
        let begin = match casts() {
            true => [0; WORDS],
            // SAFETY: a failed read is none.
            false => unsafe { bpf_probe_read_kernel(address as *const [u64; WORDS]) }.ok()?,
        };
        Some(Self { inode, begin })
    }

    /// The field `F`; what follows a small one may come with it.
    #[inline(always)]
    fn field<T: Word + Into<u64>, F: Marked>(&self, field: F) -> u64 {
        if casts() {
            return self.inode.field::<T, F>(field);
        }
        let place = global(F::global());
        // The verifier knows the place, and cuts the branch not taken.
        if place < (WORDS * 8) as u64 {
            // SAFETY: within the words.
            unsafe { *self.begin.as_ptr().add(place as usize / 8) >> (place % 8 * 8) }
        } else {
            word_at(self.inode.address() + place)
        }
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
