//! Runs with one trouble each.

pub mod file_ops;
pub mod gpus;
pub mod limits;
pub mod waits;

use jobtrace::model::{
    group::Group,
    hist::Hist,
    info::{Exit, JobInfo},
    job::Job,
    tables::{
        BLOCK, Block, CPU, Cpu, FAULT, Fault, GPU, Gpu, MEMORY, Memory, NET, Net, Own, SCHED, SELF,
        Sched,
    },
    totals::{Peaks, RunTotals},
};
use tracer_ebpf::{
    handle::{Handle, Histogram, Number},
    loglinear::bucket_of,
    table::Measurement,
};

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const S: u64 = 1_000 * MS;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A histogram of values and how often each came.
pub fn hist(values: &[(u64, u64)]) -> Hist {
    let values = || values.iter().filter(|(_, count)| *count > 0);
    let sum = values().map(|(value, count)| value * count).sum();
    let max = values().map(|(value, _)| *value).max().unwrap_or(0);
    let bucket = |(value, count): &(u64, u64)| (bucket_of(*value) as usize, *count);
    Hist::from_buckets(sum, max, values().map(bucket))
}

/// `count` values around `typical`, with a long tail.
fn spread(typical: u64, count: u64) -> Hist {
    hist(&[
        (typical / 4, count / 16),
        (typical / 2, count / 4),
        (typical, count / 2),
        (typical * 2, count / 8),
        (typical * 4, count / 16),
        (typical * 16, count / 100),
        (typical * 64, count / 1000),
    ])
}

fn group(
    table: &'static Measurement,
    tags: &[&str],
    numbers: &[(Handle<Number>, u64)],
    hists: &[(Handle<Histogram>, Hist)],
) -> Group {
    let mut tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
    tags.resize(table.tags.len(), String::new());
    let mut group = Group::unknown(table, tags);
    numbers.iter().for_each(|(field, number)| group.set(*field, *number));
    hists.iter().for_each(|(field, hist)| group.set_hist(*field, hist.clone()));
    group
}

/// On CPU, waiting, blocked, asleep and in major faults.
fn sched(on_cpu_ns: u64, waiting: Hist, blocked: Hist, asleep: Hist, major: Hist) -> Vec<Group> {
    let hists = [
        (Sched::run_queue_wait_ns, waiting),
        (Sched::blocked_ns, blocked),
        (Sched::sleep_ns, asleep),
    ];
    let faults = [(Fault::minor, 41_200), (Fault::major, major.count()), (Fault::oom_kills, 0)];
    vec![
        group(&SCHED, &[], &[(Sched::on_cpu_ns, on_cpu_ns)], &hists),
        group(&FAULT, &[], &faults, &[(Fault::major_wait_ns, major)]),
    ]
}

fn held(cores: u64, peak_bytes: u64, limit_bytes: u64) -> Vec<Group> {
    let memory = [(Memory::peak_bytes, peak_bytes), (Memory::limit_bytes, limit_bytes)];
    vec![
        group(&CPU, &[], &[(Cpu::cores_held, cores * 1000)], &[]),
        group(&MEMORY, &[], &memory, &[]),
    ]
}

fn run(command: &str, elapsed_ns: u64, peak_millicores: u64, groups: Vec<Vec<Group>>) -> RunTotals {
    let job =
        Job { job: "run-1".into(), manager: "run".into(), user: "ada".into(), ..Job::default() };
    let name = command.split(' ').next().unwrap_or_default().to_owned();
    let info = JobInfo { name, command: command.to_owned(), ..JobInfo::default() };
    let mut totals = RunTotals::new(job, info);
    totals.elapsed_ns = elapsed_ns;
    totals.intervals = elapsed_ns / S;
    totals.exit = Some(Exit { code: Some(0), signal: None });
    totals.stats.groups = groups.concat();
    totals.peaks = Peaks { millicores: peak_millicores, ..Peaks::default() };
    let own = [
        (Own::cpu_ns, 31 * MS),
        (Own::bpf_ns, 12 * MS),
        (Own::rss_bytes, 9 * MIB),
        (Own::map_bytes, 5 * MIB),
        (Own::dropped_no_bank, 0),
    ];
    totals.own = vec![group(&SELF, &[], &own, &[])];
    totals
}

