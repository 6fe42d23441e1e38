//! When the tasks of a job that has none but root's so far are looked at for its owner: a look takes all directories of the
//! job. Pure: time arrives as an argument.

use crate::{
    cgroup::pace::Pace,
    model::{
        group::Group,
        tables::{SCHED, Sched},
    },
};

/// The looks at one job.
#[derive(Debug, Default)]
pub struct Search {
    pace: Option<Pace>,
    /// Whether it may have other tasks since, or other programs.
    has_changed: bool,
}

impl Search {
    /// Notes what the job did in an interval. A scheduler that becomes the user has made a task for it, or executes the
    /// user's program after it; where nobody counts these they may be there.
    pub fn note(&mut self, groups: &[Group]) {
        let counts = groups.iter().find(|group| group.is(&SCHED));
        let count = |field| counts.and_then(|group| group.number(field));
        self.has_changed |=
            [Sched::forks, Sched::execs].into_iter().any(|field| count(field) != Some(0));
    }

    /// Whether to look at `now_ns` (CLOCK_MONOTONIC): then this is a look. A task may become another user's without any
    /// of that, or be moved here, so every half minute it is due anyhow.
    pub fn begins(&mut self, now_ns: u64) -> bool {
        let pace = self.pace.get_or_insert_with(|| Pace::from(now_ns));
        let is_due = self.has_changed || pace.is_due_at_rest(now_ns);
        if is_due {
            pace.note_read(now_ns);
            self.has_changed = false;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn did(forks: Option<u64>, execs: Option<u64>) -> Vec<Group> {
        let mut group = Group::unknown(&SCHED, Vec::new());
        group.set(Sched::forks, forks);
        group.set(Sched::execs, execs);
        vec![group]
    }

    /// Of a job that did nothing for an hour.
    fn an_hour_on() -> Search {
        let mut search = Search::default();
        let looks = (0..3_600).filter(|second| search.begins(second * S)).count();
        assert!(looks < 3_600 / 20, "{looks}");
        search
    }

    /// In how many of the 100 seconds after that one begins, where the job does `groups` in each.
    fn looks(groups: &[Group]) -> usize {
        let mut search = an_hour_on();
        let seconds = 3_600..3_700;
        let look = |second: &u64| {
            search.note(groups);
            search.begins(second * S)
        };
        seconds.filter(look).count()
    }

    #[test]
    fn a_job_that_makes_no_tasks_is_looked_at_every_half_minute() {
        assert!((3..=4).contains(&looks(&did(Some(0), Some(0)))));
    }

    #[test]
    fn one_that_makes_some_or_of_which_nobody_counts_them_each_time() {
        for groups in [did(Some(1), Some(0)), did(Some(0), Some(1)), did(None, Some(0)), Vec::new()]
        {
            assert_eq!(looks(&groups), 100, "{groups:?}");
        }
    }

    #[test]
    fn what_it_did_before_a_look_is_no_reason_for_the_next() {
        let mut search = an_hour_on();
        search.note(&did(Some(1), Some(1)));
        search.note(&did(Some(0), Some(0)));
        assert!(search.begins(3_601 * S) && !search.begins(3_602 * S));
    }
}
