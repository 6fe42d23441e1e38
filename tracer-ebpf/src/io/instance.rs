//! Which of the file systems that had a device's number one is: the next that is mounted may get it, and on those that
//! number no generations of an inode (images, overlays) its files have the numbers of others.

use tracer_ebpf::kernel_fields::{MISSING, globals::*};

use crate::{kernel::global, typed::word_at};

/// A super block's size is a multiple of this.
const SUPER_BITS: u32 = 6;

/// The file system whose super block is at `system`, in place of a file's generation: an even number.
#[inline(never)]
pub fn of(system: u64) -> u64 {
    (number_of(system) << 1) & u64::from(u32::MAX)
}

/// What the kernel numbers: what is in the drive, what writes back to a server, a mount of all else.
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
    let first = word_at(system + global(&SUPER_MOUNTS));
    // Up to Linux 6.16 what leads there is a list.
    let in_mount = if global(&MOUNT_IN_SUPER) == MISSING { 0 } else { global(&MOUNT_IN_SUPER) };
    word_at(first - in_mount + global(&MOUNT_ID))
}
