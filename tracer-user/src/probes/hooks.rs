//! Every hook in one row: what its program needs to be attached, of which family it is, and what is unknown
//! without it. What is unknown on a kernel, what shedding a family loses, `doctor`'s findings and METRICS.md
//! follow from it.

mod rows;

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use super::{census::CENSUS_HOOKS, families::Family, needs::SOCKET_CGROUP};
use crate::{base::layout::Layout, bpf::hook::Hook};

pub use rows::HOOKS;

/// A hook, and what depends on it.
#[derive(Clone, Copy, Debug)]
pub struct HookRow {
    /// The program and what it is attached to.
    pub hook: Hook,
    /// The family that it is attached and detached with.
    pub family: Family,
    /// Fields of the banks' measurements, or a whole measurement, that are unknown where neither it nor
    /// an alternative that feeds them is attached.
    pub feeds: &'static [&'static str],
    /// What is lost without it, in words.
    pub gives: &'static str,
}

/// The group without which nothing is traced.
pub const REQUIRED_GROUP: &str = "scheduling";

/// The groups that tell of a page fault's begin. Every fault on a user's address passes through
/// `handle_mm_fault`, whether it is taken in user mode or inside a system call: it does the work of both.
pub const FAULT_BEGINS: [&str; 2] = ["fault entry", "fault entry in the kernel"];

impl HookRow {
    /// Whether what its program finds tells jobs apart where cgroups lie as `layout` says.
    ///
    /// # Errors
    /// Says why not.
    pub fn check(&self, layout: &Layout) -> Result<()> {
        let is_v1 = layout.tasks_controller.is_some();
        ensure!(
            !is_v1 || !self.hook.needs.contains(&SOCKET_CGROUP),
            "a socket is known by its cgroup of version 2, and jobs are told apart by version 1"
        );
        Ok(())
    }
}

impl Family {
    /// Its hooks, in the order of their attaching.
    pub fn hooks(self) -> impl DoubleEndedIterator<Item = &'static HookRow> {
        HOOKS.iter().chain(&CENSUS_HOOKS).filter(move |row| row.family == self)
    }

    /// The fields it gives, or a whole measurement. One that also lives on another family goes with the
    /// family that cannot do without the other.
    pub fn fields(self) -> impl Iterator<Item = &'static str> {
        let fed = |family: Self| family.hooks().flat_map(|row| row.feeds).copied();
        let dependents = self.with_dependents().filter(move |other| *other != self);
        let theirs: Vec<_> = dependents.flat_map(fed).collect();
        let own: BTreeSet<_> = fed(self).collect();
        own.into_iter().filter(move |field| !theirs.contains(field))
    }
}

#[cfg(test)]
mod tests;
