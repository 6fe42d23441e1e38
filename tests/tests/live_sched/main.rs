//! Live ring: scheduling numbers against the kernel's own accounts of the same tasks, with the same
//! work going on beside the job.

mod states;

use std::{os::unix::process::CommandExt, process::Command};

use jobtrace::model::tables::Sched;
use jobtrace_tests::{
    account::{Node, Report},
    agree::{Agreement, MS},
    own_cgroup::OwnCgroup,
    sibling::Sibling,
    traced::{Traced, program},
    work::Pages,
};

const SPIN: &str = env!("CARGO_BIN_EXE_spin");
const BREED: &str = env!("CARGO_BIN_EXE_breed");

/// A reading adds what runs at the moment, by the wall clock and as BPF last saw it. On a busy virtual
/// machine that was up to 17 ms too much (time stolen from the CPU; a switch withheld from BPF), and
/// what was reported is not taken back: 3 % of a job of half a second. Without readings between the
/// first and the last nothing is estimated.
const NO_READING_MEANWHILE: [&str; 2] = ["--interval", "10m"];
/// Switches between a workload's report and its end: it may be preempted writing it, and dies.
const LAST_SWITCHES: u64 = 5;

fn spinners() -> String {
    (3 * std::thread::available_parallelism().unwrap().get()).to_string()
}

#[test]
fn three_busy_tasks_on_each_cpu() {
    let command = [SPIN, "crowd", &spinners(), "2000"];
    let sibling = Sibling::start(&command);
    let (job, report) = Traced::report(&NO_READING_MEANWHILE, &command);
    assert!(!sibling.end().is_empty());
    let mut agree = Agreement::new();
    let on_cpu = job.number("sched", "on_cpu_ns");
    agree.near("on_cpu_ns, schedstat", on_cpu, report.range(|all| all.on_cpu_ns), 1, MS);
    agree.near("on_cpu_ns, cpuacct", on_cpu, report.usage_ns..=report.usage_ns, 1, MS);
    let (_, waited) = job.hist("sched", "run_queue_wait_ns");
    agree.near("run_queue_wait_ns", waited, report.range(|all| all.run_delay_ns), 2, MS);
    let voluntary = job.number("sched", "switches_voluntary");
    let truth = report.range(|all| all.voluntary);
    agree.near("switches_voluntary", voluntary, truth, 1, LAST_SWITCHES);
    let involuntary = job.number("sched", "switches_involuntary");
    let truth = report.range(|all| all.involuntary);
    agree.near("switches_involuntary", involuntary, truth, 1, LAST_SWITCHES);
    let moves = job.number("sched", "migrations");
    agree.near("migrations", moves, report.range(|all| all.migrations), 0, 2);
    agree.end();
}

#[test]
fn cpus_that_compute_unevenly_are_told() {
    let (job, _) = Traced::report(&NO_READING_MEANWHILE, &[SPIN, "uneven", "1800", "600"]);
    let mut agree = Agreement::new();
    // The parent may be on a third one, for longer than a task that is only passing by.
    let (cpus, busiest_ms) = match std::thread::available_parallelism().unwrap().get() {
        1 => (1..=1, 2_400),
        2 => (2..=2, 1_800),
        _ => (2..=3, 1_800),
    };
    agree.between("cpus_used", job.number("sched", "cpus_used"), cpus);
    let busiest = job.number("sched", "busiest_cpu_ns");
    // The other one's start and the parent may be on the same CPU.
    agree.between("busiest_cpu_ns, ms", busiest / MS, busiest_ms..=busiest_ms + 200);
    let on_cpu = job.number("sched", "on_cpu_ns");
    agree.between("on_cpu_ns, ms", on_cpu / MS, 2_400..=2_800);
    agree.end();
}

