//! `cargo xtask cardinality`: how many series, lines and bytes a cluster makes by profile, measured on a
//! simulated one and a real InfluxDB 1.x, into docs/SIZING.md.

mod influx;
mod measure;
mod report;

use anyhow::{Context, Result, ensure};
use jobtrace::lines::profile::{BucketStyle, Profile};
use xtask::simulate::plan::{LOAD, Plan};

use crate::{
    bench::machine,
    process::{cargo, find, run as run_command, say, target_dir},
    sections,
};
use measure::{Case, Measured, measure};
use report::thousands;

const EXAMPLES: &str = "\
Examples:
  cargo xtask cardinality --write            by profile, into docs/SIZING.md; takes some minutes
  cargo xtask cardinality --large --write    1,000 nodes into InfluxDB: rate and memory";

/// Of the first hours nothing is told: after them as many jobs run as ever.
const WARM_HOURS: f64 = 2.0;
/// Jobs of the measured cluster, for each node and day.
const JOBS_PER_NODE_DAY: f64 = 20.0;
/// The document.
const DOCUMENT: &str = "docs/SIZING.md";

/// Measure series, lines and bytes by profile; needs influxd.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Compute nodes [default: 16, with --large 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: Option<u32>,
    /// Hours that are measured [default: 1, with --large 0.25]
    #[arg(long, value_name = "H")]
    hours: Option<f64>,
    /// Instead, one profile on a large cluster: points per second that the server accepts, and its memory
    #[arg(long)]
    large: bool,
    /// The profile with --large
    #[arg(long, value_enum, default_value_t = Profile::Summary, requires = "large")]
    profile: Profile,
    /// Write the result to docs/SIZING.md too
    #[arg(long)]
    write: bool,
}

/// Runs the chore.
///
/// # Errors
/// When InfluxDB is missing, refuses lines or has others than were sent.
pub fn run(args: &Args) -> Result<()> {
    if cfg!(debug_assertions) {
        say("millions of lines are written faster by an optimised program");
        let own = std::env::args_os().skip(1);
        return run_command(
            cargo().args(["run", "--release", "--package", "xtask", "--"]).args(own),
        );
    }
    ensure!(find("influxd").is_some(), "influxd is not installed: apt-get install influxdb");
    let scratch = tempfile::Builder::new().prefix("cardinality-").tempdir_in(target_dir())?;
    let nodes = args.nodes.unwrap_or(if args.large { 1000 } else { 16 });
    let hours = args.hours.unwrap_or(if args.large { 0.25 } else { 1.0 });
    ensure!((0.1..=48.0).contains(&hours), "--hours {hours} is not from 0.1 to 48");
    let plan = plan(nodes, hours);
    let warm_ticks = (WARM_HOURS * 3600.0) as u64 / plan.interval_s;
    let case = |profile, style, stored| Case { profile, style, stored };
    let cases = if args.large {
        vec![case(args.profile, BucketStyle::Le, true)]
    } else {
        vec![
            case(Profile::Summary, BucketStyle::Le, true),
            case(Profile::Histogram, BucketStyle::Le, true),
            case(Profile::Histogram, BucketStyle::Vmrange, false),
            case(Profile::Histogram, BucketStyle::Prom, false),
            case(Profile::Full, BucketStyle::Le, true),
        ]
    };
    let all = cases
        .into_iter()
        .map(|case| measure(&plan, warm_ticks, case, scratch.path()))
        .collect::<Result<Vec<_>>>()?;
    let (section, text) = if args.large {
        ("large", large(&all[0], &plan, hours)?)
    } else {
        ("cardinality", by_profile(&all, &plan, hours)?)
    };
    print!("{text}");
    if args.write { sections::write(DOCUMENT, section, &text) } else { Ok(()) }
}

fn plan(nodes: u32, hours: f64) -> Plan {
    let all_hours = hours + WARM_HOURS;
    Plan {
        nodes,
        cores: 64,
        jobs: (f64::from(nodes) * JOBS_PER_NODE_DAY * all_hours / 24.0).round() as u64,
        span_s: (all_hours * 360.0).round() as u64 * 10,
        interval_s: 10,
        // 2026-01-01.
        start_s: 1_767_225_600,
        seed: 1,
        cluster: "simulated".to_owned(),
    }
}

