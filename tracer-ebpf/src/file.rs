//! From a task's descriptor to its file and that file's system.

use aya_ebpf::helpers::bpf_probe_read_kernel;
use tracer_ebpf::kernel_fields::{fields::*, globals};

use crate::kernel::{Pointer, global, load};

/// Address of the inode of the open file at `file`; 0 for 0.
#[inline(always)]
pub fn inode_of_file(file: u64) -> u64 {
    word_at(file + global(&globals::FILE_INODE))
}

/// Address of the open file that `task` has as `descriptor`; 0 where it has none.
#[inline(always)]
pub fn file_of_descriptor<P: Pointer>(task: P, descriptor: u32) -> u64 {
    let table: P = load(load::<P, _>(task, TASK_FILES), FILES_TABLE);
    if descriptor >= load::<u32, _>(table, FILES_MOST) {
        return 0;
    }
    let files: u64 = load(table, FILES_FILES);
    word_at(files + 8 * u64::from(descriptor))
}

/// The word at `address` of the kernel; 0 where it cannot be read.
#[inline(always)]
pub fn word_at(address: u64) -> u64 {
    // SAFETY: a failed read is zero.
    unsafe { bpf_probe_read_kernel(address as *const u64) }.unwrap_or(0)
}
