//! `jobtrace jobs`: a list of the jobs that there are records of.

use anyhow::Result;
use clap::ValueEnum;

use crate::{
    base::{
        clock::wall_ns,
        say::{print, say},
        values::Time,
    },
    record::{
        days::Wanted,
        folders::first_day,
        head::HeadIn,
        select::{Run, runs},
    },
    report::{
        jobs::{Row, csv, table},
        json::lines,
    },
    source::{Place, Source},
    view::Style,
};

/// List jobs that there are records of: those that ended and those that run, the newest first.
///
/// CORES, GPUS: used of held. MEMORY: needed at the peak, without the file cache (≥: at least). IDLE CORE H, IDLE GPU
/// H: hours held and not used, as `jobtrace usage` adds them up. `--sort waste` puts first what left most idle, a GPU
/// hour counting as 16 core hours. The exit status is 1 if something could not be read.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  The last jobs of a user:
      jobtrace jobs --user ada
  Who left most cores and GPUs idle in the last day:
      jobtrace jobs --since 1d --sort waste
  All jobs into a spreadsheet, or into DuckDB:
      jobtrace jobs --all --csv > jobs.csv
      duckdb -c \"select user, sum(core_held_ns) / 3.6e12 from 'jobs.csv' group by user\"")]
pub struct Args {
    /// Where they are.
    #[command(flatten)]
    pub place: Place,
    /// Which ones.
    #[command(flatten)]
    pub filter: Filter,
    /// Only jobs in this state
    #[arg(long, value_enum)]
    pub state: Option<State>,
    /// Only jobs that were seen within this time before now: 1h, 7d
    #[arg(long, value_name = "TIME")]
    pub since: Option<Time>,
    /// Order
    #[arg(long, value_enum, default_value_t = Sort::Start)]
    pub sort: Sort,
    /// Jobs at most [default: 30, all of them as CSV and JSON]
    #[arg(long, short = 'n', value_name = "N")]
    pub lines: Option<usize>,
    /// All jobs
    #[arg(long, conflicts_with = "lines")]
    pub all: bool,
    /// Print CSV, with all columns
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print JSON, one line per job, with the files of its records
    #[arg(long)]
    pub json: bool,
}

/// Whose jobs; of one job all heads are or none.
#[derive(Debug, clap::Args)]
pub struct Filter {
    /// Only jobs of this user
    #[arg(long)]
    pub user: Option<String>,
    /// Only jobs of this account or project
    #[arg(long)]
    pub account: Option<String>,
    /// Only jobs in this partition or queue
    #[arg(long)]
    pub partition: Option<String>,
    /// Only jobs of this scheduler (slurm, pbs, lsf, run, …)
    #[arg(long)]
    pub manager: Option<String>,
    /// Only jobs of this name
    #[arg(long)]
    pub name: Option<String>,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum State {
    /// It had not ended when its record was written.
    Running,
    /// It had not ended when it was last seen, more than a day ago.
    Lost,
    /// It ended; its scheduler alone knows how.
    Ended,
    /// Its exit status was 0.
    Succeeded,
    /// It was another one, or a signal ended it.
    Failed,
    /// Processes were killed for lack of memory.
    OutOfMemory,
    /// It ended at its time limit.
    TimeLimit,
}

/// What comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The newest.
    Start,
    /// The most hours held and not used, a GPU hour counting as 16 core hours.
    Waste,
    /// The longest.
    Elapsed,
}

/// Prints the list and gives the exit status.
///
/// # Errors
/// When there is no such folder or database; the message names the cure.
pub fn run(args: &Args) -> Result<u8> {
    let source = args.place.open()?;
    let (text, said) = list(args, &source)?;
    print(&text)?;
    said.into_iter().for_each(say);
    Ok(source.tell_skipped())
}

/// Rows of a table where nobody says how many.
const LINES: usize = 30;
/// Where there are more than that.
const CUT: &str = "there are more jobs: --all lists them, -n N so many";
/// Where there is none.
const NONE: &str =
    "there is no such job: leave out options that choose, or name other folders with --from";

/// The list of what is in `source` as it is printed, and what to say beside it.
///
/// # Errors
/// When there is no such folder or database.
pub fn list(args: &Args, source: &Source) -> Result<(String, Option<&'static str>)> {
    let is_page = !args.all && !args.csv && !args.json;
    let most = if is_page { args.lines.or(Some(LINES)) } else { args.lines };
    // One more tells whether there are more.
    let mut rows = rows(args, source, most.map(|most| most.saturating_add(1)))?;
    match args.sort {
        Sort::Start => rows.sort_by_key(|row| std::cmp::Reverse(row.start)),
        Sort::Waste => rows.sort_by_key(|row| std::cmp::Reverse(row.waste())),
        Sort::Elapsed => rows.sort_by_key(|row| std::cmp::Reverse(row.elapsed_ns)),
    }
    let is_cut = most.is_some_and(|most| rows.len() > most) && args.lines.is_none();
    rows.truncate(most.unwrap_or(usize::MAX));
    let said = if rows.is_empty() { Some(NONE) } else { is_cut.then_some(CUT) };
    let text = match (args.csv, args.json) {
        (true, _) => csv(&rows),
        (_, true) => lines(&rows)?,
        _ => table(&rows, &Style::for_stdout()),
    };
    Ok((text, said))
}

/// The jobs that are wanted; of a list by time no more days are read than it needs.
fn rows(args: &Args, source: &Source, most: Option<usize>) -> Result<Vec<Row>> {
    let since_ns = args.since.map_or(0, Time::ago_ns);
    let filter = &args.filter;
    // Any other order needs all of them.
    let Some(most) = most.filter(|_| args.sort == Sort::Start) else {
        let runs = source.runs(since_ns, |head| filter.is_wanted(head))?;
        return Ok(wanted(args, since_ns, &runs).map(row).collect());
    };
    let (mut so_far, mut first): (Vec<Run>, Option<String>) = (Vec::new(), None);
    for today in source.days(since_ns)? {
        // A run that goes back further has its parts there.
        if first.as_deref().is_some_and(|first| &*today < first) {
            break;
        }
        let of_day = Wanted { first: Some(&today), last: Some(&today), ..Wanted::default() };
        let heads = source.heads(&of_day, |head| filter.is_wanted(head))?;
        let earlier = so_far.into_iter().flat_map(|run| run.parts);
        so_far = runs(earlier.chain(heads).collect());
        let page = || wanted(args, since_ns, &so_far);
        first = page().map(first_day).min().filter(|_| page().count() >= most);
    }
    Ok(wanted(args, since_ns, &so_far).map(row).collect())
}

fn row(run: &Run) -> Row {
    Row::from(run).at(wall_ns())
}

fn wanted<'a>(args: &Args, since_ns: u64, runs: &'a [Run]) -> impl Iterator<Item = &'a Run> {
    let state = args.state.and_then(|state| state.to_possible_value());
    runs.iter().filter(move |run| {
        let is_state = state.as_ref().is_none_or(|state| state.get_name() == row(run).state);
        run.seen_ns() >= since_ns && is_state
    })
}

impl Filter {
    fn is_wanted(&self, head: &HeadIn) -> bool {
        [
            (&self.user, &head.user),
            (&self.account, &head.account),
            (&self.partition, &head.partition),
            (&self.manager, &head.manager),
            (&self.name, &head.name),
        ]
        .iter()
        .all(|(wanted, known)| wanted.is_none() || wanted.as_deref() == known.as_deref())
    }
}
