//! A job's steps and tasks: their cgroups, and what those counted.

use std::path::PathBuf;

use super::Details;
use crate::{
    base::few::push_few,
    cgroup::{pace::Pace, parts::PartFiles, place::Places, seldom::Moves, still::AGAIN_NS},
    model::parts::{Part, PartCounts},
    probes::Cgroup,
    resolve::Answer,
};

/// Parts of a job that are read at a tick, in turns where it has more: some 10 µs each.
const AT_ONCE: usize = 64;

/// A part that has a cgroup.
pub struct LivePart {
    cgroup: Cgroup,
    step: String,
    task: String,
    path: PathBuf,
    /// The files of its cgroups, once they were looked for.
    files: Option<PartFiles>,
    /// When they are to be read.
    pace: Pace,
    last: Option<LastRead>,
}

/// The last reading of all of a part.
struct LastRead {
    /// How much the job's tasks had done by then.
    moved: u64,
    /// When it was, CLOCK_MONOTONIC.
    ns: u64,
    counts: PartCounts,
}

impl Details {
    /// `cgroup` at `path`, about which its path says `answer`, came at `monotonic_ns`: it may be a step's or a task's.
    pub fn begin_part(
        &mut self,
        cgroup: Cgroup,
        path: PathBuf,
        answer: &Answer,
        monotonic_ns: u64,
    ) {
        let Some((step, task)) = named(answer) else { return };
        // What is below it is a part of it.
        let is_there = |part: &LivePart| part.step == step && part.task == task;
        if cgroup.table != 0 || self.live_parts.iter().any(is_there) {
            return;
        }
        let begin = self.wall_at(monotonic_ns);
        let parts = &mut self.record.totals.parts;
        // An agent before this one may have known it.
        if parts.live(&step, &task).is_none() {
            let (step, task) = (step.clone(), task.clone());
            parts.begin(Part { step, task, begin, ..Part::default() });
        }
        let pace = Pace::from(monotonic_ns);
        let live = LivePart { cgroup, step, task, path, files: None, pace, last: None };
        push_few(&mut self.live_parts, live);
    }

    /// Reads what the cgroups of some parts, those that are due, counted up to `now_ns` (CLOCK_MONOTONIC), when the job's
    /// tasks had done as `moves` says.
    pub fn read_parts(&mut self, places: impl Fn(&PathBuf) -> Places, moves: Moves, now_ns: u64) {
        let wall_ns = self.wall_at(now_ns);
        let count = self.live_parts.len().min(AT_ONCE);
        for live in self.live_parts[..count].iter_mut().filter(|live| live.pace.is_due(now_ns)) {
            live.pace.note_read(now_ns);
            let files = live.files.get_or_insert_with(|| PartFiles::of(&places(&live.path)));
            let is_same = |last: &LastRead| {
                moves.all == Some(last.moved) && now_ns.saturating_sub(last.ns) < AGAIN_NS
            };
            let before = live.last.take().filter(is_same);
            let counts = files.read(before.as_ref().map(|last| last.counts));
            let ns = before.map_or(now_ns, |last| last.ns);
            live.last = moves.all.map(|moved| LastRead { moved, ns, counts });
            if let Some(part) = self.record.totals.parts.live(&live.step, &live.task) {
                part.read(counts, wall_ns);
            }
        }
        self.live_parts.rotate_left(count);
    }

    /// Whether a step that had ended has a cgroup again.
    pub(super) fn has_step_again(&self) -> bool {
        let listed = &self.record.totals.parts.listed;
        let is_ended = |step: &str| {
            listed
                .iter()
                .any(|part| part.end.is_some() && part.step == step && part.task.is_empty())
        };
        self.live_parts.iter().any(|live| live.task.is_empty() && is_ended(&live.step))
    }

    /// Those that have cgroups are parts of `to`, which has this job's id.
    pub fn hand_parts_to(&mut self, to: &mut Self) {
        for live in std::mem::take(&mut self.live_parts) {
            let part = self.record.totals.parts.take_live(&live.step, &live.task);
            part.into_iter().for_each(|part| to.record.totals.parts.begin(part));
            push_few(&mut to.live_parts, live);
        }
    }

    /// A cgroup of a part that `answer` names, or one below it, was removed, to which `peak_bytes` had been charged at once.
    pub fn note_part_peak(&mut self, answer: &Answer, peak_bytes: u64) {
        let Some((step, task)) = named(answer) else { return };
        let Some(part) = self.record.totals.parts.last(&step, &task) else { return };
        if part.memory_peak_bytes < Some(peak_bytes) {
            part.memory_peak_bytes = Some(peak_bytes);
            self.late |= self.end_told;
        }
    }

    /// A cgroup of the job's was removed at `monotonic_ns`.
    pub fn end_part(&mut self, cgroup: Cgroup, monotonic_ns: u64) {
        let Some(at) = self.live_parts.iter().position(|live| live.cgroup == cgroup) else {
            return;
        };
        let live = self.live_parts.swap_remove(at);
        let end_ns = self.wall_at(monotonic_ns);
        if let Some(part) = self.record.totals.parts.live(&live.step, &live.task) {
            part.end = Some(end_ns);
        }
    }

    /// All that have not ended end at `end_ns`, with the job.
    pub(super) fn end_parts(&mut self, end_ns: u64) {
        self.record.totals.parts.end_all(end_ns);
        self.live_parts.clear();
    }
}

/// The step and the task of a job's part.
fn named(answer: &Answer) -> Option<(String, String)> {
    // A pod's containers are what its steps would be.
    let container = answer.container.as_ref().filter(|_| answer.manager == "k8s");
    let step = answer.step.as_ref().or(container)?;
    Some((step.clone(), answer.task.clone().unwrap_or_default()))
}
