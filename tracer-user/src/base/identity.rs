//! Which node this is, and which of its boots.

use std::path::Path;

/// Name of this node.
#[must_use]
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The kernel's name for this boot; empty where it shows none.
#[must_use]
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The PID namespace of the whole node (`PROC_PID_INIT_INO` of the kernel).
pub(crate) const ROOT_NAMESPACE: &str = "pid:[4026531836]";

/// Whether `proc` shows the processes of the whole node, rather than of a container alone.
#[must_use]
pub fn has_all_pids(proc: &Path) -> bool {
    let namespace = std::fs::read_link(proc.join("self/ns/pid")).unwrap_or_default();
    namespace.as_os_str() == ROOT_NAMESPACE
}

/// What a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// CPUs that are online.
    pub cores: Option<u64>,
    /// Memory, as the kernel manages it.
    pub memory_bytes: Option<u64>,
}

impl Capacity {
    /// This node's.
    pub fn read() -> Self {
        // SAFETY: it takes and gives numbers alone.
        let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        let memory = rustix::system::sysinfo();
        let memory_bytes = memory.totalram.checked_mul(u64::from(memory.mem_unit));
        Self { cores: u64::try_from(cores).ok().filter(|cores| *cores > 0), memory_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_what_the_kernel_lists() {
        let capacity = Capacity::read();
        let of = |file: &str| std::fs::read_to_string(file).unwrap();
        let cpus = of("/proc/cpuinfo").lines().filter(|line| line.starts_with("processor")).count();
        assert_eq!(capacity.cores, Some(cpus as u64));
        let meminfo = of("/proc/meminfo");
        let kib: u64 = meminfo.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert_eq!(capacity.memory_bytes.map(|bytes| bytes >> 10), Some(kib));
    }
}
