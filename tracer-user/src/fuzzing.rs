//! What the fuzz targets (`tests/fuzz`) reach and no interface shows: parsers of what the kernel and other
//! processes write. Not for anybody else.

use std::{path::PathBuf, sync::LazyLock};

use crate::{
    bpf::fdinfo,
    census::{
        Site,
        listing::{self, Distribution, Listing},
        naming::{Installed, Naming},
        rules::Rules,
        soname,
    },
    cgroup::{place::Places, settings},
    gpu::{cards::fdinfo::DrmClient, member},
    launch::signals,
    model::{
        seen::Seen,
        software::{Level, Software},
    },
    probes::{Cgroup, events},
    resolve::{held, process},
};

/// Cgroup and path of an item of the ring of events; `None` where it is none of ours.
pub fn ring_event(bytes: &[u8]) -> Option<(Cgroup, PathBuf)> {
    events::parse(bytes).map(|raw| (raw.cgroup, raw.path))
}

/// The number behind `key` in a /proc/PID/fdinfo/FD.
pub fn fdinfo_number(info: &str, key: &str) -> Option<u64> {
    fdinfo::number(info, key)
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

/// What is told of `seen` at its fullest, where these entries and lists of files are in each folder of modules.
pub fn software(seen: &Seen, entries: &[&str], record: &str) -> Software {
    static NAMING: LazyLock<Naming> = LazyLock::new(|| {
        let rules = Rules::new(Site::default()).expect("our rules");
        Naming::new(Level::Full, rules).expect("no patterns of a site's")
    });
    let mut listing = Listing::default();
    for (name, version) in entries.iter().filter_map(|entry| listing::parse(entry)) {
        let key = crate::census::normal(&name);
        for top in listing::tops(record) {
            listing.tops.insert(top.to_owned(), key.clone());
        }
        listing.distributions.insert(key, Distribution { name, version, is_own: false });
    }
    NAMING.software(seen, |_| Installed::Listed(&listing))
}

/// The family of the soname of the file at `path`.
pub fn soname_family(path: &str) -> Option<String> {
    soname::parse(path).map(|soname| soname.family)
}
