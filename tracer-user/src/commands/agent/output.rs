//! Intervals on their way to the spool: encoded, committed, published; kept in memory where the disk
//! refuses.

use anyhow::{Context, Result};

use super::{config::Config, log::Log};
use crate::{
    base::identity::{boot_id, host},
    lines::{
        backlog::{Backlog, Caps, Pending},
        form::Form,
        profile::Profiles,
        spool::{Limits, Resume, Spool},
        writer::Writer,
    },
    model::{group::Group, point::Origin, tables::Own},
};

/// The way to the spool.
pub struct Output {
    spool: Spool,
    backlog: Backlog,
    form: Form,
    lost_intervals: u64,
}

/// What the output lost or held back since its start, for `jobtrace_self`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    files: u64,
    bytes: u64,
    intervals: u64,
    merged: u64,
    records: u64,
}

impl Output {
    /// Opens the spool, and clears what an agent that was killed left there.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub fn open(config: &Config, resume: Resume, log: &Log) -> Result<Self> {
        let origin = origin(config);
        let writer =
            Writer { host: origin.host.clone(), boot_id: boot_id(), pid: std::process::id() };
        let mut spool = Spool::open(&config.spool.dir, limits(config), &writer)?;
        spool.set_precision(config.export.style.precision());
        let recovered = spool.recover(resume)?;
        if recovered != Default::default() {
            log.notice(recovered);
        }
        let (backlog, lost_intervals) = (Backlog::new(Caps::default()), 0);
        Ok(Self { spool, backlog, form: form(config, origin), lost_intervals })
    }

    /// Where the points come from.
    pub fn origin(&self) -> &Origin {
        &self.form.origin
    }

    /// Takes over what SIGHUP may change.
    pub fn reload(&mut self, config: &Config) {
        self.form = form(config, self.form.origin.clone());
        self.spool.set_limits(limits(config));
    }

    /// What was lost and held back so far, with the `records` lost.
    pub fn losses(&self, records: u64) -> Losses {
        let dropped = self.spool.dropped();
        let (intervals, merged) = (self.lost_intervals, self.backlog.merged());
        Losses { files: dropped.files, bytes: dropped.bytes, intervals, merged, records }
    }

    /// Takes an interval and writes it with all that waits; `commit` makes sure, before anything
    /// appears, that it is not measured again. Gives whether all is written.
    pub fn write(
        &mut self,
        interval: Pending,
        wall_ns: u64,
        monotonic_ns: u64,
        commit: impl FnOnce(Option<&str>) -> Result<()>,
        log: &Log,
    ) -> bool {
        for lost in self.backlog.push(interval) {
            self.lost_intervals += 1;
            log.error(format_args!(
                "the memory for unwritten intervals is full, {:.0} s of measurements are lost",
                lost.span_ns as f64 / 1e9
            ));
        }
        let written = !self.backlog.is_due() || self.write_pending(monotonic_ns, commit, log);
        match self.spool.enforce(wall_ns, monotonic_ns) {
            // The same words each time, so that the log counts them: how many is in the data.
            Ok(dropped) if dropped.files > 0 => log.warning(
                "the spool is not emptied in time: the oldest files are removed and counted in \
                 jobtrace_self; check the collector",
            ),
            Ok(_) => {}
            Err(error) => log.error(format_args!("{error:#}")),
        }
        written
    }

    /// Writes all that waits, also where attempts had become rare: the end. What the disk refuses even
    /// now is lost, and said. Gives whether all is written.
    pub fn finish(
        &mut self,
        monotonic_ns: u64,
        commit: impl FnOnce(Option<&str>) -> Result<()>,
        log: &Log,
    ) -> bool {
        let (count, span_ns) =
            self.backlog.pending().fold((0, 0), |(n, ns), pending| (n + 1, ns + pending.span_ns));
        if count == 0 {
            return true;
        }
        let written = self.write_pending(monotonic_ns, commit, log);
        if !written && self.backlog.pending().next().is_some() {
            log.error(format_args!(
                "{count} intervals of {:.0} s could not be written and are lost",
                span_ns as f64 / 1e9
            ));
        }
        written
    }

    fn write_pending(
        &mut self,
        monotonic_ns: u64,
        commit: impl FnOnce(Option<&str>) -> Result<()>,
        log: &Log,
    ) -> bool {
        let points = self.backlog.pending().flat_map(|pending| self.form.points(pending));
        let start_ns = self.backlog.pending().next().map_or(0, Pending::start_ns);
        let hlog = self.form.hlog(&self.backlog);
        let prepared = hlog
            .and_then(|hlog| self.spool.prepare(points, hlog.as_deref(), start_ns, monotonic_ns));
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                self.failed(&error, log);
                return false;
            }
        };
        if let Err(error) = commit(Some(prepared.name())).context("cannot keep the agent's state") {
            self.spool.discard(prepared);
            self.failed(&error, log);
            return false;
        }
        let (held_back, failures) = (self.backlog.pending().count(), self.backlog.failures());
        self.backlog.written();
        if failures > 0 {
            log.notice(format_args!(
                "the spool can be written again, {held_back} waiting intervals are written"
            ));
        }
        if let Err(error) = self.spool.publish(prepared) {
            log.error(format_args!("{error:#}"));
            return false;
        }
        true
    }

    fn failed(&mut self, error: &anyhow::Error, log: &Log) {
        if self.backlog.failed() == 1 {
            log.error(format_args!("{error:#}; measuring continues, intervals wait in memory"));
        }
    }
}

impl Losses {
    /// Sets their fields in the group of `jobtrace_self`: what came since `before`.
    pub fn set(self, before: Self, own: &mut Group) {
        own.set(Own::dropped_spool_files, self.files - before.files);
        own.set(Own::dropped_spool_bytes, self.bytes - before.bytes);
        own.set(Own::dropped_records, self.records - before.records);
        own.set(Own::dropped_intervals, self.intervals - before.intervals);
        own.set(Own::merged_intervals, self.merged - before.merged);
    }
}

fn form(config: &Config, origin: Origin) -> Form {
    let export = &config.export;
    let profiles = Profiles {
        default: export.profile,
        by_manager: export.by_manager.clone(),
        by_job: export.by_job.clone(),
    };
    let (style, bucket_style, hlog) = (export.style, export.bucket_style, export.hlog);
    Form { origin, style, profiles, bucket_style, hlog }
}

/// The node and its cluster by `config`.
pub fn origin(config: &Config) -> Origin {
    let host = if config.host.is_empty() { host() } else { config.host.clone() };
    Origin { cluster: config.cluster.clone(), host }
}

fn limits(config: &Config) -> Limits {
    let spool = &config.spool;
    let files = usize::try_from(spool.max_files).unwrap_or(usize::MAX);
    let age_ns = u64::try_from(spool.max_age.0.as_nanos()).unwrap_or(u64::MAX);
    Limits { bytes: spool.max_bytes.0, files, age_ns }
}
