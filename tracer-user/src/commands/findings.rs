//! `jobtrace findings`: what is to be acted on, for scripts.

mod state;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;

use crate::{
    base::{clock::wall_ns, values::Time},
    record::head::HeadIn,
    report::{
        Whole,
        findings::{Found, found, once, sort},
        json::lines,
    },
    source::{Place, Source},
    view::rules::RULES,
};
use state::State;

/// Print what is to be acted on in jobs that were seen lately: one line of JSON for each finding.
///
/// The findings are those of `jobtrace report` (docs/FINDINGS.md): first what went wrong, then what would save most. The
/// exit status is 0 if there are none, 1 if there are some, 2 if something could not be read or written.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  What stands out in jobs of the last hour:
      jobtrace findings
  Jobs of the last day that were allocated a GPU and did not use it:
      jobtrace findings --since 1d --rule gpu_unused | jq -r '.user + \" \" + .job'
  Tell each user of each finding once a day, from a timer that comes every hour (docs/OPERATING.md has the script):
      jobtrace findings --since 1h --from /shared/jobtrace --state /var/lib/jobtrace/findings.json")]
pub struct Args {
    /// Where they are.
    #[command(flatten)]
    pub place: Place,
    /// Only jobs that were seen within this time before now: 1h, 7d
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub since: Time,
    /// Of jobs shorter than this only what went wrong
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub least: Time,
    /// Only this finding; may be repeated
    #[arg(long, value_name = "RULE", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(RULES.iter().map(|rule| rule.id)))]
    pub rule: Vec<String>,
    /// Only jobs of this user
    #[arg(long)]
    pub user: Option<String>,
    /// Tell each user of each finding only once: FILE notes who was told what, and is made where it is absent
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// With --state, tell it again after this time
    #[arg(long, value_name = "TIME", default_value = "24h", requires = "state")]
    pub again: Time,
}

/// Prints the findings and gives the exit status.
///
/// # Errors
/// When there is no such folder or database, or the state cannot be read or written; the message names the cure.
pub fn run(args: &Args) -> Result<u8> {
    let mut state = args.state.as_deref().map(State::open).transpose()?;
    let source = args.place.open()?;
    let mut found = all(args, &source)?;
    sort(&mut found);
    if let Some(state) = &mut state {
        found = once(found, &mut state.told, wall_ns(), args.again.ns());
    }
    let text = lines(&found)?;
    // Who was not told is told next time.
    let written = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
    written.context("cannot write the findings to standard output: keep its reader running")?;
    if let Some(state) = state {
        state.save()?;
    }
    match source.tell_skipped() {
        0 => Ok(u8::from(!found.is_empty())),
        _ => Ok(2),
    }
}

fn all(args: &Args, source: &Source) -> Result<Vec<Found>> {
    let (user, least_ns) = (args.user.as_deref(), args.least.ns());
    let is_wanted = |head: &HeadIn| user.is_none() || head.user.as_deref() == user;
    let runs = source.runs(args.since.ago_ns(), is_wanted)?;
    let of_run =
        |records| Whole::of(records).map_or_else(Vec::new, |whole| found(&whole, least_ns));
    let mut all: Vec<Found> = source.each(&runs, of_run)?.into_iter().flatten().collect();
    all.retain(|one| args.rule.is_empty() || args.rule.iter().any(|rule| rule == one.advice.rule));
    Ok(all)
}
