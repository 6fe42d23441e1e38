//! Live ring: what the probes cost is bounded and shown, and what was not counted is unknown.

mod agent;
mod net;

use std::{fs, thread::sleep, time::Duration};

use agent::{Agent, job, start_inside};
use jobtrace_tests::{
    account::Account,
    agent::Point,
    agree::{Agreement, tried_again},
    disk::RamDisk,
};

const BURST: &str = env!("CARGO_BIN_EXE_burst");
const SPIN: &str = env!("CARGO_BIN_EXE_spin");
const TRANSFER: &str = env!("CARGO_BIN_EXE_transfer");
const READS: u64 = 200;

/// A file that is not there yet, in a folder that vanishes.
fn flag() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stop").to_str().unwrap().to_owned();
    (folder, path)
}

fn own(points: &[Point]) -> impl Iterator<Item = &Point> {
    points.iter().filter(|point| point.measurement == "jobtrace_self")
}

/// Sum of `field` in the job's points after `after_ns`.
fn sum(points: &[Point], measurement: &str, after_ns: i64, field: &str) -> u64 {
    let job = std::process::id().to_string();
    let is_meant = |point: &&Point| {
        point.measurement == measurement && point.tag("job") == job && point.time_ns > after_ns
    };
    points.iter().filter(is_meant).filter_map(|point| point.number(field)).sum()
}

fn ops(points: &[Point], after_ns: i64, device: &str) -> u64 {
    let is_meant = |point: &&Point| {
        point.measurement == "job_block"
            && point.tag("device") == device
            && point.time_ns > after_ns
    };
    points.iter().filter(is_meant).filter_map(|point| point.number("ops")).sum()
}

/// Whether some point of that moment has the field.
fn is_told(points: &[Point], time_ns: i64, measurement: &str, field: &str) -> bool {
    let mut same = points.iter().filter(|point| point.time_ns == time_ns);
    same.any(|point| point.measurement == measurement && point.float(field).is_some())
}

/// Takes the limit away, and waits until every family is attached again and nothing is unknown.
fn give_everything_back(agent: &mut Agent, back_off: &str) {
    agent.reload(&format!("max_ratio = 1.0, patience = 1, back_off = {back_off:?}"));
    let is_shed = |point: &Point| point.float("shed_families") > Some(0.0);
    agent.wait_for_points("everything is known again", |points| {
        own(points).any(is_shed) && own(points).last().is_some_and(|point| !is_shed(point))
    });
    let log = agent.log();
    for family in ["block", "net", "sched", "full_fault"] {
        let times = |what: &str| log.matches(&format!("{family} probes {what}")).count();
        assert_eq!(times("detached"), times("attached again"), "{family}: {log}");
    }
}

fn switches(account: &Account) -> u64 {
    account.voluntary + account.involuntary
}

/// The kernel's types and the zeros of the tasks' records are tens of MiB while the programs are loaded.
#[test]
fn what_only_the_start_needs_is_given_back() {
    let agent = Agent::start(&[], "max_ratio = 1.0");
    agent.wait_for_points("a reading", |points| own(points).next().is_some());
    let [now, peak] = ["VmRSS", "VmHWM"].map(|field| agent.memory_kib(field));
    let own = agent.memory_kib("RssAnon");
    assert!((512..7 << 10).contains(&own), "{own} KiB of its own");
    assert!(now < peak, "{now} KiB of {peak} are left");
    assert!(agent.end().len() > 1);
}

