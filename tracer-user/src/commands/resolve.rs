//! `jobtrace resolve`: answers for a path, a process or a file of paths, and prints them.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::{
    base::{say::print, text::clean, units},
    cgroup::hierarchies::Hierarchies,
    resolve::{
        Answer, Resolver, SiteRule,
        facts::JobFacts,
        held::{Held, read_places},
        process::{read_cgroup, read_facts, read_sluid_job},
    },
    view::Style,
};

/// Show which job a cgroup or a process belongs to, and by which rule.
///
/// A number is a process; anything else is a cgroup's path, as in /proc/PID/cgroup or below
/// /sys/fs/cgroup. The exit status is 0 if there is a job, 1 if there is none, 2 if there is no such
/// process or file.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  Which job does this process belong to:
      jobtrace resolve 4711
  Which job does this cgroup belong to:
      jobtrace resolve /system.slice/slurmstepd.scope/job_12/step_0/user/task_0
  The same for all cgroups of this node:
      find /sys/fs/cgroup -type d | jobtrace resolve --tsv -")]
pub struct Args {
    /// Configuration file with the site's rules [default: /etc/jobtrace/jobtrace.toml if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A cgroup's path, or a process id
    #[arg(value_name = "PATH|PID", required_unless_present = "tsv")]
    pub target: Option<String>,
    /// Print JSON; with --tsv one object per line
    #[arg(long)]
    pub json: bool,
    /// Resolve the paths in FILE (- for standard input), one per line; anything after a tab is ignored
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub tsv: Option<PathBuf>,
}

/// All that is known of one cgroup or process.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    path: String,
    #[serde(flatten)]
    answer: Answer,
    /// The line of /proc/PID/cgroup that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<JobFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<Held>,
}

/// Prints the answer and gives the exit status: 0 for a job (in a file: for at least one), 1 for none.
///
/// # Errors
/// When there is no such process or file, or a rule of `site` cannot work; the status is then 2.
pub fn run(args: &Args, site: &[SiteRule]) -> Result<u8> {
    let resolver = Resolver::new(site)?;
    let (text, is_job) = match (&args.target, &args.tsv) {
        (_, Some(file)) => many(&resolver, &read_paths(file)?, args.json)?,
        (Some(target), None) => {
            let report = if is_number(target) {
                of_process(&resolver, target)?
            } else {
                of_path(&resolver, target)
            };
            let text = if args.json {
                serde_json::to_string_pretty(&report)? + "\n"
            } else {
                report.text(Style::for_stderr().unicode)
            };
            (text, report.answer.is_job())
        }
        (None, None) => bail!("nothing to resolve: name a cgroup path or a process"),
    };
    print(&text)?;
    Ok(u8::from(!is_job))
}

fn is_number(target: &str) -> bool {
    !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_digit())
}

fn of_process(resolver: &Resolver, target: &str) -> Result<Report> {
    let no_process = || format!("no process {target}");
    let pid: u32 = target.parse().with_context(no_process)?;
    let cgroups = read_cgroup(pid).with_context(no_process)?;
    let (answer, line) = resolver.deciding_line(&cgroups);
    let path = line.and_then(|line| line.splitn(3, ':').nth(2)).unwrap_or_default().to_owned();
    let line = line.map(str::to_owned);
    let mut report =
        complete(Report { pid: Some(pid), path, answer, line, facts: None, held: None });
    let facts = read_facts(&report.answer, pid);
    if let Some(job) =
        facts.job.as_ref().filter(|_| report.answer.sluid.as_ref() == Some(&report.answer.job))
    {
        report.answer.job.clone_from(job);
    }
    report.facts = Some(facts).filter(|facts| *facts != JobFacts::default());
    Ok(report)
}

fn of_path(resolver: &Resolver, target: &str) -> Report {
    let path = Mounts::read().cgroup(target);
    let answer = resolver.path(&path);
    complete(Report { pid: None, path, answer, line: None, facts: None, held: None })
}

/// Adds what the job's directory tells, where it is one of this host.
fn complete(mut report: Report) -> Report {
    let Some(root) = report.answer.root_of(&report.path) else { return report };
    let places = read_places(root);
    if places.0.is_empty() {
        return report;
    }
    report.held = Some(Held::read(&places));
    if report.answer.sluid.is_some()
        && let Some(job) =
            places.own().find_map(|place| read_sluid_job(&report.answer, &place.directory))
    {
        report.answer.job = job;
    }
    report
}

/// Where the hierarchies are mounted, the deepest first: v1's may be below v2's.
struct Mounts(Vec<Arc<Path>>);

