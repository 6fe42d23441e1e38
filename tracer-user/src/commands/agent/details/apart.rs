//! What the files of a job show that had ended and has directories again, until it is known whether it is the same job:
//! kept, told of nobody so far. A life may be over by then, and its directories with all that they showed gone.

use super::Details;
use crate::{
    cgroup::{place::Places, seldom::Moves},
    model::{
        group::{Group, follow_all},
        held::add_held,
        tables::{CPU, MEMORY},
    },
};

/// What was read meanwhile.
#[derive(Debug)]
pub(super) struct Apart {
    /// All readings as one: the last states, the highest peaks, and what was held and used over time.
    groups: Vec<Group>,
    /// The last known states, those of before where a reading lacks them.
    known: Vec<Group>,
    /// Up to when what was held is in `groups`, by the job's clock, and of how much time.
    until_ns: u64,
    counted_ns: u64,
}

impl Apart {
    /// The last known states, and the time for which they are counted already.
    pub fn counted(&self) -> (&[Group], u64) {
        (&self.known, self.counted_ns)
    }

    /// It had no directories again, and has some from `wall_ns` on.
    pub fn pass_to(&mut self, wall_ns: u64) {
        self.until_ns = wall_ns;
    }

    /// Puts it before `groups`, which came after it in the same interval.
    pub fn put_before(self, groups: &mut Vec<Group>) {
        for earlier in self.groups {
            match groups.iter_mut().find(|group| group.same_series(&earlier)) {
                Some(group) => {
                    let later = std::mem::replace(group, earlier);
                    group.follow(&later);
                }
                None => groups.push(earlier),
            }
        }
    }
}

impl Details {
    /// As [`Self::read`], while it is not known whose the directories `places` are. Their counters are not taken: they are
    /// read again once that is known.
    pub fn read_apart(&mut self, places: impl FnOnce() -> Places, now_ns: u64) {
        if self.ended.is_some() {
            return;
        }
        let mut groups = Vec::new();
        self.files.read(places, &mut groups, Moves::default(), now_ns);
        groups.retain_mut(Group::keep_states);
        if groups.is_empty() {
            return;
        }
        let wall_ns = self.wall_at(now_ns);
        let apart = self.apart.get_or_insert_with(|| {
            let before = self.record.totals.stats.groups.iter();
            let states = before.filter(|group| group.is(&MEMORY) || group.is(&CPU));
            let from_ns = self.returned.map_or(wall_ns, |(_, from_ns)| from_ns);
            Apart {
                groups: Vec::new(),
                known: states.cloned().collect(),
                until_ns: from_ns,
                counted_ns: 0,
            }
        });
        follow_all(&mut apart.known, &groups);
        let span_ns = wall_ns.saturating_sub(apart.until_ns);
        if !self.is_step {
            add_held(&mut groups, &apart.known, span_ns);
        }
        (apart.until_ns, apart.counted_ns) = (wall_ns, apart.counted_ns + span_ns);
        follow_all(&mut apart.groups, &groups);
    }

    /// The directories are those of `to`, which has this job's id: what they showed is its own.
    pub fn hand_apart_to(&mut self, to: &mut Self) {
        if let Some(mut apart) = self.apart.take() {
            // What this job held is none of the other's.
            apart.known.clone_from(&apart.groups);
            (to.apart, to.files) = (Some(apart), self.files.hand_over());
        }
        to.removed_peak_bytes = self.removed_peak_bytes.take();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        cgroup::place::Place,
        model::{
            job::Losses,
            tables::{Cpu, Memory},
        },
        resolve::Resolver,
    };

    const S: u64 = 1_000_000_000;
    const PATH: &str = "/slurm/uid_0/job_1";

    fn details(begin_s: u64) -> Details {
        Details::new(&Resolver::new(&[]).unwrap().path(PATH), begin_s * S, 0)
    }

    /// The job's directory, which shows so many bytes charged, at most, and used.
    struct Directory(tempfile::TempDir);

    impl Directory {
        fn show(&self, [current, peak, anon]: [u64; 3]) {
            let stat = format!("anon {anon}\nfile 9\nshmem 0\n");
            let files = [
                ("memory.current", current.to_string()),
                ("memory.peak", peak.to_string()),
                ("memory.stat", stat),
            ];
            for (name, text) in files {
                fs::write(self.0.path().join(name), text).unwrap();
            }
        }

        fn places(&self) -> Places {
            let directory = self.0.path().to_owned();
            let controllers = ["memory".into()].into();
            let mount = directory.as_path().into();
            Places(vec![Place {
                number: 0,
                controllers,
                mount,
                directory: directory.into(),
                own: true,
            }])
        }
    }

