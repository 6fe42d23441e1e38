//! Counting the file operations of one job, on a thread of its own: loading takes longer than the measuring loop or
//! other clients can wait. It ends by itself, and all that it loaded with it.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tokio::sync::mpsc::UnboundedSender;

use super::{Caller, server::Turn};
use crate::{
    base::{
        clock::{monotonic_ns, wall_at},
        say::Level,
        units::{count, duration, long_duration},
    },
    commands::agent::{hierarchy::View, log::Log},
    io::{EARLY, Io, Whose, load},
    model::{
        files::Files,
        group::Group,
        slow_ops::longest,
        tables::{IO, Io as Field},
    },
    record::{Record, running::SoFar},
};

mod answer;
mod space;

pub use answer::{Used, whole};
use space::{MOST_LOOKED_AT, Space};

/// Time between two looks at the job's mounts, which may be many.
const FOLLOW_EVERY: Duration = Duration::from_secs(5);
/// Time between two readings, and between two looks at whether the job is still there.
const PAUSE: Duration = Duration::from_secs(1);

/// What is to be counted.
#[derive(Debug)]
pub struct Subject {
    /// The job's record up to now.
    pub record: Record,
    /// Its topmost directory, below the root of the hierarchy.
    pub root: PathBuf,
    /// The id of that: another of the same name is another's.
    pub cgroup: u64,
    /// Where that is.
    pub view: View,
    /// Whose it is, where that is known.
    pub owner: Option<u32>,
}

/// What the thread has to tell.
pub enum Told {
    /// From now on all is counted.
    Began,
    /// What came of it up to now.
    SoFar(SoFar),
    /// What came of it: it was read for the last time just now.
    Counted(Box<Counted>),
    /// It is over, and nothing of it is loaded any more.
    Ended(Result<()>),
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Counted {
    /// When it began, CLOCK_MONOTONIC.
    pub from_ns: u64,
    /// When it was read for the last time.
    pub until_ns: u64,
    /// Whether the job had ended then.
    pub has_ended: bool,
    pub groups: Vec<Group>,
    pub files: Files,
    pub notes: Vec<String>,
}

/// One measurement that was granted.
pub struct Dive {
    pub subject: Subject,
    pub caller: Caller,
    /// For how long at most.
    pub most: Duration,
    pub log: Arc<Log>,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Caller,
    Agent,
    Nobody,
    Job,
    Time,
    Root,
    Reading,
}

impl Why {
    fn words(self) -> &'static str {
        match self {
            Self::Caller => "its caller ended it",
            Self::Agent => "the agent ends",
            Self::Nobody => "nobody waits for it any more",
            Self::Job => "the job ended",
            Self::Time => "the time is over",
            Self::Root => "root wants to count",
            Self::Reading => "a reading failed",
        }
    }

    /// What whoever reads the numbers must know.
    fn note(self) -> Option<String> {
        let why = match self {
            Self::Agent => "the agent was stopped",
            Self::Root => "root has file operations counted, of this job or another one",
            _ => return None,
        };
        Some(format!("counting ended before its time: {why}"))
    }
}

