//! `jobtrace top`: the jobs that run, by where their time goes, while one watches.

mod asking;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};

use crate::{
    base::{ending, say::print, values::Time},
    record::{folders::Folders, running::SOCKET, select::Run},
    report::now::{Jobs, Sort, lines},
    screen::{
        self, Over, SHORTEST, Screen, Stream,
        state::{Act, State},
    },
    view::Style,
};
use asking::{Asking, Source};

/// Where the agent listens, unless its `state.dir` says otherwise.
const SOCKET_DIR: &str = "/run/jobtrace";

/// Told to end, it waits no longer for a terminal that takes nothing.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// Watch the jobs that run: where their time goes now.
///
/// Asks the agent of this node, which tells root and the group `jobtrace` of all jobs and others of their own, or reads
/// folders of records. ON CPU, WAITING, BLOCKED: shares of the time, or of all tasks' busy time where that is more, as
/// in a report. CORES, GPUS: used of held. MEMORY: needed at the peak, without the file cache (≥: at least).
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
    Stream::Output.checked().context(refused)?;
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

fn watch(args: &Args, source: Source, first: &[Run]) -> Result<u8> {
    let style = Style::for_stdout();
    let mut state = State::new(args.sort, first, style.unicode);
    let (asking, answers) = Asking::start(source, args.interval)?;
    ending::catch()?;
    let is_over = || ending::signal().is_some();
    let give_up = Arc::new(move |stalled| is_over() && stalled >= END_PATIENCE);
    let mut screen = Screen::open(Stream::Output, style, give_up)?;
    let act = |act| match act {
        Act::Wish(job) => asking.wish(job),
        Act::Signal(_) => {}
    };
    let over = screen::watch(&mut screen, &mut state, &answers, is_over, act)?;
    match (ending::signal(), over) {
        (Some(signal), _) => Ok(128 + signal),
        // The kernel tells the leader of the session alone.
        (None, Over::Gone) => Ok(128 + libc::SIGHUP as u8),
        (None, Over::Told) => {
            ensure!(state.is_over(), "the thread that asks for the jobs has failed");
            Ok(0)
        }
    }
}
