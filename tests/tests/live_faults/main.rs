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

/// The longest interval, seconds, less the machine's own longest stall.
fn longest_s(points: &Points, stalls: &Stalls) -> f64 {
    let spans = intervals(points).into_iter().map(|(_, span_ns)| span_ns);
    spans.max().expect("an interval") as f64 / 1e9 - stalls.longest().as_secs_f64()
}