/// Nodes of a job, on average.
fn width(plan: &Plan) -> f64 {
    let (mut jobs, mut nodes) = (0_u64, 0_u64);
    for job in (Plan { jobs: 100_000, nodes: 1_000, ..plan.clone() }).arrivals() {
        jobs += 1;
        nodes += u64::from(job.width);
    }
    nodes as f64 / jobs as f64
}

fn by_profile(all: &[Measured], plan: &Plan, hours: f64) -> Result<String> {
    let stored = all.iter().find_map(|measured| measured.stored.as_ref());
    let version = &stored.context("nothing was stored")?.version;
    let tally = &all[0].tally;
    let (units, width) = (report::units(all, plan), width(plan));
    Ok(format!(
        "Written by `cargo xtask cardinality --write`: {} simulated nodes of {} cores for {hours} h, \
         {} jobs, each of\ntheir nodes counted, {:.1} of them at once, which held {:.0} % of the cores, a reading every {} s; InfluxDB\n{version}, tsi1. {}.\n\n\
         {units}\n\
         Text is line protocol; the spool's files are gzip, one for each interval and node. The last rows \
         are\nwhat comes of each node besides: `_system` and `jobtrace_self`.\n\n\
         {}\n\
         Values and index are bytes on the disk once compacted. Points/s is what the server took, in \
         requests of\n4 MiB of text, on the machine above, which the generator and others shared: a lower \
         bound.\n\n\
         By multiplication, jobs on {width:.1} nodes on average, {:.0} % of the cores held:\n\n{}",
        plan.nodes,
        plan.cores,
        thousands(tally.job_nodes),
        tally.job_intervals as f64 / tally.node_intervals.max(1) as f64,
        all[0].held * 100.0,
        plan.interval_s,
        machine::describe()?,
        report::stored(all),
        LOAD * 100.0,
        report::clusters(all, plan, width),
    ))
}

fn large(measured: &Measured, plan: &Plan, hours: f64) -> Result<String> {
    let stored = measured.stored.as_ref().context("nothing was stored")?;
    let (tally, disk) = (&measured.tally, stored.disk);
    let (points, day) = (tally.all().lines, 24.0 / hours);
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    let of_jobs = tally.jobs().lines as f64 / points as f64;
    Ok(format!(
        "Written by `cargo xtask cardinality --large --write`: {} simulated nodes for {hours} hours, \
         profile\n`{}`, into InfluxDB {}, tsi1. {}.\n\n\
         | | measured | 24 hours, by multiplication |\n| --- | ---: | ---: |\n\
         | points | {} | {} |\n| text | {:.2} GiB | {:.1} GiB |\n| series | {} | {} |\n\
         | on the disk, compacted | {:.2} GiB | {:.1} GiB |\n\n\
         A job on a node is {:.0} series and {:.0} KiB in the data base. The server took {} points/s \
         ({} a second\nare needed), and {:.2} GiB of memory at most, {:.2} GiB at the end.\n",
        thousands(u64::from(plan.nodes)),
        format!("{:?}", measured.case.profile).to_lowercase(),
        stored.version,
        machine::describe()?,
        thousands(points),
        thousands((points as f64 * day) as u64),
        gib(tally.all().bytes as f64),
        gib(tally.all().bytes as f64 * day),
        thousands(stored.series),
        thousands((tally.node_series as f64 + tally.job_series as f64 * day) as u64),
        gib(disk.all() as f64),
        gib(disk.all() as f64 * day),
        tally.job_series as f64 / tally.job_nodes.max(1) as f64,
        disk.all() as f64 * of_jobs / tally.job_nodes.max(1) as f64 / 1024.0,
        thousands((points as f64 / stored.busy.as_secs_f64().max(1e-9)) as u64),
        thousands((points as f64 / (hours * 3600.0)) as u64),
        gib(stored.most as f64),
        gib(stored.anonymous as f64),
    ))
}
