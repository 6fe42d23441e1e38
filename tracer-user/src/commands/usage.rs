//! `jobtrace usage`: what users, accounts, nodes held and used.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::{
    base::{
        config_file,
        say::print,
        text::clean,
        values::{Time, UtcOffset},
    },
    record::{days::Wanted, head::HeadIn},
    report::usage::{
        By, Usage, csv, json,
        policies::{DEFAULT_FILE, Policies},
        table,
    },
    source::{Place, Source},
    view::Style,
};

/// Add up what was held and used, by user, account, partition, node, hour or weekday.
///
/// JOBS: an id that is used again, or a job that is requeued, is another job. CORE H, GPU H: hours held; USED: the
/// part of them in which a task ran, or a kernel on the GPU; IDLE CORE H, IDLE GPU H: what each job left of them; who
/// left most comes first, a GPU hour counting as 16 core hours. GIB H: memory allowed times the time; NEEDED: the most
/// that was needed of it, without the file cache. CPU ONLY: core hours of jobs without a GPU on nodes on which others
/// held some; ALONE: the part of them in which no other job was on the node, so that nobody was kept waiting. By user
/// and by account it also tells who is over a policy of the site. The exit status is 1 if something could not be read.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  Which users leave most cores idle, in the last 30 days:
      jobtrace usage --by user --since 30d
  When is the cluster busy, by the clocks of a site an hour ahead of UTC:
      jobtrace usage --by hour --utc-offset +01:00 --from /shared/jobtrace
  The same as CSV:
      jobtrace usage --by account --csv
  Who is over a policy of one's own (/etc/jobtrace/policies.toml explains how to write one):
      jobtrace usage --since 7d --policies idle.toml --json | jq -r 'select(.policies != []) | .key'")]
pub struct Args {
    /// Where they are.
    #[command(flatten)]
    pub place: Place,
    /// What the rows are
    #[arg(long, value_enum, default_value_t = By::User)]
    pub by: By,
    /// For hours and weekdays: how far the clocks that they are told by are ahead of UTC [default: +00:00]
    #[arg(long, value_name = "+HH:MM", allow_hyphen_values = true)]
    pub utc_offset: Option<UtcOffset>,
    /// Only jobs that were seen within this time before now: 1h, 7d
    #[arg(long, value_name = "TIME")]
    pub since: Option<Time>,
    /// The site's policies, by user and by account [default: /etc/jobtrace/policies.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    pub policies: Option<PathBuf>,
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
    print(&list(args, &source)?)?;
    Ok(source.tell_skipped())
}

/// The sums over what is in `source` as they are printed.
///
/// # Errors
/// When there is no such folder or database, or something is wrong in the file of policies.
pub fn list(args: &Args, source: &Source) -> Result<String> {
    let policies = policies(args)?;
    let (by, since_ns) = (args.by, args.since.map_or(0, Time::ago_ns));
    let offset = args.utc_offset.unwrap_or_default();
    ensure!(
        args.utc_offset.is_none() || matches!(by, By::Hour | By::Weekday),
        "--utc-offset is about hours and weekdays: add --by hour or --by weekday"
    );
    let mut usage = Usage::new(by, offset);
    let add = |of_one: &mut Usage, _: &Path, head: &HeadIn| {
        let is_wanted = head.seen.or(head.end).unwrap_or(u64::MAX) >= since_ns;
        if is_wanted {
            of_one.add(head);
        }
        is_wanted
    };
    let wanted = Wanted { since_ns, ..Wanted::default() };
    source.fold(&wanted, || Usage::new(by, offset), add, |of_one| usage.merge(of_one))?;
    let mut rows = usage.rows();
    let mut over = String::new();
    if let Some((policies, path)) = policies {
        let said = policies.apply(&mut rows);
        if !said.is_empty() {
            over = format!("over a policy of {}:\n", path.display());
        }
        said.iter().for_each(|line| over += &format!("  {}\n", clean(line, true)));
    }
    Ok(match (args.csv, args.json) {
        (true, _) => csv(&rows),
        (_, true) => json(&rows)?,
        _ => table(&rows, by, offset, &Style::for_stdout()) + &over,
    })
}

/// The site's policies with their file, where they are about the rows.
fn policies(args: &Args) -> Result<Option<(Policies, &Path)>> {
    let named = args.policies.as_deref();
    if !matches!(args.by, By::User | By::Account) {
        ensure!(
            named.is_none(),
            "policies are about users and accounts: leave out --policies, or use --by user"
        );
        return Ok(None);
    }
    let Some((text, path)) = config_file::read(named, DEFAULT_FILE)? else { return Ok(None) };
    Ok(Some((Policies::parse(&text, path)?, path)))
}
