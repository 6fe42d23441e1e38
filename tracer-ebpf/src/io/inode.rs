//! An inode, of which the first bytes are read at once: one read costs about as much as one of a word.

use aya_ebpf::helpers::bpf_probe_read_kernel;
use tracer_ebpf::kernel_fields::globals;

use crate::{file::word_at, kernel::global};

/// The type in an inode's mode, and that of a regular file (linux/stat.h).
pub const TYPE: u32 = 0o170_000;
pub const REGULAR: u32 = 0o100_000;

/// Words that are read at once.
const WORDS: usize = 16;

/// An inode as it was.
pub struct Inode {
    address: u64,
    begin: [u64; WORDS],
}

impl Inode {
    /// That at `address`; `None` where it cannot be read.
    #[inline(always)]
    pub fn at(address: u64) -> Option<Self> {
        // SAFETY: a failed read is none.
        let begin = unsafe { bpf_probe_read_kernel(address as *const [u64; WORDS]) }.ok()?;
        Some(Self { address, begin })
    }

    /// The field at this place; what follows it in its word comes with it.
    #[inline(always)]
    fn field(&self, place: &'static u64) -> u64 {
        let place = global(place);
        // The verifier knows the place, and cuts the branch not taken.
        if place < (WORDS * 8) as u64 {
            // SAFETY: within the words.
            unsafe { *self.begin.as_ptr().add(place as usize / 8) >> (place % 8 * 8) }
        } else {
            word_at(self.address + place)
        }
    }

    /// Address of its super block.
    #[inline(always)]
    pub fn system(&self) -> u64 {
        self.field(&globals::INODE_SUPER)
    }

    /// Its type and rights.
    #[inline(always)]
    pub fn mode(&self) -> u32 {
        self.field(&globals::INODE_MODE) as u16 as u32
    }

    /// Whether it is a file with contents.
    #[inline(always)]
    pub fn is_regular(&self) -> bool {
        self.mode() & TYPE == REGULAR
    }

    /// Its number.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        self.field(&globals::INODE_NUMBER)
    }

    /// What tells it from others that had its number before.
    #[inline(always)]
    pub fn generation(&self) -> u32 {
        word_at(self.address + global(&globals::INODE_GENERATION)) as u32
    }

    /// Its size.
    #[inline(always)]
    pub fn size_bytes(&self) -> u64 {
        self.field(&globals::INODE_SIZE)
    }
}
