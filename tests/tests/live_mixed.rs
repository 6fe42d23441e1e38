//! Live ring: all kinds of work at once, more of it than the node has CPUs, and the same beside the
//! job: every number still agrees with the kernel's. `JOBTRACE_TEST_SECONDS` says for how long.

use jobtrace_tests::{
    account::Node,
    agree::{Agreement, MS},
    disk::RamDisk,
    sibling::Sibling,
    traced::{Traced, count_and_sum},
};

const MIXED: &str = env!("CARGO_BIN_EXE_mixed");

/// As `src/bin/mixed.rs` has them.
const FRESH_PAGES: u64 = 2000;
const BYTES: u64 = 64 << 10;
const TRANSFERS: u64 = 32;
const SLEEP_NS: u64 = 5 * MS;
const MESSAGES: u64 = 16;
const MESSAGE_BYTES: u64 = 1000;

const PAGE: u64 = 4096;
const DEVICE_PAGES: u64 = 256;

#[test]
fn everything_at_once() {
    let seconds = std::env::var("JOBTRACE_TEST_SECONDS").unwrap_or_else(|_| "30".into());
    // One device for the pages, whose cache is emptied over and over, and one for the transfers.
    let pages = [(); 2].map(|()| RamDisk::new(DEVICE_PAGES * PAGE));
    let files = [(); 2].map(|()| RamDisk::new((TRANSFERS + 1) * BYTES));
    let command = |index: usize| [pages[index].path(), files[index].path()];
    let (own, other) = (command(0), command(1));
    // One round that outlasts the job's.
    let longer =
        (seconds.parse::<u64>().expect("JOBTRACE_TEST_SECONDS is a number") + 3).to_string();
    let sibling = Sibling::start(&[MIXED, &longer, &other[0], &other[1]]);
    let before = Node::read(&files[0].name());
    let (job, report) = Traced::report(&["--faults", "full"], &[MIXED, &seconds, &own[0], &own[1]]);
    let after = Node::read(&files[0].name());
    let beside = sibling.end();
    assert!(beside[0].fact("direct") > 0, "{beside:?}");
    let mut agree = Agreement::new();
    for kind in ["fresh", "file", "direct", "buffered", "sleeps", "forks", "messages"] {
        assert!(report.fact(kind) > 0, "no round of {kind}: {report:?}");
    }

    let sched = |field| job.number("sched", field);
    agree.near(
        "on_cpu_ns, schedstat",
        sched("on_cpu_ns"),
        report.range(|all| all.on_cpu_ns),
        1,
        MS,
    );
    let usage = report.usage_ns;
    agree.near("on_cpu_ns, cpuacct", sched("on_cpu_ns"), usage..=usage, 1, MS);
    let (_, waited) = job.hist("sched", "run_queue_wait_ns");
    agree.near("run_queue_wait_ns", waited, report.range(|all| all.run_delay_ns), 2, MS);
    let truth = report.range(|all| all.voluntary);
    agree.near("switches_voluntary", sched("switches_voluntary"), truth, 1, 5);
    let truth = report.range(|all| all.involuntary);
    agree.near("switches_involuntary", sched("switches_involuntary"), truth, 1, 5);
    agree.near("migrations", sched("migrations"), report.range(|all| all.migrations), 1, 2);
    agree.exact("forks", sched("forks"), report.fact("forks") + report.fact("children"));
    agree.exact("execs", sched("execs"), 1);
    let (sleeps, slept) = job.hist("sched", "sleep_ns");
    agree.between("sleeps", sleeps, report.fact("sleeps")..=sched("switches_voluntary"));
    // A task is on a CPU, waits for one, sleeps or is blocked. The first process, its children and one
    // grandchild at a time live until the end: the sum of all lives is nearly known.
    let (_, blocked) = job.hist("sched", "blocked_ns");
    let lives = (report.fact("children") + 2) * job.json["elapsed_ns"].as_u64().unwrap();
    let rest = lives - sched("on_cpu_ns") - waited;
    agree.between("sleep_ns", slept, report.fact("sleeps") * SLEEP_NS * 98 / 100..=rest);
    let busy = sched("on_cpu_ns") + waited + slept + blocked;
    agree.between("all states", busy, lives * 85 / 100..=lives * 101 / 100);

    let minor = job.number("fault", "minor");
    agree.near("minor", minor, report.range(|all| all.minor), 0, 40);
    let fresh = report.fact("fresh") * FRESH_PAGES;
    let others = 2000 + 300 * sched("forks") + (BYTES / PAGE + 20) * report.fact("direct");
    agree.between("minor, pages touched", minor, fresh..=fresh + FRESH_PAGES + others);
    let major = job.number("fault", "major");
    agree.near("major", major, report.range(|all| all.major), 0, 0);
    let touched = report.fact("file") * DEVICE_PAGES;
    agree.near("major, pages touched", major, touched..=touched, 1, 0);
    let (waits, waited) = job.hist("fault", "major_wait_ns");
    agree.between("major_wait_ns, count", waits, major * 9 / 10..=major);
    agree.between("major_wait_ns", waited, 1..=blocked);
    let timed = job.hist("fault", "minor_latency_ns").0;
    let expected = minor / 61;
    let chance = 4 * expected.isqrt();
    // A page that the kernel itself faults in, to pin it for a direct read, counts as the task's fault
    // but is no event (mm_account_fault, without registers): seen once for each.
    let pinned = report.fact("direct") * TRANSFERS / 61;
    agree.between("minor faults timed", timed, expected - pinned - chance..=expected + chance);
    let timed = job.hist("fault", "major_latency_ns").0;
    agree.between("major faults timed", timed, major * 98 / 100..=major);

    let device = files[0].name();
    let direct = report.fact("direct") * TRANSFERS;
    let (bytes, reads) = job.block_amount(&device, "read");
    agree.completed("read: bytes", bytes, direct * BYTES, BYTES);
    agree.completed("read: ops", reads, direct, 1);
    agree.completed("read: ops, /proc/diskstats", reads, after.ops[0] - before.ops[0], 1);
    let (bytes, ops) = job.block_amount(&device, "write");
    let written = (direct + report.fact("buffered")) * BYTES;
    agree.completed("write: bytes", bytes, written, BYTES);
    // There an empty write that asks for a flush is a write.
    let (_, flushes) = job.block_amount(&device, "flush");
    agree.completed("flush: ops", flushes, report.fact("buffered"), 1);
    agree.completed("write: ops, /proc/diskstats", ops + flushes, after.ops[1] - before.ops[1], 1);
    let group = job.block(&device, "read");
    agree.exact("latencies", count_and_sum(&group["device_latency_ns"]).0, reads);
    let (bytes, _) = job.block_amount(&pages[0].name(), "read");
    agree.completed("pages read: bytes", bytes, major * PAGE, PAGE);

    // One process at both ends of a connection of its own: a message is there as soon as it is sent.
    let messages = report.fact("messages") * MESSAGES;
    for way in ["sent", "received"] {
        let tcp = |what: &str| job.net("tcp", &format!("{way}_{what}"));
        agree.exact(&format!("tcp: {way}_bytes"), tcp("bytes"), messages * MESSAGE_BYTES);
        agree.exact(&format!("tcp: {way}_calls"), tcp("calls"), messages);
    }
    agree.exact("tcp: connections", job.net("tcp", "connections"), 1);
    for other in [&pages[1], &files[1]] {
        agree.exact("of the sibling", job.block_amount(&other.name(), "read").1, 0);
    }
    agree.end();
}
