//! What is known of one job besides the probes' counts: who runs it, what it holds, its files, and its
//! totals for the line at its end.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use procfs::process::Process;

mod apart;
mod files;
mod learnt;
mod parts;
mod saving;
mod software;
mod told;
mod totals;
mod values;

use super::{asking::Asking, owner::Search, state::Counted};
use crate::{
    base::identity::Capacity,
    gpu::Claims,
    model::{
        gaps::{Gaps, NO_SLOT},
        info::{Facts, JobInfo},
        job::Job,
        point::Origin,
        seen::Consent,
        tables::{MEMORY, fact},
        totals::RunTotals,
    },
    record::{Record, timeline::Timeline},
    resolve::{Answer, sluid::Sluid},
};

use apart::Apart;
use files::Files;
pub use files::moves;
use parts::LivePart;
pub use saving::Reach;
use saving::Saving;
use software::Ran;
pub use told::REPEAT_NS;

/// The facts of a job.
pub struct Details {
    /// Its name, owner and begin.
    pub info: JobInfo,
    /// Its owner's number, once known.
    pub uid: Option<u32>,
    /// Who could make its directories, where that was seen.
    pub made_by: Option<u32>,
    /// What its environment says of telling the software that it runs.
    pub consent: Consent,
    /// Whether it is a step of a job that has details too: what a step holds is its job's, and told once.
    pub is_step: bool,
    /// How often its programs were asked.
    pub asking: Asking,
    /// When its tasks are looked at for its owner.
    pub owner_search: Search,
    /// What its scheduler's environment and its paths tell.
    facts: Facts,
    /// The GPUs that its environment names.
    claims: Option<Claims>,
    files: Files,
    /// What its topmost directory, removed since the last interval, had charged at once.
    removed_peak_bytes: Option<u64>,
    /// The same of one that was removed before it had cgroups again: no other job's.
    own_peak_bytes: Option<u64>,
    /// What they showed while it was not known whose they are.
    apart: Option<Apart>,
    /// Its steps and tasks that have cgroups.
    live_parts: Vec<LivePart>,
    /// What CLOCK_MONOTONIC's zero was by the wall clock when the job was seen first. All its times are made of it:
    /// whoever sets the clock meanwhile moves none of them.
    boot_ns: u64,
    /// Its values so far, and what came when.
    record: Record,
    /// When a process of it was killed last for lack of memory, as far as the intervals tell: the end of one.
    killed_ns: Option<u64>,
    told_ns: Option<u64>,
    ended: Option<u64>,
    /// When it had ended, and had a cgroup again.
    returned: Option<(u64, u64)>,
    /// When its scheduler says that it began, seconds since the Unix epoch.
    started_s: Option<u64>,
    /// Whether its time is counted up to its end.
    counted_to_end: bool,
    end_told: bool,
    /// Whether something came after that.
    late: bool,
    /// Whether nothing comes any more.
    settled: bool,
    /// What of it is saved.
    saving: Saving,
    /// What is told of the software that it ran.
    ran: Ran,
}

impl Details {
    /// Of a job that began at `start_wall_ns`, when CLOCK_MONOTONIC's zero was `boot_ns` by the same clock.
    pub fn new(answer: &Answer, start_wall_ns: u64, boot_ns: u64) -> Self {
        let info = JobInfo { start_wall_ns, ..JobInfo::default() };
        let mut details = Self::of(info, boot_ns);
        details.note(answer);
        details
    }

    /// Of a job that came after `reported_ns` (CLOCK_MONOTONIC), of which an agent that was killed then told nobody.
    pub fn found(reported_ns: u64, boot_ns: u64) -> Self {
        let mut details = Self::of(JobInfo::default(), boot_ns);
        details.record.timeline = Timeline::new(details.wall_at(reported_ns));
        details
    }

    /// Of a job of which no more is known than `info`.
    fn of(info: JobInfo, boot_ns: u64) -> Self {
        let begin_ns = info.start_wall_ns;
        Self {
            record: Record::new(&Origin::default(), Job::default(), info.clone(), begin_ns),
            info,
            uid: None,
            made_by: None,
            consent: Consent::Unknown,
            is_step: false,
            asking: Asking::default(),
            owner_search: Search::default(),
            facts: Facts::default(),
            claims: None,
            files: Files::default(),
            removed_peak_bytes: None,
            own_peak_bytes: None,
            apart: None,
            live_parts: Vec::new(),
            boot_ns,
            killed_ns: None,
            told_ns: None,
            ended: None,
            returned: None,
            started_s: None,
            counted_to_end: false,
            end_told: false,
            late: false,
            settled: false,
            saving: Saving::default(),
            ran: Ran::default(),
        }
    }

