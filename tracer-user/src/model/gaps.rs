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

/// What counts scheduling was shed: time on CPU, waits and sleep.
pub const SCHED: &str = "sched";

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

    /// Those that lie after `from_ns`, or the part of them that does.
    pub fn since(&self, from_ns: u64) -> Self {
        let after = self.0.iter().filter(|gap| gap.until > from_ns);
        let part = |gap: &Gap| {
            let from = gap.from.max(from_ns);
            // Of several in one it is not known when each was.
            Gap { from, for_ns: gap.for_ns.min(gap.until - from), ..gap.clone() }
        };
        Self(after.map(part).collect())
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

    /// For how long `what` was not counted, all nodes added up.
    pub fn of(&self, what: &str) -> u64 {
        self.0.iter().find(|gap| gap.what == what).map_or(0, |gap| gap.for_ns)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_times_past_the_part_that_is_later_remains() {
        let mut gaps = Gaps::default();
        gaps.add("fault", 10, 20);
        gaps.add("fault", 90, 100);
        gaps.add("net", 10, 30);
        gaps.add("slot", 60, 70);
        let told = |from_ns| {
            let since = gaps.since(from_ns);
            let all = since.iter().map(|gap| (gap.what.clone(), gap.for_ns, gap.from, gap.until));
            all.collect::<Vec<_>>()
        };
        assert_eq!(gaps.since(0), gaps);
        assert_eq!(told(50), [("fault".into(), 20, 50, 100), ("slot".into(), 10, 60, 70)]);
        assert_eq!(told(95), [("fault".into(), 5, 95, 100)]);
        assert!(told(100).is_empty());
    }
}
