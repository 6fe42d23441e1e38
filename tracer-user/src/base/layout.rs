//! Where jobs are told apart on this host, as the cgroup hierarchies give it and the probes need it.

/// The hierarchies that matter, by the kernel's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of the tasks' hierarchy (0 is cgroup v2's).
    pub tasks_hierarchy: u32,
    /// Its controller where it is cgroup v1's (`memory`).
    pub tasks_controller: Option<String>,
    /// Number of the hierarchy that block I/O is charged in; `None` where it is charged to no cgroup of
    /// a job's own.
    pub block_hierarchy: Option<u32>,
}

impl Layout {
    /// Table of the block hierarchy's ids: the tasks', or its own, which stays empty where no job has a
    /// cgroup there: ids of two hierarchies overlap.
    #[must_use]
    pub fn block_table(&self) -> u32 {
        u32::from(self.block_hierarchy != Some(self.tasks_hierarchy))
    }
}