    /// What the job's clock shows at `monotonic_ns`.
    fn wall_at(&self, monotonic_ns: u64) -> u64 {
        self.boot_ns.saturating_add(monotonic_ns)
    }

    /// It runs on this node, whose kernel cannot tell what `unknown` names.
    pub fn set_node(&mut self, capacity: Capacity, unknown: &[String]) {
        self.record.totals.unknown = unknown.to_vec();
        self.facts.set(const { fact("node_cores") }, capacity.cores);
        self.facts.set(const { fact("node_memory_bytes") }, capacity.memory_bytes);
    }

    /// It was there before `monotonic_ns`, from when on its values are counted.
    pub fn set_counted_from(&mut self, monotonic_ns: u64) {
        let wall_ns = self.wall_at(monotonic_ns);
        self.record.timeline = Timeline::new(wall_ns);
        self.facts.set(const { fact("counted_from") }, Some(wall_ns));
        self.files.began_before = true;
    }

    /// No slot was ready for it when it had cgroups again at `from_ns`; it is charged from `until_ns` on (CLOCK_MONOTONIC).
    pub fn note_unserved(&mut self, from_ns: u64, until_ns: u64) {
        let [from_ns, until_ns] = [from_ns, until_ns].map(|ns| self.wall_at(ns));
        self.record.totals.gaps.add(NO_SLOT, from_ns, until_ns);
    }

    /// It has a slot from `monotonic_ns` on, and had none: what was read of it so far are its files alone.
    pub fn set_served_from(&mut self, monotonic_ns: u64) {
        self.apart = None;
        if self.record.totals.elapsed_ns == 0 {
            return self.set_counted_from(monotonic_ns);
        }
        let wall_ns = self.wall_at(monotonic_ns);
        let counted_ns = self.record.timeline.end_ns();
        self.pass_to(wall_ns);
        let totals = &mut self.record.totals;
        totals.gaps.add(NO_SLOT, counted_ns, wall_ns);
        let fresh = RunTotals::new(totals.stats.job.clone(), totals.info.clone());
        let before = std::mem::replace(totals, fresh);
        (totals.gaps, totals.parts, totals.unknown) = (before.gaps, before.parts, before.unknown);
        totals.software = before.software;
        // What it had most of stands, whoever counted.
        let mut peaks = before.stats.groups;
        peaks.retain_mut(|group| group.is(&MEMORY) && group.keep_peaks_alone());
        totals.stats.groups = peaks;
        self.facts.set(const { fact("counted_from") }, Some(wall_ns));
        self.files = Files::of_before();
    }

    /// Adds what the path of one of its cgroups tells, where no other has told it.
    pub fn note(&mut self, answer: &Answer) {
        let texts = [
            (const { fact("sluid") }, &answer.sluid),
            (const { fact("container") }, &answer.container),
            (const { fact("qos") }, &answer.qos),
            (const { fact("runtime") }, &answer.runtime),
            (const { fact("array_task") }, &answer.array),
        ];
        for (fact, value) in texts {
            if let (Some(value), false) = (value, self.facts.has(fact)) {
                self.facts.set_text(fact, value);
                self.told_ns = None;
            }
        }
        let sluid = answer.sluid.as_deref().and_then(Sluid::parse);
        if let Some(Sluid { submitted_ms, .. }) = sluid {
            self.facts.set(const { fact("submitted") }, submitted_ms * 1_000_000);
        }
        self.uid = self.uid.or(answer.uid);
    }

    /// Of a job that an agent before this one knew.
    pub fn resumed(
        info: JobInfo,
        uid: Option<u32>,
        end: Option<(u64, bool)>,
        counted: Counted,
    ) -> Self {
        let mut details = Self::of(info, counted.boot_ns);
        (details.uid, details.consent) = (uid, counted.consent);
        (details.ended, details.end_told) =
            end.map_or((None, false), |(ns, told)| (Some(ns), told));
        details.counted_to_end = details.ended.is_some();
        details.facts = counted.facts;
        details.saving = Saving::resumed(counted.end_saved, &counted.places);
        let totals = &mut details.record.totals;
        (totals.elapsed_ns, totals.intervals, totals.peaks) =
            (counted.elapsed_ns, counted.intervals, counted.peaks);
        (totals.stats.groups, totals.own) = (counted.totals, counted.losses);
        (totals.gaps, totals.parts) = (counted.gaps, counted.parts);
        totals.software.clone_from(&counted.software);
        details.ran = Ran::resumed(counted.software);
        (details.killed_ns, details.started_s) = (counted.killed_ns, counted.started_s);
        details.record.timeline = counted.timeline;
        // What came late before is in its values.
        (details.told_ns, details.late) = (counted.end_stamp_ns, details.end_told);
        details
    }

