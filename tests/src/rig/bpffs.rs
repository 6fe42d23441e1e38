//! The file system of BPF pins, of a test's own: one set of pins is on a node, and a neighbour's agent
//! that does not pin takes it away.

use rustix::{
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount},
    thread::{UnshareFlags, unshare_unsafe},
};

const BPFFS: &str = "/sys/fs/bpf";
/// Where the agent pins.
pub const PINS: &str = "/sys/fs/bpf/jobtrace";

/// An empty bpffs where the agent looks for it, which the calling thread and what it starts see alone.
#[derive(Debug)]
pub struct Bpffs(());

impl Bpffs {
    /// Mounts it, in a mount namespace of the calling thread's own.
    ///
    /// # Panics
    /// When it cannot be mounted: root is needed.
    pub fn mount() -> Self {
        // SAFETY: no descriptor is unshared, and nobody relies on a working directory in common.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.expect("a mount namespace: root is needed");
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).expect("mounts of our own");
        mount("bpf", BPFFS, "bpf", MountFlags::empty(), None).expect("bpffs on /sys/fs/bpf");
        Self(())
    }
}

impl Drop for Bpffs {
    fn drop(&mut self) {
        if let Err(error) = unmount(BPFFS, UnmountFlags::DETACH) {
            eprintln!("left behind: the mount {BPFFS}: {error}");
        }
    }
}
