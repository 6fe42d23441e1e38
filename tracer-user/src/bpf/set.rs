//! A set of programs in the kernel: how its hooks fared, and which of them are attached now.

use std::path::Path;

use anyhow::Result;

use super::{
    fdinfo::{ProgramRuns, program_runs},
    hook::{Hook, HookState},
    log::BpfLog,
    programs::Programs,
};

/// The set. Dropping it detaches all that is not pinned.
pub struct Set {
    programs: Programs,
    hooks: Vec<&'static Hook>,
    states: Vec<HookState>,
    /// Programs whose attachment this kernel cannot pin.
    unpinned: Vec<&'static str>,
    log: Option<BpfLog>,
}

impl Set {
    /// Of `programs` whose `hooks` fared as `states` say.
    pub fn new(
        programs: Programs,
        hooks: Vec<&'static Hook>,
        states: Vec<HookState>,
        log: Option<BpfLog>,
    ) -> Self {
        Self { programs, hooks, states, unpinned: Vec::new(), log }
    }

    /// How each hook fared, in their order.
    pub fn states(&self) -> &[HookState] {
        &self.states
    }

    /// The hooks that this kernel has, in their order.
    pub fn there(&self) -> impl Iterator<Item = &'static Hook> {
        let hooks = self.hooks.iter().zip(&self.states);
        hooks.filter(|(_, state)| **state == HookState::Attached).map(|(hook, _)| *hook)
    }

    /// Whether a program is attached now.
    pub fn is_attached(&self, program: &str) -> bool {
        self.programs.is_attached(program)
    }

    /// Attaches a program; nothing where it is attached.
    ///
    /// # Errors
    /// When the kernel refuses one that it took before.
    pub fn attach(&mut self, hook: &Hook) -> Result<()> {
        self.programs.attach(hook)
    }

    /// Detaches a program; it stays loaded.
    ///
    /// # Errors
    /// When a pinned attachment cannot be removed.
    pub fn detach(&mut self, program: &str) -> Result<()> {
        self.programs.detach(program)
    }

    /// Pins programs and attachments in `dir`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pin(&mut self, dir: &Path) -> Result<()> {
        self.unpinned = self.programs.pin(dir)?;
        Ok(())
    }

    /// Attachments are, and new ones will be, pinned in `dir`.
    pub fn set_pins(&mut self, dir: &Path) {
        self.programs.set_pins(dir);
    }

    /// Of programs found pinned: those that should run and do not.
    pub fn find_unpinned(&mut self) {
        let detached = self.there().filter(|hook| !self.is_attached(hook.program));
        self.unpinned = detached.map(|hook| hook.program).collect();
    }

    /// Programs that did not, or will not, run without this process: shed by it, or beyond this kernel.
    pub fn unpinned(&self) -> &[&'static str] {
        &self.unpinned
    }

    /// Run statistics of the programs.
    pub fn runs(&self) -> Vec<ProgramRuns> {
        program_runs(&self.programs)
    }

    /// Prints what the programs logged.
    pub fn flush_log(&mut self) {
        if let Some(log) = &mut self.log {
            log.flush();
        }
    }
}
