//! Memory that this process has done with, given back to the node.

use std::ptr;

use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process};
use rustix::mm::{Advice, madvise};

/// From this size on memory has pages of its own, which are the node's again as soon as it is freed.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: libc::c_int = 1 << 20;
/// So much freed memory is kept for what comes next: given back after each interval, the kernel would clear it for the
/// next one.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: libc::c_int = 1 << 20;

/// Has large blocks given back whenever they are freed. Else glibc takes the largest so far for small: what a start
/// needs in turn, several MiB each, would add up.
pub fn give_back_large() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets numbers of the allocator's. Where they are refused, blocks stay longer or shorter.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
    }
}

/// Gives freed memory back that the allocator keeps for later: what it was needed for comes once.
pub fn give_back_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: has no preconditions.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Gives up the pages of this program and its libraries, most of which only a start runs. What is run again comes
/// from the page cache, without a read from the disk.
pub fn give_back_code() {
    let maps = Process::myself().and_then(|process| process.smaps());
    for map in maps.into_iter().flatten().filter(is_unchanged) {
        let (begin, end) = map.address;
        let begin: *mut () = ptr::with_exposed_provenance_mut(begin as usize);
        // Where it is refused, the pages stay.
        // SAFETY: pages of a file, which nobody has written to: they have the same contents when they are back.
        let _ =
            unsafe { madvise(begin.cast(), (end - map.address.0) as usize, Advice::LinuxDontNeed) };
    }
}

/// Whether it is code, or what stands before it in its file: all else is changed where it is loaded to an address.
fn is_unchanged(map: &MemoryMap) -> bool {
    let is_file = matches!(map.pathname, MMapPath::Path(_)) && map.inode != 0;
    let is_code = map.perms.contains(MMPermissions::EXECUTE) || map.offset == 0;
    // A debugger's breakpoints, say.
    let is_written = map.extension.map.get("Anonymous").is_some_and(|bytes| *bytes > 0);
    let is_writable = map.perms.intersects(MMPermissions::WRITE | MMPermissions::SHARED);
    is_file && is_code && !is_written && !is_writable
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of this program's code, resident.
    fn code_bytes() -> u64 {
        let program = std::env::current_exe().unwrap();
        let maps = Process::myself().unwrap().smaps().unwrap();
        let is_code = |map: &&MemoryMap| {
            map.perms.contains(MMPermissions::EXECUTE)
                && matches!(&map.pathname, MMapPath::Path(path) if *path == program)
        };
        maps.iter().filter(is_code).filter_map(|map| map.extension.map.get("Rss")).sum()
    }

    #[test]
    fn code_that_is_given_up_runs_again() {
        // All of it, as far as it was read from the disk.
        for map in
            Process::myself().unwrap().smaps().unwrap().iter().filter(|map| is_unchanged(map))
        {
            let (begin, end) = map.address;
            for at in (begin..end).step_by(4096) {
                // SAFETY: mapped, and readable where it can be executed.
                unsafe { ptr::with_exposed_provenance::<u8>(at as usize).read_volatile() };
            }
        }
        let before = code_bytes();
        give_back_code();
        let after = code_bytes();
        assert!(after * 2 < before, "{after} of {before}");
        give_back_freed();
    }
}
