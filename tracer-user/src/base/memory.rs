//! Memory that this process has done with, given back to the node.

use std::{
    ptr,
    time::{Duration, Instant},
};

use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process};
use rustix::mm::{Advice, madvise};

/// From this size on memory has pages of its own, which are the node's again as soon as it is freed.
#[cfg(target_env = "gnu")]
const LARGE_BYTES: libc::c_int = 1 << 20;
/// So much freed memory is kept for what comes next: given back after each interval, the kernel would clear it for the
/// next one.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: libc::c_int = 1 << 20;

/// How long code that ran stays. What a reading runs is back with it, in a tenth of a millisecond.
const SELDOM: Duration = Duration::from_secs(600);

/// Has the allocator keep little. Large blocks are given back whenever they are freed: else glibc takes the largest so
/// far for small, and what a start needs in turn, several MiB each, would add up. Threads share one heap: they seldom
/// run at once, and each would keep freed memory of its own.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets numbers of the allocator's. Where they are refused, it keeps more.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
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

/// Gives up code every now and then: what runs when jobs begin and end, or something fails, would stay for good, 64 KiB
/// around each page.
#[derive(Default)]
pub struct SeldomRun {
    given_up: Option<Instant>,
}

impl SeldomRun {
    /// Gives it up the first time, and every ten minutes.
    pub fn give_back(&mut self, now: Instant) {
        if self.given_up.is_none_or(|last| now.duration_since(last) >= SELDOM) {
            give_back_code();
            self.given_up = Some(now);
        }
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
        let (now, mut seldom) = (Instant::now(), SeldomRun::default());
        seldom.give_back(now);
        // Other tests run meanwhile, in the same process.
        let again = || {
            SeldomRun::default().give_back(now);
            code_bytes()
        };
        let after = std::iter::repeat_with(again).take(10).min().unwrap();
        assert!(after * 2 < before, "{after} of {before}");
        assert_eq!(seldom.given_up, Some(now));
        for (seconds, given_up) in [(599, now), (600, now + SELDOM)] {
            seldom.give_back(now + Duration::from_secs(seconds));
            assert_eq!(seldom.given_up, Some(given_up));
        }
        give_back_freed();
    }
}
