//! Names of files, by their entries in folders (dentries), of which the addresses are known.

use aya_ebpf::helpers::generated::bpf_probe_read_kernel_str;
use tracer_ebpf::{
    kernel_fields::globals,
    tables::census::{NAME_BYTES, PART_BYTES, PATH_BYTES, PATH_LEVELS, Sighting},
};

use crate::{kernel::global, typed::word_at};

/// A name: where it is, and how long.
#[derive(Clone, Copy)]
pub struct Name {
    pub address: u64,
    pub bytes: u64,
}

impl Name {
    /// That of `dentry`.
    #[inline(always)]
    pub fn of(dentry: u64) -> Self {
        let at = dentry + global(&globals::DENTRY_LENGTH);
        Self { address: word_at(at + 8), bytes: word_at(at) >> 32 }
    }

    /// Its first bytes, the first one lowest; what is behind a short name may follow it.
    #[inline(always)]
    pub fn first(self) -> [u64; 2] {
        [word_at(self.address), word_at(self.address + 8)]
    }

    /// Its last eight bytes, the last one highest; what is before a short name may come before it.
    #[inline(always)]
    pub fn last(self) -> u64 {
        word_at((self.address + self.bytes).wrapping_sub(8))
    }

    /// Its first bytes, then zeros, as words.
    #[inline(always)]
    pub fn read(self) -> [u64; NAME_BYTES / 8] {
        let mut words = [0_u64; NAME_BYTES / 8];
        // SAFETY: as long as the words.
        unsafe {
            bpf_probe_read_kernel_str(
                words.as_mut_ptr().cast(),
                NAME_BYTES as u32,
                self.address as *const _,
            )
        };
        words
    }
}

/// The bytes of `text`, as [`Name::first`] has them.
pub const fn word(text: &[u8]) -> u64 {
    let (mut word, mut at) = (0, 0);
    while at < text.len() {
        word |= (text[at] as u64) << (8 * at);
        at += 1;
    }
    word
}

/// Whether `last`, as [`Name::last`] gives it, ends in `text`.
#[inline(always)]
pub const fn ends_in(last: u64, text: &[u8]) -> bool {
    last >> (64 - 8 * text.len()) == word(text)
}

/// The folder above `dentry`; itself at the root.
#[inline(always)]
pub fn parent(dentry: u64) -> u64 {
    word_at(dentry + global(&globals::DENTRY_PARENT))
}

/// A digest of the part of a name that [`Name::read`] gives.
#[inline(always)]
pub fn digest(name: Name) -> u64 {
    let bytes = name.bytes.min(NAME_BYTES as u64 - 1);
    let (mut digest, mut at) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while at < NAME_BYTES as u64 && at < bytes {
        let (word, left) = (word_at(name.address + at), bytes - at);
        // What is behind the name is anything.
        let word = if left < 8 { word & ((1 << (8 * left)) - 1) } else { word };
        digest = (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        digest ^= digest >> 29;
        at += 8;
    }
    digest
}

/// Reads the path of `dentry` into `sighting`.
#[inline(always)]
pub fn read_path(dentry: u64, sighting: *mut Sighting) {
    let (mut dentry, mut length, mut level, mut is_whole) = (dentry, 0_usize, 0, 0);
    while level < PATH_LEVELS {
        let up = parent(dentry);
        if up == dentry {
            is_whole = 1;
            break;
        }
        if length >= PATH_BYTES {
            break;
        }
        // SAFETY: behind the path there is room for one part more.
        let read = unsafe {
            let to = (&raw mut (*sighting).path).cast::<u8>().add(length);
            bpf_probe_read_kernel_str(
                to.cast(),
                PART_BYTES as u32,
                Name::of(dentry).address as *const _,
            )
        };
        if read <= 0 {
            break;
        }
        length += read as usize;
        dentry = up;
        level += 1;
    }
    // SAFETY: the caller's.
    unsafe {
        (&raw mut (*sighting).path_bytes).write(length as u16);
        (&raw mut (*sighting).is_whole).write(is_whole);
    }
}

const _: () = assert!(size_of::<Sighting>() == 48 + 8 + NAME_BYTES + PATH_BYTES + PART_BYTES);
