//! `jobtrace usage`: what users, accounts, nodes held and used.

use anyhow::Result;

use crate::{
    base::{clock::wall_ns, say::print, values::Time},
    report::{
        json::lines,
        usage::{By, Usage, csv, table},
    },
    source::{Place, Source},
    view::Style,
};

/// Add up what was held and used, by user, account, partition, node, hour or weekday.
///
/// CORE H, GPU H: hours held; USED: the part of them in which a task ran, or a kernel on the GPU. GIB H: memory
/// allowed times the time; NEEDED: the most that was needed of it, without the file cache. CPU ONLY: core hours of
/// jobs without a GPU on nodes on which others held some. The exit status is 1 if something could not be read.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  Which users leave most cores idle, in the last 30 days:
      jobtrace usage --by user --since 30d
  When is the cluster busy:
      jobtrace usage --by hour --from /shared/jobtrace
  The same as CSV:
      jobtrace usage --by account --csv")]
pub struct Args {
    /// Where they are.
    #[command(flatten)]
    pub place: Place,
    /// What the rows are
    #[arg(long, value_enum, default_value_t = By::User)]
    pub by: By,
    /// Only jobs that were seen within this time before now: 1h, 7d
    #[arg(long, value_name = "TIME")]
    pub since: Option<Time>,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print JSON, one line per row
    #[arg(long)]
    pub json: bool,
}

/// Prints the sums and gives the exit status.
///
/// # Errors
/// When there is no such folder or database; the message names the cure.
pub fn run(args: &Args) -> Result<u8> {
    let source = args.place.open()?;
    print(&list(args, &*source)?)?;
    Ok(source.tell_skipped())
}

/// The sums over what is in `source` as they are printed.
///
/// # Errors
/// When there is no such folder or database.
pub fn list(args: &Args, source: &dyn Source) -> Result<String> {
    let since_ns = args.since.map_or(0, |since| {
        wall_ns().saturating_sub(u64::try_from(since.0.as_nanos()).unwrap_or(u64::MAX))
    });
    let mut usage = Usage::new(args.by);
    let days = source.days(since_ns)?;
    source.visit(&|day| days.iter().any(|known| known == day), &mut |_, head| {
        if head.seen.or(head.end).unwrap_or(u64::MAX) >= since_ns {
            usage.add(&head);
        }
    })?;
    let rows = usage.rows();
    Ok(match (args.csv, args.json) {
        (true, _) => csv(&rows),
        (_, true) => lines(&rows)?,
        _ => table(&rows, args.by, &Style::for_stdout()),
    })
}
