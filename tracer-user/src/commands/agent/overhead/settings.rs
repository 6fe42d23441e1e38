//! What the configuration says of the probes' cost, as the governor and the measuring need it.

use crate::commands::agent::{
    config::{self, Statistics as When},
    governor,
};

/// A family that was shed stays so at most for this long, or for its first back-off where that is longer.
const LONGEST_BACK_OFF_NS: u64 = 3_600_000_000_000;

/// What of the configuration matters here.
#[derive(Clone, Copy, Debug)]
pub struct OverheadSettings {
    /// The governor's.
    pub governor: governor::Settings,
    /// When the kernel measures the programs' run time.
    pub statistics: When,
}

impl From<&config::OverheadKeys> for OverheadSettings {
    fn from(config: &config::OverheadKeys) -> Self {
        let first = u64::try_from(config.back_off.0.as_nanos()).unwrap_or(LONGEST_BACK_OFF_NS);
        Self {
            governor: governor::Settings {
                patience: config.patience,
                first_back_off_ns: first,
                longest_back_off_ns: LONGEST_BACK_OFF_NS.max(first),
                ..governor::Settings::with_limit(config.max_ratio)
            },
            statistics: config.statistics,
        }
    }
}
