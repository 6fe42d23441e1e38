//! `jobtrace report`: finds the records of a job, and prints what they say.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{
    base::say::{print, say},
    record::{
        Record,
        head::Head,
        select::{Run, is_named, runs},
        store::{self, DEFAULT_DIR},
    },
    report::{Report, Whole, json::json, moment, render},
    view::Style,
};

/// Show what happened with a job, where its time went and what to change.
///
/// Reads the records of jobs that have ended or still run (docs/RECORD.md): those of the agent, of `jobtrace run
/// --save`, or of a directory that a cluster shares. A job that ran on several nodes is reported as a whole. The
/// exit status is 0, 1 if a part could not be read, 2 if there is no such job.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  What happened with job 4711 (on this node, or below the directory that the cluster shares):
      jobtrace report 4711
      jobtrace report 4711 --from /shared/jobtrace
  A run of one's own, by its name or its file:
      jobtrace run --save runs/ --name train -- python train.py
      jobtrace report train --from runs/
      jobtrace report runs/2026-11-22/run-4711-1795305600-1795305600000000000@n1.json.gz
  Extract the findings:
      jobtrace report 4711 --json | jq -r '.advice[] | .rule + \": \" + .text'")]
pub struct Args {
    /// Jobs: ids (4711, 4711_3, 4711.0 for a step), names, or files of records
    #[arg(value_name = "JOB|FILE", required = true)]
    pub jobs: Vec<String>,
    /// Folders of records
    #[arg(long, value_name = "DIR", num_args = 1.., default_value = DEFAULT_DIR)]
    pub from: Vec<PathBuf>,
    /// Print JSON, one line per job: what the report says, and the record below `record`
    #[arg(long)]
    pub json: bool,
}

/// Prints the reports and gives the exit status.
///
/// # Errors
/// When there is no such job or file; the message names the cure.
pub fn run(args: &Args) -> Result<u8> {
    let style = Style::for_stdout();
    let mut is_complete = true;
    let mut out = Vec::new();
    for (name, records) in records(args, &mut is_complete)? {
        let whole = Whole::of(records).with_context(|| format!("no record of {name}"))?;
        let report = Report::of(&whole, style.unicode || args.json);
        out.push(if args.json { json(&whole, &report)? } else { render(&report, &style) });
    }
    print(&out.join(if args.json { "" } else { "\n" }))?;
    Ok(u8::from(!is_complete))
}

/// The records of each job that is named.
fn records(args: &Args, is_complete: &mut bool) -> Result<Vec<(String, Vec<Record>)>> {
    let (files, jobs): (Vec<_>, Vec<_>) = args.jobs.iter().partition(|name| is_file(name));
    let mut found = Vec::new();
    for file in files {
        found.push((file.clone(), vec![store::read(Path::new(file))?]));
    }
    if jobs.is_empty() {
        return Ok(found);
    }
    let heads = heads(&args.from, is_complete)?;
    for job in jobs {
        let of_job = heads.iter().filter(|(_, head)| is_named(head, job));
        let mut runs = runs(of_job.cloned().collect());
        let Some(last) = runs.pop() else {
            bail!("{}", none(job, &heads, &args.from));
        };
        if !runs.is_empty() {
            let earlier: Vec<_> =
                runs.iter().rev().take(3).map(|run| moment(run.begin_ns())).collect();
            let count = runs.len();
            say(format_args!(
                "{job} ran {} times: this is the last; {count} earlier, at {} UTC: `jobtrace jobs` lists their files",
                count + 1,
                earlier.join(", ")
            ));
        }
        found.push((job.clone(), read(&last, is_complete)?));
    }
    Ok(found)
}

/// What has a slash or ends like a record is a file, as is what there is one of.
fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".json.gz") || Path::new(name).is_file()
}

fn heads(folders: &[PathBuf], is_complete: &mut bool) -> Result<Vec<(PathBuf, Head)>> {
    let mut heads = Vec::new();
    for folder in folders {
        let found = store::read_heads(folder, |_| true).context(
            "no records: `jobtrace agent` writes them ([records]), or `jobtrace run --save DIR`; name their folder with --from",
        )?;
        heads.extend(found.heads);
        for damaged in found.damaged {
            *is_complete = false;
            say(format_args!("skipped {damaged}"));
        }
    }
    Ok(heads)
}

/// The parts of a run; those that cannot be read are told.
fn read(run: &Run, is_complete: &mut bool) -> Result<Vec<Record>> {
    let (mut records, mut last) = (Vec::new(), None);
    for file in run.files() {
        match store::read(&file) {
            Ok(record) => records.push(record),
            Err(error) => {
                *is_complete = false;
                say(format_args!("skipped {error:#}"));
                last = Some(error);
            }
        }
    }
    match last {
        Some(error) if records.is_empty() => Err(error),
        _ => Ok(records),
    }
}

fn none(job: &str, heads: &[(PathBuf, Head)], folders: &[PathBuf]) -> String {
    let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let folders = folders.join(", ");
    let known = heads.iter().filter_map(|(_, head)| head.job.as_deref());
    match known.max() {
        Some(example) => format!(
            "no record of job {job} in {folders}: there are {}, such as {example}; --from names other folders",
            heads.len()
        ),
        None => format!("no record of any job in {folders}: name their folder with --from"),
    }
}