#[test]
fn threads_count_as_processes_do() {
    let command = [SPIN, "threads", &spinners(), "1000"];
    let sibling = Sibling::start(&command);
    let (job, report) = Traced::report(&NO_READING_MEANWHILE, &command);
    sibling.end();
    let mut agree = Agreement::new();
    let on_cpu = report.range(|all| all.on_cpu_ns);
    // Each thread ends after its account was read, which the cgroup's account sees.
    let on_cpu = *on_cpu.start()..=*on_cpu.end().max(&report.usage_ns);
    agree.near("on_cpu_ns", job.number("sched", "on_cpu_ns"), on_cpu, 1, MS);
    let delay = report.range(|all| all.run_delay_ns);
    agree.near("run_queue_wait_ns", job.hist("sched", "run_queue_wait_ns").1, delay, 2, MS);
    let ours =
        job.number("sched", "switches_voluntary") + job.number("sched", "switches_involuntary");
    // Each thread ends after its account was read, and may be preempted doing so.
    let count: u64 = spinners().parse().unwrap();
    let switches = report.range(|all| all.voluntary + all.involuntary);
    agree.near("switches", ours, switches, 1, LAST_SWITCHES + 2 * count);
    agree.exact("forks", job.number("sched", "forks"), count);
    agree.end();
}

