//! `jobtrace top`: the jobs that run, by where their time goes, while one watches.

mod asking;
pub mod screen;
mod state;

use std::{
    path::PathBuf,
    sync::mpsc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::{
    base::{say::print, values::Time},
    record::{folders::Folders, running::SOCKET},
    report::now::{Jobs, Sort, lines},
    view::Style,
};
use asking::{Asking, Source};
use screen::Screen;
use state::State;

/// Where the agent listens, unless its `state.dir` says otherwise.
const SOCKET_DIR: &str = "/run/jobtrace";
/// A key is answered within this time, and a signal.
const WAKE: Duration = Duration::from_millis(100);
/// Shortest time between two questions.
const SHORTEST: Duration = Duration::from_millis(500);

/// Watch the jobs that run: where their time goes now.
///
/// Asks the agent of this node, which tells root and the group `jobtrace` of all jobs and others of their own, or reads
/// folders of records. ON CPU, WAITING, BLOCKED: shares of the time, or of all tasks' busy time where that is more, as
/// in a report. CORES, GPUS: used of held. MEMORY: needed at the peak, without the file cache.
/// DISK, NET: local disks and sockets, empty where nothing is known of any. Enter shows the report
/// of a job with its course. Values are those of the agent's last interval; of --once, and at first, averages since the
/// job's start.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  Watch the jobs of this node; q ends it:
      jobtrace top
  The jobs that are blocked most, once, for a script:
      jobtrace top --once --sort blocked
  The jobs of a cluster that shares a folder of records, which have running jobs every 15 minutes:
      jobtrace top --from /shared/jobtrace")]
pub struct Args {
    /// Where the agent listens: query.sock in its `state.dir`
    #[arg(long, value_name = "PATH", default_value_os_t = PathBuf::from(SOCKET_DIR).join(SOCKET))]
    pub socket: PathBuf,
    /// Read records in folders instead of asking the agent
    #[arg(long, value_name = "DIR", conflicts_with = "socket")]
    pub from: Vec<PathBuf>,
    /// What comes first: the jobs with most of it
    #[arg(long, value_enum, default_value_t)]
    pub sort: Sort,
    /// Time between two looks: seconds, or a number with a unit (ms, s, m, h)
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_interval)]
    pub interval: Duration,
    /// Print the table once and end, with averages since each job's start
    #[arg(long)]
    pub once: bool,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let Time(time) = text.parse()?;
    if time < SHORTEST { Err("shorter than 500 ms".into()) } else { Ok(time) }
}

/// Shows them until told to end; gives the exit status.
///
/// # Errors
/// When the agent or the folder does not answer, or there is no terminal; the message names the cure.
pub fn run(args: &Args) -> Result<u8> {
    let source = match &*args.from {
        [] => Source::Agent(args.socket.clone()),
        from => Source::Folders(Folders::of(from.to_vec())),
    };
    if args.once {
        let mut jobs = Jobs::default();
        jobs.take(&source.runs()?);
        print(&table(&jobs, args.sort))?;
        return Ok(source.tell_skipped());
    }
    let refused = "the live view needs a terminal: --once prints the table and ends";
    screen::check_terminal().context(refused)?;
    // What cannot be asked at all is said where it can be read afterwards.
    let first = source.runs()?;
    watch(args, source, &first)
}

/// The table on standard output; a pipe has no width.
fn table(jobs: &Jobs, sort: Sort) -> String {
    use std::io::IsTerminal;
    let mut style = Style::for_stdout();
    if !std::io::stdout().is_terminal() {
        style.width = usize::MAX;
    }
    let lines = lines(&jobs.sorted(sort), &style);
    lines.iter().map(|line| line.render(&style) + "\n").collect()
}

fn watch(args: &Args, source: Source, first: &[crate::record::select::Run]) -> Result<u8> {
    let style = Style::for_stdout();
    let mut state = State::new(args.sort, first, style.unicode);
    let (asking, answers) = Asking::start(source, args.interval)?;
    let mut screen = Screen::open(style)?;
    loop {
        screen.draw(&mut state)?;
        if let Some(signal) = wait(&answers, &asking, &mut state)? {
            return Ok(signal);
        }
        if state.is_over() {
            return Ok(0);
        }
    }
}

/// Waits until there is something to draw; gives the exit status where a signal ends it.
fn wait(
    answers: &mpsc::Receiver<asking::Answer>,
    asking: &Asking,
    state: &mut State,
) -> Result<Option<u8>> {
    let begin = Instant::now();
    loop {
        if let Some(signal) = screen::ended_by() {
            return Ok(Some(128 + signal));
        }
        if let Ok(answer) = answers.try_recv() {
            state.take(answer);
            return Ok(None);
        }
        if event::poll(WAKE).context("cannot read the terminal")? {
            match event::read().context("cannot read the terminal")? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if state.press(key) {
                        asking.wish(state.wish());
                    }
                    return Ok(None);
                }
                Event::Resize(..) => return Ok(None),
                _ => {}
            }
        }
        // The time on the screen goes on.
        if begin.elapsed() >= Duration::from_secs(1) {
            return Ok(None);
        }
    }
}
