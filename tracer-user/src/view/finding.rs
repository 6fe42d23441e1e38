//! What a rule found.

use super::{line::Tone, request::Ask};

/// A sentence and how much of the time it explains.
pub(crate) struct Finding {
    /// Share of the time; that of facts is above one.
    pub weight: f64,
    pub tone: Tone,
    pub text: String,
    /// What it would save, where that is not its share of what was held.
    pub saves: Option<Saves>,
    /// Whether the cure costs about as much: then it has its place by what it would save, and none is told.
    pub has_price: bool,
    /// What to ask the scheduler for next time.
    pub ask: Option<Ask>,
}

/// What a job held and need not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saves {
    /// Core time, nanoseconds.
    pub core_ns: u64,
    /// GPU time, nanoseconds.
    pub gpu_ns: u64,
}

/// Core hours that a GPU hour counts as where findings, jobs and users are put in order: a node of 64 cores and four
/// GPUs. It is in no sum that is shown.
pub(crate) const CORES_OF_A_GPU: u64 = 16;

impl Saves {
    /// One number of both, to put things in order.
    pub fn weight_ns(self) -> u64 {
        self.core_ns.saturating_add(self.gpu_ns.saturating_mul(CORES_OF_A_GPU))
    }
}

impl Finding {
    /// One that saves its share of what was held.
    pub fn new(weight: f64, tone: Tone, text: String) -> Self {
        Self { weight, tone, text, saves: None, has_price: false, ask: None }
    }

    pub fn saving(self, saves: Saves) -> Self {
        Self { saves: Some(saves), ..self }
    }

    pub fn at_a_price(self) -> Self {
        Self { has_price: true, ..self }
    }

    pub fn asking(self, ask: impl Into<Option<Ask>>) -> Self {
        Self { ask: ask.into(), ..self }
    }
}
