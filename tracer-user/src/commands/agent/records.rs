//! The records of jobs on their way to the disk, on a thread of its own: a disk that hangs must not hang the ticks.
//! A record is made when there is room for it; until then its job waits, and nothing is held twice.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, channel, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tokio::sync::Notify;

mod patience;
mod unsaved;
mod writer;

use patience::Patience;
pub use unsaved::{Fate, Handed, Unsaved};
use writer::Writer;

use super::{config::Config, details::Reach, log::Log};
use crate::{
    base::say::Level,
    model::job::Job,
    record::store::{Limits, Store},
};

/// Records that are saved together at most: as many as a busy node writes well within the second in which the agent's
/// end wants to see some saved.
const BATCH: usize = 32;
/// Those in the hands of the thread at most, of some 20 kB each: one batch is written while the next comes.
const MOST_IN_FLIGHT: usize = 2 * BATCH;
/// Jobs that have ended and wait for their record at most.
pub const MOST_WAITING: usize = 2048;
/// A job whose record is to be saved.
#[derive(Debug)]
pub struct Due {
    /// Which.
    pub job: Job,
    /// Since when it waits, nanoseconds since the Unix epoch: its end, or, while it runs, its last record.
    pub since_ns: u64,
    /// How far its record tells.
    pub reach: Reach,
}

/// The way of the records.
pub struct Records {
    due: VecDeque<Due>,
    /// When the values up to then were committed to last, where they have to be.
    committed: Option<Instant>,
    patience: Duration,
    queue: SyncSender<Unsaved>,
    thread: JoinHandle<()>,
    remarks: Receiver<(Level, String)>,
    shared: Arc<Shared>,
    lost: u64,
}

/// What both sides know.
struct Shared {
    in_flight: AtomicUsize,
    failed: AtomicUsize,
    ends: AtomicBool,
    /// There is room again.
    room: Notify,
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
        let store = Store::open_for_users(&keys.dir, host).context(
            "no records can be saved (`records.dir`; `records.save = false` does without)",
        )?;
        let age_ns = u64::try_from(keys.max_age.0.as_nanos()).unwrap_or(u64::MAX);
        let limits = Limits { age_ns, bytes: keys.max_bytes.0 };
        let (queue, records) = sync_channel(MOST_IN_FLIGHT);
        let (remark, remarks) = channel();
        let shared = Arc::new(Shared {
            in_flight: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            ends: AtomicBool::new(false),
            room: Notify::new(),
        });
        let writer = Writer::new(store, limits, remark, Arc::clone(&shared));
        let thread =
            thread::Builder::new().name("records".into()).spawn(move || writer.run(&records));
        let thread = thread.context("cannot start the thread that saves records")?;
        Ok(Some(Self {
            due: VecDeque::new(),
            committed: config.pin.then(Instant::now),
            patience: keys.every.0,
            queue,
            thread,
            remarks,
            shared,
            lost: 0,
        }))
    }

    /// An interval has ended: the records of `due` are to be saved, in this order, and those of `dropped` jobs never
    /// will be. Where the next agent goes on (`pin`) no record may know more than it does, so values that are not
    /// committed to wait, but not for longer than a job's record may be old: if the spool cannot be written for so
    /// long, a record that is written anew after a kill is the smaller evil.
    pub fn tick(&mut self, due: VecDeque<Due>, dropped: u64, is_committed: bool) {
        self.lost += dropped;
        if is_committed && self.committed.is_some() {
            self.committed = Some(Instant::now());
        }
        let waits = self.committed.is_some_and(|last| last.elapsed() < self.patience);
        self.due = if is_committed || !waits { due } else { VecDeque::new() };
    }

    /// Hands over what is due, as far as there is room, as `make` makes it. A job that has changed since the interval
    /// ended is none of it: it comes with the next.
    pub fn hand_over(&mut self, mut make: impl FnMut(&Due) -> Option<Unsaved>) {
        while self.shared.in_flight.load(Ordering::Acquire) < MOST_IN_FLIGHT {
            let Some(due) = self.due.pop_front() else { break };
            let Some(unsaved) = make(&due) else { continue };
            self.shared.in_flight.fetch_add(1, Ordering::AcqRel);
            // Where the thread has gone, it counts as failed by itself.
            let _ = self.queue.try_send(unsaved);
        }
    }

    /// Whether some wait for room.
    pub fn some_wait(&self) -> bool {
        !self.due.is_empty()
    }

    /// Waits until there is room.
    pub async fn room(&self) {
        self.shared.room.notified().await;
    }

    /// Those that wait or are in the thread's hands.
    fn unsaved(&self) -> usize {
        self.due.len() + self.shared.in_flight.load(Ordering::Acquire)
    }

    /// Records lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Says what happened since the last call.
    pub fn tell(&self, log: &Log) {
        if self.thread.is_finished() {
            log.error("the thread that saves records has failed: restart the agent");
        }
        self.remarks.try_iter().for_each(|(level, text)| log.at(level, text));
    }

    /// Waits until all is saved, as long as the disk takes them; what is not is lost, unless the next agent goes on
    /// (`pin`) and saves it. Gives whether nothing was lost now: what was before is in the data.
    pub fn finish(
        mut self,
        goes_on: bool,
        mut make: impl FnMut(&Due) -> Option<Unsaved>,
        log: &Log,
    ) -> bool {
        self.shared.failed.store(0, Ordering::Release);
        self.shared.ends.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let mut patience = Patience::begins(self.unsaved(), Instant::now());
        let mut lasts = |left| patience.lasts(left, Instant::now());
        while self.some_wait() && lasts(self.unsaved()) && !self.thread.is_finished() {
            self.hand_over(&mut make);
            thread::sleep(Duration::from_millis(1));
        }
        let left = self.due.len();
        let Self { queue, thread, remarks, shared, .. } = self;
        drop(queue);
        while !thread.is_finished() && lasts(left + shared.in_flight.load(Ordering::Acquire)) {
            thread::sleep(Duration::from_millis(1));
        }
        remarks.try_iter().for_each(|(level, text)| log.at(level, text));
        let is_late = left > 0 || !thread.is_finished();
        if is_late && !goes_on {
            log.error("the disk takes too long: the last records are not saved");
        }
        if thread.is_finished() && thread.join().is_err() {
            log.error("the thread that saves records has failed");
            return false;
        }
        let failed = is_late || shared.failed.load(Ordering::Acquire) > 0;
        !failed || goes_on
    }
}

impl Shared {
    /// `count` records are no longer in the thread's hands; `failed` of them are not saved.
    fn done(&self, count: usize, failed: usize) {
        self.failed.fetch_add(failed, Ordering::AcqRel);
        self.in_flight.fetch_sub(count, Ordering::AcqRel);
        self.room.notify_one();
    }

    fn ends(&self) -> bool {
        self.ends.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