#[test]
fn the_costliest_goes_first_its_values_are_unknown_and_none_of_the_gap_comes_back() {
    let (disk, other) = (RamDisk::new(1 << 20), RamDisk::new(READS * 4096));
    let (_folder, stop) = flag();
    let mut agent = Agent::start(&[], "max_ratio = 0.0001, patience = 1, back_off = \"8s\"");
    let attachments = agent.attachments();
    let cgroup = job();
    let burst = start_inside(&cgroup, &[BURST, &disk.path(), &stop, "20000"]);
    agent.wait_for("sched probes detached");
    assert!(agent.attachments() < attachments / 2);
    // A gap in which much happens that nobody counts; who did it sleeps until everything is known again.
    sleep(Duration::from_millis(1500));
    fs::write(&stop, "").unwrap();
    sleep(Duration::from_millis(200));
    give_everything_back(&mut agent, "8s");
    let log = agent.log();
    let at = |words: &str| log.find(words).unwrap_or_else(|| panic!("{words:?} not in {log}"));
    assert!(at("block probes detached, unknown for now: job_block") < at("sched probes detached"));
    assert_eq!(agent.attachments(), attachments, "nothing is attached twice, or not again");
    let spin = start_inside(&cgroup, &[SPIN, "crowd", "2", "300"]).end();
    let count = READS.to_string();
    let read = start_inside(&cgroup, &[TRANSFER, "read", &other.path(), &count, "4096"]).end();
    let burst = burst.end();
    drop(cgroup);
    let points = agent.end();

    for point in own(&points) {
        let told = |measurement, field| is_told(&points, point.time_ns, measurement, field);
        if point.float("shed_sched") == Some(1.0) {
            for field in ["on_cpu_ns", "switches_voluntary", "sleep_ns_count", "blocked_ns_sum"] {
                assert!(!told("job_sched", field), "{field} of {}", point.time_ns);
            }
            assert!(!told("job_sched", "blocked_read_ns") && !told("job_wait", "blocked_ns_sum"));
            assert!(!told("job_fault", "minor") && !told("job_fault", "major_wait_ns_count"));
            assert_eq!(point.float("shed_major_fault"), Some(1.0));
        }
        assert!(point.float("shed_block") != Some(1.0) || !told("job_block", "ops"));
    }
    let hidden = own(&points).filter(|point| point.float("shed_families") > Some(0.0));
    let last_ns = hidden.map(|point| point.time_ns).max().unwrap();
    let all_reads = ops(&points, 0, &disk.name());
    eprintln!(
        "{} switches and {} reads, {all_reads} of them counted",
        burst.fact("busy_switches"),
        burst.fact("turns")
    );
    let mut agree = Agreement::new();
    agree.between("reads before the gap", all_reads, 1..=burst.fact("turns"));
    agree.exact("reads of the gap that came later", ops(&points, last_ns, &disk.name()), 0);
    agree.exact("reads after the gap", ops(&points, last_ns, &other.name()), READS);
    let of = |value: fn(&Account) -> u64| {
        let (spin, read) = (spin.range(value), read.range(value));
        (spin.start() + read.start(), spin.end() + read.end())
    };
    let sched = |field| sum(&points, "job_sched", last_ns, field);
    let (least, most) = of(switches);
    let counted = sched("switches_voluntary") + sched("switches_involuntary");
    // Each of the three writes its report and ends after it looked.
    let most = most + burst.fact("rest_switches") + 3 * 2;
    agree.between("switches after the gap", counted, least * 99 / 100..=most);
    let (least, most) = of(|account| account.on_cpu_ns);
    let most = (most + burst.fact("rest_on_cpu_ns")) * 101 / 100 + 2_000_000;
    agree.between("on_cpu_ns after the gap", sched("on_cpu_ns"), least * 99 / 100..=most);
    let (least, most) = of(|account| account.minor);
    agree.between(
        "minor after the gap",
        sum(&points, "job_fault", last_ns, "minor"),
        least..=most + 50,
    );
    let longest = |point: &Point| point.float("sleep_ns_max").unwrap_or(0.0) as u64;
    let job = std::process::id().to_string();
    let after = points.iter().filter(|point| point.time_ns > last_ns && point.tag("job") == job);
    agree.between("the longest sleep", after.map(longest).max().unwrap(), 1..=2_000_000_000);
    agree.end();
}

#[test]
fn the_estimate_is_near_what_the_kernel_measures() {
    // What one switch costs is another thing while the machine does other work too.
    tried_again(estimate_beside_measurement);
}

