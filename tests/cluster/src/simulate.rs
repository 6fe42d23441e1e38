//! `cargo xtask simulate`: the spool of a plausible cluster, to size databases and to try dashboards on.
//!
//! What jobs do is cut out of recordings (`kinds.rs`), who submits them is chance with a seed
//! (`plan.rs`), and the program's own code makes lines and files of it. Alike arguments give alike
//! files, byte for byte.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jobtrace::{
    base::values::Time,
    lines::{
        form::{Form, LineStyle},
        profile::{BucketStyle, Profile, Profiles},
    },
    model::point::Origin,
};

use crate::{
    cluster::Cluster,
    files::Files,
    plan::Plan,
    tally::{Tally, Writer},
};
use xtask::{markdown::mib, root, say};

const EXAMPLES: &str = "\
Examples:
  cargo xtask simulate --nodes 16 --jobs 200 --hours 2
      two hours of a small cluster in target/simulated/outbox
  cargo xtask simulate --nodes 16 --jobs 200 --hours 2 --profile histogram --start $(($(date +%s) - 7200))
      the same with buckets, ending now: what a dashboard shows first
  cargo xtask simulate --nodes 1000 --jobs 20000 --hours 24 --file-span 10m
      a large cluster, in fewer files

Into InfluxDB 1.x:
  for file in target/simulated/outbox/*.lp.gz; do
      curl -sS -XPOST 'http://localhost:8086/write?db=jobtrace&precision=ns' \\
          -H 'Content-Encoding: gzip' --data-binary @$file
  done";

/// How often progress is told.
const PACE: Duration = Duration::from_secs(5);

/// Write the spool of a simulated cluster, made from recorded jobs.
///
/// Jobs arrive at random (Poisson) and are allocated four fifths of the cluster on average, however many they
/// are: the more, the shorter. A job's first and last interval are complete ones. GPUs are not simulated.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What happens.
    #[command(flatten)]
    pub site: Site,
    /// What is written for each job
    #[arg(long, value_enum, default_value_t = Profile::Summary)]
    pub profile: Profile,
    /// How buckets are written
    #[arg(long, value_enum, default_value_t = BucketStyle::Le)]
    pub bucket_style: BucketStyle,
    /// Folder in whose `outbox` the files are written [default: simulated, in cargo's target folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Time covered by one file; an agent writes one per interval, and longer ones after an outage
    #[arg(long, value_name = "TIME")]
    pub file_span: Option<Time>,
}

/// A cluster and its time.
#[derive(clap::Args, Clone, Debug)]
pub struct Site {
    /// Compute nodes
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub nodes: u32,
    /// Cores of each node
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub cores: u32,
    /// Number of jobs submitted in total
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub jobs: u64,
    /// Total time in hours
    #[arg(long, value_name = "H", default_value_t = 2.0)]
    pub hours: f64,
    /// Time between two readings, whole seconds
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub interval: Time,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Start as Unix time in seconds; rounded down to a whole interval
    #[arg(long, value_name = "SECONDS", default_value_t = 1_767_225_600)]
    pub start: u64,
    /// Tag `cluster` of every line; empty for none
    #[arg(long, value_name = "NAME", default_value = "simulated")]
    pub cluster: String,
}

impl Site {
    /// The same as a plan.
    ///
    /// # Errors
    /// When the times make none.
    pub fn plan(&self) -> Result<Plan> {
        let interval = self.interval.0;
        let interval_s = interval.as_secs();
        ensure!(
            interval.subsec_nanos() == 0 && (1..=3600).contains(&interval_s),
            "--interval {} is not a whole number of seconds from 1s to 1h",
            self.interval
        );
        let span_s = (self.hours * 3600.0).round();
        ensure!(
            (interval_s as f64..=366.0 * 86_400.0).contains(&span_s),
            "--hours {} is not from one interval to a year",
            self.hours
        );
        // Nodes have been up for two months at most.
        ensure!(self.start > 100 * 86_400, "--start {} is no time of ours", self.start);
        Ok(Plan {
            nodes: self.nodes,
            cores: self.cores,
            jobs: self.jobs,
            span_s: span_s as u64 / interval_s * interval_s,
            interval_s,
            start_s: self.start / interval_s * interval_s,
            seed: self.seed,
            cluster: self.cluster.clone(),
        })
    }
}

/// The form in which `profile` is written with buckets in `style`.
#[must_use]
pub fn form(profile: Profile, bucket_style: BucketStyle) -> Form {
    let profiles = Profiles { default: profile, ..Profiles::default() };
    let style = LineStyle::Jobtrace;
    Form { origin: Origin::default(), style, profiles, bucket_style, hlog: false }
}

/// Runs the chore; what was written goes to standard output.
///
/// # Errors
/// When the arguments make no cluster, or a file cannot be written.
pub fn run(args: &Args) -> Result<()> {
    let plan = args.site.plan()?;
    let file_span_s = args.file_span.map_or(plan.interval_s, |span| span.0.as_secs());
    ensure!(
        file_span_s >= plan.interval_s,
        "--file-span is less than --interval, and no file holds less than one"
    );
    let target = root().join("target/simulated");
    let dir = args.out.clone().unwrap_or(target);
    let mut files = Files::create(&dir, file_span_s / plan.interval_s)?;
    let mut cluster = Cluster::new(&plan)?;
    let mut writer = Writer::new(form(args.profile, args.bucket_style));
    let (begin, mut told, mut lines) = (Instant::now(), Instant::now(), Vec::new());
    while cluster.tick(|tick| {
        lines.clear();
        writer.write(&tick, &mut lines);
        files.add(&tick.origin.host, tick.set, &lines)
    })? {
        if told.elapsed() >= PACE {
            told = Instant::now();
            let (done, all) = (cluster.progress().ticks, plan.ticks());
            let left = begin.elapsed().as_secs_f64() / done as f64 * (all - done) as f64;
            say(format!("{} %, {left:.0} s left", 100 * done / all));
        }
    }
    files.finish().context("the last files")?;
    let (count, bytes) = files.written();
    print!("{}", report(&cluster, &plan, writer.tally()));
    println!("{count} files of {:.1} MiB in {}", mib(bytes), dir.join("outbox").display());
    Ok(())
}

/// What happened, for people.
fn report(cluster: &Cluster, plan: &Plan, tally: &Tally) -> String {
    let progress = cluster.progress();
    let held = progress.core_seconds as f64
        / (f64::from(plan.nodes) * f64::from(plan.cores) * plan.span_s as f64);
    let mut text = format!(
        "{} jobs began on {} nodes each on average, {} ended, {} still wait; jobs held {:.0} % \
         of the cores\n",
        progress.begun,
        progress.nodes_given.checked_div(progress.begun).unwrap_or(0),
        progress.ended,
        cluster.waiting(),
        held * 100.0
    );
    for (whose, amounts, series) in
        [("jobs", &tally.of_jobs, tally.job_series), ("nodes", &tally.of_nodes, tally.node_series)]
    {
        for (measurement, amount) in amounts {
            text += &format!(
                "{whose:>6}  {measurement:<14} {:>10} lines  {:>10} fields  {:>12}\n",
                amount.lines,
                amount.fields,
                format!("{:.1} MiB", mib(amount.bytes))
            );
        }
        text += &format!("{whose:>6}  {series} series\n");
    }
    text
}
