//! `run --top`: the command watched while it runs. On a thread of its own: a terminal that does not take what is drawn
//! delays neither a reading nor a signal, and one that is gone ends the view alone.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};

use super::kept::Kept;
use crate::{
    base::say::say,
    record::{Record, head::Head, select::runs},
    report::{Whole, jobs::Row, now::key},
    screen::{
        GiveUp, Over, SHORTEST, Screen, Stream, is_given_up, is_gone,
        state::{Act, Answer, State},
        watch,
    },
};

/// When the view was closed, the command's output reaches the terminal within this time.
const PASS_ON: Duration = Duration::from_millis(100);
/// At the end the terminal is given up when it has taken nothing for this time: Ctrl-S holds it, as does a line that is
/// dead and has not been noticed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Whether the view has ended is looked at this often.
const LOOK: Duration = Duration::from_millis(10);
const GONE: &str = "the terminal is gone or takes nothing; what the command wrote there is lost";

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
    /// Whether a view has begun that nobody has closed.
    is_open: Arc<AtomicBool>,
}

impl Taken {
    /// Takes it; the command's streams are those of this process from now on.
    ///
    /// # Errors
    /// When the terminal refuses, or the command's output cannot be kept.
    pub fn take(terminal: Stream) -> Result<Self> {
        let style = terminal.style();
        let is_open = Arc::new(AtomicBool::new(false));
        let open = Arc::clone(&is_open);
        let give_up: GiveUp = Arc::new(move |stalled| !open.load(Relaxed) && stalled >= PATIENCE);
        let screen = Screen::open(terminal, style, give_up)?;
        let kept = Kept::begin(screen.tty().clone())?;
        Ok(Self { screen, kept, unicode: style.unicode, is_open })
    }

    /// Shows the run that `first` is of, until that is over or the user wants no more.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn show(self, first: Record) -> Result<View> {
        // One that nobody has taken yet is as good as the next.
        let (give, answers) = sync_channel(1);
        let state = State::of_command(answer(first), self.unicode);
        let is_open = Arc::clone(&self.is_open);
        is_open.store(true, Relaxed);
        let view = thread::Builder::new().name("view".into());
        let thread = view.spawn(move || self.run(state, &answers));
        let thread = thread.context("cannot show the run on a thread of its own")?;
        Ok(View { give: Some(give), thread: Some(thread), is_open, due_ns: 0 })
    }

    fn run(mut self, mut state: State, answers: &Receiver<Answer>) -> Result<()> {
        let act = |act| match act {
            // As the terminal itself does, whose keys these are else: to all that run on it now.
            Act::Signal(signal) => signal_the_group(signal),
            Act::Wish(_) => {}
        };
        let is_over = || !self.is_open.load(Relaxed);
        let watched = watch(&mut self.screen, &mut state, answers, is_over, act);
        let Self { screen, mut kept, .. } = self;
        let closed = screen.close();
        if matches!(watched, Ok(Over::Gone)) || closed.is_err() {
            kept.leave();
            bail!(GONE);
        }
        // The command goes on, if the user has closed the view.
        loop {
            let end = answers.recv_timeout(PASS_ON).err();
            kept.pass_on().map_err(|error| match is_gone(&error) || is_given_up(&error) {
                true => anyhow!(GONE),
                false => {
                    anyhow!(error).context("cannot write the command's output to the terminal")
                }
            })?;
            if end == Some(RecvTimeoutError::Disconnected) {
                return watched.map(drop);
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
    is_open: Arc<AtomicBool>,
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

    /// Closes it and waits until the terminal is as it was and has what was kept, as long as `go_on` says so and the
    /// terminal takes something. One that does not is left alone from then on.
    pub fn close(mut self, go_on: impl Fn() -> Result<()>) {
        self.end(go_on);
    }

    fn end(&mut self, go_on: impl Fn() -> Result<()>) {
        self.is_open.store(false, Relaxed);
        self.give = None;
        let Some(thread) = self.thread.take() else { return };
        while !thread.is_finished() {
            if let Err(error) = go_on() {
                return complain(&error);
            }
            thread::sleep(LOOK);
        }
        let ended = thread.join().unwrap_or_else(|_| Err(anyhow!("it has failed")));
        if let Err(error) = ended {
            complain(&error);
        }
    }
}

fn complain(error: &anyhow::Error) {
    say(format_args!("the view of the run ended early: {error:#}"));
}

impl Drop for View {
    fn drop(&mut self) {
        self.end(|| Ok(()));
    }
}
