//! Which of the file systems that had a device's number one is: the next that is mounted may get it, and on those that
//! number no generations of an inode (images, overlays) its files have the numbers of others.

use tracer_ebpf::kernel_fields::globals::*;

use crate::{
    kernel::{global, has},
    maps::INSTANCES,
    typed::word_at,
};

/// An entry of a folder lies at a multiple of two to the power of this.
const ENTRY_BITS: u32 = 6;
/// Where the member of a ring has its predecessor (`list_head.prev`).
const PREVIOUS: u64 = 8;
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
    let device = field(system, &SUPER_BLOCK_DEVICE);
    let number = if device != 0 {
        field(field(device, &BLOCK_DEVICE_DISK), &DISK_SEQUENCE)
    } else {
        field(field(system, &SUPER_WRITEBACK), &WRITEBACK_ID)
    };
    if number != 0 {
        number
    } else if device == 0 && has(&MOUNT_ID) && has(&MOUNT_NEXT) && has(&SUPER_MOUNTS) {
        by_mounts(system)
    } else {
        // Where its root lies: that of the next one may lie there, too, but most do not.
        field(system, &SUPER_ROOT) >> ENTRY_BITS
    }
}

/// The word at `offset` of what lies at `address`; 0 where this kernel has no such field.
#[inline(always)]
fn field(address: u64, offset: &'static u64) -> u64 {
    if has(offset) { word_at(address + global(offset)) } else { 0 }
}

/// What one of its newest mounts was met as. They come and go, with bind mounts and with namespaces of mounts.
#[inline(always)]
fn by_mounts(system: u64) -> u64 {
    let list = system + global(&SUPER_MOUNTS);
    let is_ring = has(&MOUNT_IN_SUPER);
    // From 6.17 on the newest mount leads to those before it. Up to 6.16 they are members of a ring, with the newest at its
    // end: it is gone through backwards.
    let (member, back) = if is_ring { (global(&MOUNT_IN_SUPER), PREVIOUS) } else { (0, 0) };
    let mut place = word_at(list + back);
    let first = word_at(place - member + global(&MOUNT_ID));
    if place == list || first == 0 {
        return 0;
    }
    // SAFETY: a word, which is written as a whole.
    if let Some(known) = unsafe { INSTANCES.get(&first) } {
        return *known;
    }
    let (mut number, mut is_known) = (first, false);
    for _ in 0..LOOKED_AT {
        place = word_at(place - member + global(&MOUNT_NEXT) + back);
        if place == 0 || place == list {
            break;
        }
        let other = word_at(place - member + global(&MOUNT_ID));
        // One that was just unmounted leads nowhere.
        if other == 0 {
            break;
        }
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
