//! What goes together more often than by chance, among jobs that ran any of it: to others everything would go together. What
//! one user's array runs counts once: a thousand tasks are one decision.

use std::collections::{BTreeMap, BTreeSet};

use super::{RunOf, names::NameId};

/// Of fewer groups nothing is said.
const LEAST: u64 = 3;
/// What goes with less than this share of a thing's groups is no companion.
const LEAST_SHARE: f64 = 0.1;
/// From this factor on it is more than chance.
const LEAST_LIFT: f64 = 1.2;
/// Companions that are told.
const MOST: usize = 3;

/// Which groups of jobs ran what.
pub(super) struct Together {
    /// Different sets, each with the number of groups that it is of.
    sets: Vec<(Vec<NameId>, u64)>,
    /// The sets that each name is in.
    places: BTreeMap<NameId, Vec<usize>>,
    /// How many groups each name is in.
    counts: BTreeMap<NameId, u64>,
    all: u64,
}

impl Together {
    /// Of these runs.
    pub fn of(runs: &[RunOf]) -> Self {
        let mut groups = BTreeMap::<(u64, u64), BTreeSet<NameId>>::new();
        for run in runs.iter().filter(|run| !run.named.is_empty()) {
            groups.entry(run.group).or_default().extend(run.named.iter().map(|(name, _)| *name));
        }
        let all = groups.len() as u64;
        let mut sets = BTreeMap::<Vec<NameId>, u64>::new();
        for set in groups.into_values() {
            *sets.entry(set.into_iter().collect()).or_default() += 1;
        }
        let (mut counts, mut places) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for (at, (set, groups)) in sets.iter().enumerate() {
            for name in set {
                *counts.entry(*name).or_default() += groups;
                places.entry(*name).or_default().push(at);
            }
        }
        Self { sets: sets.into_iter().collect(), places, counts, all }
    }

    /// What goes with `name`, how much more often than by chance, and in which share of its groups: those with most
    /// first.
    pub fn with(&self, name: NameId) -> Vec<(NameId, f64, f64)> {
        let own = self.counts.get(&name).copied().unwrap_or(0);
        if own < LEAST {
            return Vec::new();
        }
        let mut both = BTreeMap::<NameId, u64>::new();
        let sets = self.places.get(&name).into_iter().flatten().map(|at| &self.sets[*at]);
        for (set, groups) in sets {
            for other in set.iter().filter(|other| **other != name) {
                *both.entry(*other).or_default() += groups;
            }
        }
        let told = |(other, both): (NameId, u64)| {
            let of_other = self.counts[&other] as f64;
            let lift = both as f64 * self.all as f64 / (own as f64 * of_other);
            let share = both as f64 / own as f64;
            let is_told = both >= LEAST && share >= LEAST_SHARE && lift >= LEAST_LIFT;
            is_told.then_some((other, lift, share))
        };
        let mut told: Vec<_> = both.into_iter().filter_map(told).collect();
        // What goes with most of it says more than what is rare and by chance always with it.
        told.sort_by(|a, b| (b.1 * b.2).total_cmp(&(a.1 * a.2)).then(a.0.cmp(&b.0)));
        told.truncate(MOST);
        told
    }
}