fn disk(op: &str, bytes: u64, ops: u64, queue: Hist, device: Hist) -> Group {
    let numbers = [(Block::ops, ops), (Block::bytes, bytes), (Block::errors, 0)];
    let hists = [(Block::queue_latency_ns, queue), (Block::device_latency_ns, device)];
    group(&BLOCK, &["vda", op], &numbers, &hists)
}

/// A stage of a pipeline that waits for its peers, over a network that loses packets.
pub fn network() -> RunTotals {
    let sched = sched(9 * S, spread(9 * US, 4_000), hist(&[]), hist(&[(70 * S, 4)]), hist(&[]));
    let tcp = [
        (Net::sent_bytes, 61 * GIB),
        (Net::sent_calls, 1_000_000),
        (Net::received_bytes, 900 * MIB),
        (Net::received_calls, 70_000),
        (Net::retransmits, 1_234),
        (Net::connections, 16),
    ];
    let unix = [(Net::sent_bytes, 100), (Net::received_bytes, 3_000)];
    let udp = [(Net::received_bytes, 5 * MIB)];
    let net = |family, numbers: &[_]| group(&NET, &[family], numbers, &[]);
    let nets = vec![net("tcp", &tcp), net("udp", &udp), net("unix", &unix)];
    run("./stage --to nodes.txt", 83 * S, 1_010, vec![sched, held(8, GIB, 16 * GIB), nets])
}

/// Eight cores busy all the time.
pub fn cpu_bound() -> RunTotals {
    let asleep = hist(&[(83 * S, 1)]);
    let sched = sched(655 * S, spread(20 * US, 9_000), hist(&[]), asleep, hist(&[]));
    run("./lattice --size 512", 83 * S, 8_000, vec![sched, held(8, 3 * GIB, 16 * GIB)])
}

/// One thread on eight cores.
pub fn serial() -> RunTotals {
    let sched = sched(82 * S, spread(8 * US, 900), hist(&[]), hist(&[]), hist(&[]));
    run("python fit.py", 83 * S, 1_010, vec![sched, held(8, GIB, 16 * GIB)])
}

/// Small reads from a slow disk.
pub fn io_bound() -> RunTotals {
    let reads = spread(600 * US, 60_000);
    let blocked = spread(650 * US, 60_000);
    let busy = sched(17 * S, spread(9 * US, 90_000), blocked, hist(&[(20 * S, 4)]), hist(&[]));
    let mut disks = vec![
        disk("read", 60_000 * 4096, 60_000, spread(3 * US, 60_000), reads),
        disk("write", 310 * MIB, 700, spread(4 * US, 700), spread(2 * MS, 700)),
        disk("flush", 0, 12, hist(&[]), spread(9 * MS, 32)),
    ];
    disks[1].set(Block::errors, 3);
    let command = "./index --database /scratch/records.db --verify";
    let mut totals = run(command, 90 * S, 990, vec![busy, disks, held(2, GIB, 4 * GIB)]);
    totals.peaks.disk_bytes_per_s = 41 * MIB;
    totals.exit = Some(Exit { code: Some(3), signal: None });
    totals
}

/// Blocked, and no local disk had a part in it.
pub fn network_fs() -> RunTotals {
    let busy = sched(9 * S, hist(&[]), spread(12 * MS, 3_000), hist(&[]), hist(&[]));
    run("tar xf /home/ada/data.tar", 62 * S, 700, vec![busy, held(4, GIB, 8 * GIB)])
}

/// One thread's worth on eight cores, in a single reading: perhaps several that took turns.
pub fn one_reading() -> RunTotals {
    RunTotals { intervals: 1, ..serial() }
}

/// Blocked, on a kernel that tells nothing of disks.
pub fn unknown_disks() -> RunTotals {
    RunTotals { unknown: vec!["block".into()], ..network_fs() }
}

/// Blocked, where buffered writes are in no disk's numbers (cgroup v1).
pub fn unknown_write_back() -> RunTotals {
    RunTotals { unknown: vec!["write_back".into()], ..network_fs() }
}

