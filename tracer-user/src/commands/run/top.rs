//! `run --top`: the command watched while it runs. On a thread of its own: a terminal that does not take what is drawn
//! delays neither a reading nor a signal.

use std::{
    path::PathBuf,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};

use super::kept::Kept;
use crate::{
    base::say::say,
    record::{Record, head::Head, select::runs},
    report::{Whole, jobs::Row, now::key},
    screen::{
        SHORTEST, Screen, Stream,
        state::{Act, Answer, State},
        watch,
    },
};

/// When the view was closed, the command's output reaches the terminal within this time.
const PASS_ON: Duration = Duration::from_millis(100);

/// The terminal that there is to watch on.
///
/// # Errors
/// When there is none.
pub fn terminal() -> Result<Stream> {
    Stream::find().context("--top needs a terminal: leave it out, and the summary comes at the end")
}

/// A terminal that was taken over, before there is anything to see.
pub struct Taken {
    // In this order they go: what was kept belongs on the terminal as it was.
    screen: Screen,
    kept: Kept,
    unicode: bool,
}

impl Taken {
    /// Takes it; the command's streams are those of this process from now on.
    ///
    /// # Errors
    /// When the terminal refuses, or the command's output cannot be kept.
    pub fn take(terminal: Stream) -> Result<Self> {
        let style = terminal.style();
        let screen = Screen::open(terminal, style)?;
        Ok(Self { screen, kept: Kept::begin()?, unicode: style.unicode })
    }

    /// Shows the run that `first` is of, until that is over or the user wants no more.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn show(self, first: Record) -> Result<View> {
        // One that nobody has taken yet is as good as the next.
        let (give, answers) = sync_channel(1);
        let state = State::of_command(answer(first), self.unicode);
        let view = thread::Builder::new().name("view".into());
        let thread = view.spawn(move || self.run(state, &answers));
        let thread = thread.context("cannot show the run on a thread of its own")?;
        Ok(View { give: Some(give), thread: Some(thread), due_ns: 0 })
    }

    fn run(mut self, mut state: State, answers: &Receiver<Answer>) -> Result<()> {
        let act = |act| match act {
            // As the terminal itself does, whose keys these are else: to all that run on it now.
            Act::Signal(signal) => signal_the_group(signal),
            Act::Wish(_) => {}
        };
        let watched = watch(&mut self.screen, &mut state, answers, || false, act);
        let Self { screen, mut kept, .. } = self;
        drop(screen);
        kept.lead_back();
        // The command goes on, if the user has closed the view.
        loop {
            kept.pass_on().context("cannot write the command's output to the terminal")?;
            match answers.recv_timeout(PASS_ON) {
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return watched,
            }
        }
    }
}

fn signal_the_group(number: i32) {
    // SAFETY: kill takes any numbers; 0 is the own process group, which the command is in.
    unsafe { libc::kill(0, number) };
}

/// What the view shows of a run.
fn answer(record: Record) -> Answer {
    let runs = runs(vec![(PathBuf::new(), Head::from(&record))]);
    let key = runs.first().map(|run| key(&Row::from(run)));
    Answer { runs: Ok(runs), whole: key.zip(Whole::of(vec![record])) }
}

/// A run that is shown.
pub struct View {
    give: Option<SyncSender<Answer>>,
    thread: Option<JoinHandle<Result<()>>>,
    due_ns: u64,
}

impl View {
    /// Shows `record`, the run up to `elapsed_ns`, where a new look is due.
    pub fn show_if_due(&mut self, record: impl FnOnce() -> Record, elapsed_ns: u64) {
        if elapsed_ns < self.due_ns {
            return;
        }
        self.due_ns = elapsed_ns.saturating_add(SHORTEST.as_nanos() as u64);
        if let Some(give) = &self.give {
            // A view that is behind or over has no room.
            let _ = give.try_send(answer(record()));
        }
    }
}

impl Drop for View {
    /// Closes it; then the terminal is as it was, and has what was kept.
    fn drop(&mut self) {
        self.give = None;
        let Some(thread) = self.thread.take() else { return };
        let ended = thread.join().unwrap_or_else(|_| Err(anyhow!("it has failed")));
        if let Err(error) = ended {
            say(format_args!("the view of the run ended early: {error:#}"));
        }
    }
}
