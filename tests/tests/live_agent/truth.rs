//! Numbers of jobs against the kernel's own, hierarchy by hierarchy, and the node's as a whole.

use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use jobtrace::{base::clock::wall_ns, cgroup::hierarchies::Hierarchies};
use jobtrace_tests::{
    account::{Node, Report},
    agent::{Agent, Points},
    agree::{Agreement, MS, tried_again},
    disk::RamDisk,
    rig::workload,
};

use super::shaped::{Ran, Shaped};

const AMOUNTS: &str = env!("CARGO_BIN_EXE_amounts");
const BREED: &str = env!("CARGO_BIN_EXE_breed");
const MIXED: &str = env!("CARGO_BIN_EXE_mixed");
const SECONDS: &str = "2";
const MIB: u64 = 1 << 20;
const BYTES: u64 = 64 << 10;
const TRANSFERS: u64 = 32;
/// A reading is at most so long after its stamp, ns.
const LAG: i64 = 100_000_000;

/// Hierarchies that jobs may be told apart by here, and whether blkio is one of its own.
fn hierarchies() -> Vec<&'static str> {
    let found = Hierarchies::read().unwrap();
    let v1 = ["freezer", "memory"].into_iter().filter(|name| found.v1(name).is_some());
    found.v2.iter().map(|_| "v2").chain(v1).collect()
}

/// The directories of a job that is to be told apart by `hierarchy`, block I/O's included.
fn controllers(hierarchy: &str) -> Vec<&str> {
    let tasks = if hierarchy == "v2" { "" } else { hierarchy };
    let found = Hierarchies::read().unwrap();
    let more = ["blkio", "cpuacct"].into_iter().filter(|name| found.v1(name).is_some());
    [tasks].into_iter().chain(more).collect()
}

/// What the kernel says of one process tree and what the points say of its job. Gives what the tree says of
/// itself, with the account of its first process at its very end.
fn agrees(agree: &mut Agreement, points: &Points, job: &str, ran: &Ran) -> Report {
    let said: Report = serde_json::from_str(&ran.printed).unwrap();
    // To end takes time as well, and more where the pages for it must be read.
    let usage = said.usage_ns..=said.usage_ns + ran.account.on_cpu_ns - said.end.on_cpu_ns;
    let report = Report { end: ran.account, ..said };
    let sched = |field: &str| points.sum(job, "job_sched", field);
    let named = |what: &str| format!("{job} {what}");
    let truth = report.range(|all| all.on_cpu_ns);
    agree.near(&named("on_cpu_ns, schedstat"), sched("on_cpu_ns"), truth, 1, MS);
    agree.near(&named("on_cpu_ns, cpuacct"), sched("on_cpu_ns"), usage, 1, 2 * MS);
    let waited = sched("run_queue_wait_ns_sum");
    agree.near(&named("run_queue_wait_ns"), waited, report.range(|all| all.run_delay_ns), 2, MS);
    let truth = report.range(|all| all.voluntary);
    agree.near(&named("switches_voluntary"), sched("switches_voluntary"), truth, 1, 5);
    let truth = report.range(|all| all.involuntary);
    agree.near(&named("switches_involuntary"), sched("switches_involuntary"), truth, 1, 5);
    agree.near(&named("migrations"), sched("migrations"), report.range(|all| all.migrations), 1, 2);
    let fault = |field: &str| points.sum(job, "job_fault", field);
    agree.near(&named("minor"), fault("minor"), report.range(|all| all.minor), 0, 40);
    agree.near(&named("major"), fault("major"), report.range(|all| all.major), 0, 0);
    report
}

#[test]
fn several_jobs_at_once_agree_with_the_kernel() {
    for hierarchy in hierarchies() {
        tried_again(|| jobs_agree(hierarchy));
    }
}

