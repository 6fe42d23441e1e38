//! `jobtrace report`: finds the records of a job, and prints what they say.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    base::{
        say::{print, say},
        text::{clean, command_line},
    },
    files::target::Target,
    record::{
        Record,
        head::Head,
        running::{self, STATE_DIR},
        select::{Run, is_named, runs, whose},
        store::DEFAULT_DIR,
    },
    report::{Report, Whole, html::html, json::json, moment, render, short},
    scheduler::{self, Span},
    source::{Place, Source, is_file, read_file},
    view::Style,
};

/// Show what happened with a job, where its time went and what to change.
///
/// Reads the records of jobs that have ended or still run (docs/RECORD.md): those of the agent, of `jobtrace run
/// --save`, or of a directory that a cluster shares. A job that ran on several nodes is reported as a whole. Where
/// the commands of its scheduler are installed, they are asked what it was given and how it ended. The exit status is
/// 0, 1 if a part could not be read, 2 if there is no such job.
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
    pub place: Place,
    /// The socket of this node's agent, which tells of jobs that run [default: that of the default agent, if the
    /// default folder is read]
    #[arg(long, value_name = "SOCKET")]
    pub socket: Option<PathBuf>,
    /// Print JSON, one line per job: what the report says, and the record below `record`
    #[arg(long)]
    pub json: bool,
    /// Print ten lines at most, as for the end of a job's own log (docs/OPERATING.md)
    #[arg(long, conflicts_with_all = ["json", "html"])]
    pub short: bool,
    /// Do not ask the scheduler (sacct, scontrol, qstat, bjobs) what it knows of the job
    #[arg(long)]
    pub no_sched: bool,
    /// Write an HTML page to FILE: drawings included, without scripts, to be opened anywhere
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,
}

/// Prints the reports and gives the exit status.
///
/// # Errors
/// When there is no such job or file; the message names the cure.
pub fn run(args: &Args) -> Result<u8> {
    let source = args.place.open()?;
    match &args.html {
        Some(file) => {
            ensure!(args.jobs.len() == 1, "--html writes one job's page: name one job");
            page(args, &source, file)?;
        }
        None => print(&text(args, &source)?)?,
    }
    Ok(source.tell_skipped())
}

/// Writes the page of the one job that is named.
fn page(args: &Args, source: &Source, file: &Path) -> Result<()> {
    let mut found = records(args, source)?;
    let (name, records) = found.pop().context("one job is named")?;
    let whole = whole(&name, records, args)?;
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
    target.finish(|| Ok(())).with_context(|| cannot(&target))
}

/// The reports as they are printed.
///
/// # Errors
/// When there is no such job or file.
pub fn text(args: &Args, source: &Source) -> Result<String> {
    let style = Style::for_stdout();
    let mut out = Vec::new();
    for (name, records) in records(args, source)? {
        let whole = whole(&name, records, args)?;
        let report = Report::of(&whole, style.unicode || args.json);
        out.push(match (args.json, args.short) {
            (true, _) => json(&whole, &report)?,
            (_, true) => short(&report, &again(args, &name), &style),
            _ => render(&report, &style),
        });
    }
    Ok(out.join(if args.json { "" } else { "\n" }))
}

/// The arguments with which the same job is found again.
fn again(args: &Args, name: &str) -> String {
    let place = &args.place;
    let mut words = match name.starts_with('-') {
        true => vec![OsStr::new("--"), OsStr::new(name)],
        false => vec![OsStr::new(name)],
    };
    let mut options = Vec::new();
    match &place.influx.influx {
        _ if is_file(name) => {}
        Some(_) => options.extend(place.influx.words()),
        None if place.folders.from == [Path::new(DEFAULT_DIR)] => {}
        None => {
            let folders = place.folders.from.iter().map(|dir| dir.as_os_str());
            options.extend(folders.flat_map(|dir| [OsStr::new("--from"), dir]));
        }
    }
    let at = if words.len() > 1 { 0 } else { 1 };
    words.splice(at..at, options);
    command_line(words)
}

