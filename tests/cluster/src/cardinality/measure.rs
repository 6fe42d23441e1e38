//! One simulated cluster told in one profile: how much text that is, and what an InfluxDB makes of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use jobtrace::lines::{
    batch::Batch,
    profile::{BucketStyle, Profile},
};
use xtask::say;

use super::server::{Disk, Server};
use crate::{
    cluster::Cluster,
    plan::Plan,
    simulate::form,
    tally::{Amount, Tally, Writer},
};

/// Text of one request: a collector gathers so much, and the server takes 25 MB at most.
const REQUEST_BYTES: usize = 4 << 20;
/// One reading of a node in so many is packed alone, as the spool does, to learn its size.
const PACKED_EVERY: u64 = 16;
/// How often progress is told.
const PACE: Duration = Duration::from_secs(10);

/// What is told, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The profile of all jobs.
    pub profile: Profile,
    /// The style of its buckets.
    pub style: BucketStyle,
    /// Whether an InfluxDB gets it.
    pub stored: bool,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What was told.
    pub case: Case,
    /// How much that was.
    pub tally: Tally,
    /// Bytes of the spool's files, of text so many: a sample.
    pub packed: (u64, u64),
    /// What the InfluxDB made of it.
    pub stored: Option<Stored>,
    /// Share of the cores that jobs held.
    pub held: f64,
}

/// What an InfluxDB made of the lines.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Series by its own count.
    pub series: u64,
    /// On the disk once it is compacted.
    pub disk: Disk,
    /// Memory that no file backs, at the end.
    pub anonymous: u64,
    /// The most memory that was resident.
    pub most: u64,
    /// How long its answers took, together.
    pub busy: Duration,
    /// Its version.
    pub version: String,
}

/// Lets `plan` happen: first `warm_ticks` of which nothing is told, so that the cluster is as full as it
/// ever is, then the rest.
///
/// # Errors
/// When the server refuses lines, or has other points or series in the end than it was sent.
pub fn measure(plan: &Plan, warm_ticks: u64, case: Case) -> Result<Measured> {
    let influx = case.stored.then(Server::start).transpose()?;
    let mut cluster = Cluster::new(plan)?;
    for _ in 0..warm_ticks {
        cluster.tick(|_| Ok(()))?;
    }
    let warm = cluster.progress().core_seconds;
    let mut writer = Writer::new(form(case.profile, case.style));
    let (mut lines, mut request, mut packed) = (Vec::new(), Batch::default(), (0, 0));
    let (mut busy, mut told, mut number) = (Duration::ZERO, Instant::now(), 0_u64);
    while cluster.tick(|tick| {
        lines.clear();
        writer.write(&tick, &mut lines);
        number += 1;
        if number.is_multiple_of(PACKED_EVERY) {
            let mut file = Batch::default();
            file.push(&lines);
            packed.0 += file.finish()?.len() as u64;
            packed.1 += lines.len() as u64;
        }
        if let Some(influx) = &influx {
            request.push(&lines);
            if request.bytes() >= REQUEST_BYTES {
                busy += influx.post(&std::mem::take(&mut request).finish()?)?;
            }
        }
        Ok(())
    })? {
        if told.elapsed() >= PACE {
            told = Instant::now();
            let (done, all) = (cluster.progress().ticks - warm_ticks, plan.ticks() - warm_ticks);
            say(format_args!("{:?} {:?}: {} %", case.profile, case.style, 100 * done / all));
        }
    }
    let tally = writer.tally().clone();
    let there = tally.node_intervals * plan.interval_s * u64::from(plan.cores);
    let held = (cluster.progress().core_seconds - warm) as f64 / there.max(1) as f64;
    let stored = match influx {
        None => None,
        Some(influx) => {
            if request.bytes() > 0 {
                busy += influx.post(&request.finish()?)?;
            }
            Some(stored(&influx, &tally, busy)?)
        }
    };
    Ok(Measured { case, tally, packed, stored, held })
}

/// Asks the server, and compares.
fn stored(influx: &Server, tally: &Tally, busy: Duration) -> Result<Stored> {
    let (series, sent) = (influx.series()?, tally.job_series + tally.node_series);
    ensure!(series == sent, "InfluxDB has {series} series, and {sent} were sent");
    let lines = |measurement| {
        let of = |amounts: &BTreeMap<String, Amount>| {
            amounts.get(measurement).map_or(0, |amount| amount.lines)
        };
        of(&tally.of_jobs) + of(&tally.of_nodes)
    };
    for measurement in ["job_sched", "job_memory", "jobtrace_self"] {
        let (points, sent) = (influx.points(measurement, "interval_ns")?, lines(measurement));
        ensure!(points == sent, "InfluxDB has {points} points of {measurement}, {sent} were sent");
    }
    say("waiting until InfluxDB has compacted");
    let disk = influx.compacted()?;
    let (anonymous, most) = influx.memory()?;
    Ok(Stored { series, disk, anonymous, most, busy, version: influx.version()? })
}
