//! The records of jobs on their way to the disk, on a thread of its own: a disk that hangs must not hang the ticks.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::{config::Config, log::Log};
use crate::{
    base::clock::wall_ns,
    record::{
        Record,
        store::{Limits, Store},
    },
};

/// Records that wait for the disk at most; of some 20 kB each.
const MOST_WAITING: usize = 1024;
/// How long the agent's end waits for the disk: it promises to end within two seconds.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two looks at what is too old or too much.
const LIMITS_EVERY: Duration = Duration::from_secs(3600);

/// A record to be saved. Until it is, or is lost, its job is kept: an agent that is killed leaves it to the next one.
pub struct Unsaved {
    /// What is to be saved.
    pub record: Record,
    /// Held by the job too.
    pub hold: Arc<()>,
}

/// The way of the records.
pub struct Records {
    /// Those of intervals that are not committed to.
    waiting: Vec<Unsaved>,
    queue: SyncSender<Unsaved>,
    thread: JoinHandle<()>,
    complaints: Receiver<String>,
    lost: Arc<AtomicU64>,
}

impl Records {
    /// Opens the folder and starts the thread; `None` where no records are wanted.
    ///
    /// # Errors
    /// When the folder cannot be written to, or there can be no thread.
    pub fn start(config: &Config, host: &str) -> Result<Option<Self>> {
        let keys = &config.records;
        if !keys.save {
            return Ok(None);
        }
        let store = Store::open(&keys.dir, host).context(
            "no records can be saved (`records.dir`; `records.save = false` does without)",
        )?;
        store.recover();
        let age_ns = u64::try_from(keys.max_age.0.as_nanos()).unwrap_or(u64::MAX);
        let limits = Limits { age_ns, bytes: keys.max_bytes.0 };
        let (queue, records) = sync_channel(MOST_WAITING);
        let (complain, complaints) = channel();
        let lost = Arc::new(AtomicU64::new(0));
        let writer = Writer { store, limits, complain, lost: Arc::clone(&lost) };
        let thread =
            thread::Builder::new().name("records".into()).spawn(move || writer.run(&records));
        let thread = thread.context("cannot start the thread that saves records")?;
        Ok(Some(Self { waiting: Vec::new(), queue, thread, complaints, lost }))
    }

    /// Has `records` saved, those of an interval that `is_committed` to, or may be measured again: then they wait for
    /// the next one, so that no record knows more than the next agent does. What does not fit because the disk hangs
    /// is lost, and counted.
    pub fn save(&mut self, records: Vec<Unsaved>, is_committed: bool) {
        self.waiting.extend(records);
        if !is_committed && self.waiting.len() < MOST_WAITING {
            return;
        }
        for record in self.waiting.drain(..) {
            if self.queue.try_send(record).is_err() {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Records lost so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Says what went wrong since the last call.
    pub fn tell(&self, log: &Log) {
        self.complaints.try_iter().for_each(|complaint| log.error(complaint));
    }

    /// Waits until all is saved, for a moment; what is not is lost, unless the next agent goes on (`pin`) and saves it.
    /// Gives whether nothing was lost.
    pub fn finish(self, goes_on: bool, log: &Log) -> bool {
        let Self { queue, thread, complaints, lost, .. } = self;
        drop(queue);
        let begin = Instant::now();
        while !thread.is_finished() {
            if begin.elapsed() > PATIENCE {
                if !goes_on {
                    log.error("the disk takes too long: the last records are not saved");
                }
                return goes_on;
            }
            thread::sleep(Duration::from_millis(1));
        }
        if thread.join().is_err() {
            log.error("the thread that saves records has failed");
            return false;
        }
        complaints.try_iter().for_each(|complaint| log.error(complaint));
        lost.load(Ordering::Relaxed) == 0
    }
}

/// The thread's side.
struct Writer {
    store: Store,
    limits: Limits,
    complain: Sender<String>,
    lost: Arc<AtomicU64>,
}

impl Writer {
    fn run(&self, records: &Receiver<Unsaved>) {
        let mut due = Instant::now();
        loop {
            if Instant::now() >= due {
                due = Instant::now() + LIMITS_EVERY;
                match self.store.enforce(&self.limits, wall_ns()) {
                    Ok(_) => {}
                    Err(error) => self.complain(&error),
                }
            }
            match records.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(unsaved) => {
                    if let Err(error) = self.store.save(&unsaved.record) {
                        self.lost.fetch_add(1, Ordering::Relaxed);
                        self.complain(&error);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn complain(&self, error: &anyhow::Error) {
        // Nobody listens once the agent has ended.
        let _ = self.complain.send(format!("{error:#}"));
    }
}