/// A job of everything, one of forks, one of direct reads, and one that sleeps, all at once.
fn jobs_agree(hierarchy: &str) {
    let disks =
        [RamDisk::new(256 * 4096), RamDisk::new((TRANSFERS + 1) * BYTES), RamDisk::new(8 * MIB)];
    let [pages, file, data] = disks.each_ref().map(RamDisk::path);
    let shaped = Shaped::make(&controllers(hierarchy));
    let agent = Agent::start(&format!("hierarchy = \"{hierarchy}\"")).unwrap();
    // Not before the agent: what a task of a job did before it is traced is nobody's.
    let jobs = [(71, "step_0"), (72, "step_0"), (73, "step_batch"), (74, "")]
        .map(|(job, step)| shaped.job(65_534, job, step));
    let works: [&[&str]; 4] = [
        &[MIXED, SECONDS, &pages, &file],
        &[BREED, "forks", "300"],
        &[AMOUNTS, &data, "8", "300", "2000"],
        &["sleep", "2"],
    ];
    let ran = thread::scope(|scope| {
        let handles: Vec<_> = jobs
            .iter()
            .zip(works)
            .map(|(job, words)| scope.spawn(move || job.watch(words)))
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect::<Vec<_>>()
    });
    (71..75).for_each(|job| shaped.remove_job(65_534, job));
    let points = agent.stop().unwrap();

    let mut agree = Agreement::new();
    let [report, ..] = [("71", &ran[0]), ("72", &ran[1]), ("73", &ran[2])]
        .map(|(job, ran)| agrees(&mut agree, &points, job, ran));
    let sched = |job: &str, field: &str| points.sum(job, "job_sched", field);
    agree.exact("71 forks", sched("71", "forks"), report.fact("forks") + report.fact("children"));
    agree.exact("72 forks", sched("72", "forks"), 300);
    agree.exact("73 forks", sched("73", "forks"), 1);
    agree.exact("74 forks", sched("74", "forks"), 0);
    for job in ["71", "72", "73", "74"] {
        agree.exact(&format!("{job} execs"), sched(job, "execs"), 1);
    }
    agree.near("74 on_cpu_ns", sched("74", "on_cpu_ns"), ran[3].on_cpu_ns.clone(), 1, MS);
    let block = |job: &str, op: &str| points.block(job, op, "bytes");
    let on = |disk: &RamDisk| points.only(|point| point.tag("device") == disk.name());
    let direct = report.fact("direct") * TRANSFERS;
    agree.completed("71 read", on(&disks[1]).block("71", "read", "bytes"), direct * BYTES, BYTES);
    let written = (direct + report.fact("buffered")) * BYTES;
    agree.completed("71 written", on(&disks[1]).block("71", "write", "bytes"), written, BYTES);
    agree.completed("73 read", on(&disks[2]).block("73", "read", "bytes"), 8 * MIB, MIB / 8);
    // On all devices: pages of a program that the kernel has dropped are read again, or not.
    for (job, ran, each) in [("71", &ran[0], BYTES), ("73", &ran[2], MIB / 8)] {
        let what = format!("{job} read, /proc/PID/io");
        agree.completed_between(&what, block(job, "read"), ran.read_bytes.clone(), each);
    }
    for (job, ran) in [("72", &ran[1]), ("74", &ran[3])] {
        let what = format!("{job} read, /proc/PID/io");
        agree.between(&what, block(job, "read"), ran.read_bytes.clone());
    }
    for job in ["71", "72", "73", "74"] {
        assert_eq!(points.tags(job, "job_info", "user"), ["nobody"].into(), "{job}");
        assert_eq!(points.tags(job, "job_sched", "user"), ["nobody"].into(), "{job}");
        assert_eq!(points.fact(job, "uid").as_deref(), Some("65534"), "{job}");
        let told = points.info(job).unwrap().number("sched_on_cpu_ns");
        assert_eq!(told, Some(sched(job, "on_cpu_ns")), "the totals at the end of {job}");
        assert!(points.fact(job, "end").is_some(), "{job} has ended");
    }
    agree.end();
}

/// What a job reads before the agent has looked whose its cgroups are, while it looks, and after, is the
/// job's: the directories of each hierarchy have slots of their own until then.
#[test]
fn what_is_read_before_the_agent_has_looked_is_the_jobs() {
    for hierarchy in hierarchies() {
        tried_again(|| early_reads_agree(hierarchy));
    }
}

fn early_reads_agree(hierarchy: &str) {
    const EARLY: u64 = 24;
    const MEANWHILE: u64 = 6;
    let disk = RamDisk::new(EARLY * MIB);
    let shaped = Shaped::make(&controllers(hierarchy));
    let agent = Agent::start(&format!("hierarchy = \"{hierarchy}\"")).unwrap();
    let read = |job, mib: u64| {
        let job = shaped.job(65_534, job, "step_0");
        job.run(&[AMOUNTS, &disk.path(), &mib.to_string(), "0", "10"]);
    };
    agent.signal(libc::SIGSTOP);
    read(75, EARLY);
    agent.signal(libc::SIGCONT);
    let meanwhile = 76..96;
    meanwhile.clone().for_each(|job| read(job, MEANWHILE));
    agent.settle().unwrap();
    read(75, EARLY);
    (75..meanwhile.end).for_each(|job| shaped.remove_job(65_534, job));
    let points = agent.stop().unwrap();
    let points = points.only(|point| point.tag("device") == disk.name());
    let mut agree = Agreement::new();
    let of = |job: u32| points.block(&job.to_string(), "read", "bytes");
    agree.completed("75 read", of(75), 2 * EARLY * MIB, MIB / 8);
    for job in meanwhile.clone() {
        agree.completed(&format!("{job} read"), of(job), MEANWHILE * MIB, MIB / 8);
    }
    let all = (75..meanwhile.end).map(of).sum::<u64>();
    agree.exact("read by all others", points.total("job_block", "bytes") - all, 0);
    agree.end();
}

