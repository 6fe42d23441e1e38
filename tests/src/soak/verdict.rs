//! What must agree in the end. The tolerances are docs/TESTING.md's.

use std::{collections::BTreeMap, time::Duration};

use super::{Done, Seen, totals::Totals};
use crate::{
    account::Node,
    agree::{Agreement, MS},
};

/// Faults of a process before it is in its job's cgroup, or of which its report is a part.
const STRAY_FAULTS: u64 = 40;
/// What an agent may have grown by since its warm-up: its own noise.
const NOISE_BYTES: u64 = 6 << 20;
const NOISE_STATE_BYTES: u64 = 1 << 20;
const NOISE_DESCRIPTORS: u64 = 16;
/// A slot's maps: each is a descriptor.
const MAPS_OF_SLOT: u64 = 2;
/// A slot is kept for two minutes after its job: in a soak as long as this, slots are freed as fast as
/// they are taken when the first look is taken.
const FILLED: Duration = Duration::from_secs(180);

pub fn compare(agree: &mut Agreement, seen: &Seen, totals: &Totals) {
    println!(
        "{:?}: {} jobs, {} cgroups of nobody's, {} restarts ({} kills), {} intervals, {} lines, {} files",
        seen.span,
        seen.done.len(),
        seen.churned,
        seen.restarts,
        seen.kills,
        totals.told,
        totals.lines,
        totals.files[0] + totals.files[1]
    );
    jobs(agree, &seen.done, totals);
    node(agree, seen, totals);
    conserved(agree, totals);
    nothing_lost(agree, seen, totals);
    nothing_grew(agree, seen);
}

/// Each job's forks and programs exactly; the rest never above the kernel's, and by kinds of jobs as near
/// as the kernel lets BPF see it.
fn jobs(agree: &mut Agreement, done: &[Done], totals: &Totals) {
    let (mut wrong, mut more) = (Vec::new(), Vec::new());
    let mut kinds: BTreeMap<&str, BTreeMap<&str, [u64; 3]>> = BTreeMap::new();
    for job in done {
        let ours = |what: &str| totals.of(&job.job.to_string(), what);
        let mut exact = |what: &str, ours: u64, truth: u64| {
            if ours != truth {
                wrong.push(format!("job {} ({}): {what} {ours} of {truth}", job.job, job.kind));
            }
        };
        exact("forks", ours("job_sched.forks"), job.forks);
        exact("execs", ours("job_sched.execs"), job.execs);
        let kind = kinds.entry(job.kind).or_default();
        let mut sum = |what, ours: u64, low: u64, high: u64| {
            let sums = kind.entry(what).or_default();
            *sums = [sums[0] + ours, sums[1] + low, sums[2] + high];
        };
        sum("on_cpu_ns", ours("job_sched.on_cpu_ns"), job.usage_ns, job.usage_ns);
        if let Some((low, high)) = job.minor {
            sum("minor", ours("job_fault.minor"), low, high);
        }
        for (at, op) in ["read", "write"].into_iter().enumerate() {
            let told = ours(&format!("job_block.{op}.bytes"));
            let truth = job.bytes[at];
            if let Some(charged) = job.charged.map(|bytes| bytes[at]).filter(|n| *n != truth) {
                more.push(format!("job {}: {op} {truth} bytes, charged {charged}", job.job));
            }
            if told > truth {
                more.push(format!("job {}: {op} {told} bytes, more than {truth}", job.job));
            }
            sum(["bytes read", "bytes written"][at], told, truth, truth);
        }
    }
    wrong.append(&mut more);
    wrong.iter().take(20).for_each(|line| println!("{line}"));
    agree.exact("jobs with a wrong amount", wrong.len() as u64, 0);
    for (kind, sums) in kinds {
        let jobs = done.iter().filter(|job| job.kind == kind).count() as u64;
        for (what, [ours, low, high]) in sums {
            let named = format!("{jobs} jobs of {kind}: {what}");
            match what {
                "on_cpu_ns" => agree.near(&named, ours, low..=high, 2, jobs * MS),
                "minor" => agree.near(&named, ours, low..=high, 1, jobs * STRAY_FAULTS),
                _ => agree.completed(&named, ours, low, 1 << 20),
            }
        }
    }
}

