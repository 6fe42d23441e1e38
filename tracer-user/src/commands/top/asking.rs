//! Asking for the jobs that run, on a thread of its own: keys are answered while the agent or a disk is not.

use std::{
    path::PathBuf,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use crate::{
    base::clock::wall_ns,
    record::{
        folders::Folders,
        running,
        select::{Run, runs},
    },
    report::{
        Whole,
        jobs::Row,
        now::{Key, key},
    },
};

/// A record of a job that runs is written at least as often; what was not seen for longer is gone.
const SEEN_NS: u64 = 3_600_000_000_000;
/// Reading folders takes at most one part in so many of the time.
const REST: u32 = 10;

/// Where jobs are asked for.
pub enum Source {
    /// At the agent's socket.
    Agent(PathBuf),
    /// In folders of records.
    Folders(Folders),
}

impl Source {
    /// The jobs that run.
    ///
    /// # Errors
    /// When nobody answers or a folder is not there; the message names the cure.
    pub fn runs(&self) -> Result<Vec<Run>> {
        match self {
            Self::Agent(socket) => {
                let heads = running::heads(socket).context(
                    "no running jobs: is the agent running (`systemctl status jobtrace`)? --from DIR reads records \
                     instead",
                )?;
                Ok(runs(heads.into_iter().map(|head| (PathBuf::new(), head)).collect()))
            }
            Self::Folders(folders) => {
                let since_ns = wall_ns().saturating_sub(SEEN_NS);
                Ok(folders.runs(&folders.days()?, since_ns, |_| true))
            }
        }
    }

    /// All of one of `runs`; `None` where it has ended meanwhile.
    fn whole(&self, runs: &[Run], wish: &Key) -> Result<Option<Whole>> {
        let Some(run) = runs.iter().find(|run| key(&Row::from(*run)) == *wish) else {
            return Ok(None);
        };
        let records = match self {
            Self::Agent(socket) => {
                let mut records = running::records(socket, &wish.1)?;
                records.retain(|record| record.job().manager == wish.0);
                records
            }
            Self::Folders(folders) => folders.read(run)?,
        };
        Ok(Whole::of(records))
    }

    /// Says what could not be read; gives the exit status.
    pub fn tell_skipped(&self) -> u8 {
        match self {
            Self::Agent(_) => 0,
            Self::Folders(folders) => folders.tell_skipped(),
        }
    }
}

/// What was found: the jobs, and of the one that is wished for all that is known.
pub struct Answer {
    /// The jobs that run.
    pub runs: Result<Vec<Run>>,
    /// The one that was wished for, if it runs.
    pub whole: Option<(Key, Whole)>,
}

/// Who asks.
pub struct Asking {
    wishes: Sender<Option<Key>>,
}

impl Asking {
    /// Asks again and again, `interval` apart.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start(source: Source, interval: Duration) -> Result<(Self, Receiver<Answer>)> {
        let (wishes, wished) = mpsc::channel();
        let (give, answers) = mpsc::channel();
        let ask = move || {
            let mut wish = None;
            let mut pause = interval;
            while let Some(next) = next_wish(&wished, wish, pause) {
                wish = next;
                let begin = Instant::now();
                let mut runs = source.runs();
                let whole = match (&runs, &wish) {
                    (Ok(known), Some(key)) => source.whole(known, key),
                    _ => Ok(None),
                };
                let whole = whole.unwrap_or_else(|error| {
                    runs = Err(error);
                    None
                });
                pause = interval.max(begin.elapsed() * REST);
                if give.send(Answer { runs, whole: wish.clone().zip(whole) }).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("asking".into()).spawn(ask);
        thread.context("cannot ask for the jobs on a thread of its own")?;
        Ok((Self { wishes }, answers))
    }

    /// Asks at once, and from now on for that job too.
    pub fn wish(&self, wish: Option<Key>) {
        // Who asks no more has no answer for anybody.
        let _ = self.wishes.send(wish);
    }
}

/// The wish that holds after `pause`, or as soon as there is another; `None` where nobody wishes any more.
fn next_wish(
    wished: &Receiver<Option<Key>>,
    wish: Option<Key>,
    pause: Duration,
) -> Option<Option<Key>> {
    match wished.recv_timeout(pause) {
        Ok(wish) => Some(wished.try_iter().last().unwrap_or(wish)),
        Err(RecvTimeoutError::Timeout) => Some(wish),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}
