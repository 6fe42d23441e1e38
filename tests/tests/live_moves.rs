//! Live ring: tasks that change what they are counted by while they run: a thread that takes over its
//! process's pid, a task that moves itself to another cgroup, and one that is moved.

use std::ops::RangeInclusive;

use jobtrace_tests::{
    account::Report,
    agree::{Agreement, MS, tried_again},
    own_cgroup::OwnCgroup,
    sibling::Sibling,
    traced::Traced,
};

const SPIN: &str = env!("CARGO_BIN_EXE_spin");

/// Nothing is estimated where nothing is read in between.
const NO_READING_MEANWHILE: [&str; 2] = ["--interval", "10m"];
/// How old a running task's account is at most, as another CPU reads it: a tick, of 100 Hz or more.
const TICK: u64 = 10 * MS;

#[test]
fn a_thread_that_executes_a_program_keeps_its_time() {
    let program = [SPIN, "alone", "300"];
    for (leader_ms, thread_ms) in [("0", "200"), ("200", "400"), ("300", "10")] {
        for wrapper in [&[][..], &["chrt", "-f", "5"]] {
            let mut command = wrapper.to_vec();
            command.extend([SPIN, "successor", leader_ms, thread_ms]);
            command.extend(program);
            let sibling = Sibling::start(&command);
            let (job, report) = Traced::report(&NO_READING_MEANWHILE, &command);
            sibling.end();
            let known: u64 =
                [leader_ms, thread_ms, "300"].map(|ms| ms.parse::<u64>().unwrap()).iter().sum();
            let mut agree = Agreement::new();
            let on_cpu = job.number("sched", "on_cpu_ns");
            // Before its end the program reads what the cgroup used.
            let truth = report.usage_ns..=report.usage_ns + 5 * MS;
            agree.near(&format!("on_cpu_ns, {leader_ms} + {thread_ms} ms"), on_cpu, truth, 1, MS);
            // Starting three programs costs something too.
            let allowed = known * MS * 98 / 100..=(known + 200) * MS;
            agree.between("on_cpu_ns, known", on_cpu, allowed);
            let (_, slices) = job.hist("sched", "on_cpu_slice_ns");
            // One thread at a time.
            let elapsed = job.json["elapsed_ns"].as_u64().unwrap();
            agree.between("slices", slices, on_cpu * 98 / 100..=elapsed + 5 * MS);
            agree.exact("dropped_task_record", job.number("self", "dropped_task_record"), 0);
            agree.end();
        }
    }
}

/// What slices add up to by the wall clock: what a host took away meanwhile, which the kernel's own account
/// of CPU time leaves out, is in them. Seen above it: 66 ms of half a second.
fn slices_of(on_cpu: u64, report: &Report) -> RangeInclusive<u64> {
    on_cpu..=on_cpu + report.fact("stolen_ns")
}

/// What `work` of `spin` did that has cgroups outside the job to go to, v2's and that of `controller`.
fn with_outside(work: &str, ms: &str, controller: &str) -> (Traced, Report) {
    let outside = OwnCgroup::make("outside", &[controller]);
    let procs = outside.procs();
    let mut command = vec![SPIN, work, ms];
    command.extend(procs.iter().map(|path| path.to_str().unwrap()));
    Traced::report(&NO_READING_MEANWHILE, &command)
}

/// One event decides: where the kernel withholds the switch that brought the task to its CPU, nobody knows who
/// moves.
#[test]
fn who_moves_itself_leaves_the_slice_behind() {
    tried_again(slice_is_left_behind);
}

fn slice_is_left_behind() {
    let (job, report) = with_outside("slip", "500", "blkio");
    let mut agree = Agreement::new();
    let on_cpu = job.number("sched", "on_cpu_ns");
    // The task stays in the cgroup of the kernel's account; the move itself may count on either side.
    let inside = report.usage_ns - report.fact("outside_ns");
    let moving = report.fact("moved_ns") - report.fact("inside_ns");
    agree.near("on_cpu_ns inside", on_cpu, inside - moving..=inside, 1, 2 * TICK);
    let (_, slices) = job.hist("sched", "on_cpu_slice_ns");
    agree.near("on_cpu_slice_ns inside", slices, slices_of(on_cpu, &report), 3, TICK);
    agree.end();
}

/// Moved there and back while it runs: counted where the kernel's own account of CPU time has it.
#[test]
fn who_is_moved_while_it_runs_counts_where_it_is() {
    tried_again(moved_while_it_runs);
}

fn moved_while_it_runs() {
    let (job, report) = with_outside("expelled", "150", "cpuacct");
    let all = report.range(|all| all.on_cpu_ns);
    let mut agree = Agreement::new();
    agree.between(
        "on_cpu_ns inside, of all",
        report.usage_ns,
        all.start() * 2 / 10..=all.end() * 9 / 10,
    );
    let on_cpu = job.number("sched", "on_cpu_ns");
    // Each of eight moves by a tick; the moves there and those back lag alike.
    let tolerance = report.fact("apart_ns") + 4 * TICK;
    agree.near("on_cpu_ns inside", on_cpu, report.usage_ns..=report.usage_ns, 1, tolerance);
    let (_, slices) = job.hist("sched", "on_cpu_slice_ns");
    agree.near("on_cpu_slice_ns inside", slices, slices_of(on_cpu, &report), 3, 4 * TICK);
    agree.end();
}
