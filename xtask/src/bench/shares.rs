//! What the agent's programs take of a job in which events are few: less than pairs of runs can show, so
//! by the kernel's own account of the programs and of the job.

use super::found::Found;
use super::tracers::{Place, Setting, Tracer};
use super::workload::Workload;
use crate::bpf::{self, Program};
use crate::process::say;
use anyhow::{Context, Result, ensure};
use std::io;

/// Time of programs and of the job they ran in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Time in the programs, on all CPUs, statistics' own included.
    pub programs_ns: u64,
    /// How often they ran.
    pub runs: u64,
    /// The job's user and system time.
    pub job_ns: u64,
}

impl Share {
    /// The programs' part.
    pub fn ratio(&self) -> f64 {
        self.programs_ns as f64 / self.job_ns as f64
    }
}

/// Several runs of one job.
pub struct Shares {
    /// The run with the median share.
    pub median: Share,
    /// The shares of all runs lie between these.
    pub least_and_greatest: [f64; 2],
}

/// Runs each workload without dominating events so many times beside an agent, with statistics on.
///
/// # Errors
/// When a workload or the agent fails.
pub fn measure(place: &Place, workloads: &[Workload], rounds: usize) -> Result<Vec<Found<Shares>>> {
    let jobs = workloads.iter().filter(|workload| workload.events.is_none());
    jobs.map(|job| Ok(Found::new(job, &Tracer::Agent, Ok(one(place, job, rounds)?)))).collect()
}

fn one(place: &Place, job: &Workload, rounds: usize) -> Result<Shares> {
    let _statistics = bpf::enable_stats()?;
    say(format_args!("{}: what the agent's programs take", job.name));
    let beside = Tracer::Agent.start(place, Setting::default())?;
    let sum = |of: fn(&Program) -> u64, all: &[Program]| all.iter().map(of).sum::<u64>();
    let mut shares = Vec::new();
    for _ in 0..rounds {
        let (before, began_ns) = (beside.attached.read_programs()?, children_ns()?);
        job.run_plain()?;
        let job_ns = children_ns()? - began_ns;
        let after = beside.attached.read_programs()?;
        let grown = |of: fn(&Program) -> u64| sum(of, &after) - sum(of, &before);
        let (programs_ns, runs) = (grown(|it| it.run_time_ns), grown(|it| it.run_count));
        ensure!(job_ns > 0 && runs > 0, "the job took no time, or no program ran");
        shares.push(Share { programs_ns, runs, job_ns });
    }
    beside.attached.end()?;
    shares.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let (first, last) = (shares[0].ratio(), shares[shares.len() - 1].ratio());
    Ok(Shares { median: shares[shares.len() / 2], least_and_greatest: [first, last] })
}

/// User and system time of our children that have ended, and of theirs.
fn children_ns() -> Result<u64> {
    // SAFETY: all integers; zeros are a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` outlives the call, which only writes to it.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) } != 0 {
        return Err(io::Error::last_os_error()).context("read our children's time");
    }
    let us = |time: libc::timeval| (time.tv_sec * 1_000_000 + time.tv_usec).unsigned_abs();
    Ok((us(usage.ru_utime) + us(usage.ru_stime)) * 1000)
}
