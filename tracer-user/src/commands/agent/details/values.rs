//! A job's values as they come, interval by interval, and its end.

use super::{Details, apart::Apart};
use crate::{
    cgroup::{place::Places, seldom::Moves},
    model::{
        gaps::NO_SLOT,
        group::{Group, keep_peaks, merge_all},
        held::add_held,
        job::Losses,
        tables::{FAULT, Fact, Fault, MEMORY, Memory, fact},
    },
    resolve::{Answer, facts::JobFacts},
};

impl Details {
    /// Adds the job's cgroup files at `now_ns` (CLOCK_MONOTONIC): `job_memory` and `job_cpu`, from its directories
    /// `places`. None without a directory. `probed` are the groups of the probes, which lack what this kernel cannot
    /// tell them, and by which its tasks did as `moves` says.
    pub fn read(
        &mut self,
        places: impl FnOnce() -> Places,
        probed: &mut Vec<Group>,
        moves: Moves,
        now_ns: u64,
    ) {
        if self.ended.is_none() {
            self.files.read(places, probed, moves, now_ns);
        }
    }

    /// Adds an interval that ended at `now_ns` (CLOCK_MONOTONIC): the job did `groups`, and `losses` were counted on the
    /// node. Sets in `groups` what the job held, and takes out what came before it.
    pub fn add(&mut self, groups: &mut Vec<Group>, losses: &Losses, now_ns: u64) {
        self.files.leave_out(groups);
        let own_ns = self.own_span_ns(now_ns);
        self.owner_search.note(groups);
        let peak_bytes = self.take_peak();
        let so_far = &self.record.totals.stats.groups;
        let apart = self.apart.take();
        if !self.is_step {
            let (known, counted_ns) = apart.as_ref().map_or((&so_far[..], 0), Apart::counted);
            add_held(groups, known, own_ns.saturating_sub(counted_ns));
        }
        if let Some(apart) = apart {
            apart.put_before(groups);
        }
        add_peak(groups, so_far, peak_bytes);
        keep_peaks(groups, so_far, &MEMORY);
        self.take_in(groups, losses, own_ns, now_ns);
    }

    /// The same while it is not known whether it goes on after its end: what came late is all that is its own.
    pub fn add_late(&mut self, groups: &mut Vec<Group>, losses: &Losses, now_ns: u64) {
        add_peak(groups, &self.record.totals.stats.groups, self.own_peak_bytes.take());
        self.take_in(groups, losses, 0, now_ns);
    }

    /// The same of a job that was let go, whose directory was removed since where memory is counted; gives what is to be
    /// told of it.
    pub fn add_last_peak(&mut self, now_ns: u64) -> Vec<Group> {
        let mut groups = Vec::new();
        let peak_bytes = self.take_peak();
        add_peak(&mut groups, &self.record.totals.stats.groups, peak_bytes);
        if !groups.is_empty() {
            self.take_in(&groups, &Losses::default(), 0, now_ns);
        }
        groups
    }

    /// What is to be told in the next interval of directories that are gone, where it is its own for sure.
    pub fn pending_peak(&self, is_apart: bool) -> Option<u64> {
        self.own_peak_bytes.max(self.removed_peak_bytes.filter(|_| !is_apart))
    }

    /// What its directories that were removed since the last interval had charged at once, where all are its own.
    fn take_peak(&mut self) -> Option<u64> {
        self.own_peak_bytes.take().max(self.removed_peak_bytes.take())
    }

    /// Adds `groups` of `own_ns` up to `now_ns` (CLOCK_MONOTONIC).
    fn take_in(&mut self, groups: &[Group], losses: &Losses, own_ns: u64, now_ns: u64) {
        let from_ns = self.record.timeline.end_ns();
        let tells = |group: &Group| !group.is_idle() || group.has_peaks_alone();
        self.late |= self.end_told && groups.iter().any(tells);
        if groups.iter().any(has_kills) {
            self.killed_ns = Some(self.wall_at(now_ns));
        }
        for what in &losses.shed {
            self.record.totals.gaps.add(what, from_ns, from_ns + own_ns);
        }
        self.record.add(own_ns, groups, &losses.own);
    }

