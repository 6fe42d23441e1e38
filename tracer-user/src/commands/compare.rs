//! `jobtrace compare`: the same work at several sizes, of the records of its runs.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{Context, Result};

use crate::{
    base::say::print,
    record::{Record, head::Head, select::runs},
    report::{
        Whole,
        compare::{By, Measured, Options, compare, render},
        json::lines,
    },
    source::{Place, Source, is_file, read_file, runs_of},
    view::Style,
};

/// Compare runs of the same work at several sizes: does it scale, and what takes the time.
///
/// For each size: the median time, the speed-up, the efficiency, Karp and Flatt's serial fraction, and by how much 10 %
/// more cores made it faster than the size before. Amdahl's law is fitted from three sizes on and the universal
/// scalability law from four, as ranges: of all sizes, and of all but any one. A name stands for all runs of that name.
/// The exit status is 0, 1 if a part could not be read, 2 if the runs cannot be compared.
#[derive(Debug, clap::Args)]
#[command(override_usage = "jobtrace compare <JOB|FILE>... [OPTIONS]")]
#[command(after_long_help = "\
Examples:
  Run something on 1 and 2 cores, three times each, and compare (jobtrace is bound to them too, so that it knows how many
  there are):
      for i in 1 2 3; do
          taskset -c 0   jobtrace run --quiet --save runs/ --name solve -- ./solve
          taskset -c 0,1 jobtrace run --quiet --save runs/ --name solve -- ./solve
      done
      jobtrace compare solve --from runs/
  Jobs of the cluster, by their ids:
      jobtrace compare 4711 4712 4713 --from /shared/jobtrace
  Work that grows with the number of cores (weak scaling):
      jobtrace compare 4711 4712 4713 --weak
  Runs that were given the same cores and told to use some of them:
      jobtrace compare solve --from runs/ --size used
  Extract the efficiencies:
      jobtrace compare solve --from runs/ --json | jq '.sizes[] | [.cores, .efficiency]'")]
pub struct Args {
    /// Jobs: ids (4711, 4711_3), names, which stand for all runs of that name, or files of records
    #[arg(value_name = "JOB|FILE", required = true)]
    pub jobs: Vec<String>,
    /// Where they are.
    #[command(flatten)]
    pub place: Place,
    /// What the size of a run is: the cores that it might use, or those that were busy at its busiest moment
    #[arg(long = "size", value_enum, default_value_t = By::Allocated)]
    pub by: By,
    /// The work grew as the number of cores did: compare times for equal amounts of it
    #[arg(long)]
    pub weak: bool,
    /// Compare runs that did not do the same work, or that failed, too
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the comparison and gives the exit status.
///
/// # Errors
/// When there is no such job or file, or the runs cannot be compared; the message names the cure.
pub fn run(args: &Args) -> Result<u8> {
    let style = Style::for_stdout();
    let options = Options { by: args.by, weak: args.weak, force: args.force };
    let source = args.place.open()?;
    let comparison = compare(&measured(args, &source, style.unicode || args.json)?, options)?;
    print(&if args.json { lines(&[comparison])? } else { render(&comparison, &style) })?;
    Ok(source.tell_skipped())
}

/// Each run that is named, once.
fn measured(args: &Args, source: &Source, unicode: bool) -> Result<Vec<Measured>> {
    let mut found: Vec<(&str, Vec<Record>)> = Vec::new();
    let (files, jobs): (Vec<_>, Vec<_>) = args.jobs.iter().partition(|name| is_file(name));
    let read = |file: &String| anyhow::Ok((PathBuf::from(file), read_file(file)?));
    let files = files.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    // Those of one run, on several nodes, belong together.
    let heads = files.iter().map(|(file, record)| (file.clone(), Head::from(record)));
    for run in runs(heads.collect()) {
        let of_run = |file: &PathBuf| run.parts.iter().any(|(part, _)| part == file);
        let records = files.iter().filter(|(file, _)| of_run(file));
        found.push(("the files", records.map(|(_, record)| record.clone()).collect()));
    }
    if !jobs.is_empty() {
        let heads = source.named(&jobs)?;
        for job in jobs {
            for run in runs_of(job, &heads, source)? {
                found.push((job, source.read(&run)?));
            }
        }
    }
    let (mut seen, mut measured) = (BTreeSet::new(), Vec::new());
    for (name, records) in found {
        let whole = Whole::of(records).with_context(|| format!("no record of {name}"))?;
        let record = &whole.record;
        let is_new = seen.insert((record.job().clone(), record.timeline.begin_ns()));
        if is_new {
            measured.push(Measured::of(&whole, unicode));
        }
    }
    Ok(measured)
}
