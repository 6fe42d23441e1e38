//! What a program needs to be loaded and attached, and how that went.

use aya::programs::perf_event::SoftwareEvent;

/// What a program is attached to.
#[derive(Clone, Copy, Debug)]
pub enum Point {
    /// A tracepoint, by BTF: its name and the arguments this program understands.
    Tracepoint(&'static str, &'static [&'static str]),
    /// A tracepoint's event, for programs that no other task may interrupt: its group and name.
    Event(&'static str, &'static str),
    /// A software event of every CPU, with its period.
    Software(SoftwareEvent, Period),
    /// Entry of a kernel function.
    FunctionEntry(&'static str),
    /// Return of a kernel function: its name and the arguments this program understands, behind which the
    /// program finds what it returned.
    FunctionExit(&'static str, &'static [&'static str]),
}

/// How often a software event runs its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Each time.
    Each,
    /// Once in as many times as the set's sampled events say.
    Sampled,
}

/// A program and its hook.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    /// Name of the program in the object.
    pub program: &'static str,
    /// What it is attached to.
    pub point: Point,
    /// Kernel fields it cannot do without, by the names of their globals.
    pub needs: &'static [&'static str],
    /// Hooks of one group are alternatives: the first that attaches is kept.
    pub group: &'static str,
    /// Other groups whose work this program does too.
    pub covers: &'static [&'static str],
}

/// How a hook fared.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum HookState {
    /// Attached.
    Attached,
    /// Not asked for, or an alternative of it is attached.
    NotNeeded,
    /// This kernel lacks what it needs, or refused it: why.
    Missing(String),
}
