//! The thread that saves records: a batch at a time, because the disk is waited for once for each.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Error;

use super::{BATCH, Shared, Unsaved};
use crate::{
    base::{clock::wall_ns, say::Level},
    record::store::{Dropped, Enforcing, Limits, Store, is_full},
};

/// Time between two looks at what is too old or too much.
const LIMITS_EVERY: Duration = Duration::from_secs(3600);
/// First and longest pause after an attempt at which nothing could be saved.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The thread's side.
pub(super) struct Writer {
    pub store: Store,
    pub limits: Limits,
    pub remarks: Sender<(Level, String)>,
    pub shared: Arc<Shared>,
    /// What cannot be done at the moment, as it was told.
    pub told: Option<String>,
    pub pause: Duration,
}

impl Writer {
    pub fn new(
        store: Store,
        limits: Limits,
        remarks: Sender<(Level, String)>,
        shared: Arc<Shared>,
    ) -> Self {
        Self { store, limits, remarks, shared, told: None, pause: PAUSES[0] }
    }

    pub fn run(mut self, records: &Receiver<Unsaved>) {
        // First what is there already, then what may stay of it.
        let mut due = Instant::now() + PAUSES[0];
        let mut enforcing = None;
        loop {
            let wait = match &enforcing {
                Some(_) => Duration::ZERO,
                None => due.saturating_duration_since(Instant::now()),
            };
            match records.recv_timeout(wait) {
                Ok(first) => self.save(first, records),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if Instant::now() >= due {
                due = Instant::now() + LIMITS_EVERY;
                enforcing.get_or_insert_with(|| self.store.enforce(&self.limits, wall_ns()));
            }
            enforcing = enforcing.and_then(|enforcing| self.step(enforcing));
        }
    }

    /// Saves `first` and what waits behind it.
    fn save(&mut self, first: Unsaved, records: &Receiver<Unsaved>) {
        let mut batch: Vec<_> =
            Some(first).into_iter().chain(records.try_iter().take(BATCH - 1)).collect();
        let count = batch.len();
        let mut errors = self.attempt(&mut batch);
        if errors.iter().any(is_for_space) {
            let enforcing = self.store.enforce(&self.limits, wall_ns());
            if self.all_steps(enforcing) {
                errors = self.attempt(&mut batch);
            }
        }
        if self.store.take_lacks_lists() {
            let dir = self.store.dir().display();
            let text = format!(
                "the file system of {dir} has no access control lists: users cannot read the records of their jobs, \
                 root and the group can; name a folder on another file system (`records.dir`)"
            );
            self.remark(Level::Warning, text);
        }
        let failed = batch.len();
        // What failed is told to its jobs before there is room for more of theirs.
        drop(batch);
        self.shared.done(count, failed);
        match errors.into_iter().next() {
            Some(error) => self.complain(&error),
            None => self.recovered(),
        }
        if failed == count {
            self.rest();
        } else {
            self.pause = PAUSES[0];
        }
    }

    /// Saves what it can of `batch` and leaves the rest in it.
    fn attempt(&self, batch: &mut Vec<Unsaved>) -> Vec<Error> {
        let records: Vec<_> = batch.iter().map(|unsaved| &unsaved.record).collect();
        let results = self.store.save_all(&records);
        let mut errors = Vec::new();
        for (unsaved, result) in std::mem::take(batch).into_iter().zip(results) {
            match result {
                Ok(()) => {
                    let removed = unsaved.stale.iter().map(|place| self.store.remove(place));
                    errors.extend(removed.filter_map(Result::err));
                    unsaved.saved();
                }
                Err(error) => {
                    errors.push(error);
                    batch.push(unsaved);
                }
            }
        }
        errors
    }

    /// Pauses, unless the agent ends.
    fn rest(&mut self) {
        let until = Instant::now() + self.pause;
        while Instant::now() < until && !self.shared.ends() {
            thread::park_timeout(until.saturating_duration_since(Instant::now()));
        }
        self.pause = (self.pause * 2).min(PAUSES[1]);
    }

    fn all_steps(&mut self, enforcing: Enforcing) -> bool {
        let mut next = Some(enforcing);
        let mut dropped = 0;
        while let Some(enforcing) = next {
            dropped = enforcing.dropped.bytes;
            next = self.step(enforcing);
        }
        dropped > 0
    }

    /// One step; what is left of it.
    fn step(&mut self, mut enforcing: Enforcing) -> Option<Enforcing> {
        match enforcing.step(&self.store) {
            Ok(false) => return Some(enforcing),
            Ok(true) if enforcing.dropped == Dropped::default() => {}
            Ok(true) => {
                let Dropped { old, beyond, bytes } = enforcing.dropped;
                let age_days = self.limits.age_ns / 86_400_000_000_000;
                let mib = bytes as f64 / f64::from(1 << 20);
                self.remark(
                    Level::Notice,
                    format!(
                        "removed {old} records older than {age_days} days and the oldest {beyond} beyond \
                         `records.max_bytes`: {mib:.1} MiB"
                    ),
                );
            }
            Err(error) => self.remark(Level::Error, format!("{error:#}")),
        }
        None
    }

    /// Once for each cause.
    fn complain(&mut self, error: &Error) {
        let message = format!("{error:#}; jobs wait for their record in memory");
        if self.told.as_ref() != Some(&message) {
            self.remark(Level::Error, message.clone());
            self.told = Some(message);
        }
    }

    fn recovered(&mut self) {
        if self.told.take().is_some() {
            self.remark(Level::Notice, "records can be saved again".to_owned());
        }
    }

    fn remark(&self, level: Level, text: String) {
        // Nobody listens once the agent has ended.
        let _ = self.remarks.send((level, text));
    }
}

fn is_for_space(error: &Error) -> bool {
    error.downcast_ref().is_some_and(is_full)
}