/// Sixteen threads on two cores.
pub fn oversubscribed() -> RunTotals {
    let waiting = spread(18 * MS, 22_000);
    let busy = sched(118 * S, waiting, hist(&[]), hist(&[]), hist(&[]));
    run("./solve -t 16", 60 * S, 2_000, vec![busy, held(2, GIB, 4 * GIB)])
}

/// A quota below what it could use.
pub fn throttled() -> RunTotals {
    let busy = sched(30 * S, spread(40 * MS, 500), hist(&[]), hist(&[]), hist(&[]));
    let mut totals = run("./solve -t 2", 60 * S, 560, vec![busy, held(1, GIB, 4 * GIB)]);
    totals.stats.groups[2].set(Cpu::throttled_ns, 27 * S);
    totals
}

/// Eight threads bound to one core of eight.
pub fn pinned() -> RunTotals {
    let busy = sched(59 * S, spread(14 * MS, 12_000), hist(&[]), hist(&[]), hist(&[]));
    let mut totals = run("./omp", 60 * S, 1_000, vec![busy, held(8, GIB, 4 * GIB)]);
    totals.stats.groups[0].set(Sched::busiest_cpu_ns, 58 * S);
    totals
}

/// One task, and others' on all CPUs.
pub fn beside_others() -> RunTotals {
    let busy = sched(21 * S, spread(18 * MS, 1_100), hist(&[]), hist(&[]), hist(&[]));
    let mut totals = run("./solve -t 1", 60 * S, 600, vec![busy, held(4, GIB, 4 * GIB)]);
    totals.stats.groups[0].set(Sched::busiest_cpu_ns, 8 * S);
    totals.stats.groups[0].set(Sched::forks, 0);
    totals.stats.groups[2].set(Cpu::throttled_ns, 0);
    totals
}

/// A shell script of short programs.
pub fn short_programs() -> RunTotals {
    let asleep = hist(&[(800 * US, 15_000)]);
    let busy = sched(11 * S, spread(40 * US, 31_000), hist(&[]), asleep, hist(&[]));
    let mut totals = run("bash convert.sh", 18 * S, 700, vec![busy, held(1, GIB, 4 * GIB)]);
    totals.stats.groups[0].set(Sched::forks, 15_001);
    totals.stats.groups[0].set(Sched::execs, 15_002);
    let fault = &mut totals.stats.groups[1];
    fault.set(Fault::minor, 1_440_000);
    fault.set_hist(Fault::minor_latency_ns, spread(2_000, 1_440_000 / 64));
    totals
}

/// Random pages of a mapped file, with memory left.
pub fn mapped() -> RunTotals {
    let mut totals = thrash();
    for group in totals.stats.groups.iter_mut().filter(|group| group.is(&MEMORY)) {
        group.set(Memory::limit_bytes, 16 * GIB);
    }
    totals
}

/// Writes of 512 KiB to a slow disk, which the kernel made of larger ones.
pub fn large_writes() -> RunTotals {
    let busy = sched(3 * S, hist(&[]), spread(9 * MS, 4_000), hist(&[]), hist(&[]));
    let writes = disk("write", 4_000 * (512 << 10), 4_000, hist(&[]), spread(8 * MS, 4_000));
    run("dd oflag=direct", 62 * S, 100, vec![busy, vec![writes], held(1, GIB, 8 * GIB)])
}

/// A flush after each line, and others' work on all CPUs: most of the time is theirs.
pub fn fsync_beside_others() -> RunTotals {
    let mut totals = waits::fsync_each();
    let blocked_ns = totals.stats.groups[0].hist(Sched::blocked_ns).map_or(0, |hist| hist.sum);
    totals.elapsed_ns = blocked_ns * 20;
    let waiting = hist(&[(blocked_ns / 1_000, 18_000)]);
    totals.stats.groups[0].set_hist(Sched::run_queue_wait_ns, waiting);
    totals.stats.groups[0].set(Sched::on_cpu_ns, blocked_ns);
    totals
}

/// Three of sixteen cores.
pub fn few_cores() -> RunTotals {
    let busy = sched(178 * S, spread(14 * US, 12_000), hist(&[]), hist(&[]), hist(&[]));
    run("make -j 3", 60 * S, 3_000, vec![busy, held(16, GIB, 4 * GIB)])
}