/// The node's numbers over a while, and when they were read.
struct Watched(Vec<(i64, Node)>);

impl Watched {
    /// Reads them until told to stop.
    fn watch(stop: &AtomicBool) -> Self {
        let mut all = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            all.push((wall_ns() as i64, Node::read("")));
            thread::sleep(Duration::from_millis(5));
        }
        Self(all)
    }

    /// How much a number grew from `begin` to `end`, where ours were read at most `LAG` after: at
    /// least and at most.
    fn growth(&self, begin: i64, end: i64, of: impl Fn(&Node) -> u64) -> RangeInclusive<u64> {
        let before = |at: i64| of(&self.0.iter().rfind(|(time, _)| *time <= at).unwrap().1);
        let after = |at: i64| of(&self.0.iter().find(|(time, _)| *time >= at).unwrap().1);
        before(end) - after(begin + LAG)..=after(end + LAG) - before(begin)
    }
}

#[test]
fn the_nodes_totals_are_the_sum_of_its_jobs() {
    tried_again(node_agrees);
}

/// Sets the flag when it goes.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The stamp of each reading, and when it was. On a busy node a tick may come late, and its points have
/// the stamp that was due; but the spans between readings are true, and one of all comes in time.
fn readings(points: &Points) -> Vec<(i64, i64)> {
    let node = points.of("_system").filter(|point| point.measurement == "job_sched");
    let spans = node.map(|point| (point.time_ns, point.number("interval_ns").unwrap() as i64));
    let mut spans: Vec<(i64, i64)> = spans.collect();
    // The one at the agent's end has the stamp of a tick that never came.
    spans.pop();
    let mut late = vec![0];
    for pair in spans.windows(2) {
        late.push(late[late.len() - 1] + pair[1].1 - (pair[1].0 - pair[0].0));
    }
    let in_time = *late.iter().min().unwrap();
    spans.iter().zip(late).map(|((stamp, _), late)| (*stamp, stamp + late - in_time)).collect()
}

fn node_agrees() {
    let found = Hierarchies::read().unwrap();
    let hierarchy = if found.v1("freezer").is_some() { "freezer" } else { "v2" };
    let shaped = Shaped::make(&controllers(hierarchy));
    let disks = [RamDisk::new(256 * 4096), RamDisk::new((TRANSFERS + 1) * BYTES)];
    let [pages, file] = disks.each_ref().map(RamDisk::path);
    let stop = AtomicBool::new(false);
    let (points, report, watched) = thread::scope(|scope| {
        // Also where the agent cannot start: the watcher would wait for ever.
        let _end = Raise(&stop);
        let watcher = scope.spawn(|| Watched::watch(&stop));
        let agent = Agent::start(&format!("hierarchy = \"{hierarchy}\"")).unwrap();
        // Preempted between its readings it would be right and seem wrong.
        let pid = rustix::process::Pid::from_raw(agent.pid());
        rustix::process::setpriority_process(pid, -20).unwrap();
        let job = shaped.job(0, 81, "step_0");
        let report = workload::report(&job.run(&[MIXED, "5", &pages, &file])).unwrap();
        shaped.remove_job(0, 81);
        thread::sleep(Duration::from_nanos(2 * LAG as u64));
        let points = agent.stop().unwrap();
        stop.store(true, Ordering::Relaxed);
        (points, report, watcher.join().unwrap())
    });
    // The busy seconds: no CPU is idle, so that switches to no task are few.
    let of_job: Vec<i64> = points.of("81").map(|point| point.time_ns).collect();
    let (first, last) = (of_job[0], of_job[of_job.len() - 1]);
    let readings = readings(&points);
    let mut inside = readings.iter().filter(|(stamp, _)| first < *stamp && *stamp < last);
    let &(first, begin) = inside.next().expect("a reading amid the job");
    let &(last, end) = inside.next_back().expect("two of them");
    assert!(end - begin > 1_500_000_000, "{readings:?}");
    let busy = points.only(|point| point.time_ns > first && point.time_ns <= last);
    let mut agree = Agreement::new();
    let ours = |field| busy.total("job_sched", field);
    let mut near = |what, ours, truth| agree.near(what, ours, truth, 1, 0);
    near("forks", ours("forks"), watched.growth(begin, end, |node| node.forks));
    let switches = ours("switches_voluntary") + ours("switches_involuntary");
    near("switches", switches, watched.growth(begin, end, |node| node.switches));
    if watched.0[0].1.on_cpu_ns.is_some() {
        let truth = watched.growth(begin, end, |node| node.on_cpu_ns.unwrap());
        near("on_cpu_ns, the root's cpuacct", ours("on_cpu_ns"), truth);
    }
    // However little the others leave it, the job has what its own tasks ran.
    let of_job = points.sum("81", "job_sched", "on_cpu_ns");
    agree.near("on_cpu_ns of the job", of_job, report.range(|all| all.on_cpu_ns), 1, 10 * MS);
    agree.end();
}
