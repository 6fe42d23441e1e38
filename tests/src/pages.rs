//! Pages of jobs that are hard to show: a day on 64 nodes, names that are markup, nothing known at all.

use jobtrace::{
    model::{
        group::Group,
        hist::Hist,
        info::JobInfo,
        job::Job,
        point::Origin,
        tables::{
            BLOCK, Block, CPU, Cpu, FAULT, Fault, GPU, Gpu, MEMORY, Memory, NET, Net, SCHED, Sched,
            fact,
        },
    },
    record::Record,
    report::{Report, Whole, html::html},
};
use tracer_ebpf::loglinear::bucket_of;

const S: u64 = 1_000_000_000;
/// 2026-11-22, 20:00.
const BEGIN_NS: u64 = 1_795_377_600 * S;
const NODES: u64 = 64;
const COLUMNS: u64 = 240;
const COLUMN_NS: u64 = 360 * S;

/// Each with its name.
#[must_use]
pub fn hard() -> Vec<(&'static str, String)> {
    let unknown = Record::new(&Origin::default(), Job::default(), JobInfo::default(), 0);
    vec![
        ("a day on 64 nodes", page((1..=NODES).map(node).collect())),
        ("names that are markup", page(vec![hostile()])),
        ("nothing known", page(vec![unknown])),
    ]
}

fn page(records: Vec<Record>) -> String {
    let whole = Whole::of(records).expect("there is a record");
    html(&whole, &Report::of(&whole, true)).expect("a page")
}

/// A node of a job whose columns are all different.
fn node(number: u64) -> Record {
    let job =
        Job { job: "4711".into(), manager: "slurm".into(), user: "ada".into(), ..Job::default() };
    let mut record = started(&format!("n{number:04}"), "train", job);
    let mut random = number;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    for _ in 0..COLUMNS {
        record.add(COLUMN_NS, &interval(&mut next), &[]);
    }
    record.facts.set(const { fact("end") }, BEGIN_NS + COLUMNS * COLUMN_NS);
    record
}

fn started(host: &str, name: &str, job: Job) -> Record {
    let origin = Origin { cluster: "c1".into(), host: host.into() };
    let info = JobInfo { name: name.into(), start_wall_ns: BEGIN_NS, ..JobInfo::default() };
    Record::new(&origin, job, info, BEGIN_NS)
}

/// So many times the same value.
fn hist(value: u64, count: u64) -> Hist {
    Hist::from_buckets(value * count, value, [(bucket_of(value) as usize, count)])
}

/// What a node with 16 cores did in a column of time.
fn interval(next: &mut impl FnMut(u64) -> u64) -> Vec<Group> {
    let mut sched = Group::unknown(&SCHED, vec![]);
    sched.set(Sched::on_cpu_ns, next(16 * COLUMN_NS));
    sched.set_hist(Sched::run_queue_wait_ns, hist(next(S), 1 + next(9_000)));
    sched.set_hist(Sched::blocked_ns, hist(next(S), 1 + next(9_000)));
    let mut fault = Group::unknown(&FAULT, vec![]);
    fault.set(Fault::minor, next(1 << 20));
    let mut memory = Group::unknown(&MEMORY, vec![]);
    for (field, value) in [
        (Memory::anon_bytes, next(60 << 30)),
        (Memory::shmem_bytes, 0),
        (Memory::limit_bytes, 64 << 30),
        (Memory::peak_bytes, 63 << 30),
        (Memory::used_peak_bytes, 60 << 30),
    ] {
        memory.set(field, value);
    }
    let mut cpu = Group::unknown(&CPU, vec![]);
    cpu.set(Cpu::cores_held, 16_000);
    cpu.set(Cpu::held_ns, 16 * COLUMN_NS);
    let mut groups = vec![sched, fault, memory, cpu];
    for op in ["read", "write"] {
        let mut block = Group::unknown(&BLOCK, vec!["nvme0n1".into(), op.into()]);
        block.set(Block::ops, 1 + next(90_000));
        block.set(Block::bytes, next(1 << 36));
        block.set_hist(Block::device_latency_ns, hist(next(S), 1 + next(90_000)));
        groups.push(block);
    }
    let mut net = Group::unknown(&NET, vec!["tcp".into()]);
    net.set(Net::sent_bytes, next(1 << 36));
    net.set(Net::received_bytes, next(1 << 36));
    groups.push(net);
    for index in ["0", "1"] {
        let tags = [index, &format!("GPU-{index}"), "NVIDIA H100 80GB HBM3", "nvidia", ""];
        let mut gpu = Group::unknown(&GPU, tags.map(str::to_owned).into());
        gpu.set(Gpu::held_ns, COLUMN_NS);
        gpu.set(Gpu::busy_ns, next(COLUMN_NS));
        gpu.set(Gpu::memory_used_bytes, next(80 << 30));
        groups.push(gpu);
    }
    groups
}

/// All texts are what somebody chose who means harm, and as long as they may be.
fn hostile() -> Record {
    let evil = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&";
    let long = format!("{evil}{}", "x".repeat(400));
    let job = Job { job: long.clone(), manager: evil.into(), user: evil.into(), ..Job::default() };
    let mut record = started(&long, &long, job);
    record.totals.info.command = "\u{202e}\u{feff}wide \u{1f600}".repeat(40) + evil;
    for name in ["account", "partition"] {
        let row = jobtrace::model::tables::FACTS.iter().find(|row| row.name == name);
        record.facts.set_text(row.expect("a row"), &long);
    }
    record.totals.notes = vec![long.clone()];
    let mut block = Group::unknown(&BLOCK, vec![long, "write".into()]);
    block.set(Block::ops, 7);
    block.set(Block::bytes, u64::MAX);
    block.set(Block::errors, 3);
    record.add(5 * S, &[block], &[]);
    record
}