/// The sum over all jobs and `_system` is the node's.
fn node(agree: &mut Agreement, seen: &Seen, totals: &Totals) {
    let [before, traced, ending, after] = &seen.node;
    let grown = |of: fn(&Node) -> u64| of(ending) - of(traced)..=of(after) - of(before);
    agree.near("the node's forks", totals.all("job_sched.forks"), grown(|node| node.forks), 1, 5);
    let switches =
        totals.all("job_sched.switches_voluntary") + totals.all("job_sched.switches_involuntary");
    let all = grown(|node| node.switches);
    // Of two switches one may be the idle task's, which is nobody's.
    agree.between("the node's switches", switches, *all.start() / 2..=*all.end());
    if before.on_cpu_ns.is_some() {
        let (low, high) = grown(|node| node.on_cpu_ns.unwrap_or(0)).into_inner();
        let first = after.first_process_ns.saturating_sub(before.first_process_ns);
        agree.seen("the node's on_cpu_ns", totals.all("job_sched.on_cpu_ns"), low..=high, first);
    }
    let (least_ns, most_ns) = seen.traced_ns.clone().into_inner();
    let told_ns = totals.own.get("interval_ns").copied().unwrap_or(0);
    agree.between("time told of, ns", told_ns, least_ns - least_ns / 50 - 2000 * MS..=most_ns);
}

/// Every value of a histogram is in one bucket.
fn conserved(agree: &mut Agreement, totals: &Totals) {
    for (metric, count) in &totals.counted {
        let bucketed = totals.bucketed.get(metric).copied().unwrap_or(0);
        agree.exact(&format!("values of {metric} in buckets"), bucketed, *count);
    }
    agree.exact("intervals told twice", totals.told - totals.stamps.len() as u64, 0);
}

fn nothing_lost(agree: &mut Agreement, seen: &Seen, totals: &Totals) {
    let tasks = seen.done.len() as u64 + seen.churned;
    let own = totals.own.iter();
    let losses = own.filter(|(name, _)| {
        // Pids alike in their low bits are no loss of the agent's, and are told.
        (name.starts_with("dropped_") && *name != "dropped_task_record")
            || ["merged_intervals", "bpf_missed", "shed_families"].contains(&name.as_str())
    });
    for (name, count) in losses {
        // A task that waits while it is moved into its job ends its wait in another: told, and no loss of amounts.
        let allowed = if name == "dropped_wait_cell" { tasks } else { 0 };
        agree.between(name, *count, 0..=allowed);
    }
    // A kernel whose functions take no programs lacks that of pages spliced from sockets, and no other.
    let missing = totals.own.get("hooks_missing").copied().unwrap_or(0);
    agree.between("hooks_missing", missing, 0..=totals.told);
    let (took_over, anew): (Vec<&String>, Vec<_>) =
        seen.words.iter().skip(1).partition(|words| words.contains("took over"));
    anew.iter().for_each(|words| println!("an agent began anew: {words}"));
    agree.exact("agents that took over", took_over.len() as u64, seen.restarts);
    let panicked = seen.words.iter().filter(|words| words.contains("panicked")).count() as u64;
    agree.exact("panics", panicked, 0);
}

fn nothing_grew(agree: &mut Agreement, seen: &Seen) {
    let mut grew = |what: &str, (then, now): (u64, u64), noise: u64| {
        agree.between(&format!("{what}, {then} after warm-up"), now, 0..=then + then / 10 + noise);
    };
    let watch = &seen.watch;
    grew("memory", watch.then_and_now(|sizes| sizes.anonymous_bytes), NOISE_BYTES);
    grew("state", watch.then_and_now(|sizes| sizes.state_bytes), NOISE_STATE_BYTES);
    // Until the first jobs' slots are free again, each job takes some.
    let filling = seen.span < FILLED;
    let more = if filling { seen.done.len() as u64 * MAPS_OF_SLOT } else { 0 };
    let descriptors = watch.then_and_now(|sizes| sizes.descriptors);
    grew("descriptors", descriptors, NOISE_DESCRIPTORS + more);
}
