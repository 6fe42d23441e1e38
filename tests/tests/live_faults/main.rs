//! Live ring: the store of records where things go wrong: disks that are slow, full, over quota or hang, a node that
//! dies. Nothing is lost that could be kept, and measuring goes on.

mod died;
mod full;
mod share;
mod slow;

use std::{collections::BTreeMap, path::Path};

use jobtrace::{
    model::tables::{SCHED, Sched},
    record::store,
};
use jobtrace_tests::{
    agent::records,
    daemon::{files::Points, files::intervals, site::Site},
    stalls::Stalls,
};

const SECOND_NS: u64 = 1_000_000_000;

/// Forks in the records of a folder, by job: of each there is one.
fn forks(dir: &Path) -> BTreeMap<String, u64> {
    let mut forks = BTreeMap::new();
    for record in records(dir).expect("sound records") {
        let sched = record.totals.stats.group(&SCHED);
        let count = sched.and_then(|sched| sched.number(Sched::forks)).unwrap_or_default();
        let job = record.job().job.clone();
        assert_eq!(forks.insert(job.clone(), count), None, "two records of {job}");
    }
    forks
}

/// Whether the folder has heads of all of a site's `jobs`.
fn are_saved(dir: &Path, site: &Site, jobs: &[u32]) -> Option<()> {
    let found = store::read_heads(dir, |_| true).ok()?;
    let is_saved =
        |job: &String| found.heads.iter().any(|(_, head)| head.job.as_ref() == Some(job));
    jobs.iter().all(|job| is_saved(&site.job(*job))).then_some(())
}

/// The longest interval, seconds: of each, less the machine's longest stall while it lasted.
fn longest_s(points: &Points, stalls: &Stalls) -> f64 {
    let lasted_s = |(end_ns, span_ns): (u64, u64)| {
        // Stamps lie on a grid, up to a second from when the reading was.
        let span = end_ns - span_ns - SECOND_NS..end_ns + SECOND_NS;
        span_ns as f64 / 1e9 - stalls.longest_in(&span).as_secs_f64()
    };
    intervals(points).into_iter().map(lasted_s).max_by(f64::total_cmp).expect("an interval")
}
