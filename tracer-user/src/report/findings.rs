//! What is to be acted on: the findings of many jobs, a line each, from the same rules as a job's report.

use std::{cmp::Ordering, collections::BTreeMap};

use serde::Serialize;

use super::{Advice, Who, Whole, advice, facts};

/// A finding of a job.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// Which job it is.
    #[serde(flatten)]
    pub who: Who,
    /// What was found.
    #[serde(flatten)]
    pub advice: Advice,
    /// Other jobs of the user with the same finding, of which this line is told for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_jobs: Option<u64>,
}

/// What there is to act on in a job; of one shorter than `least_ns` only what went wrong.
pub fn found(whole: &Whole, least_ns: u64) -> Vec<Found> {
    let facts = facts(whole, true);
    let who = Who::of(&whole.record, &facts);
    let is_long = who.elapsed_ns >= least_ns;
    // What is well as it is has no advice.
    let worth = |advice: &Advice| !advice.advice.is_empty() && (advice.is_fact || is_long);
    let advice = advice::all(&facts).into_iter().filter(worth);
    advice.map(|advice| Found { who: who.clone(), advice, other_jobs: None }).collect()
}

/// Puts what went wrong first, then what would save most.
pub fn sort(found: &mut [Found]) {
    found.sort_by(|a, b| match b.advice.is_fact.cmp(&a.advice.is_fact) {
        Ordering::Equal => b.advice.weight().total_cmp(&a.advice.weight()),
        facts_first => facts_first,
    });
}

/// When each user was told of each finding last, nanoseconds since the Unix epoch.
pub type Told = BTreeMap<String, BTreeMap<String, u64>>;

/// Of `found` the first of each user and rule, with the number of others; none of those that were told within
/// `again_ns` before `now_ns`. Notes in `told` which are, and forgets what is older.
pub fn once(found: Vec<Found>, told: &mut Told, now_ns: u64, again_ns: u64) -> Vec<Found> {
    told.values_mut().for_each(|of_user| {
        // What is in the future was noted by a clock that was wrong.
        of_user.retain(|_, at_ns| *at_ns <= now_ns && now_ns - *at_ns < again_ns);
    });
    told.retain(|_, of_user| !of_user.is_empty());
    let mut first: Vec<Found> = Vec::new();
    let mut places = BTreeMap::new();
    for one in found {
        let key = (one.who.user.clone(), one.advice.rule);
        if told.get(&key.0).is_some_and(|of_user| of_user.contains_key(key.1)) {
            continue;
        }
        match places.get(&key) {
            None => {
                places.insert(key, first.len());
                first.push(Found { other_jobs: Some(0), ..one });
            }
            Some(at) => {
                let known: &mut Found = &mut first[*at];
                known.other_jobs = known.other_jobs.map(|others| others + 1);
            }
        }
    }
    for (user, rule) in places.into_keys() {
        told.entry(user).or_default().insert(rule.to_owned(), now_ns);
    }
    first
}
