//! Families of probes that do not run for a while: detached, attached again, and what must be forgotten in
//! between, so that nothing of the gap is charged when they run again.

use anyhow::Result;

use super::{
    drain::Probes,
    families::Family,
    hooks::{FAULT_BEGINS, HOOKS, HookRow, REQUIRED_GROUP},
};
use crate::bpf::hook::{Hook, HookState};

impl Probes {
    /// Detaches the probes of `family`, what ends something before what begins it, so that no end finds an
    /// old begin: what they give does not grow until they are attached again.
    ///
    /// # Errors
    /// When a pinned attachment cannot be removed.
    pub fn detach(&mut self, family: Family) -> Result<()> {
        if let (Family::Census, Some(census)) = (family, &mut self.census) {
            census.detached();
            return family.hooks().rev().try_for_each(|row| census.set.detach(row.hook.program));
        }
        family.hooks().rev().try_for_each(|row| self.set.detach(row.hook.program))?;
        if family.hooks().any(|row| FAULT_BEGINS.contains(&row.hook.group)) {
            // Of these nobody would tell the end of one and the begin of the next apart.
            self.records.forget_faults();
        }
        Ok(())
    }

    /// Attaches those probes of `family` that this kernel has; one that is attached stays as it is.
    ///
    /// # Errors
    /// When the kernel refuses one that it took before, or the tasks' records cannot be cleared.
    pub fn attach(&mut self, family: Family) -> Result<()> {
        if let (Family::Census, Some(census)) = (family, &mut self.census) {
            let there: Vec<_> = census.set.there().collect();
            there.into_iter().try_for_each(|hook| census.set.attach(hook))?;
            census.attached();
            return Ok(());
        }
        family.hooks().try_for_each(|row| self.attach_hook(&row.hook))
    }

    /// Attaches every hook that this kernel has.
    ///
    /// # Errors
    /// As [`Self::attach`].
    pub(super) fn attach_all(&mut self) -> Result<()> {
        HOOKS.iter().try_for_each(|row| self.attach_hook(&row.hook))
    }

    fn attach_hook(&mut self, hook: &Hook) -> Result<()> {
        if !self.set.there().any(|there| std::ptr::eq(there, hook)) {
            return Ok(());
        }
        if hook.group == REQUIRED_GROUP && !self.set.is_attached(hook.program) {
            self.records.forget_tasks()?;
            self.readings.resume();
        }
        self.set.attach(hook)
    }

    /// Whether the kernel lets any probe of `family` run here.
    pub fn has(&self, family: Family) -> bool {
        self.hooks().any(|(row, state)| row.family == family && *state == HookState::Attached)
    }

    /// Every hook, and how it fared.
    pub fn hooks(&self) -> impl Iterator<Item = (&'static HookRow, &HookState)> {
        let census = self.census.iter().flat_map(super::Census::hooks);
        HOOKS.iter().zip(self.set.states()).chain(census)
    }

    /// The hooks that this kernel lacks, and why; of alternatives the last, which asks for least of a kernel.
    pub fn missing_hooks(&self) -> impl Iterator<Item = (&'static HookRow, &str)> {
        let missing = self.hooks().filter_map(|(row, state)| match state {
            HookState::Missing(why) => Some((row, why.as_str())),
            _ => None,
        });
        let missing: Vec<_> = missing.collect();
        let is_last = |index: usize| {
            let group = |at: usize| missing[at].0.hook.group;
            (index + 1..missing.len()).all(|later| group(later) != group(index))
        };
        let last: Vec<_> = (0..missing.len()).filter(|&index| is_last(index)).collect();
        last.into_iter().map(move |index| missing[index])
    }

    /// Whether the switch hook is attached.
    pub fn runs_switches(&self) -> bool {
        let mut required = HOOKS.iter().filter(|row| row.hook.group == REQUIRED_GROUP);
        required.any(|row| self.set.is_attached(row.hook.program))
    }
}
