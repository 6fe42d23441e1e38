//! The consumer's side of a BPF ring buffer.
//!
//! Of its data only the part is mapped that is being read: all of it, which the kernel shows twice in a row, would be
//! resident as long as the map is open, 4 MiB of a ring of 2. Source: Documentation/bpf/ringbuf.rst of the kernel.

use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Release},
};

use anyhow::{Context, Result, anyhow, ensure};
use aya::maps::Map;
use rustix::{
    mm::{MapFlags, ProtFlags, mmap, munmap},
    param::page_size,
};

/// In the first word of an item, beside its length: it is being written; it was given up.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
/// Bytes before an item, to multiples of which it is filled up.
const HEADER_BYTES: usize = 8;
/// Data that is mapped at a time, at least.
const WINDOW_BYTES: usize = 64 << 10;

/// A ring buffer whose items this process takes.
pub struct Ring {
    fd: OwnedFd,
    /// Programs that are not loaded yet name the map by this descriptor of it.
    _map: Option<Map>,
    /// Of its data, a power of two.
    bytes: usize,
    consumer: Mapping,
    producer: Mapping,
    window: Option<(usize, Mapping)>,
}

impl Ring {
    /// That of the map `name`.
    ///
    /// # Errors
    /// When it is none, or the kernel refuses to map it.
    pub fn map(map: Map, name: &str) -> Result<Self> {
        let Map::RingBuf(data) = &map else {
            return Err(anyhow!("map {name} of the BPF object is no ring buffer"));
        };
        let info = data.info().with_context(|| format!("cannot ask about the map {name}"))?;
        let fd = data.fd().as_fd().try_clone_to_owned();
        let fd = fd.with_context(|| format!("cannot hold the map {name}"))?;
        let ring = Self::over(fd, info.max_entries() as usize);
        let ring = ring.with_context(|| format!("cannot map the map {name}"))?;
        Ok(Self { _map: Some(map), ..ring })
    }

    /// Over what `fd` shows, with so many bytes of data: its two positions on a page each, and the data twice.
    fn over(fd: OwnedFd, bytes: usize) -> Result<Self> {
        ensure!(bytes.is_power_of_two() && bytes.is_multiple_of(page_size()), "no ring buffer");
        let page = page_size();
        let consumer = Mapping::of(&fd, ProtFlags::READ | ProtFlags::WRITE, 0, page)?;
        let producer = Mapping::of(&fd, ProtFlags::READ, page, page)?;
        Ok(Self { fd, _map: None, bytes, consumer, producer, window: None })
    }

    /// Hands all items that are complete to `take`, in their order; each leaves the ring after that.
    ///
    /// # Errors
    /// When the kernel refuses to map what is next: it stays in the ring.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) -> Result<()> {
        let mut consumed = self.consumer.position().load(Acquire);
        while consumed < self.producer.position().load(Acquire) {
            let at = consumed as usize & (self.bytes - 1);
            let header = self.header(at)?;
            if header & BUSY != 0 {
                break;
            }
            let len = (header & !DISCARDED) as usize;
            if header & DISCARDED == 0 {
                take(self.data(at + HEADER_BYTES, len)?);
            }
            consumed += (HEADER_BYTES + len).next_multiple_of(HEADER_BYTES) as u64;
            self.consumer.position().store(consumed, Release);
        }
        Ok(())
    }

    fn header(&mut self, at: usize) -> Result<u32> {
        let word = self.data(at, HEADER_BYTES)?.as_ptr().cast::<AtomicU32>();
        // SAFETY: mapped, and aligned, for items begin at multiples of 8.
        Ok(unsafe { &*word }.load(Acquire))
    }

    /// So many bytes of data from `at` on.
    fn data(&mut self, at: usize, len: usize) -> Result<&[u8]> {
        let is_there =
            |(begin, window): &(usize, Mapping)| *begin <= at && at + len <= begin + window.bytes;
        if !self.window.as_ref().is_some_and(is_there) {
            ensure!(at + len <= 2 * self.bytes, "an item is longer than its ring");
            self.window = None;
            let page = page_size();
            let begin = at - at % page;
            let end = (at + len).max(begin + WINDOW_BYTES).next_multiple_of(page);
            let window_bytes = end.min(2 * self.bytes) - begin;
            let mapped = Mapping::of(&self.fd, ProtFlags::READ, 2 * page + begin, window_bytes)?;
            self.window = Some((begin, mapped));
        }
        let (begin, window) = self.window.as_ref().context("it is mapped")?;
        // SAFETY: within the mapping. The kernel writes an item no more once it is complete, until it has left the ring;
        // a header, which it does write, is read as a whole by its caller.
        Ok(unsafe { std::slice::from_raw_parts(window.base.as_ptr().add(at - begin), len) })
    }
}