/// The job of `records`, with what its scheduler tells of it.
fn whole(name: &str, records: Vec<Record>, args: &Args) -> Result<Whole> {
    let mut whole = Whole::of(records).with_context(|| format!("no record of {name}"))?;
    let job = whole.record.job().clone();
    if args.no_sched || !scheduler::is_known(&job.manager) {
        return Ok(whole);
    }
    let timeline = &whole.record.timeline;
    let span = Span { begin: timeline.begin_ns(), end: timeline.end_ns() };
    match scheduler::ask(&job.manager, &job.job, span) {
        Ok(Some(told)) => whole.tell(told),
        Ok(None) => {}
        Err(error) => whole.not_told(&format!("{error:#}")),
    }
    Ok(whole)
}

/// The records of each job that is named.
fn records(args: &Args, source: &Source) -> Result<Vec<(String, Vec<Record>)>> {
    let (files, jobs): (Vec<_>, Vec<_>) = args.jobs.iter().partition(|name| is_file(name));
    let mut found = Vec::new();
    for file in files {
        found.push((file.clone(), vec![read_file(file)?]));
    }
    if jobs.is_empty() {
        return Ok(found);
    }
    let heads = source.named(&jobs)?;
    for job in jobs {
        let now = running(args, job);
        let of_job = heads.iter().filter(|(_, head)| is_named(head, job)).cloned();
        // Of what runs the file may not be there yet.
        let at_socket = Path::new(running::SOCKET);
        let of_now = now.iter().map(|record| (at_socket.to_owned(), Head::from(record)));
        let mut runs = runs(of_job.chain(of_now).collect());
        let Some(mut last) = runs.pop() else { bail!("{}", source.unknown(job)) };
        if let Some(of) = owners(&runs, &last) {
            say(format_args!(
                "{job} is more than one job: {of}; this is the one that began last: `jobtrace jobs --json` lists \
                 their files, which can be named instead"
            ));
        } else if !runs.is_empty() {
            let earlier: Vec<_> =
                runs.iter().rev().take(3).map(|run| moment(run.begin_ns())).collect();
            let count = runs.len();
            say(format_args!(
                "{job} ran {} times: this is the last; {count} earlier, at {} UTC: `jobtrace jobs --json` lists their files",
                count + 1,
                earlier.join(", ")
            ));
        }
        let is_running = last.parts.iter().any(|(folder, _)| folder == at_socket);
        last.parts.retain(|(folder, _)| folder != at_socket);
        let mut records = if last.parts.is_empty() { Vec::new() } else { source.read(&last)? };
        records.extend(now.into_iter().filter(|_| is_running));
        found.push((job.clone(), records));
    }
    Ok(found)
}

/// Whose the jobs are, where they are not all of one owner and one scheduler: ids are their own, not the site's.
fn owners(runs: &[Run], last: &Run) -> Option<String> {
    let owner = |run: &Run| {
        let [cluster, manager, _, user] = whose(run.head());
        let place = cluster.map_or(String::new(), |cluster| format!(" on {cluster}"));
        format!("{} of {}{place}", manager.unwrap_or("unknown"), user.unwrap_or("unknown"))
    };
    // By its name it may be any of somebody's jobs.
    let is_one_id = runs.iter().all(|run| run.head().job == last.head().job);
    let owners: BTreeSet<_> = runs.iter().chain([last]).map(owner).collect();
    let owners: Vec<_> = owners.iter().map(|owner| clean(owner, true)).collect();
    (is_one_id && owners.len() > 1).then(|| owners.join(", "))
}

/// The records that this node's agent has in hand: those of a job that runs.
fn running(args: &Args, job: &str) -> Vec<Record> {
    let is_usual = args.place.folders.from.iter().any(|dir| dir == Path::new(DEFAULT_DIR));
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None if is_usual => Path::new(STATE_DIR).join(running::SOCKET),
        None => return Vec::new(),
    };
    if args.socket.is_none() && !socket.exists() {
        return Vec::new();
    }
    running::records(&socket, job).unwrap_or_else(|error| {
        say(format_args!("what the job does now is not known: {error:#}"));
        Vec::new()
    })
}
