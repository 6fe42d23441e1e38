//! `jobtrace top` beside a real agent: it shows what the jobs do, and what asking for it costs the agent.

use std::{fs, process::Command, time::Duration};

use jobtrace::record::running;
use jobtrace_tests::{agent::Agent, rig::wait_for, traced::program};

use super::{
    life::quiet,
    shaped::{Running, Shaped},
};

const SPIN: &str = env!("CARGO_BIN_EXE_spin");

/// The row of `job`, by words, once something is known of it.
fn row(agent: &Agent, job: &str) -> Option<Vec<String>> {
    let mut top = Command::new(program().unwrap());
    top.args(["top", "--once", "--socket"]).arg(agent.socket());
    let output = top.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().find(|line| line.starts_with(&format!("{job} ")))?;
    // Before its first reading nothing is known of it.
    row.contains('%').then_some(())?;
    Some(row.split_whitespace().map(str::to_owned).collect())
}

/// The number before ` %`, in the `at`th place of all that are.
fn percent(row: &[String], at: usize) -> f64 {
    let shares = row.windows(2).filter(|pair| pair[1] == "%");
    let share = shares.map(|pair| pair[0].trim_start_matches(['<', '>'])).nth(at);
    share.and_then(|share| share.parse().ok()).unwrap_or_else(|| panic!("{row:?}"))
}

#[test]
fn what_jobs_do_is_shown_while_they_run() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let [spins, sleeps] = [9_701, 9_702].map(|job| shaped.job(0, job, ""));
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let mut started = Vec::new();
    for (job, words) in
        [(&spins, [SPIN, "threads", "1", "600000"]), (&sleeps, ["sleep", "600", "", ""])]
    {
        let words = words.iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
        let mut command = job.command(words[0]);
        command.args(&words[1..]).stdout(std::process::Stdio::null());
        started.push(Running(command.spawn().unwrap()));
    }
    let both = || row(&agent, "9701").zip(row(&agent, "9702"));
    // A sleeper's start takes some milliseconds of a CPU, which is much of a job's first quarter of a second.
    let settled = |(spins, sleeps): &(Vec<String>, Vec<String>)| {
        percent(spins, 0) + percent(spins, 1) > 60.0 && percent(sleeps, 0) <= 5.0
    };
    let (spins, sleeps) =
        wait_for("the jobs", Duration::from_secs(30), || both().filter(settled)).unwrap();
    // One thread that always wants a CPU: it is on one, or waits where others want it too.
    // The job was there for some seconds before its thread.
    assert!((60.0..=101.0).contains(&(percent(&spins, 0) + percent(&spins, 1))), "{spins:?}");
    assert!(percent(&spins, 0) >= 10.0 && percent(&spins, 2) <= 5.0, "{spins:?}");
    assert!((0..3).all(|at| percent(&sleeps, at) <= 5.0), "{sleeps:?}");
    drop(started);
    [9_701, 9_702].into_iter().for_each(|job| shaped.remove_job(0, job));
    agent.stop().unwrap();
}

/// Time on CPU of all threads of process `pid`.
fn on_cpu_ns(pid: i32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let ran = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    ran.sum()
}

/// Looks, each of which the measuring loop is asked for: an interval is a second.
const LOOKS: u32 = 5;
const APART: Duration = Duration::from_millis(1_200);
const JOBS: u32 = 200;

#[test]
fn a_look_costs_the_agent_little() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let jobs: Vec<_> = (0..JOBS).map(|job| shaped.job(0, 20_000 + job, "")).collect();
    let all = || running::heads(&agent.socket()).ok().filter(|heads| heads.len() >= JOBS as usize);
    wait_for("all jobs", Duration::from_secs(30), all).unwrap();
    // Their timelines get some columns.
    agent.settle().unwrap();
    let cost = |look: &dyn Fn()| {
        let (before, rss) = (on_cpu_ns(agent.pid()), agent.anonymous_bytes());
        for _ in 0..LOOKS {
            look();
            std::thread::sleep(APART);
        }
        (on_cpu_ns(agent.pid()) - before, agent.anonymous_bytes().saturating_sub(rss))
    };
    let (alone_ns, _) = cost(&|| {});
    let (asked_ns, more_bytes) = cost(&|| drop(running::heads(&agent.socket()).unwrap()));
    let (detail_ns, _) = cost(&|| drop(running::records(&agent.socket(), "20001").unwrap()));
    let of_one = |ns: u64| ns.saturating_sub(alone_ns) as f64 / f64::from(LOOKS) / 1e6;
    eprintln!(
        "{JOBS} jobs: a look costs the agent {:.2} ms, a job in detail {:.2} ms; {} kB more memory",
        of_one(asked_ns),
        of_one(detail_ns),
        more_bytes / 1000
    );
    // Of two seconds between two looks, half a percent is 10 ms; of a program that is not optimised, ten times that.
    assert!(of_one(asked_ns) < 100.0 && of_one(detail_ns) < 100.0);
    assert!(more_bytes < 16 << 20, "{more_bytes} bytes");
    jobs.iter().for_each(|job| job.remove());
    agent.stop().unwrap();
}