/// Preempted between reading and looking at the clock, jobtrace would be right and seem wrong: it runs
/// before all others of a busy machine.
fn urgently(options: &[&str], command: &[&str]) -> (Traced, Report) {
    let mut start = Command::new(program().unwrap());
    let urgent = || {
        // SAFETY: sets the priority of the caller.
        match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: one system call between fork and exec.
    unsafe { start.pre_exec(urgent) };
    let job = Traced::run_by(start, options, command);
    let report = job.read_report(command);
    (job, report)
}

#[test]
fn a_task_that_never_switches_counts_at_each_reading() {
    // A reading that waits for jobtrace's own pages comes too late.
    let _held = Pages::held_file(&program().unwrap());
    let (job, report) = urgently(&["--interval", "100ms"], &[SPIN, "hold", "800"]);
    let mut agree = Agreement::new();
    // Real-time throttling sets in after 950 ms in a second; a machine may still take the CPU away.
    agree.between("switches of the spinner", report.fact("switches"), 0..=2);
    let held = report.fact("held_from_ns")..=report.fact("held_to_ns");
    let all = job.on_cpu_over_time();
    let readings: Vec<_> = all.iter().filter(|(at, _)| held.contains(at)).collect();
    agree.between("readings meanwhile", readings.len() as u64, 3..=9);
    // What runs is known by the wall clock; the kernel's sum leaves interrupts and stolen time out, and
    // what was reported of them is not taken back. A task that was pushed off its CPU was not running.
    let apart = report.fact("held_to_ns") - report.fact("held_from_ns");
    let apart = apart.saturating_sub(report.fact("on_cpu_ns"));
    for pair in readings.windows(2) {
        let (span, grown) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
        // The reading itself lies up to a millisecond before its time stamp.
        agree.near("on_cpu_ns of an interval", grown, span - apart.min(span)..=span, 1, MS);
    }
    let (first, last) = (readings[0], readings[readings.len() - 1]);
    let span = last.0 - first.0;
    let truth = span - apart.min(span)..=span;
    agree.near("on_cpu_ns of all intervals", last.1 - first.1, truth, 1, MS);
    let truth = report.range(|all| all.on_cpu_ns);
    let truth = *truth.start()..=truth.end() + apart;
    agree.near("the whole", job.number("sched", "on_cpu_ns"), truth, 1, MS);
    agree.end();
}

#[test]
fn tasks_made_and_programs_executed() {
    let mut agree = Agreement::new();
    for (what, forks, execs) in [("forks", 50, 1), ("execs", 50, 51), ("threads", 50, 1)] {
        let sibling = Sibling::start(&[BREED, what, "50"]);
        let before = Node::read("");
        let (job, _) = Traced::report(&[], &[BREED, what, "50"]);
        let after = Node::read("");
        sibling.end();
        agree.exact(&format!("{what}: forks"), job.number("sched", "forks"), forks);
        agree.exact(&format!("{what}: execs"), job.number("sched", "execs"), execs);
        // Whoever else makes tasks: within the readings at least ours, at most all made outside them.
        let node = job.node_growth(Sched::forks, |_| true);
        agree.between("forks of the node", node, forks..=after.forks - before.forks);
    }
    agree.end();
}

#[test]
fn moves_between_cpus() {
    let command = [BREED, "migrations", "200"];
    let sibling = Sibling::start(&command);
    let (job, report) = Traced::report(&[], &command);
    sibling.end();
    let moves = job.number("sched", "migrations");
    let mut agree = Agreement::new();
    agree.near("migrations", moves, report.range(|all| all.migrations), 0, 1);
    agree.between("migrations, made", moves, 190..=450);
    agree.end();
}

#[test]
fn cgroups_that_the_job_makes_are_its_own() {
    let command = [SPIN, "nested", "700"];
    let sibling = Sibling::start(&[SPIN, "crowd", "1", "700"]);
    let (job, report) = Traced::report(&NO_READING_MEANWHILE, &command);
    sibling.end();
    let mut agree = Agreement::new();
    let on_cpu = job.number("sched", "on_cpu_ns");
    agree.near("on_cpu_ns", on_cpu, report.range(|all| all.on_cpu_ns), 1, MS);
    let waited = job.hist("sched", "run_queue_wait_ns").1;
    agree.near("run_queue_wait_ns", waited, report.range(|all| all.run_delay_ns), 2, MS);
    // What others write beside it may be worth a note under cgroup v1.
    let notes = job.json["notes"].as_array().into_iter().flatten().filter_map(|note| note.as_str());
    // And a kernel whose functions take no programs cannot count what is spliced from sockets.
    let of_others = ["the disk writes may lack ", "unknown on this kernel: bytes spliced "];
    let of_the_job =
        notes.filter(|note| !of_others.iter().any(|beginning| note.starts_with(beginning)));
    assert_eq!(of_the_job.count(), 0, "{}", job.json);
    agree.end();
}

#[test]
fn who_leaves_the_job_stops_counting() {
    let outside = OwnCgroup::make("outside", &["blkio"]);
    let procs = outside.procs();
    let mut command = vec![SPIN, "leave", "500"];
    command.extend(procs.iter().map(|path| path.to_str().unwrap()));
    let (job, report) = Traced::report(&NO_READING_MEANWHILE, &command);
    // The move itself takes milliseconds on a CPU: read before and after it.
    let inside = report.fact("inside_ns")..=report.fact("moved_ns") + report.end.on_cpu_ns;
    let mut agree = Agreement::new();
    agree.between("on_cpu_ns outside", report.fact("outside_ns"), 5 * MS..=600 * MS);
    let on_cpu = job.number("sched", "on_cpu_ns");
    agree.near("on_cpu_ns inside", on_cpu, inside, 1, MS);
    agree.end();
}

#[test]
fn job_and_system_are_the_node() {
    let command = [SPIN, "crowd", &spinners(), "1500"];
    let sibling = Sibling::start(&command);
    let before = Node::read("");
    let (job, _) = Traced::report(&[], &command);
    let after = Node::read("");
    sibling.end();
    let mut agree = Agreement::new();
    let sched = |field| job.node_growth(field, |_| true);
    let (first, last) = (job.snapshots.first().unwrap(), job.snapshots.last().unwrap());
    let span = last.monotonic_ns - first.monotonic_ns;
    // The kernel's totals can be read before and after only, with jobtrace's own start between. But
    // all CPUs are busy with spinners from the first reading to the last, so the sum is known.
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    let on_cpu = sched(Sched::on_cpu_ns);
    if let (Some(before), Some(after)) = (before.on_cpu_ns, after.on_cpu_ns) {
        let outer = after - before;
        let own = job.number("sched", "on_cpu_ns");
        agree.between("on_cpu_ns of the node", on_cpu, own..=outer);
    }
    // But where the kernel says that they idled, as they do while programs are read again and again.
    let idle = (after.idle_ns - before.idle_ns).min(span * cpus * 95 / 100);
    let least = span * cpus * 95 / 100 - idle;
    agree.between("on_cpu_ns, all CPUs busy", on_cpu, least..=span * cpus * 101 / 100);
    // The kernel counts the idle tasks' switches too.
    let switches = sched(Sched::switches_voluntary) + sched(Sched::switches_involuntary);
    let outer = after.switches - before.switches;
    let own =
        job.number("sched", "switches_voluntary") + job.number("sched", "switches_involuntary");
    agree.between("switches of the node", switches, own..=outer);
    agree.end();
}
