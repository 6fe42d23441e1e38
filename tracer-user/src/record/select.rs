//! Which heads belong together: those of one run of a job on all its nodes. Ids come again: a requeued job has its own,
//! and a scheduler begins anew one day.
//!
//! Pure.

use std::{ops::Deref, path::PathBuf};

use super::head::Head;

/// Parts of one run begin or lie within this of each other: nodes start their steps one after the other.
const APART_NS: u64 = 60_000_000_000;

/// One run of a job: the heads of its parts, each with its folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Its parts.
    pub parts: Vec<(PathBuf, Head)>,
}

impl Run {
    /// From when on it was counted, nanoseconds since the Unix epoch.
    pub fn begin_ns(&self) -> u64 {
        self.numbers(|head| head.begin).min().unwrap_or(0)
    }

    /// When it was last seen.
    pub fn seen_ns(&self) -> u64 {
        self.numbers(|head| head.seen).max().unwrap_or(0)
    }

    /// Whether it started before it was counted, so that there may be an earlier part of it.
    pub fn is_counted_late(&self) -> bool {
        let start = self.numbers(|head| head.start).min();
        start.is_some_and(|start| start.saturating_add(APART_NS) < self.begin_ns())
    }

    /// The files of its records.
    pub fn files(&self) -> Vec<PathBuf> {
        let file = |(folder, head): &(PathBuf, Head)| Some(folder.join(head.file.as_ref()?));
        self.parts.iter().filter_map(file).collect()
    }

    /// The first part's head; what all parts have in common is in any.
    pub fn head(&self) -> &Head {
        &self.parts[0].1
    }

    fn numbers(&self, of: fn(&Head) -> Option<u64>) -> impl Iterator<Item = u64> + '_ {
        self.parts.iter().filter_map(move |(_, head)| of(head))
    }
}

/// Whose head it is: cluster, manager, job and user. Heads of one run have them in common.
pub fn whose<Text: Deref<Target = str>>(head: &Head<Text>) -> [Option<&str>; 4] {
    [&head.cluster, &head.manager, &head.job, &head.user].map(Option::as_deref)
}

/// What decides which parts of one job are one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stretch {
    begin_ns: u64,
    /// 0: unknown.
    start_ns: u64,
    /// What begins up to then is of the same run.
    reach_ns: u64,
}

impl Stretch {
    /// That of one part.
    pub fn of<Text>(head: &Head<Text>) -> Self {
        let begin_ns = head.begin.unwrap_or(0);
        let reach_ns = head.seen.unwrap_or(begin_ns).max(begin_ns.saturating_add(APART_NS));
        Self { begin_ns, start_ns: head.start.unwrap_or(0), reach_ns }
    }

    /// Whether `next`, which is of the same job and begins no earlier, is of this run, which then reaches as far.
    pub fn takes_in(&mut self, next: Self) -> bool {
        // Counted apart on one node, it began at the same moment.
        let is_same_start = next.start_ns > 0 && next.start_ns == self.start_ns;
        let is_same = next.begin_ns <= self.reach_ns || is_same_start;
        if is_same {
            self.reach_ns = self.reach_ns.max(next.reach_ns);
        }
        is_same
    }
}

/// The runs that `heads` are of, in the order of their begin.
pub fn runs(mut heads: Vec<(PathBuf, Head)>) -> Vec<Run> {
    heads.sort_by(|(_, a), (_, b)| (whose(a), Stretch::of(a)).cmp(&(whose(b), Stretch::of(b))));
    let mut runs: Vec<(Stretch, Run)> = Vec::new();
    for part in heads {
        let stretch = Stretch::of(&part.1);
        if let Some((so_far, run)) = runs.last_mut()
            && whose(run.head()) == whose(&part.1)
            && so_far.takes_in(stretch)
        {
            run.parts.push(part);
        } else {
            runs.push((stretch, Run { parts: vec![part] }));
        }
    }
    let mut runs: Vec<_> = runs.into_iter().map(|(_, run)| run).collect();
    runs.sort_by_key(Run::begin_ns);
    runs
}

/// Whether `head` is of the job that a command line names: by its id, its id and step, or its name.
pub fn is_named<Text: Deref<Target = str>>(head: &Head<Text>, name: &str) -> bool {
    let is_step = || {
        let step = name.strip_prefix(head.job.as_deref()?)?.strip_prefix('.')?;
        (head.step.as_deref()? == step).then_some(())
    };
    head.job.as_deref() == Some(name) || head.name.as_deref() == Some(name) || is_step().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn head(job: &str, host: &str, start: u64, begin: u64, seen: u64) -> (PathBuf, Head) {
        let [job, host] = [job, host].map(|text| Some(text.to_owned()));
        let [start, begin, seen] = [start, begin, seen].map(|second| Some(second * S));
        (PathBuf::new(), Head { job, host, start, begin, seen, ..Head::default() })
    }

    #[test]
    fn a_job_that_runs_again_is_another_run() {
        let heads = vec![
            head("7", "n1", 1_000, 1_000, 2_000),
            // Another node, a little later.
            head("7", "n2", 1_003, 1_003, 1_990),
            // The agent was away for a while.
            head("7", "n1", 1_000, 2_500, 3_000),
            // Requeued.
            head("7", "n1", 9_000, 9_000, 9_001),
            head("8", "n1", 1_000, 1_000, 2_000),
        ];
        let mut reversed = heads.clone();
        reversed.reverse();
        for heads in [heads, reversed] {
            let runs = runs(heads);
            let parts: Vec<_> =
                runs.iter().map(|run| (run.head().job.clone().unwrap(), run.parts.len())).collect();
            assert_eq!(parts, [("7", 3), ("8", 1), ("7", 1)].map(|(job, n)| (job.to_owned(), n)));
            assert_eq!((runs[0].begin_ns(), runs[0].seen_ns()), (1_000 * S, 3_000 * S));
        }
    }

    #[test]
    fn short_jobs_in_a_row_are_not_one() {
        let again = vec![head("7", "n1", 100, 100, 102), head("7", "n1", 500, 500, 501)];
        assert_eq!(runs(again).len(), 2);
    }

    #[test]
    fn jobs_are_named_by_id_step_or_name() {
        let (_, mut head) = head("7", "n1", 1, 1, 1);
        head.name = Some("md".into());
        head.step = Some("0".into());
        assert!(["7", "7.0", "md"].iter().all(|name| is_named(&head, name)));
        assert!(
            !is_named(&head, "7.1")
                && !is_named(&head, "")
                && !is_named(&Head::<String>::default(), "")
        );
    }
}
