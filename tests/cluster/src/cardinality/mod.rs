//! `cargo xtask cardinality`: how many series, lines and bytes a cluster makes by profile, measured on a
//! simulated one and a real InfluxDB 1.x, into docs/SIZING.md.

mod measure;
mod report;
mod server;

use anyhow::{Context, Result, ensure};
use jobtrace::lines::profile::{BucketStyle, Profile};
use xtask::{
    machine,
    markdown::{Table, thousands},
    sections,
};

use crate::plan::{LOAD, Plan};
use measure::{Case, Measured, measure};

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
        .map(|case| measure(&plan, warm_ticks, case))
        .collect::<Result<Vec<_>>>()?;
    let (section, text) = if args.large {
        ("large", large(&all[0], &plan, hours)?)
    } else {
        ("cardinality", by_profile(&all, &plan, hours)?)
    };
    print!("{text}");
    if args.write { sections::write(DOCUMENT, &[(section, text)]) } else { Ok(()) }
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
    let width = width(plan);
    Ok(format!(
        "{} simulated nodes of {} cores for {hours} h, {} jobs, each of their nodes counted, {:.1} of \
         them at\nonce, which held {:.0} % of the cores, a reading every {} s; InfluxDB {version}, \
         tsi1. {}.\n\n{}\n{}\n\
         By multiplication, jobs on {width:.1} nodes on average, {:.0} % of the cores held:\n\n{}",
        plan.nodes,
        plan.cores,
        thousands(tally.job_nodes),
        tally.job_intervals as f64 / tally.node_intervals.max(1) as f64,
        all[0].held * 100.0,
        plan.interval_s,
        machine::describe()?,
        report::units(all, plan),
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
    let mut table = Table::new("of all | >measured | >24 hours, by multiplication");
    let series_a_day = tally.node_series as f64 + tally.job_series as f64 * day;
    for (what, now, a_day) in
        [("points", points, points as f64 * day), ("series", stored.series, series_a_day)]
    {
        table.row([&what, &thousands(now), &thousands(a_day as u64)]);
    }
    let (text, disk) = (tally.all().bytes as f64, disk.all() as f64);
    for (what, bytes) in [("text", text), ("on the disk, compacted", disk)] {
        let (now, a_day) = (gib(bytes), gib(bytes * day));
        table.row([&what, &format_args!("{now:.2} GiB"), &format_args!("{a_day:.1} GiB")]);
    }
    Ok(format!(
        "{} simulated nodes for {hours} hours, profile `{}`, into InfluxDB {}, tsi1. {}.\n\n{table}\n\
         A job on a node is {:.0} series and {:.0} KiB in the data base. The server took {} points/s \
         ({} a second\nare needed), and {:.2} GiB of memory at most, {:.2} GiB at the end.\n",
        thousands(u64::from(plan.nodes)),
        format!("{:?}", measured.case.profile).to_lowercase(),
        stored.version,
        machine::describe()?,
        tally.job_series as f64 / tally.job_nodes.max(1) as f64,
        disk * of_jobs / tally.job_nodes.max(1) as f64 / 1024.0,
        thousands((points as f64 / stored.busy.as_secs_f64().max(1e-9)) as u64),
        thousands((points as f64 / (hours * 3600.0)) as u64),
        gib(stored.most as f64),
        gib(stored.anonymous as f64),
    ))
}