impl Mounts {
    fn read() -> Self {
        let Hierarchies { v2, v1 } = Hierarchies::read().unwrap_or_default();
        let mut mounts: Vec<_> = v2.into_iter().chain(v1).map(|found| found.mount).collect();
        mounts.sort_by_key(|mount| std::cmp::Reverse(mount.components().count()));
        Self(mounts)
    }

    /// The cgroup's path for a directory below a mount; anything else is one already.
    fn cgroup(&self, target: &str) -> String {
        let below = self.0.iter().find_map(|mount| Path::new(target).strip_prefix(mount).ok());
        below.map_or_else(|| target.to_owned(), |below| format!("/{}", below.display()))
    }
}

fn read_paths(file: &Path) -> Result<String> {
    let bytes = if file == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
        bytes
    } else {
        fs::read(file).with_context(|| format!("cannot read {}", file.display()))?
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// One line for each line of `paths`, of which the first column counts; whether any is a job's.
fn many(resolver: &Resolver, paths: &str, is_json: bool) -> Result<(String, bool)> {
    let head = "path\tmanager\tjob\tstep\ttask\tuser\tuid\trole\trule\n";
    let mut text = if is_json { String::new() } else { head.to_owned() };
    let mounts = Mounts::read();
    let mut is_any = false;
    for path in paths.lines().map(|line| line.split('\t').next().unwrap_or_default()) {
        let cgroup = mounts.cgroup(path);
        let answer = resolver.path(&cgroup);
        is_any |= answer.is_job();
        if is_json {
            let report =
                Report { pid: None, path: cgroup, answer, line: None, facts: None, held: None };
            text += &serde_json::to_string(&report)?;
        } else {
            let uid = answer.uid.map(|uid| uid.to_string());
            let role = serde_json::to_value(answer.role)?;
            let columns = [
                path,
                &answer.manager,
                &answer.job,
                answer.step.as_deref().unwrap_or_default(),
                answer.task.as_deref().unwrap_or_default(),
                answer.user.as_deref().unwrap_or_default(),
                uid.as_deref().unwrap_or_default(),
                role.as_str().unwrap_or_default(),
                &answer.rule,
            ];
            text += &columns.map(escaped).join("\t");
        }
        text.push('\n');
    }
    Ok((text, is_any))
}

/// `text` without a character that ends a column or drives a terminal.
fn escaped(text: &str) -> String {
    let escape = |c: char| {
        if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
    };
    text.chars().map(escape).collect()
}

impl Report {
    /// One line for each thing that is known.
    fn text(&self, unicode: bool) -> String {
        let answer = &self.answer;
        let own = JobFacts::default();
        let facts = self.facts.as_ref().unwrap_or(&own);
        let sluid = answer.sluid.clone().filter(|sluid| *sluid != answer.job);
        let user = answer.user.as_ref().or(facts.user.as_ref());
        let uid = answer.uid.or(facts.uid);
        let user = match (user, uid) {
            (Some(user), Some(uid)) => Some(format!("{user} ({uid})")),
            (user, uid) => user.cloned().or_else(|| uid.map(|uid| uid.to_string())),
        };
        let held = self.held.unwrap_or_default();
        let rows = [
            ("job", Some(answer.job.clone()).filter(|job| !job.is_empty())),
            ("manager", Some(answer.manager.clone())),
            ("role", Some(answer.role.words().to_owned())),
            ("step", answer.step.clone()),
            ("task", answer.task.clone()),
            ("array", answer.array.clone().or_else(|| facts.array_task.clone())),
            ("user", user),
            ("sluid", sluid),
            ("container", answer.container.clone().filter(|id| *id != answer.job)),
            ("runtime", answer.runtime.clone()),
            ("qos", answer.qos.clone()),
            ("cluster", answer.cluster.clone().or_else(|| facts.cluster.clone())),
            ("slurmd", answer.node.clone()),
            ("name", facts.name.clone()),
            ("account", facts.account.clone()),
            ("queue", facts.queue.clone()),
            ("nodes", facts.nodes.clone()),
            ("cores", held.millicores.map(units::cores)),
            ("memory", held.memory_limit_bytes.map(units::bytes)),
            ("gpus", facts.gpus.clone()),
            ("rule", Some(answer.rule.clone())),
            ("path", Some(self.path.clone()).filter(|_| self.line.is_none())),
            ("line", self.line.clone()),
        ];
        let known = rows.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        known.map(|(name, value)| format!("{name:<9}  {}\n", clean(value, unicode))).collect()
    }
}
