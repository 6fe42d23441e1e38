//! `jobtrace software`: which programs, libraries and Python packages jobs ran.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;

use crate::{
    base::{
        config_file,
        say::{print, say},
        values::Time,
    },
    record::{days::Wanted, head::HeadIn},
    report::{
        json::lines,
        software::{By, Row, Software, Whole, csv, table, unused, unused_csv, unused_table},
    },
    source::{Place, Source},
    view::Style,
};

/// List which programs, libraries and Python packages jobs ran, where somebody watched for that: the agent with `census`,
/// or `jobtrace run --software`.
///
/// GPU H, BUSY: GPU hours that these jobs held, and the share in which a kernel ran. NO GPU: jobs that loaded a library
/// that computes on GPUs, and used none. NODES: of the median job, and what nine of ten do not exceed. TREND: jobs that
/// began in the later half of the time, compared with the earlier one. GOES WITH: what is run together more often than by
/// chance, and how many times, among jobs that ran any of what is listed; a user's array counts as one job there. An import is not yet a use: what one package brings
/// along counts as well. Several Python processes at once show multiprocessing, `distributed` shows Dask. Users see the
/// jobs whose records they may read: their own. The exit status is 1 if something could not be read.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  Which Python packages are in use, in the last 30 days:
      jobtrace software --by package --since 30d
  Which libraries do jobs on GPUs load and leave the GPU idle, as a spreadsheet:
      jobtrace software --by library --csv > libraries.csv
  What did one user's jobs come from: conda, modules, containers:
      jobtrace software --by stack --user ada
  Which installed packages did nobody load in half a year:
      pip list --format=freeze > installed.txt
      jobtrace software --by package --since 180d --installed installed.txt
  Jobs that import a GPU's package on a GPU node and hold no GPU:
      jobtrace software --json | jq 'select(.gpu_nodes_cpu_only_jobs > 0) | {name, gpu_nodes_cpu_only_jobs}'")]
pub struct Args {
    /// Where they are.
    #[command(flatten)]
    pub place: Place,
    /// What the rows are
    #[arg(long, value_enum, default_value_t = By::Package)]
    pub by: By,
    /// Only jobs that were seen within this time before now: 1h, 7d
    #[arg(long, value_name = "TIME")]
    pub since: Option<Time>,
    /// Only jobs of this user
    #[arg(long)]
    pub user: Option<String>,
    /// List what this file names and no job loaded: a name on each line, with a version or without, as `pip list
    /// --format=freeze` or `module -t avail` write them
    #[arg(long, value_name = "FILE")]
    pub installed: Option<PathBuf>,
    /// Order
    #[arg(long, value_enum, default_value_t = Sort::Jobs)]
    pub sort: Sort,
    /// Rows at most [default: 30, all of them as CSV and JSON]
    #[arg(long, short = 'n', value_name = "N")]
    pub lines: Option<usize>,
    /// All rows
    #[arg(long, conflicts_with = "lines")]
    pub all: bool,
    /// Print CSV, with all columns
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print JSON, one line per row
    #[arg(long)]
    pub json: bool,
}

/// What comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Sort {
    /// What most jobs ran.
    Jobs,
    /// What most users ran.
    Users,
    /// What ran in jobs that held most core hours.
    CoreHours,
    /// What ran in jobs that held most GPU hours.
    GpuHours,
    /// What grew most.
    Trend,
}

/// Rows of a table where nobody says how many.
const LINES: usize = 30;
/// Where there are more than that.
const CUT: &str = "there are more: --all lists them, -n N so many";
/// Where no job was watched.
const NONE: &str = "nothing is known of the software of these jobs: the agent records it with `census`, as does `jobtrace run --software`";

/// Prints the list and gives the exit status.
///
/// # Errors
/// When there is no such folder, or the list of what is installed cannot be read; the message names the cure.
pub fn run(args: &Args) -> Result<u8> {
    let source = args.place.open()?;
    let installed = args.installed.as_deref().map(|path| config_file::read(Some(path), ""));
    let installed = installed.transpose()?.flatten().map(|(text, _)| text);
    let (text, said) = list(args, installed.as_deref(), &source)?;
    print(&text)?;
    said.into_iter().for_each(say);
    Ok(source.tell_skipped())
}

fn list(
    args: &Args,
    installed: Option<&str>,
    source: &Source,
) -> Result<(String, Option<&'static str>)> {
    let (mut rows, whole) = sums(args, source)?;
    let style = Style::for_stdout();
    let none = (whole.watched() == 0).then_some(NONE);
    if let Some(installed) = installed {
        let (unused, all) = unused(installed, &rows);
        let text = match (args.csv, args.json) {
            (true, _) => unused_csv(&unused),
            (_, true) => lines(&unused)?,
            _ => unused_table(&unused, all, &whole, &style),
        };
        return Ok((text, none));
    }
    sort(&mut rows, args.sort);
    let is_page = !args.all && !args.csv && !args.json;
    let most = args.lines.unwrap_or(if is_page { LINES } else { usize::MAX });
    let is_cut = rows.len() > most && args.lines.is_none();
    rows.truncate(most);
    let text = match (args.csv, args.json) {
        (true, _) => csv(&rows),
        (_, true) => lines(&rows)?,
        _ => table(&rows, args.by, &whole, &style),
    };
    Ok((text, none.or(is_cut.then_some(CUT))))
}

fn sums(args: &Args, source: &Source) -> Result<(Vec<Row>, Whole)> {
    let since_ns = args.since.map_or(0, Time::ago_ns);
    let (by, user) = (args.by, args.user.as_deref());
    let mut software = Software::new(by);
    let add = |of_one: &mut Software, _: &Path, head: &HeadIn| {
        let is_seen = head.seen.or(head.end).unwrap_or(u64::MAX) >= since_ns;
        let is_wanted = is_seen && (user.is_none() || user == head.user.as_deref());
        if is_wanted {
            of_one.add(head);
        } else if is_seen {
            of_one.note_node(head);
        }
        is_wanted
    };
    let wanted = Wanted { since_ns, with_software: true, ..Wanted::default() };
    source.fold(&wanted, || Software::new(by), add, |of_one| software.merge(of_one))?;
    Ok(software.rows())
}

/// Puts `rows`, which are in the order of their jobs, in another one.
fn sort(rows: &mut [Row], by: Sort) {
    let key = |row: &Row| match by {
        Sort::Jobs => row.jobs as f64,
        Sort::Users => row.users as f64,
        Sort::CoreHours => row.core_hours,
        Sort::GpuHours => row.gpu_hours,
        // Of few jobs a trend says nothing.
        Sort::Trend if row.jobs < 4 => f64::NEG_INFINITY,
        Sort::Trend => row.trend().unwrap_or(f64::INFINITY),
    };
    rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
}