    /// The same of a job that no slot was free for; gives what is to be told of it. What its files, at `places`, show now
    /// is known, but nothing that adds up over time: those amounts count from when on it has a slot, all alike.
    pub fn add_unserved(&mut self, places: impl FnOnce() -> Places, now_ns: u64) -> Vec<Group> {
        let mut groups = Vec::new();
        self.read(places, &mut groups, Moves::default(), now_ns);
        groups.retain_mut(Group::keep_states);
        let peak_bytes = self.take_peak();
        add_peak(&mut groups, &self.record.totals.stats.groups, peak_bytes);
        keep_peaks(&mut groups, &self.record.totals.stats.groups, &MEMORY);
        let losses = Losses { shed: vec![NO_SLOT], ..Losses::default() };
        let own_ns = self.own_span_ns(now_ns);
        self.take_in(&groups, &losses, own_ns, now_ns);
        groups
    }

    /// The time since it was counted last, up to `now_ns` or its end.
    fn own_span_ns(&mut self, now_ns: u64) -> u64 {
        if let Some((ended_ns, wall_ns)) = self.returned
            && self.record.timeline.end_ns() >= ended_ns
        {
            self.pass_to(wall_ns);
        }
        if self.counted_to_end {
            return 0;
        }
        self.counted_to_end = self.ended.is_some();
        let now_ns = self.wall_at(now_ns);
        let until_ns = self.ended.map_or(now_ns, |ended_ns| ended_ns.min(now_ns));
        until_ns.saturating_sub(self.record.timeline.end_ns())
    }

    /// Nothing of it was there up to `wall_ns`.
    pub(super) fn pass_to(&mut self, wall_ns: u64) {
        let timeline = &mut self.record.timeline;
        timeline.add(wall_ns.saturating_sub(timeline.end_ns()), &[]);
    }

    /// Its topmost directory was removed where memory is counted, to which `peak_bytes` had been charged at once.
    pub fn note_peak(&mut self, peak_bytes: u64) {
        self.removed_peak_bytes = self.removed_peak_bytes.max(Some(peak_bytes));
    }

    /// The job's last cgroup was removed at `monotonic_ns`.
    pub fn set_ended(&mut self, monotonic_ns: u64) {
        if self.ended.is_none() {
            let ended_ns = self.wall_at(monotonic_ns);
            self.ended = Some(ended_ns);
            self.end_parts(ended_ns);
            self.files.close();
            self.forget_telling();
        }
    }

    /// It has a cgroup again at `monotonic_ns`; whether it had none. `is_apart`: it was not known whose those before were.
    pub fn set_returned(&mut self, monotonic_ns: u64, is_apart: bool) -> bool {
        let Some(ended_ns) = self.ended.take() else { return false };
        let returned_ns = self.wall_at(monotonic_ns);
        self.returned = Some((ended_ns, returned_ns));
        // What is removed from here on may be another job's, as it was since the return before this one.
        if !is_apart {
            self.own_peak_bytes = self.take_peak();
        }
        self.apart.iter_mut().for_each(|apart| apart.pass_to(returned_ns));
        self.files.look_again();
        self.forget_telling();
        true
    }

    /// When it had cgroups again after its end, nanoseconds since the Unix epoch.
    pub fn returned_ns(&self) -> Option<u64> {
        self.returned.map(|(_, wall_ns)| wall_ns)
    }

