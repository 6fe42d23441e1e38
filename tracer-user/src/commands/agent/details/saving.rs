//! How far a job's saved records tell of it, and what became of the one that was handed over last.

use super::Details;
use crate::{
    commands::agent::records::{Fate, Handed, Unsaved},
    model::{info::JobInfo, job::Job, point::Origin, tables::BLOCK},
    record::{
        Record,
        name::{self, Place},
    },
};

/// How far a record tells of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Up to a moment at which it runs.
    Running,
    /// Up to its end.
    End,
    /// With what came late: nothing more comes.
    All,
}

/// What was saved of a job.
#[derive(Debug, Default)]
pub(super) struct Saving {
    saved: Option<Reach>,
    handed: Option<(Reach, Handed)>,
    /// When its record was made last, or it was seen first.
    made_ns: Option<u64>,
    /// The same, before the one that was handed over.
    before_ns: Option<u64>,
    /// By how much its first record comes earlier, once it was asked.
    phase_ns: Option<u64>,
    /// Where records of it may lie, the newest last.
    places: Vec<Place>,
}

impl Saving {
    /// Of a job whose record with its end `is_saved`, and whose records may lie at `places`.
    pub fn resumed(end_is_saved: bool, places: &[String]) -> Self {
        let places = places.iter().filter_map(|place| Place::parse(place)).collect();
        Self { saved: end_is_saved.then_some(Reach::End), places, ..Self::default() }
    }

    /// Whether a record that tells of its end is on the disk.
    pub fn end_is_saved(&self) -> bool {
        let handed = self.handed.as_ref().filter(|(_, handed)| handed.fate() == Fate::Saved);
        self.saved.max(handed.map(|(reach, _)| *reach)) >= Some(Reach::End)
    }

    /// The job goes on: all that was saved tells of a part.
    pub fn restart(&mut self) {
        let places = std::mem::take(&mut self.places);
        *self = Self { made_ns: self.made_ns, places, ..Self::default() };
    }

    /// Where records of it may lie.
    pub fn places(&self) -> Vec<String> {
        self.places.iter().map(Place::to_string).collect()
    }

    /// How far those tell that are saved or on their way.
    fn told(&mut self) -> Option<Reach> {
        match self.handed.as_ref().map(|(reach, handed)| (*reach, handed.fate())) {
            Some((reach, Fate::Saved)) => {
                self.saved = self.saved.max(Some(reach));
                // The others were removed.
                self.places.drain(..self.places.len().saturating_sub(1));
                self.handed = None;
            }
            Some((_, Fate::Failed)) => (self.handed, self.made_ns) = (None, self.before_ns),
            Some((_, Fate::Open)) | None => {}
        }
        self.saved.max(self.handed.as_ref().map(|(reach, _)| *reach))
    }
}

impl Details {
    /// Whether all is told of it that ever will be, and, where there are `records`, they are saved.
    pub fn is_done(&mut self, records: bool) -> bool {
        let told = self.saving.told();
        self.settled && (!records || self.saving.handed.is_none() && told >= Some(self.wanted()))
    }

    /// How far its record has to tell now, where it is due: at its end, and when what came late has
    /// settled; while it runs every `every_ns` from its own begin on, the first one by `phase_ns` earlier, which is
    /// always the same for a job.
    pub fn due_record(&mut self, every_ns: u64, phase_ns: impl FnOnce() -> u64) -> Option<Reach> {
        let (told, wanted) = (self.saving.told(), self.wanted());
        let now_ns = self.record.timeline.end_ns();
        let made_ns = *self.saving.made_ns.get_or_insert(now_ns);
        if wanted > Reach::Running {
            return (told < Some(wanted)).then(|| self.reach());
        }
        let begin_ns = match self.info.start_wall_ns {
            0 => self.record.timeline.begin_ns(),
            begin_ns => begin_ns,
        };
        let phase_ns = *self.saving.phase_ns.get_or_insert_with(phase_ns);
        let number = |ns: u64| (ns.saturating_sub(begin_ns) + phase_ns) / every_ns.max(1);
        (number(now_ns) > number(made_ns)).then_some(Reach::Running)
    }

    /// As the agent ends: whether a record of it is due.
    pub fn last_record(&mut self) -> Option<Reach> {
        match self.wanted() {
            Reach::Running => Some(Reach::Running),
            _ => self.due_record(u64::MAX, || 0),
        }
    }

    /// Since when its record waits: its end, or, while it runs, its last record.
    pub fn waits_since_ns(&self) -> u64 {
        self.ended.or(self.saving.made_ns).unwrap_or_default()
    }

    /// No record of it is saved any more.
    pub fn give_up(&mut self) {
        (self.saving.saved, self.saving.handed) = (Some(Reach::All), None);
    }

    /// Its record, to be saved; `None` where it does not tell as far as `reach`, or further.
    pub fn hand_over(&mut self, origin: &Origin, job: &Job, reach: Reach) -> Option<Unsaved> {
        if self.reach() != reach {
            return None;
        }
        let record = self.record(origin, job);
        let place = name::place(&record);
        self.saving.places.retain(|earlier| *earlier != place);
        let (unsaved, handed) = Unsaved::new(record, self.saving.places.clone());
        self.saving.places.push(place);
        self.saving.handed = Some((reach, handed));
        (self.saving.before_ns, self.saving.made_ns) =
            (self.saving.made_ns, Some(self.record.timeline.end_ns()));
        Some(unsaved)
    }

    /// Its record now.
    pub fn record(&self, origin: &Origin, job: &Job) -> Record {
        let mut record = self.record.clone();
        record.cluster.clone_from(&origin.cluster);
        record.hosts = vec![origin.host.clone()];
        record.totals.stats.job = job.told();
        let is_apart = self.files.has_block() != Some(false);
        record.totals.unknown.extend((!is_apart).then(|| BLOCK.name.to_owned()));
        record.totals.forget_known();
        record.totals.forget_disks_of_parts();
        record.facts = self.all_facts();
        record.totals.info = JobInfo { user: job.user.clone(), ..JobInfo::from(&record.facts) };
        record
    }

    /// How far a record made now tells.
    fn reach(&self) -> Reach {
        match (self.ended, self.settled) {
            (None, _) => Reach::Running,
            (Some(_), false) => Reach::End,
            (Some(_), true) => Reach::All,
        }
    }

    /// How far the one saved last has to tell.
    fn wanted(&self) -> Reach {
        match self.reach() {
            Reach::All if !self.late => Reach::End,
            reach => reach,
        }
    }
}
