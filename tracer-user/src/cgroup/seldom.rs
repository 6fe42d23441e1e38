//! What of one of many jobs is not read each time, and what has it read at once: signs that it changed.
//!
//! Pure: times and signs come as arguments.

use super::{pace::Pace, still::Still};

/// `memory.current` has moved where it differs from what it was by more than this part of it.
const MOVED_PART: u64 = 100;
/// Less than this part of the limit is free: what is used more takes its place from the page cache, and the charge tells
/// nothing.
const FULL_PART: u64 = 16;

/// What by the probes a job's tasks did so far.
#[derive(Clone, Copy, Default)]
pub struct Moves {
    /// Tasks that came or ended, and programs executed, as one that was moved in does.
    pub tasks: u64,
    /// Whether all of those that came or ended are among them.
    pub tells_tasks: bool,
    /// A number that grows with all that they do; `None` where nobody counts it.
    pub all: Option<u64>,
}

/// What is known of a job's tasks without the kernel's count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    /// They are to be listed.
    Now,
    /// They are as many as when they were listed last.
    Same,
    /// Nothing.
    Unknown,
}

/// What is not read each time: what is told of it is what was read just now, or nothing.
pub(super) struct Seldom {
    /// The time of the readings to come.
    now_ns: u64,
    memory: Pace,
    /// `memory.current` when `memory.stat` was read last.
    memory_bytes: u64,
    /// The limit that was read with it.
    limit_bytes: Option<u64>,
    cores: Pace,
    tasks: Pace,
    /// What its tasks did up to the reading to come, and up to the one at which they were listed last.
    moves: Moves,
    listed: Moves,
    /// Whether all tasks that came or ended since then are known of.
    listed_is_known: bool,
    /// Whether they had just come or ended: from Linux 6.19 on one that was counted may be in the list for a moment.
    lists_again: bool,
    /// Whether the job does anything.
    pub still: Still,
}

impl Seldom {
    /// From `now_ns` on (CLOCK_MONOTONIC), when the cores were read.
    pub fn from(now_ns: u64) -> Self {
        let memory = Pace::from(now_ns);
        // As the memory's: paces are set apart by turns, and a third of each job would have all jobs' memory in one.
        let mut cores = memory.clone();
        cores.note_read(now_ns);
        Self {
            now_ns,
            memory,
            memory_bytes: 0,
            limit_bytes: None,
            cores,
            tasks: Pace::from(now_ns),
            moves: Moves::default(),
            listed: Moves::default(),
            listed_is_known: false,
            lists_again: false,
            still: Still::default(),
        }
    }

    /// The readings to come are of `now_ns`, when tasks had done as `moves` says.
    pub fn set_now(&mut self, now_ns: u64, moves: Moves) {
        (self.now_ns, self.moves) = (now_ns, moves);
        self.listed_is_known &= moves.tells_tasks;
        self.still.set_now(now_ns, moves.all);
    }

    /// The time of the readings to come.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Whether what the memory is of is to be read, where `current` bytes are charged; it is then.
    pub fn reads_memory(&mut self, current: Option<u64>) -> bool {
        let Some(current) = current else { return true };
        let moved = current.abs_diff(self.memory_bytes) > self.memory_bytes / MOVED_PART;
        let is_full = self.limit_bytes.is_some_and(|limit| current >= limit - limit / FULL_PART);
        let reads = moved || is_full || self.memory.is_due(self.now_ns) || self.still.wants_all();
        if reads {
            self.memory.note_read(self.now_ns);
            self.memory_bytes = current;
        }
        reads
    }

    /// With the memory that was just read came this limit.
    pub fn note_limit(&mut self, limit_bytes: Option<u64>) {
        self.limit_bytes = limit_bytes;
    }

    /// Whether what decides the cores is to be read; it is then. By time alone: nothing tells that it changed.
    pub fn reads_cores(&mut self) -> bool {
        let reads = self.cores.is_due(self.now_ns);
        if reads {
            self.cores.note_read(self.now_ns);
        }
        reads
    }

    /// Whether what decides the cores was read at the time of the readings to come.
    pub fn has_read_cores(&self) -> bool {
        self.cores.was_read(self.now_ns)
    }

    /// What is known of the job's tasks; they are listed then, where they are to be. Where the probes tell of all that come
    /// and end, and of a job that did nothing since, only one that executes nothing can have been moved in or out.
    pub fn listing(&mut self) -> Listing {
        let is_at_rest = self.moves.all.is_some() && self.moves.all == self.listed.all;
        let is_same = is_at_rest || self.listed_is_known;
        let is_due = match is_same {
            true => self.tasks.is_due_at_rest(self.now_ns),
            false => self.tasks.is_due(self.now_ns),
        };
        let is_sign = self.moves.tasks != self.listed.tasks;
        if is_due || is_sign || self.lists_again {
            self.tasks.note_read(self.now_ns);
            self.lists_again = is_sign && self.moves.tells_tasks;
            (self.listed, self.listed_is_known) = (self.moves, self.moves.tells_tasks);
            return Listing::Now;
        }
        if is_same { Listing::Same } else { Listing::Unknown }
    }
}
