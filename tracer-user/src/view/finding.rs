//! What a rule of the summary found.

use super::line::Tone;

/// A sentence and how much of the time it explains.
pub(super) struct Finding {
    pub weight: f64,
    pub tone: Tone,
    pub text: String,
}