/// Waits for others, with idle helper threads.
pub fn sleeper() -> RunTotals {
    let asleep = hist(&[(10 * S, 48), (110 * S, 1)]);
    let busy = sched(3 * S, spread(6 * US, 2_000), hist(&[]), asleep, hist(&[]));
    run("python wait_for_results.py", 120 * S, 310, vec![busy, held(4, GIB / 4, 4 * GIB)])
}

/// Hardly on a CPU, and yet it was.
pub fn hardly() -> RunTotals {
    let asleep = hist(&[(10 * S, 1)]);
    let busy = sched(2_300 * US, hist(&[(40 * US, 20)]), hist(&[]), asleep, hist(&[]));
    run("sleep 10", 10 * S, 1, vec![busy, held(2, MIB, GIB)])
}

/// Memory at its limit, program text read again and again.
pub fn thrash() -> RunTotals {
    let major = spread(900 * US, 50_000);
    let blocked = spread(1_000 * US, 55_000);
    let busy = sched(11 * S, spread(9 * US, 60_000), blocked, hist(&[(95 * S, 1)]), major);
    let reads = disk("read", 3 * GIB, 52_000, spread(2 * US, 52_000), spread(700 * US, 52_000));
    let mut totals =
        run("./assemble reads.fq", 110 * S, 400, vec![busy, vec![reads], held(4, GIB, GIB)]);
    totals.peaks.disk_bytes_per_s = 120 * MIB;
    totals
}

/// Memory touched for the first time takes the time (`--faults full`).
pub fn first_touch() -> RunTotals {
    let busy = sched(40 * S, hist(&[]), hist(&[]), hist(&[]), hist(&[]));
    let mut totals = run("./fill", 21 * S, 2_000, vec![busy, held(2, 30 * GIB, 64 * GIB)]);
    let fault = &mut totals.stats.groups[1];
    fault.set(Fault::minor, 7_900_000);
    fault.set(Fault::latency_sample_every, 64);
    fault.set_hist(Fault::minor_latency_ns, spread(900, 7_900_000 / 64));
    totals
}

/// Nothing is known but the time.
pub fn unknown() -> RunTotals {
    let mut totals = run("", 12 * S, 0, vec![]);
    totals.exit = None;
    totals.own = vec![group(&SELF, &[], &[(Own::hooks_missing, 7)], &[])];
    totals.notes = vec!["no hook could be attached: BPF needs CAP_BPF and CAP_PERFMON".into()];
    totals
}

/// Over before anything could be told.
pub fn short() -> RunTotals {
    let busy = sched(2 * MS, spread(6 * US, 9), hist(&[]), hist(&[]), hist(&[]));
    run("true", 37 * MS, 0, vec![busy, held(2, MIB, GIB)])
}

/// Ended by the out-of-memory killer.
pub fn killed() -> RunTotals {
    let mut totals = cpu_bound();
    totals.exit = Some(Exit { code: None, signal: Some(9) });
    totals.stats.groups[1].set(Fault::oom_kills, 1);
    totals.stats.groups[3].set(Memory::peak_bytes, 16 * GIB);
    totals
}

/// Ended by the out-of-memory killer well below its own limit.
pub fn killed_by_node() -> RunTotals {
    let mut totals = killed();
    totals.stats.groups[3].set(Memory::peak_bytes, 3 * GIB);
    totals
}

/// Names that want to paint the terminal.
pub fn hostile() -> RunTotals {
    let mut totals = io_bound();
    totals.info.name = "\x1b[2J\x1b]0;owned\x07ls\u{202e}gpj.exe 計算計算計算計算計算計算".into();
    totals.info.command = format!("bash -c 'a\nb\r\u{9b}31m' {}", "x".repeat(3_000));
    for block in totals.stats.groups.iter_mut().filter(|group| group.is(&BLOCK)) {
        block.tags[0] = "nvme\x1b[0n0\u{200d}計算機計算機計算機".into();
    }
    totals.notes = vec![
        "\u{2067}right to left\u{2069}\n\n\x08\x08\x08 and back, at some length so that it wraps"
            .into(),
        "y".repeat(900),
        "z ".repeat(900),
    ];
    totals
}
