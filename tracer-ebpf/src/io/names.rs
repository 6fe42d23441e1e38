//! The names of open files, read from the directory entries when a file is met first.

use aya_ebpf::helpers::generated::bpf_probe_read_kernel_str;
use tracer_ebpf::{
    kernel_fields::globals,
    tables::io_file::{FileId, FileName, NAME_BYTES, NAME_LEVELS},
};

use crate::{
    file::word_at,
    kernel::global,
    maps::{HEAVY_NAMES, NAMES, name},
};

/// Notes the name that the open file at `address` has now, which is called `id`.
#[inline(never)]
pub fn tell_name(address: u64, id: &FileId, is_heavy: bool) {
    let Some(name) = read_name(address) else { return };
    let _ = if is_heavy { HEAVY_NAMES.insert(id, name, 0) } else { NAMES.insert(id, name, 0) };
}

/// The name that a file had when it was met, if it is still known.
#[inline(always)]
pub fn name_of_closed(file: &FileId) -> Option<&'static FileName> {
    // SAFETY: read at once; one that is driven out meanwhile is another's whole name.
    unsafe { HEAVY_NAMES.get(file).or_else(|| NAMES.get(file)) }
}

/// The name that the open file at `address` has now, until this CPU reads another.
#[inline(always)]
pub fn read_name(address: u64) -> Option<&'static FileName> {
    let name = name()?;
    // SAFETY: this CPU's own; behind the name there is room for a word.
    unsafe { (&raw mut (*name)[1]).cast::<u64>().write_volatile(address) };
    if io_read_name() == 0 {
        return None;
    }
    // SAFETY: this CPU's own.
    Some(unsafe { &(*name)[0] })
}

/// Reads it; gives 0 where there is no room for one. The verifier looks at a function that has a name outside once, and not
/// anew for each state in which it is called, which is more than half of all it looks at. It lets nobody give such a one an
/// address that has a type: the file's lies behind the room for the name.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn io_read_name() -> u32 {
    let Some(name) = name() else { return 0 };
    // SAFETY: this CPU's own.
    let address = unsafe { (&raw const (*name)[1]).cast::<u64>().read_volatile() };
    let mut dentry = word_at(address + global(&globals::FILE_DENTRY));
    let mut length = 0_usize;
    let mut level = 0;
    while level < NAME_LEVELS {
        if length >= NAME_BYTES {
            break;
        }
        // SAFETY: this CPU's own; behind the name there is room for one part more.
        let read = unsafe {
            let to = (&raw mut (*name)[0].bytes).cast::<u8>().add(length);
            let from = word_at(dentry + global(&globals::DENTRY_NAME));
            bpf_probe_read_kernel_str(to.cast(), NAME_BYTES as u32, from as *const _)
        };
        if read <= 0 {
            break;
        }
        length += read as usize;
        let parent = word_at(dentry + global(&globals::DENTRY_PARENT));
        if parent == dentry {
            break;
        }
        dentry = parent;
        level += 1;
    }
    // SAFETY: as above.
    unsafe { (*name)[0].length = length as u32 };
    1
}

const _: () = assert!(size_of::<[FileName; 2]>() >= 4 + 2 * NAME_BYTES);
const _: () = assert!(size_of::<FileName>().is_multiple_of(size_of::<u64>()));
