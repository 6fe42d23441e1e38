//! All elements of a hash map by one command, where one command each would take a hundred times as long.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

const MAP_LOOKUP_BATCH: libc::c_int = 24;

/// The part of `union bpf_attr` for batches.
#[repr(C)]
struct Batch {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

/// All elements of the hash `map`, as they are found: it changes meanwhile. What stays in it is among them, and what is
/// made anew may be there twice. `most` of them are asked for at a time.
///
/// # Safety
/// Keys and values of the map are `K` and `V` in memory, integers without padding.
///
/// # Errors
/// When the kernel refuses.
pub unsafe fn elements<K: Copy + Default, V: Copy + Default>(
    map: BorrowedFd<'_>,
    most: usize,
) -> io::Result<Vec<(K, V)>> {
    let (mut keys, mut values) = (vec![K::default(); most], vec![V::default(); most]);
    let mut all = Vec::new();
    let (mut place, mut is_first) = (0_u64, true);
    loop {
        let at = &raw mut place as u64;
        let mut batch = Batch {
            in_batch: if is_first { 0 } else { at },
            out_batch: at,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            count: u32::try_from(most).unwrap_or(u32::MAX),
            map_fd: map.as_raw_fd().cast_unsigned(),
            elem_flags: 0,
            flags: 0,
        };
        // SAFETY: room for so many elements, by the caller's types.
        let result = unsafe {
            libc::syscall(libc::SYS_bpf, MAP_LOOKUP_BATCH, &raw mut batch, size_of::<Batch>())
        };
        let error = io::Error::last_os_error();
        let is_last = result != 0 && error.raw_os_error() == Some(libc::ENOENT);
        if result != 0 && !is_last {
            return Err(error);
        }
        let found = batch.count as usize;
        all.extend(keys.iter().copied().zip(values.iter().copied()).take(found));
        if is_last {
            return Ok(all);
        }
        is_first = false;
    }
}
