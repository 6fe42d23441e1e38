//! The record of a run on its way to its folder, now and then while the run lasts: what is killed with it has lost a minute
//! at most. On a thread of its own: a disk that hangs must not delay a signal.

use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};

use crate::record::{Record, store::Store};

/// The first is saved this long after the begin: most runs are over by then, and are saved once.
const FIRST_AFTER_NS: u64 = 10_000_000_000;
/// Time between two.
const EVERY_NS: u64 = 60_000_000_000;

/// The folder.
pub struct Saver {
    /// Absent while a thread has it.
    store: Option<Store>,
    thread: Option<JoinHandle<(Store, Result<()>)>>,
    /// The next is due once this much of the run is counted.
    due_ns: u64,
}

impl Saver {
    /// Into `store`; of a replay the last alone.
    pub fn new(store: Store, is_replay: bool) -> Self {
        let due_ns = if is_replay { u64::MAX } else { FIRST_AFTER_NS };
        Self { store: Some(store), thread: None, due_ns }
    }

    /// Has `record` saved where that is due and the one before is on the disk.
    ///
    /// # Errors
    /// When the one before could not be saved.
    pub fn save_if_due(&mut self, record: impl FnOnce() -> Record, elapsed_ns: u64) -> Result<()> {
        let is_busy = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        if elapsed_ns < self.due_ns || is_busy {
            return Ok(());
        }
        self.due_ns = elapsed_ns.saturating_add(EVERY_NS);
        let saved = self.wait();
        if let Some(store) = self.store.take() {
            let record = record();
            self.thread = Some(thread::spawn(move || {
                let saved = store.save(&record).map(|_| ());
                (store, saved)
            }));
        }
        saved
    }

    /// Saves `record`, the last.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub fn finish(mut self, record: &Record) -> Result<()> {
        // Why the one before was not saved has no weight where this one is.
        let before = self.wait();
        match self.store {
            Some(store) => store.save(record).map(|_| ()),
            None => before,
        }
    }

    /// Waits for the one before.
    fn wait(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let (store, saved) =
            thread.join().map_err(|_| anyhow!("the thread that saves the record has failed"))?;
        self.store = Some(store);
        saved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{info::JobInfo, job::Job, point::Origin},
        record::store::read_heads,
    };

    #[test]
    fn a_run_is_saved_now_and_then_and_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut saver = Saver::new(Store::open(folder.path(), "n1").unwrap(), false);
        let origin = Origin { host: "n1".into(), ..Origin::default() };
        let mut record = Record::new(&origin, Job::default(), JobInfo::default(), 5);
        let mut made = 0;
        let second = 1_000_000_000;
        for _ in 0..200 {
            record.add(second, &[], &[]);
            let elapsed_ns = record.totals.elapsed_ns;
            let due = || {
                made += 1;
                record.clone()
            };
            saver.save_if_due(due, elapsed_ns).unwrap();
            if let Some(thread) = &saver.thread {
                while !thread.is_finished() {
                    thread::yield_now();
                }
            }
        }
        assert_eq!(made, 4, "after 10, 70, 130 and 190 seconds");
        let seen = |folder| {
            let found = read_heads(folder, |_| true).unwrap();
            found.heads.iter().filter_map(|(_, head)| head.elapsed_ns).collect::<Vec<_>>()
        };
        assert_eq!(seen(folder.path()), [190 * second], "what a killed run leaves");
        saver.finish(&record).unwrap();
        assert_eq!(seen(folder.path()), [200 * second], "in its place");
    }
}
