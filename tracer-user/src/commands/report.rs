//! `jobtrace report`: finds the records of a job, and prints what they say.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    base::say::{print, say},
    files::target::Target,
    record::{
        Record,
        days::{Days, Wanted},
        find,
        folders::Folders,
        head::HeadIn,
        select::{is_named, runs},
    },
    report::{Report, Whole, html::html, json::json, moment, render},
    view::Style,
};

/// Show what happened with a job, where its time went and what to change.
///
/// Reads the records of jobs that have ended or still run (docs/RECORD.md): those of the agent, of `jobtrace run
/// --save`, or of a directory that a cluster shares. A job that ran on several nodes is reported as a whole. The
/// exit status is 0, 1 if a part could not be read, 2 if there is no such job.
#[derive(Debug, clap::Args)]
#[command(override_usage = "jobtrace report <JOB|FILE>... [OPTIONS]")]
#[command(after_long_help = "\
Examples:
  What happened with job 4711 (on this node, or below the directory that the cluster shares):
      jobtrace report 4711
      jobtrace report 4711 --from /shared/jobtrace
  A run of one's own, by its name or its file:
      jobtrace run --save runs/ --name train -- python train.py
      jobtrace report train --from runs/
      jobtrace report runs/1000/2026-11-22/run-4711-1795305600-1795305600000000000@n1.json.gz
  A page to look at in a browser, or to send:
      jobtrace report 4711 --html 4711.html
  Extract the findings:
      jobtrace report 4711 --json | jq -r '.advice[] | .rule + \": \" + .text'")]
pub struct Args {
    /// Jobs: ids (4711, 4711_3, 4711.0 for a step), names, or files of records
    #[arg(value_name = "JOB|FILE", required = true)]
    pub jobs: Vec<String>,
    /// Where they are.
    #[command(flatten)]
    pub folders: Folders,
    /// Print JSON, one line per job: what the report says, and the record below `record`
    #[arg(long)]
    pub json: bool,
    /// Write an HTML page to FILE: drawings included, without scripts, to be opened anywhere
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,
}

/// Prints the reports and gives the exit status.
///
/// # Errors
/// When there is no such job or file; the message names the cure.
pub fn run(args: &Args) -> Result<u8> {
    if let Some(file) = &args.html {
        ensure!(args.jobs.len() == 1, "--html writes one job's page: name one job");
        return page(args, file);
    }
    print(&text(args)?)?;
    Ok(args.folders.tell_skipped())
}

/// Writes the page of the one job that is named.
fn page(args: &Args, file: &Path) -> Result<u8> {
    let mut found = records(args)?;
    let (name, records) = found.pop().context("one job is named")?;
    let whole = Whole::of(records).with_context(|| format!("no record of {name}"))?;
    let page = html(&whole, &Report::of(&whole, true))?;
    let mut target = Target::open(file, || Ok(()))?;
    let cannot = |target: &Target| format!("cannot write {}", target.name());
    let write = |target: &mut Target| -> std::io::Result<()> {
        target.begin()?;
        target.keep();
        target.write_all(page.as_bytes())?;
        target.sync()
    };
    write(&mut target).with_context(|| cannot(&target))?;
    target.finish(|| Ok(())).with_context(|| cannot(&target))?;
    Ok(args.folders.tell_skipped())
}

/// The reports as they are printed.
///
/// # Errors
/// When there is no such job or file.
pub fn text(args: &Args) -> Result<String> {
    let style = Style::for_stdout();
    let mut out = Vec::new();
    for (name, records) in records(args)? {
        let whole = Whole::of(records).with_context(|| format!("no record of {name}"))?;
        let report = Report::of(&whole, style.unicode || args.json);
        out.push(if args.json { json(&whole, &report)? } else { render(&report, &style) });
    }
    Ok(out.join(if args.json { "" } else { "\n" }))
}

/// The records of each job that is named.
fn records(args: &Args) -> Result<Vec<(String, Vec<Record>)>> {
    let (files, jobs): (Vec<_>, Vec<_>) = args.jobs.iter().partition(|name| is_file(name));
    let mut found = Vec::new();
    for file in files {
        found.push((file.clone(), vec![find::read(Path::new(file))?]));
    }
    if jobs.is_empty() {
        return Ok(found);
    }
    let days = args.folders.days()?;
    let texts: Vec<_> = jobs.iter().map(|job| text_of(job)).collect();
    let wanted = Wanted { texts: texts.iter().map(|text| &**text).collect(), ..Wanted::default() };
    let is_any = |head: &HeadIn| jobs.iter().any(|job| is_named(head, job));
    let heads = args.folders.heads(&days, &wanted, is_any);
    for job in jobs {
        let of_job = heads.iter().filter(|(_, head)| is_named(head, job));
        let mut runs = runs(of_job.cloned().collect());
        let Some(last) = runs.pop() else {
            bail!("{}", none(job, &days, &args.folders));
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
        found.push((job.clone(), args.folders.read(&last)?));
    }
    Ok(found)
}

/// What has a slash or ends like a record is a file, as is what there is one of.
fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".json.gz") || Path::new(name).is_file()
}

/// A text that the line of each head has that is of the job of this name: what comes before a step, as JSON writes it.
fn text_of(job: &str) -> String {
    let id = job.split('.').next().unwrap_or_default();
    let json = serde_json::Value::from(id).to_string();
    json.trim_matches('"').to_owned()
}

fn none(job: &str, days: &Days, folders: &Folders) -> String {
    let heads = folders.heads(days, &Wanted::default(), |_| true);
    let folders = folders.in_words();
    let known = heads.iter().filter_map(|(_, head)| head.job.as_deref());
    match known.max() {
        Some(example) => format!(
            "no record of job {job} in {folders}: there are {}, such as {example}; --from names other folders",
            heads.len()
        ),
        None => format!("no record of any job in {folders}: name their folder with --from"),
    }
}
