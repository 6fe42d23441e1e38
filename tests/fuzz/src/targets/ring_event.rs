//! An item of the ring buffer and the path in it, as the agent takes it.

use std::os::unix::ffi::OsStrExt;

use jobtrace::fuzzing::ring_event;

use super::{cgroup_path::sound, resolver};

pub fn run(data: &[u8]) {
    let Some((cgroup, path)) = ring_event(data) else { return };
    assert!(cgroup.table < 2, "{cgroup:?}");
    let bytes = path.as_os_str().as_bytes();
    assert!(!bytes.contains(&0));
    assert!(data.windows(bytes.len().max(1)).any(|part| part == bytes) || bytes.is_empty());
    // Cut anywhere, it is still an event or none, and its path a begin of this one.
    for end in [data.len() - bytes.len() / 2, data.len() / 2, 32] {
        if let Some((_, cut)) = ring_event(&data[..end.min(data.len())]) {
            assert!(bytes.starts_with(cut.as_os_str().as_bytes()));
        }
    }
    let shown = path.to_string_lossy();
    sound(&resolver().path(&shown), &shown);
}
