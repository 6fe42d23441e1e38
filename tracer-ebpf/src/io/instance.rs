//! Which of the file systems that had a device's number one is: the next that is mounted may get it, and on those that
//! number no generations of an inode (images, overlays) its files have the numbers of others.

use tracer_ebpf::kernel_fields::{MISSING, globals::*};

use crate::{kernel::global, maps::INSTANCES, typed::word_at};

/// A super block's size is a multiple of this.
const SUPER_BITS: u32 = 6;
/// Mounts of a file system of which one may have been met before.
const LOOKED_AT: u32 = 16;

/// The file system whose super block is at `system`, in place of a file's generation: an even number.
#[inline(never)]
pub fn of(system: u64) -> u64 {
    (number_of(system) << 1) & u64::from(u32::MAX)
}

/// What the kernel numbers: what is in the drive, what writes back to a server, mounts of all else.
#[inline(always)]
fn number_of(system: u64) -> u64 {
    let device = word_at(system + global(&SUPER_BLOCK_DEVICE));
    if device != 0 {
        if global(&DISK_SEQUENCE) == MISSING {
            return system >> SUPER_BITS;
        }
        let disk = word_at(device + global(&BLOCK_DEVICE_DISK));
        return word_at(disk + global(&DISK_SEQUENCE));
    }
    let writeback = word_at(word_at(system + global(&SUPER_WRITEBACK)) + global(&WRITEBACK_ID));
    if writeback != 0 {
        return writeback;
    }
    if global(&MOUNT_ID) == MISSING {
        // The next one may lie there, too: most do not.
        return system >> SUPER_BITS;
    }
    by_mounts(system)
}

/// What any of its mounts was met as. They come and go: the first of the list is the newest (before Linux 6.17 the oldest),
/// be it a bind mount or that of another mount namespace.
#[inline(always)]
fn by_mounts(system: u64) -> u64 {
    let list = system + global(&SUPER_MOUNTS);
    // Up to Linux 6.16 what leads to a mount leads to a list's member in it.
    let member = if global(&MOUNT_IN_SUPER) == MISSING { 0 } else { global(&MOUNT_IN_SUPER) };
    let mut place = word_at(list);
    let first = word_at(place - member + global(&MOUNT_ID));
    // SAFETY: a word, which is written as a whole.
    if let Some(known) = unsafe { INSTANCES.get(&first) } {
        return *known;
    }
    let (mut number, mut is_known) = (first, false);
    for _ in 0..LOOKED_AT {
        place = word_at(place - member + global(&MOUNT_NEXT));
        if place == 0 || place == list {
            break;
        }
        let other = word_at(place - member + global(&MOUNT_ID));
        // SAFETY: as above.
        if let Some(known) = unsafe { INSTANCES.get(&other) } {
            (number, is_known) = (*known, true);
            break;
        }
        // The oldest outlives most.
        number = number.min(other);
    }
    if !is_known {
        let _ = INSTANCES.insert(&number, &number, 0);
    }
    let _ = INSTANCES.insert(&first, &number, 0);
    number
}
