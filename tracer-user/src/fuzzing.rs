//! What the fuzz targets (`tests/fuzz`) reach and no interface shows: parsers of what the kernel and other
//! processes write. Not for anybody else.

use std::path::PathBuf;

use crate::{
    cgroup::{place::Places, settings},
    gpu::{cards::fdinfo::DrmClient, member},
    launch::signals,
    probes::{Cgroup, events, own},
    resolve::{held, process},
};

/// Cgroup and path of an item of the ring of events; `None` where it is none of ours.
pub fn ring_event(bytes: &[u8]) -> Option<(Cgroup, PathBuf)> {
    events::parse(bytes).map(|raw| (raw.cgroup, raw.path))
}

/// The number behind `key` in a /proc/PID/fdinfo/FD.
pub fn fdinfo_number(info: &str, key: &str) -> Option<u64> {
    own::fdinfo_number(info, key)
}

/// The real user id in a /proc/PID/status.
pub fn uid_in(status: &str) -> Option<u32> {
    process::uid_in(status)
}

/// The parent in a /proc/PID/status.
pub fn parent_in(status: &str) -> Option<u32> {
    signals::parent_in(status)
}

/// Whether the trimmed `text` of a cgroup's file `name` is the kernel's default.
pub fn is_default_setting(name: &str, text: &str) -> bool {
    settings::is_default(name, text)
}

/// Whether `cgroups`, a /proc/PID/cgroup, names a cgroup called `directory` or one below it.
pub fn is_inside(cgroups: &str, directory: &str) -> bool {
    member::is_inside(cgroups, directory)
}

/// The directories of the cgroup `path` by /proc/self/mountinfo and /proc/self/cgroup.
pub fn places(mountinfo: &str, own_cgroups: &str, path: &str) -> Places {
    held::places(mountinfo, own_cgroups, path)
}

/// What the kernel tells of a file that is open on a GPU, before and now, so much later: bytes of the
/// device's memory and the engines' shares in millionths; `None` where one is no such file.
pub fn drm_client(before: &str, now: &str, elapsed_ns: u64) -> Option<(Option<u64>, Vec<u64>)> {
    let (before, now) = (DrmClient::parse(before)?, DrmClient::parse(now)?);
    let shares = now.shares(&before, elapsed_ns).into_values().collect();
    Some((now.memory_bytes(), shares))
}