    /// Whether a cgroup that `answer` is about, in a directory of `maker`'s, is of another job with the same id.
    pub fn is_another(&self, answer: &Answer, maker: u32) -> bool {
        let differs = |fact: &'static Fact, told: &Option<String>| {
            told.as_ref().is_some_and(|told| self.facts.has(fact) && self.facts.text(fact) != told)
        };
        self.uid.zip(answer.uid).is_some_and(|(one, other)| one != other)
            || self.made_by.is_some_and(|known| known != maker)
            || differs(const { fact("sluid") }, &answer.sluid)
            || differs(const { fact("container") }, &answer.container)
    }

    /// Where its tasks tell by `facts` that they are another job's with the same id: when this one ended (CLOCK_MONOTONIC).
    /// It has ended again then. If nobody saw its end, it was when it was counted last.
    pub fn end_of_another(&mut self, facts: &JobFacts) -> Option<u64> {
        let ended_ns =
            self.returned.map_or(self.record.timeline.end_ns(), |(ended_ns, _)| ended_ns);
        let known = |fact| self.facts.number(fact).unwrap_or(0);
        // The first that its tasks tell is no change, unless it is of what began after all that was seen, or a step that had
        // ended is there again: within one run none is.
        let is_later = self.returned.zip(facts.start_s).is_some_and(|((ended_ns, _), start_s)| {
            start_s.saturating_mul(1_000_000_000) >= ended_ns
        });
        let is_restarted = (self.has_learnt() || is_later || self.has_step_again())
            && facts.restarts.unwrap_or(0) > known(const { fact("restarts") });
        let is_other = |one: Option<u64>, other: Option<u64>| {
            one.zip(other).is_some_and(|(one, other)| one != other)
        };
        if !is_restarted && !is_other(self.started_s, self.start_s(facts)) {
            return None;
        }
        self.returned = None;
        self.ended = Some(ended_ns);
        Some(ended_ns.saturating_sub(self.boot_ns))
    }

    /// What was told of it stands no longer.
    fn forget_telling(&mut self) {
        self.counted_to_end = false;
        self.saving.restart();
        self.end_told = false;
        (self.late, self.settled) = (false, false);
        self.told_ns = None;
    }
}

/// Adds to `groups` what was charged at once to a directory that was removed since, where `so_far` does not tell as much.
fn add_peak(groups: &mut Vec<Group>, so_far: &[Group], peak_bytes: Option<u64>) {
    let told = |groups: &[Group]| {
        groups.iter().find(|group| group.is(&MEMORY))?.number(Memory::peak_bytes)
    };
    if peak_bytes > told(so_far).max(told(groups)) {
        let mut memory = Group::unknown(&MEMORY, Vec::new());
        memory.set(Memory::peak_bytes, peak_bytes);
        merge_all(groups, &[memory]);
    }
}

