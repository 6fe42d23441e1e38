//! Snapshot -> delta -> attribute -> points -> sink, and the totals: the one path of live runs and of
//! recordings.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::{outputs::Outputs, top::Taken};
use crate::{
    files::target::Target,
    model::{
        files::Files,
        held::add_held,
        hist_points::hist_points,
        info::Exit,
        io_latency::IoLatency,
        job::{Job, JobStats, attribute},
        lease::Lease,
        point::{Origin, Point},
        points::{ended_facts, info_point, job_points},
        snapshot::{Interval, Snapshot},
        software::Software,
        tables::{BLOCK, Block, Own, SCHED, Sched},
    },
    record::{Record, timeline::Timeline},
    replay::Header,
};

/// One run on its way from snapshots to output.
pub struct Pipeline {
    origin: Origin,
    jobs: BTreeMap<Lease, Job>,
    job: Job,
    previous: Option<Snapshot>,
    record: Record,
    /// How long its operations on files took so far.
    latency: IoLatency,
    outputs: Outputs,
}

impl Pipeline {
    /// A run that has just begun.
    ///
    /// # Errors
    /// When the header names no job.
    pub fn new(header: &Header, outputs: Outputs) -> Result<Self> {
        let job = header.jobs.values().next().context("the recording names no job")?.clone();
        let (origin, jobs) = (header.origin.clone(), header.jobs.clone());
        let info = header.info.clone();
        let mut record = Record::new(&origin, job.clone(), info, header.info.start_wall_ns);
        record.totals.notes.clone_from(&header.notes);
        record.totals.unknown.clone_from(&header.unknown);
        let latency = IoLatency::default();
        Ok(Self { origin, jobs, job, previous: None, record, latency, outputs })
    }

    /// The command has started: its outputs are this run's from now on.
    pub fn begin(&mut self) {
        self.outputs.begin();
    }

    /// From now on it is watched on `terminal`, where there is one.
    ///
    /// # Errors
    /// When it cannot be shown.
    pub fn show(&mut self, terminal: Option<Taken>) -> Result<()> {
        let view = terminal.map(|terminal| terminal.show(so_far(&self.record)));
        self.outputs.view = view.transpose()?;
        Ok(())
    }

    /// The recording to be, once.
    pub fn take_recording(&mut self) -> Option<Target> {
        self.outputs.recording.take()
    }

    /// The recording, with all that is to be in it.
    pub fn give_recording_back(&mut self, recording: Target) {
        self.outputs.recording = Some(recording);
    }

    /// Bytes written so far, by all block requests charged to the job.
    pub fn written_bytes(&self) -> u64 {
        let writes =
            self.record.totals.stats.groups(&BLOCK).filter(|group| group.tags[1] == "write");
        writes.filter_map(|group| group.number(Block::bytes)).fold(0, u64::saturating_add)
    }

    /// Whether the job is known to have made no other task so far.
    pub fn is_alone(&self) -> bool {
        let sched = self.record.totals.stats.group(&SCHED);
        sched.and_then(|group| group.number(Sched::forks)) == Some(0)
    }

    /// Adds a snapshot; the first is the zero of all others.
    pub fn take(&mut self, snapshot: Snapshot) {
        if let Some(previous) = &self.previous {
            let interval = snapshot.since(previous);
            self.add(interval, snapshot.monotonic_ns);
        } else {
            self.record.timeline = Timeline::new(snapshot.wall_ns);
        }
        self.previous = Some(snapshot);
    }

    fn add(&mut self, interval: Interval, monotonic_ns: u64) {
        // A run tells of its own job: the rest of the node would be told by every run at once.
        let jobs = attribute(interval.slots, |lease| self.jobs.get(&lease));
        let mut stats = jobs.into_iter().find(|stats| stats.job == self.job);
        if let Some(stats) = &mut stats {
            let before = &self.record.totals.stats.groups;
            add_held(&mut stats.groups, before, interval.span_ns);
        }
        let groups = stats.as_ref().map_or(&[][..], |stats| &stats.groups);
        self.record.add(interval.span_ns, groups, &interval.own);
        self.latency.add(interval.end_wall_ns, interval.span_ns, groups);
        let time_ns = interval.end_wall_ns;
        let own = JobStats { job: self.job.clone(), groups: interval.own };
        let mut points = job_points(&self.origin, &own, time_ns);
        if let Some(stats) = &stats {
            points.extend(job_points(&self.origin, stats, time_ns));
            points.extend(hist_points(&self.origin, stats, time_ns));
        }
        self.write(&points, time_ns, monotonic_ns);
        let (record, elapsed_ns) = (&self.record, self.record.totals.elapsed_ns);
        self.outputs.save_if_due(|| so_far(record), elapsed_ns);
        self.outputs.show_if_due(|| so_far(record), elapsed_ns);
    }

    fn write(&mut self, points: &[Point], wall_ns: u64, monotonic_ns: u64) {
        let Some(sink) = &mut self.outputs.sink else { return };
        if let Err(error) = sink.write(points, wall_ns, monotonic_ns) {
            self.outputs.complain(&error);
        }
    }

    /// Says that something went wrong; the run goes on, its status will tell.
    pub fn complain(&mut self, error: &anyhow::Error) {
        self.outputs.complain(error);
    }

    /// What is told of its operations on files beside their totals; how long they took over time is known here.
    pub fn name_files(&mut self, files: Files) {
        self.record.totals.files = Files { latency: self.latency.clone(), ..files };
    }

    /// Which software it ran, where somebody watched for that.
    pub fn name_software(&mut self, software: Option<Software>) {
        self.record.totals.software = software;
    }

    /// Ends the run, whose end is `end` (wall time and how) where it is known. `go_on` is asked while a
    /// reader has not all yet. Gives whether all output is complete.
    pub fn finish(
        mut self,
        end: Option<(u64, Exit)>,
        notes: Vec<String>,
        go_on: impl Fn() -> Result<()>,
    ) -> bool {
        let totals = &mut self.record.totals;
        totals.exit = end.map(|(_, exit)| exit);
        totals.notes.extend(notes);
        let last = self.previous.take().unwrap_or_default();
        let wall_ns = end.map_or(last.wall_ns, |(wall_ns, _)| wall_ns);
        self.record.facts = ended_facts(&totals.info, end);
        let elapsed_ns = end.map(|_| totals.elapsed_ns);
        let info = info_point(&self.origin, &self.job, &totals.info, end, elapsed_ns, wall_ns);
        self.write(&[info], wall_ns, last.monotonic_ns);
        if let Some(Err(error)) = self.outputs.sink.as_mut().map(|sink| sink.finish()) {
            self.outputs.complain(&error);
        }
        let lost = self.outputs.lost_bytes();
        if lost > 0 {
            self.record
                .totals
                .notes
                .push(format!("{lost} bytes of line protocol could not be written"));
            for own in &mut self.record.totals.own {
                own.set(Own::dropped_output_bytes, lost);
            }
        }
        self.outputs.finish(&self.record, go_on)
    }
}

/// The record of a run that goes on.
fn so_far(record: &Record) -> Record {
    Record { facts: ended_facts(&record.totals.info, None), ..record.clone() }
}
