//! A record that was handed over to be saved, and what became of it: told to its job, which is kept until then.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use crate::record::{Record, name::Place};

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing so far.
    Open = 0,
    /// It is on the disk.
    Saved = 1,
    /// It is not, and nobody tries any more.
    Failed = 2,
}

/// What its job sees of a record that was handed over.
#[derive(Debug)]
pub struct Handed(Arc<AtomicU8>);

/// A record to be saved. Unless it is, it counts as failed, whatever becomes of it.
#[derive(Debug)]
pub struct Unsaved {
    /// What is to be saved.
    pub record: Record,
    /// Where earlier states of it may lie: its owner or its name has come to light since.
    pub stale: Vec<Place>,
    fate: Arc<AtomicU8>,
}

impl Unsaved {
    /// Of `record`, earlier states of which may lie at `stale`, with what its job keeps of it.
    pub fn new(record: Record, stale: Vec<Place>) -> (Self, Handed) {
        let fate = Arc::new(AtomicU8::new(Fate::Open as u8));
        (Self { record, stale, fate: Arc::clone(&fate) }, Handed(fate))
    }

    /// It is on the disk.
    pub fn saved(self) {
        self.fate.store(Fate::Saved as u8, Ordering::Release);
    }
}

impl Drop for Unsaved {
    fn drop(&mut self) {
        let (open, failed) = (Fate::Open as u8, Fate::Failed as u8);
        // Where it is saved, it stays so.
        let _ = self.fate.compare_exchange(open, failed, Ordering::AcqRel, Ordering::Acquire);
    }
}

impl Handed {
    /// What became of it.
    pub fn fate(&self) -> Fate {
        match self.0.load(Ordering::Acquire) {
            1 => Fate::Saved,
            2 => Fate::Failed,
            _ => Fate::Open,
        }
    }
}
