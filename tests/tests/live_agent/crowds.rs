//! Crowds of cgroups: nothing leaks, nothing is anybody else's, and what does not fit is counted.

use std::{
    collections::BTreeSet,
    thread,
    time::{Duration, Instant},
};

use jobtrace_tests::{
    account::Node,
    agent::{Agent, Points},
    agree::Agreement,
    rig::{churn::Churn, wait_for},
};

use super::{
    MOMENT,
    life::{forks, quiet},
    shaped::Shaped,
};

const TEST_JOB: &str = env!("CARGO_BIN_EXE_test_job");
/// 20,000 in a minute.
const PER_SECOND: u32 = 333;
const SECONDS: u64 = 60;
const MIB: u64 = 1 << 20;
/// Memory that it may have taken when all is over: as many jobs as may wait for a slow disk, 20 KiB each.
const MORE: u64 = 2_048 * (20 << 10);

/// Numbers of the jobs of note, above all of the churn's.
const NOTED: std::ops::Range<u32> = 50_001..50_005;
const LAST: u32 = 50_005;
const AT_ONCE: std::ops::Range<u32> = 60_000..61_000;

/// Forks of jobs whose numbers are those of a churn: it has tasks that fork nothing.
fn churned_forks(points: &Points) -> u64 {
    let is_of_churn = |job: &str| job.parse::<u32>().is_ok_and(|number| number < NOTED.start);
    points.only(|point| is_of_churn(point.tag("job"))).total("job_sched", "forks")
}

/// The jobs of the crowds that anything was told of.
fn of_crowds(points: &Points) -> BTreeSet<&str> {
    let is_ours =
        |job: &&str| job.parse().is_ok_and(|job: u32| job < NOTED.start || AT_ONCE.contains(&job));
    points.jobs().into_iter().filter(is_ours).collect()
}

/// Those of them whose end was not told.
fn endless(points: &Points) -> BTreeSet<&str> {
    let mut jobs = of_crowds(points);
    for point in points.0.iter().filter(|point| point.fields.contains_key("end")) {
        jobs.remove(point.tag("job"));
    }
    jobs
}

#[test]
fn twenty_thousand_cgroups_a_minute_and_a_thousand_at_once() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    shaped.directory("slurm/uid_0");
    let begin = Node::read("");
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}\nslots = 256")).unwrap();
    let traced = Node::read("");
    agent.settle().unwrap();
    let (rss, descriptors) = (agent.anonymous_bytes(), agent.descriptors());
    let count = u64::from(PER_SECOND) * SECONDS;
    let churn = Churn {
        controller,
        below: "slurm/uid_0",
        count,
        per_second: Some(PER_SECOND),
        at_once: 4,
        with_task: true,
        ..Churn::default()
    };
    let done = thread::scope(|scope| {
        let churning = scope.spawn(|| churn.run().unwrap());
        // Jobs of note among them.
        for job in NOTED {
            thread::sleep(Duration::from_secs(SECONDS / 5));
            shaped.job(0, job, "").run(&[TEST_JOB, "forks", "100"]);
            shaped.remove_job(0, job);
        }
        churning.join().unwrap()
    });
    assert_eq!((done.made, done.tasks), (count, count), "{done:?}");
    let (busy_rss, busy_descriptors) = (agent.anonymous_bytes(), agent.descriptors());

    let crowd: Vec<_> = AT_ONCE.map(|job| shaped.job(0, job, "")).collect();
    crowd.iter().for_each(|job| job.remove());
    // Afterwards all is as before: the next job is counted whole.
    // A slot that ends costs the kernel a grace period, and the totals of its job wait for it.
    let since = Instant::now();
    while !endless(&agent.settle().unwrap()).is_empty() && since.elapsed() < MOMENT {}
    eprintln!("the ends of all were told after {:?}", since.elapsed());
    shaped.job(0, LAST, "").run(&[TEST_JOB, "forks", "100"]);
    shaped.remove_job(0, LAST);
    let calm = agent.settle().unwrap();
    let is_calm = || (agent.anonymous_bytes() <= rss + MORE).then_some(());
    eprintln!("calm: {:?}", wait_for("the memory of all", MOMENT, is_calm));
    let (calm_rss, calm_descriptors) = (agent.anonymous_bytes(), agent.descriptors());
    let before_end = Node::read("");
    let points = agent.stop().unwrap();
    let end = Node::read("");
    let shown = |bytes: u64| bytes as f64 / MIB as f64;
    eprintln!(
        "{count} cgroups in {:.1} s; RSS {:.1}, {:.1}, {:.1} MiB; descriptors {descriptors}, \
         {busy_descriptors}, {calm_descriptors}; CPU {} ms in {} s",
        done.took.as_secs_f64(),
        shown(rss),
        shown(busy_rss),
        shown(calm_rss),
        points.own("cpu_ns") / 1_000_000,
        calm.0.last().unwrap().time_ns / 1_000_000_000 - calm.0[0].time_ns / 1_000_000_000
    );
    for field in [
        "dropped_slot",
        "dropped_cgroup",
        "dropped_cgroup_event",
        "dropped_no_bank",
        "dropped_intervals",
    ] {
        eprintln!("{field}: {}", points.own(field));
    }

    let mut agree = Agreement::new();
    agree.between("RSS", calm_rss, 1..=rss + MORE);
    // One for each slot in use, at most.
    agree.between("descriptors", calm_descriptors as u64, 1..=(descriptors + 256) as u64);
    agree.exact("forks in jobs that fork nothing", churned_forks(&points), 0);
    // Counted whole, or where no slot was to spare from its first look on.
    let least = if points.own("dropped_slot") == 0 { 100 } else { 0 };
    for job in NOTED {
        let ours = forks(&points, &job.to_string());
        agree.between(&format!("{job} forks"), ours, least..=100);
    }
    agree.exact("forks of the last", forks(&points, &LAST.to_string()), 100);
    let total = points.total("job_sched", "forks");
    agree.between("forks", total, before_end.forks - traced.forks..=end.forks - begin.forks);
    agree.exact("banks missing", points.own("dropped_no_bank"), 0);
    let told = of_crowds(&points).len() as u64;
    agree.between("jobs told of", told, count + 900..=count + 1000);
    assert_eq!(endless(&points), BTreeSet::new(), "never ended");
    agree.end();
}