fn has_kills(group: &Group) -> bool {
    group.is(&FAULT) && group.number(Fault::oom_kills) > Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::tables::{CPU, Cpu},
        resolve::Resolver,
    };

    const S: u64 = 1_000_000_000;

    /// Of a job of four cores that began 100 s after the node did, and ended 10 s later.
    fn ended() -> Details {
        let answer = Resolver::new(&[]).unwrap().path("/slurm/uid_0/job_1");
        let mut details = Details::new(&answer, 100 * S, 0);
        details.add(&mut vec![cpu()], &Losses::default(), 104 * S);
        details.set_ended(110 * S);
        details
    }

    fn cpu() -> Group {
        let mut cpu = Group::unknown(&CPU, Vec::new());
        cpu.set(Cpu::cores_held, 4_000);
        cpu.set(Cpu::throttled_ns, 5);
        cpu
    }

    /// Its time and core time held, in seconds.
    fn counted(details: &Details) -> (u64, u64) {
        let totals = &details.record.totals;
        let held_ns = totals.stats.group(&CPU).and_then(|cpu| cpu.number(Cpu::held_ns)).unwrap();
        (totals.elapsed_ns / S, held_ns / S)
    }

    #[test]
    fn while_it_is_not_known_who_came_back_no_time_passes() {
        let mut details = ended();
        details.add(&mut Vec::new(), &Losses::default(), 112 * S);
        assert_eq!(counted(&details), (10, 40));
        assert!(details.set_returned(120 * S, false));
        details.add_late(&mut Vec::new(), &Losses::default(), 130 * S);
        assert_eq!(counted(&details), (10, 40));
        // It is the same job.
        details.add(&mut vec![cpu()], &Losses::default(), 135 * S);
        assert_eq!(counted(&details), (25, 100), "the pause is passed over");
    }

    #[test]
    fn who_comes_back_within_an_interval_had_no_pause() {
        let mut details = ended();
        assert!(details.set_returned(111 * S, false));
        details.add_late(&mut Vec::new(), &Losses::default(), 112 * S);
        assert_eq!(counted(&details), (4, 16));
        details.add(&mut vec![cpu()], &Losses::default(), 114 * S);
        assert_eq!(counted(&details), (14, 56));
    }

    #[test]
    fn a_peak_stays_when_the_directory_is_gone_that_told_it() {
        let mut details = ended();
        let mut peaks = Vec::new();
        for (second, peak) in [(105, 157), (106, 3), (107, 158)] {
            let mut memory = Group::unknown(&MEMORY, Vec::new());
            memory.set(Memory::peak_bytes, peak);
            let mut groups = vec![memory];
            details.add(&mut groups, &Losses::default(), second * S);
            peaks.push(groups[0].number(Memory::peak_bytes));
            assert_eq!(groups[0].number(Memory::used_peak_bytes), None, "unknown is not zero");
        }
        assert_eq!(peaks, [Some(157), Some(157), Some(158)]);
    }

    #[test]
    fn what_was_charged_to_a_directory_that_is_gone_is_told_once_and_to_whom_it_was() {
        let peak = |groups: &[Group]| {
            groups.iter().find(|group| group.is(&MEMORY))?.number(Memory::peak_bytes)
        };
        let answer = Resolver::new(&[]).unwrap().path("/slurm/uid_0/job_1");
        let mut details = Details::new(&answer, 100 * S, 0);
        details.note_peak(157);
        details.set_ended(101 * S);
        let mut groups = Vec::new();
        details.add(&mut groups, &Losses::default(), 102 * S);
        assert_eq!((peak(&groups), groups.len()), (Some(157), 1), "nobody read any file of it");
        details.end_told = true;
        let mut late = Vec::new();
        details.add(&mut late, &Losses::default(), 103 * S);
        assert_eq!((late.len(), details.late), (0, false));
        // Where memory is counted its directory may go later than all others.
        details.note_peak(159);
        details.add(&mut late, &Losses::default(), 104 * S);
        assert_eq!((peak(&late), details.late), (Some(159), true), "it is told anew");
        // Who comes back may be another job.
        details.note_peak(160);
        assert!(details.set_returned(104 * S, false));
        let mut before = Vec::new();
        details.add_late(&mut before, &Losses::default(), 104 * S);
        assert_eq!(peak(&before), Some(160), "it is told though others' cgroups are there");
        details.note_peak(3);
        let mut other = Details::new(&answer, 104 * S, 0);
        details.hand_apart_to(&mut other);
        let mut groups = Vec::new();
        other.add(&mut groups, &Losses::default(), 105 * S);
        assert_eq!(peak(&groups), Some(3));
        assert_eq!(peak(&details.record.totals.stats.groups), Some(160));
        // One that was let go is told of nothing else.
        assert!(details.add_last_peak(106 * S).is_empty());
        details.note_peak(161);
        assert_eq!(details.pending_peak(false), Some(161));
        assert_eq!(peak(&details.add_last_peak(106 * S)), Some(161));
        assert!(details.add_last_peak(107 * S).is_empty());
    }

    /// Slots are short when it comes back.
    #[test]
    fn what_nobody_counted_before_it_was_charged_again_is_a_gap() {
        let mut details = ended();
        assert!(details.set_returned(120 * S, false));
        details.note_unserved(119 * S, 120 * S);
        let gaps = serde_json::to_string(details.gaps()).unwrap();
        assert!(gaps.contains("slot") && gaps.contains("1000000000"), "{gaps}");
    }

    /// A job that comes back twice within one interval.
    #[test]
    fn all_that_was_charged_before_a_return_is_told_in_the_next_interval() {
        let mut details = ended();
        for (second, peak_bytes) in [(104, 160), (106, 150)] {
            details.note_peak(peak_bytes);
            assert!(details.set_returned(second * S, false));
            details.set_ended((second + 1) * S);
        }
        details.note_peak(3);
        let mut groups = Vec::new();
        details.add(&mut groups, &Losses::default(), 108 * S);
        let memory = groups.iter().find(|group| group.is(&MEMORY)).unwrap();
        assert_eq!(memory.number(Memory::peak_bytes), Some(160));
    }

    #[test]
    fn what_adds_up_is_unknown_without_a_slot_and_states_are_known() {
        let mut group = cpu();
        group.set(Cpu::held_ns, 7);
        assert!(group.keep_states());
        assert_eq!(group.number(Cpu::cores_held), Some(4_000));
        assert_eq!((group.number(Cpu::held_ns), group.number(Cpu::throttled_ns)), (None, None));
        let mut counters = Group::unknown(&CPU, Vec::new());
        counters.set(Cpu::throttled_ns, 5);
        assert!(!counters.keep_states(), "nothing is left");
    }
}
