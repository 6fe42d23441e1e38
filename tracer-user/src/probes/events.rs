//! What the kernel tells of cgroups and programs, from the ring buffer.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

use rustix::param::page_size;
use serde::{Deserialize, Serialize};
use tracer_ebpf::{
    ids::HIERARCHIES,
    records::{LIFE_HEADER_BYTES, LifeEvent, life},
};

use crate::{
    bpf::ring::Ring,
    model::lease::{Lease, Slot},
};

/// Which cgroup: table of its hierarchy (0 the tasks', 1 block I/O's where that is another) and id, the
/// inode of its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cgroup {
    /// Table of its hierarchy.
    pub table: u32,
    /// Inode of its directory.
    pub id: u64,
}

/// A fact about cgroups or programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A cgroup was made. What happens in it is charged to `lease`: a new one, or its parent's; `None`
    /// where there was no slot to spare.
    Made {
        /// Which.
        cgroup: Cgroup,
        /// Who is charged.
        lease: Option<Lease>,
        /// Whether the lease is new.
        fresh: bool,
        /// Below the root of its hierarchy.
        path: PathBuf,
        /// When, CLOCK_MONOTONIC.
        at_ns: u64,
        /// The real user who made it.
        uid: u32,
    },
    /// A cgroup was removed.
    Removed {
        /// Which.
        cgroup: Cgroup,
        /// Who was charged; `None` for the rest of the node.
        lease: Option<Lease>,
        /// When, CLOCK_MONOTONIC.
        at_ns: u64,
        /// Where it was, below the root of its hierarchy.
        path: PathBuf,
        /// The most memory that was ever charged to it; `None` where that is counted elsewhere.
        peak_bytes: Option<u64>,
    },
    /// A cgroup was removed of the hierarchy of memory, by which jobs are not told apart.
    Discharged {
        /// Below the root of that hierarchy.
        path: PathBuf,
        /// The most memory that was ever charged to it.
        peak_bytes: u64,
    },
    /// A cgroup was renamed (cgroup v1): it, and all below it, have other paths.
    Renamed {
        /// Which.
        cgroup: Cgroup,
        /// When, CLOCK_MONOTONIC.
        at_ns: u64,
    },
    /// A task executed a program.
    Executed {
        /// Whose.
        lease: Lease,
        /// The process.
        pid: u32,
        /// Its real user.
        uid: u32,
    },
}

/// An event as the kernel wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub kind: u32,
    pub cgroup: Cgroup,
    pub at_ns: u64,
    pub peak_bytes: u64,
    pub slot: Slot,
    pub pid: u32,
    pub uid: u32,
    pub path: PathBuf,
}

/// Takes everything out of `ring`; `note` sees each event before it is gone from there. What cannot be
/// read stays there; what the kernel finds no room for then is counted.
pub(super) fn drain(ring: &mut Ring, mut note: impl FnMut(&Raw)) -> Vec<Raw> {
    let mut events = Vec::new();
    let _ = ring.drain(|item| {
        let event = parse(item);
        event.iter().for_each(&mut note);
        events.extend(event);
    });
    events
}

/// One item of the ring; `None` where it is none of ours.
pub(crate) fn parse(bytes: &[u8]) -> Option<Raw> {
    let (header, path) = bytes.split_at_checked(LIFE_HEADER_BYTES)?;
    let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap_or_default());
    let long = |at: usize| u64::from_ne_bytes(header[at..at + 8].try_into().unwrap_or_default());
    let id = long(std::mem::offset_of!(LifeEvent, id));
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    let table = word(std::mem::offset_of!(LifeEvent, hierarchy));
    let kind = word(std::mem::offset_of!(LifeEvent, kind));
    (table < HIERARCHIES && kind <= life::DISCHARGED).then(|| Raw {
        kind,
        cgroup: Cgroup { table, id },
        at_ns: long(std::mem::offset_of!(LifeEvent, at_ns)),
        peak_bytes: long(std::mem::offset_of!(LifeEvent, peak_pages)) * page_size() as u64,
        slot: word(std::mem::offset_of!(LifeEvent, slot)) as Slot,
        pid: word(std::mem::offset_of!(LifeEvent, pid)),
        uid: word(std::mem::offset_of!(LifeEvent, uid)),
        path: OsString::from_vec(path.to_vec()).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::decode::bytes_of;

    fn event(path: &[u8]) -> LifeEvent {
        let mut bytes = [0; tracer_ebpf::records::PATH_BYTES];
        bytes[..path.len()].copy_from_slice(path);
        LifeEvent {
            kind: life::MADE,
            hierarchy: 1,
            id: 1 << 40,
            at_ns: 1 << 50,
            peak_pages: 1 << 35,
            slot: 7,
            pid: 8,
            uid: 9,
            path_bytes: path.len() as u32,
            path: bytes,
        }
    }

    #[test]
    fn events_are_read_as_far_as_they_go() {
        let event = event(b"/a/\xff\n b\0");
        let bytes = bytes_of(&event);
        let raw = parse(&bytes[..LIFE_HEADER_BYTES + 8]).unwrap();
        assert_eq!(raw.cgroup, Cgroup { table: 1, id: 1 << 40 });
        assert_eq!((raw.at_ns, raw.slot, raw.pid, raw.uid), (1 << 50, 7, 8, 9));
        assert_eq!(raw.peak_bytes, (page_size() as u64) << 35);
        assert_eq!(raw.path.as_os_str().as_encoded_bytes(), b"/a/\xff\n b");
        assert_eq!(parse(&bytes[..LIFE_HEADER_BYTES]).unwrap().path, PathBuf::new());
        assert_eq!(parse(&bytes[..LIFE_HEADER_BYTES - 1]), None);
    }
}