impl AsRawFd for Ring {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// A part of the map in our memory.
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; what the kernel writes there is read atomically.
unsafe impl Send for Mapping {}

impl Mapping {
    fn of(fd: &OwnedFd, protection: ProtFlags, at: usize, bytes: usize) -> Result<Self> {
        // SAFETY: a fresh mapping; the kernel refuses one that is longer than the map.
        let base = unsafe {
            mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, fd, at as u64)
        };
        let base = NonNull::new(base.context("mmap")?.cast()).context("mapped at 0")?;
        Ok(Self { base, bytes })
    }

    /// The position that the page begins with.
    fn position(&self) -> &AtomicU64 {
        // SAFETY: a page, aligned, which lives as long as this.
        unsafe { &*self.base.as_ptr().cast::<AtomicU64>() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `of`, not used after this. Failing leaves it to the exit.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::unix::fs::FileExt};

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    /// The kernel's side, in a file.
    struct Kernel {
        file: File,
        bytes: usize,
        produced: u64,
    }

    impl Kernel {
        fn begin(bytes: usize) -> (Self, Ring) {
            let fd = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
            let file = File::from(fd.try_clone().unwrap());
            file.set_len((2 * page_size() + 2 * bytes) as u64).unwrap();
            (Self { file, bytes, produced: 0 }, Ring::over(fd, bytes).unwrap())
        }

        /// Adds an item, whose header has `flags` too.
        fn add(&mut self, item: &[u8], flags: u32) {
            let header = u64::from(item.len() as u32 | flags).to_ne_bytes();
            self.write(self.produced, &[&header[..], item].concat());
            self.produced += (8 + item.len()).next_multiple_of(8) as u64;
            self.file.write_all_at(&self.produced.to_ne_bytes(), page_size() as u64).unwrap();
        }

        /// At `position` of the data, where it shows up twice.
        fn write(&self, position: u64, bytes: &[u8]) {
            for (at, byte) in (position..).zip(bytes) {
                for copy in [0, self.bytes] {
                    let at = at as usize % self.bytes + copy + 2 * page_size();
                    self.file.write_all_at(&[*byte], at as u64).unwrap();
                }
            }
        }

        fn consumed(&self) -> u64 {
            let mut position = [0; 8];
            self.file.read_exact_at(&mut position, 0).unwrap();
            u64::from_ne_bytes(position)
        }
    }

    fn items(ring: &mut Ring) -> Vec<Vec<u8>> {
        let mut items = Vec::new();
        ring.drain(|item| items.push(item.to_vec())).unwrap();
        items
    }

    #[test]
    fn items_come_once_each_and_what_is_written_still_waits() {
        let (mut kernel, mut ring) = Kernel::begin(page_size());
        assert_eq!(items(&mut ring), [[0_u8; 0]; 0]);
        kernel.add(b"one", 0);
        kernel.add(b"gone", DISCARDED);
        kernel.add(b"", 0);
        let busy = kernel.produced;
        kernel.add(b"busy", BUSY);
        kernel.add(b"behind", 0);
        assert_eq!(items(&mut ring), [&b"one"[..], b""]);
        assert_eq!(kernel.consumed(), busy);
        kernel.write(busy, &4_u32.to_ne_bytes());
        assert_eq!(items(&mut ring), [&b"busy"[..], b"behind"]);
        assert_eq!(kernel.consumed(), kernel.produced);
    }

    #[test]
    fn items_around_the_end_and_beyond_what_is_mapped_are_whole() {
        let bytes = 4 * WINDOW_BYTES;
        let (mut kernel, mut ring) = Kernel::begin(bytes);
        let mut number = 0_u32;
        while kernel.produced < 3 * bytes as u64 {
            let some: Vec<Vec<u8>> = (0..40)
                .map(|_| {
                    number += 1;
                    number.to_ne_bytes().repeat(1 + number as usize % 260)
                })
                .collect();
            some.iter().for_each(|item| kernel.add(item, 0));
            assert_eq!(items(&mut ring), some, "up to {}", kernel.produced);
            let mapped = ring.window.as_ref().map_or(0, |(_, window)| window.bytes);
            assert!(mapped <= WINDOW_BYTES + page_size(), "{mapped}");
        }
    }
}
