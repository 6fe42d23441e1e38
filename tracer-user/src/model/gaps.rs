//! Times in which something of a job could not be counted, by what it was.

use serde::{Deserialize, Serialize};

/// What kept something from being counted, for how long, and within which time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// A family of probes that was shed; or `slot` or `agent`, without which nothing is counted.
    pub what: String,
    /// For how long, all times and nodes added up.
    pub for_ns: u64,
    /// When that began first, nanoseconds since the Unix epoch.
    pub from: u64,
    /// When it ended last.
    pub until: u64,
}

/// No slot was free for the job.
pub const NO_SLOT: &str = "slot";
/// No agent was running.
pub const NO_AGENT: &str = "agent";

/// All of a job's, one of each kind, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Gaps(Vec<Gap>);

impl Gaps {
    /// Adds the time from `from_ns` to `until_ns`.
    pub fn add(&mut self, what: &str, from_ns: u64, until_ns: u64) {
        if from_ns < until_ns {
            let (from, until, for_ns) = (from_ns, until_ns, until_ns - from_ns);
            self.join(&Gap { what: what.to_owned(), for_ns, from, until });
        }
    }

    /// Adds another part's or node's.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|gap| self.join(gap));
    }

    fn join(&mut self, gap: &Gap) {
        match self.0.binary_search_by(|known| known.what.cmp(&gap.what)) {
            Ok(at) => {
                let known = &mut self.0[at];
                known.for_ns = known.for_ns.saturating_add(gap.for_ns);
                known.from = known.from.min(gap.from);
                known.until = known.until.max(gap.until);
            }
            Err(at) => self.0.insert(at, gap.clone()),
        }
    }

    /// In the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Gap> {
        self.0.iter()
    }

    /// Whether everything was counted at all times.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Gap> for Gaps {
    fn from_iter<I: IntoIterator<Item = Gap>>(gaps: I) -> Self {
        let mut all = Self::default();
        gaps.into_iter().for_each(|gap| all.join(&gap));
        all
    }
}