impl Dive {
    /// Begins, and holds `turn` while anything is loaded. It ends early when `stop` says so, or when nobody is there to say it.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start(
        self,
        mut turn: Turn,
        stop: Receiver<Why>,
        tell: UnboundedSender<Told>,
    ) -> Result<()> {
        let count = move || {
            let ended = self.count(&mut turn, &stop, &tell);
            // Nothing is loaded any more.
            drop(turn);
            let _ = tell.send(Told::Ended(ended));
        };
        let thread = thread::Builder::new().name("io".into()).spawn(count);
        thread.map(drop).context("cannot count on a thread of its own")
    }

    fn count(
        &self,
        turn: &mut Turn,
        stop: &Receiver<Why>,
        tell: &UnboundedSender<Told>,
    ) -> Result<()> {
        let job = &self.subject.record.job().job;
        let who = self.caller.who();
        let ended = self.counted(turn, stop, tell);
        match &ended {
            Ok((ops, took, why)) => self.log.each(
                Level::Notice,
                format_args!(
                    "counted {} file operations of job {job} in {} for {who}: {}",
                    count(*ops),
                    long_duration(took.as_nanos() as u64),
                    why.words()
                ),
            ),
            Err(error) => self.log.warning(format_args!(
                "cannot count the file operations of job {job} for {who}: {error:#}"
            )),
        }
        ended.map(drop)
    }

    fn counted(
        &self,
        turn: &mut Turn,
        stop: &Receiver<Why>,
        tell: &UnboundedSender<Told>,
    ) -> Result<(u64, Duration, Why)> {
        let begin = Instant::now();
        let Subject { view, root, cgroup, record, owner } = &self.subject;
        let is_there = || view.id(root) == Some(*cgroup);
        ensure!(is_there(), "the job has ended");
        let space = || Space::of(view, root, *owner);
        let Space { processes, mut is_one_of_several } = space();
        let whose = Whose { cgroup: *cgroup, runs: true, mounts_of: Some(processes) };
        let loaded = load(view.layout(), &whose);
        turn.set_loading(begin.elapsed());
        let mut io = loaded.context("file operations cannot be counted on this node")?;
        self.log.each(
            Level::Notice,
            format_args!(
                "counting the file operations of job {} for {}, for {} at most; loaded in {}",
                record.job().job,
                self.caller.who(),
                long_duration(self.most.as_nanos() as u64),
                duration(begin.elapsed().as_nanos() as u64)
            ),
        );
        let begin = Instant::now();
        let mut counted = Counted { from_ns: monotonic_ns(), ..Counted::default() };
        // Those that it was loaded with may be the agent's own, for want of a process of the job's.
        let (mut followed, mut knows_mounts) = (begin, false);
        let mut follow = |io: &mut Io| {
            let space = space();
            is_one_of_several |= space.is_one_of_several;
            io.follow(&space.processes)
        };
        // Who waits for it may have gone.
        let _ = tell.send(Told::Began);
        let why = loop {
            let until = (Instant::now() + PAUSE).min(begin + self.most);
            if let Some(why) = pause(until, stop, &mut io) {
                break why;
            }
            if !is_there() {
                break Why::Job;
            }
            if begin.elapsed() >= self.most {
                break Why::Time;
            }
            if turn.is_wanted() {
                break Why::Root;
            }
            if !knows_mounts || followed.elapsed() >= FOLLOW_EVERY {
                knows_mounts |= follow(&mut io);
                followed = Instant::now();
            }
            if !counted.take(io.read())? {
                break Why::Reading;
            }
            let elapsed_ns = begin.elapsed().as_nanos() as u64;
            let _ = tell.send(Told::SoFar(SoFar { elapsed_ns, ops: counted.ops() }));
        };
        follow(&mut io);
        io.stop();
        if why != Why::Reading {
            counted.take(io.read())?;
        }
        let ended = (counted.ops(), counted.took(), why);
        counted.has_ended = why == Why::Job;
        let latency = std::mem::take(&mut counted.files.latency);
        counted.files = Files { latency, ..io.files() };
        if why != Why::Job {
            let hanging = io.under_way(&view.some_pids(root, MOST_LOOKED_AT), counted.from_ns);
            counted.files.slowest = longest([counted.files.slowest, hanging].concat());
        }
        counted.notes.extend(io.notes());
        counted.notes.extend(is_one_of_several.then(several_spaces));
        counted.notes.extend(why.note());
        let _ = tell.send(Told::Counted(Box::new(counted)));
        Ok(ended)
    }
}

/// Waits until `until`, or until it is to end, which it then tells. Meanwhile files are read where that is due.
fn pause(until: Instant, stop: &Receiver<Why>, io: &mut Io) -> Option<Why> {
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        match stop.recv_timeout(left.min(EARLY)) {
            Ok(why) => return Some(why),
            Err(RecvTimeoutError::Disconnected) => return Some(Why::Nobody),
            // What cannot be read is said with the next reading.
            Err(RecvTimeoutError::Timeout) => drop(io.read_early()),
        }
    }
    None
}

impl Counted {
    /// Takes a reading, cumulative; gives whether it could be made. After one that could, another leaves what is known,
    /// with a note.
    ///
    /// # Errors
    /// When it is the first and failed.
    fn take(&mut self, reading: Result<Vec<Group>>) -> Result<bool> {
        match reading {
            Ok(groups) => {
                let (until_ns, since_ns) = (monotonic_ns(), self.until_ns.max(self.from_ns));
                let (end_ns, span_ns) = (wall_at(until_ns), until_ns.saturating_sub(since_ns));
                self.files.latency.add_since(end_ns, span_ns, &groups, &self.groups);
                (self.groups, self.until_ns) = (groups, until_ns);
            }
            Err(error) if self.until_ns == 0 => return Err(error),
            Err(error) => {
                self.notes.push(format!("counting ended before its time: {error:#}"));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How many operations there were.
    fn ops(&self) -> u64 {
        let all = self.groups.iter().filter(|group| group.is(&IO));
        all.filter_map(|group| group.number(Field::ops)).sum()
    }

    /// For how long they were counted.
    fn took(&self) -> Duration {
        Duration::from_nanos(self.until_ns.saturating_sub(self.from_ns))
    }
}

fn several_spaces() -> String {
    "the job's processes have different mounts: paths are told by those that most of the owner's processes have".into()
}

#[cfg(test)]
mod tests;