fn estimate_beside_measurement() {
    let (_folder, stop) = flag();
    let cgroup = job();
    let burst = start_inside(&cgroup, &[BURST, "pipe", &stop, "0"]);
    let agent = Agent::start(&[], "max_ratio = 1.0, statistics = \"windows\"");
    agent.wait_for_points("six intervals", |points| own(points).count() >= 6);
    let points = agent.end();
    fs::write(&stop, "").unwrap();
    let report = burst.end();
    drop(cgroup);
    let mut intervals: Vec<(bool, f64, f64)> = Vec::new();
    for point in own(&points).filter(|point| point.float("shed_families") == Some(0.0)) {
        let is_measured = point.float("overhead_measured") == Some(1.0);
        assert_eq!(point.float("bpf_ns").is_some(), is_measured, "unknown is not zero");
        let known = point.float("families_measured").unwrap();
        let of_interval = |known: &&Point| known.time_ns == point.time_ns;
        let sched =
            points.iter().filter(of_interval).filter(|point| point.measurement == "job_sched");
        let field = |point: &Point, name| point.float(name).unwrap_or(0.0);
        let switches: f64 = sched
            .map(|point| field(point, "switches_voluntary") + field(point, "switches_involuntary"))
            .sum();
        eprintln!(
            "measured {is_measured}, families measured {known}, ratio {:.6}, switches {switches}",
            point.float("overhead_ratio").unwrap()
        );
        // What one switch cost in all, in the CPUs' nanoseconds.
        let cost = point.float("overhead_ratio").unwrap() * point.float("interval_ns").unwrap();
        intervals.push((is_measured, known, cost / switches));
    }
    eprintln!("{} turns", report.fact("turns"));
    let measured: Vec<_> = intervals.iter().filter(|(measured, ..)| *measured).collect();
    assert_eq!(measured.len(), 1, "one window");
    let measured = measured[0].2;
    let later: Vec<_> = intervals.iter().skip_while(|(measured, ..)| !measured).skip(1).collect();
    assert!(later.len() >= 2 && later.iter().all(|(_, known, _)| *known >= 1.0));
    for (_, _, estimate) in later {
        assert!((0.6..1.7).contains(&(estimate / measured)), "{estimate} for {measured}");
    }
    for (_, known, estimate) in intervals.iter().take_while(|(measured, ..)| !measured) {
        assert_eq!(*known, 0.0);
        assert!((0.8..5.0).contains(&(estimate / measured)), "{estimate} for {measured}");
    }
}

#[test]
fn by_default_nothing_is_shed_but_what_is_above_one_percent_for_three_intervals() {
    let (_folder, stop) = flag();
    let cgroup = job();
    let agent = Agent::start(&[], "");
    let burst = start_inside(&cgroup, &[BURST, "pipe", &stop, "0"]);
    sleep(Duration::from_secs(5));
    fs::write(&stop, "").unwrap();
    burst.end();
    drop(cgroup);
    let (log, points) = (agent.log(), agent.end());
    let ratios: Vec<f64> =
        own(&points).map(|point| point.float("overhead_ratio").unwrap()).collect();
    let attached: Vec<bool> =
        own(&points).map(|point| point.float("shed_families") == Some(0.0)).collect();
    eprintln!("ratios {ratios:?}");
    assert!(ratios.iter().any(|ratio| *ratio > 0.001), "the work is seen");
    let first = ratios.windows(3).position(|three| three.iter().all(|ratio| *ratio > 0.01));
    // The interval after the third is the first without; the last of all tells of none after it.
    let expected = first.map(|first| first + 3).filter(|index| *index < ratios.len());
    assert_eq!(attached.iter().position(|attached| !attached), expected);
    assert_eq!(log.contains("detached"), first.is_some_and(|first| first + 3 <= ratios.len()));
}

#[test]
fn without_the_privilege_the_cost_is_estimated_and_that_is_said_once() {
    let prefix = ["setpriv", "--bounding-set=-sys_admin"];
    let agent = Agent::start(&prefix, "statistics = \"on\"");
    agent.wait_for_points("three intervals", |points| own(points).count() >= 3);
    let log = agent.log();
    let points = agent.end();
    assert_eq!(log.matches("CAP_SYS_ADMIN").count(), 1, "{log}");
    assert!(own(&points).all(|point| point.float("overhead_measured") == Some(0.0)));
    assert!(
        own(&points).all(|point| point.float("overhead_ratio").is_some() && point.float("bpf_ns").is_none())
    );
}