    /// What the next agent has to know of its values.
    pub fn counted(&self) -> Counted {
        let totals = &self.record.totals;
        Counted {
            facts: self.facts.clone(),
            boot_ns: self.boot_ns,
            killed_ns: self.killed_ns,
            started_s: self.started_s,
            gaps: totals.gaps.clone(),
            parts: totals.parts.clone(),
            end_stamp_ns: self.told_ns.filter(|_| self.end_told),
            end_saved: self.saving.end_is_saved(),
            places: self.saving.places(),
            elapsed_ns: totals.elapsed_ns,
            intervals: totals.intervals,
            peaks: totals.peaks,
            totals: totals.stats.groups.clone(),
            losses: totals.own.clone(),
            software: totals.software.clone(),
            consent: self.consent,
            timeline: self.record.timeline.clone(),
        }
    }

    /// When its last cgroup was removed, and whether that has been told.
    pub fn end(&self) -> Option<(u64, bool)> {
        Some((self.ended?, self.end_told))
    }

    /// When something of it could not be counted.
    pub fn gaps(&self) -> &Gaps {
        &self.record.totals.gaps
    }

    /// The GPUs that its environment names.
    pub fn claims(&self) -> Option<&Claims> {
        self.claims.as_ref()
    }

    /// As an agent before this one knew them.
    pub fn set_claims(&mut self, claims: Option<Claims>) {
        self.claims = claims;
    }
}

/// When the oldest process in `pids` began, nanoseconds since the Unix epoch.
pub fn read_start_wall_ns(pids: impl IntoIterator<Item = u32>) -> Option<u64> {
    let start = |pid: u32| {
        let started = Process::new(pid.try_into().ok()?).ok()?.stat().ok()?.starttime;
        Some(Duration::from_millis(started * 1000 / procfs::ticks_per_second()))
    };
    let since_boot = pids.into_iter().filter_map(start).min()?;
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let uptime = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
    let begin = SystemTime::now().checked_sub(uptime.checked_sub(since_boot)?)?;
    Some(begin.duration_since(UNIX_EPOCH).ok()?.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{group::Group, job::Losses, tables::Memory},
        resolve::Resolver,
    };

    const S: u64 = 1_000_000_000;

    /// The first of its slot finds none of its memory any more.
    #[test]
    fn peaks_that_were_read_without_a_slot_stand_once_it_has_one() {
        let answer = Resolver::new(&[]).unwrap().path("/slurm/uid_0/job_7");
        let mut details = Details::new(&answer, 100 * S, 0);
        let memory = |used_bytes, peak_bytes| {
            let mut memory = Group::unknown(&MEMORY, Vec::new());
            memory.set(Memory::anon_bytes, Some(used_bytes));
            memory.set(Memory::used_peak_bytes, Some(used_bytes));
            memory.set(Memory::peak_bytes, Some(peak_bytes));
            vec![memory]
        };
        let known = |groups: &[Group]| {
            let of = |field| groups[0].number(field);
            (of(Memory::used_peak_bytes), of(Memory::peak_bytes))
        };
        let losses = Losses { shed: vec![NO_SLOT], ..Losses::default() };
        details.add(&mut memory(200, 210), &losses, 101 * S);
        details.set_served_from(102 * S);
        let totals = &details.record.totals;
        assert_eq!((totals.elapsed_ns, known(&totals.stats.groups)), (0, (Some(200), Some(210))));
        assert_eq!(totals.stats.groups[0].number(Memory::anon_bytes), None, "it is read again");
        let mut groups = memory(0, 10);
        details.add(&mut groups, &Losses::default(), 103 * S);
        assert_eq!(known(&groups), (Some(200), Some(210)), "no peak falls");
        assert_eq!(known(&details.record.totals.stats.groups), (Some(200), Some(210)));
    }
}