    /// One of four cores and 100 bytes from 100 s to 110 s that has a directory again at 120 s.
    fn returned(directory: &Directory) -> Details {
        let mut details = details(100);
        let mut cpu = Group::unknown(&CPU, Vec::new());
        cpu.set(Cpu::cores_held, 4_000);
        directory.show([500, 9_000, 100]);
        let mut groups = vec![cpu];
        details.read(|| directory.places(), &mut groups, Moves::default(), 104 * S);
        details.add(&mut groups, &Losses::default(), 104 * S);
        details.set_ended(110 * S);
        details.add(&mut Vec::new(), &Losses::default(), 112 * S);
        assert!(details.set_returned(120 * S, false));
        directory.show([800, 5_000, 600]);
        details.read_apart(|| directory.places(), 125 * S);
        directory.show([2_000, 7_000, 1_000]);
        details.read_apart(|| directory.places(), 130 * S);
        details
    }

    fn memory(groups: &[Group]) -> &Group {
        groups.iter().find(|group| group.is(&MEMORY)).unwrap()
    }

    fn told(groups: &[Group]) -> [Option<u64>; 4] {
        let fields = [
            Memory::current_bytes,
            Memory::peak_bytes,
            Memory::used_peak_bytes,
            Memory::used_byte_s,
        ];
        fields.map(|field| memory(groups).number(field))
    }

    #[test]
    fn what_a_job_used_that_came_back_is_told_though_it_has_ended_again() {
        let directory = Directory(tempfile::tempdir().unwrap());
        let mut details = returned(&directory);
        details.add_late(&mut Vec::new(), &Losses::default(), 130 * S);
        details.set_ended(134 * S);
        let mut groups = Vec::new();
        details.add(&mut groups, &Losses::default(), 135 * S);
        // Five seconds of 600 bytes, and nine of 1000.
        assert_eq!(told(&groups), [Some(2_000), Some(9_000), Some(1_000), Some(12_000)]);
        let totals = &details.record.totals;
        assert_eq!(totals.elapsed_ns, 24 * S);
        assert_eq!(
            told(&totals.stats.groups),
            [Some(2_000), Some(9_000), Some(1_000), Some(13_000)],
            "ten seconds of 100 before"
        );
        let cpu = totals.stats.group(&CPU).unwrap();
        assert_eq!(cpu.number(Cpu::held_ns), Some(96 * S));
        let mut groups = Vec::new();
        details.add(&mut groups, &Losses::default(), 136 * S);
        assert!(groups.is_empty(), "once: {groups:?}");
    }

    #[test]
    fn a_directory_that_went_twice_before_it_was_known_whose_it_is_has_its_peak_with_the_other_job()
    {
        let directory = Directory(tempfile::tempdir().unwrap());
        let mut first = returned(&directory);
        first.note_peak(20_000);
        first.set_ended(131 * S);
        assert!(first.set_returned(132 * S, true), "nobody has told whose it is");
        let mut second = details(120);
        first.hand_apart_to(&mut second);
        assert_eq!(told(&first.record.totals.stats.groups)[1], Some(9_000));
        let mut groups = Vec::new();
        second.add(&mut groups, &Losses::default(), 133 * S);
        assert_eq!(told(&groups)[1], Some(20_000));
    }

    #[test]
    fn what_another_job_of_the_same_id_used_is_its_own() {
        let directory = Directory(tempfile::tempdir().unwrap());
        let mut before = returned(&directory);
        let mut other = details(120);
        before.hand_apart_to(&mut other);
        other.set_ended(134 * S);
        let mut groups = Vec::new();
        other.add(&mut groups, &Losses::default(), 135 * S);
        assert_eq!(told(&groups), [Some(2_000), Some(7_000), Some(1_000), Some(12_000)]);
        let of_before = [Some(500), Some(9_000), Some(100), Some(1_000)];
        assert_eq!(told(&before.record.totals.stats.groups), of_before);
    }

    #[test]
    fn while_it_runs_on_its_files_tell_the_rest() {
        let directory = Directory(tempfile::tempdir().unwrap());
        let mut details = returned(&directory);
        directory.show([300, 7_000, 200]);
        let mut groups = Vec::new();
        details.read(|| directory.places(), &mut groups, Moves::default(), 135 * S);
        details.add(&mut groups, &Losses::default(), 135 * S);
        // Five seconds of each.
        assert_eq!(told(&groups), [Some(300), Some(9_000), Some(1_000), Some(9_000)]);
    }
}
