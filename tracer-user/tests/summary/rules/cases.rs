//! Jobs that each rule speaks of, and those that just miss it.

use jobtrace::{
    model::{
        hist::Hist,
        tables::{Block, Cpu, Fault, GPU, Gpu, Io, Memory, Sched, fact},
        totals::RunTotals,
    },
    record::Record,
};
use tracer_ebpf::handle::{Handle, Number};

use super::jobs::{
    GIB, LIMIT, MEMORY_ASKED, MIB, MS, START, at_memory_limit, busy_gpu, direct_reads,
    file_changed, hanging, moved, read_at_random, reads_with, remembers, shared_writes, small_gpu,
    uneven_io, waits_for,
};

use crate::{
    fixtures::{self, file_ops, waits},
    reports::{record, slurm, uneven},
};

/// A rule, a job that it speaks of, and the job that it does not speak of.
pub struct Case {
    pub rule: &'static str,
    pub speaks: Vec<Record>,
    pub silent: Vec<Record>,
}

/// `totals`, and the same with a little more time, in which nothing else happened.
fn longer(rule: &'static str, totals: RunTotals, percent: u64) -> Case {
    let mut more = totals.clone();
    more.elapsed_ns += more.elapsed_ns * percent / 100;
    Case { rule, speaks: vec![record(totals)], silent: vec![record(more)] }
}

/// A record, and the same changed by `change`.
pub fn changed(rule: &'static str, speaks: Record, change: impl Fn(&mut Record)) -> Case {
    let mut silent = speaks.clone();
    change(&mut silent);
    Case { rule, speaks: vec![speaks], silent: vec![silent] }
}

pub fn set(record: &mut Record, field: Handle<Number>, value: u64) {
    let groups = record.totals.stats.groups.iter_mut();
    groups.filter(|group| group.is(field.measurement())).for_each(|group| group.set(field, value));
}

pub fn number(record: &Record, field: Handle<Number>) -> u64 {
    record.totals.stats.group(field.measurement()).unwrap().number(field).unwrap()
}

/// One for each rule at least.
pub fn cases() -> Vec<Case> {
    let balanced = || {
        let mut nodes = uneven(8);
        let on_cpu_ns = number(&nodes[0], Sched::on_cpu_ns);
        // 1.1 times the others, 1.09 times the mean: 8 % of its own time.
        set(&mut nodes[7], Sched::on_cpu_ns, on_cpu_ns * 11 / 10);
        nodes
    };
    let mut at_limit = slurm(fixtures::cpu_bound(), 60);
    at_limit.facts.set_text(const { fact("end_reason") }, "time_limit");
    vec![
        changed("out_of_memory", record(fixtures::killed()), |job| set(job, Fault::oom_kills, 0)),
        Case {
            rule: "time_limit",
            speaks: vec![at_limit],
            silent: vec![slurm(fixtures::cpu_bound(), 60)],
        },
        changed("disk_errors", record(fixtures::io_bound()), |job| {
            set(job, Block::errors, 0);
        }),
        Case {
            rule: "file_errors",
            speaks: vec![record(file_ops::failing("ENOSPC", "write", 1))],
            silent: vec![record(file_ops::failing("EEXIST", "mkdir", 1))],
        },
        moved("small_accesses", |reads| {
            reads.set_hist(Io::size_bytes, fixtures::hist(&[(2_048, 999), (MIB, 8_000)]));
        }),
        moved("small_files", |reads| reads.set(Io::bytes, 78_000 * (64 << 10))),
        Case {
            // With the 12,069 that there are in any case, of 181,000.
            rule: "missing_files",
            speaks: vec![record(file_ops::failing("ENOENT", "open", 24_200))],
            silent: vec![record(file_ops::failing("ENOENT", "open", 24_100))],
        },
        // Of 73 s of time: 10 % are 7.3 s.
        file_changed(
            "sync_each_record",
            |file| (file.syncs, file.sync_ns) = (100, 8_000 * MS),
            |file| {
                file.syncs = 99;
            },
        ),
        // Of 69 s in I/O.
        file_changed(
            "opened_again",
            |file| (file.opens, file.open_ns) = (1_000, 7_000 * MS),
            |file| {
                file.open_ns = 4_000 * MS;
            },
        ),
        changed("random_reads", record(read_at_random(600)), |job| {
            job.clone_from(&record(read_at_random(400)));
        }),
        file_changed(
            "read_again",
            |file| (file.read_bytes, file.read_ns) = (3 * file.size_bytes, 25_000 * MS),
            |file| file.read_bytes -= 1,
        ),
        // Of 300 MiB.
        Case {
            rule: "cold_cache",
            speaks: reads_with(&[(Io::fetched_bytes, 150 * MIB)]),
            silent: reads_with(&[(Io::fetched_bytes, 149 * MIB)]),
        },
        Case {
            rule: "readahead_wasted",
            speaks: reads_with(&[(Io::fetched_bytes, 450 * MIB)]),
            silent: reads_with(&[(Io::fetched_bytes, 449 * MIB)]),
        },
        // Of 156,000.
        Case { rule: "direct_reads", speaks: direct_reads(124_800), silent: direct_reads(124_799) },
        // Of 79 s in I/O.
        Case {
            rule: "throttled_writes",
            speaks: vec![record(file_ops::throttled(8_000 * MS))],
            silent: vec![record(file_ops::throttled(7_700 * MS))],
        },
        // Of 3 ms, where one thread alone takes 1 ms, and 16 s and more of the time in I/O.
        file_changed(
            "shared_writes",
            |file| *file = shared_writes(3_000 * 8_500),
            |file| *file = shared_writes(3_000 * 8_500 - 1),
        ),
        changed("file_hangs", hanging(), |job| job.totals.files.slowest[0].took_ns -= 1),
        Case {
            rule: "many_names",
            speaks: vec![record(file_ops::renaming(1_000))],
            silent: vec![record(file_ops::renaming(999))],
        },
        Case {
            // Nine tenths of a lock's time are waiting: 9 s of 45, and of 45.1.
            rule: "file_locks",
            speaks: vec![record(file_ops::locking(35_000))],
            silent: vec![record(file_ops::locking(35_100))],
        },
        Case { rule: "uneven_io", speaks: uneven_io(10_000), silent: uneven_io(10_001) },
        Case {
            rule: "mmap_random",
            speaks: vec![record(file_ops::mapped(200))],
            silent: vec![record(file_ops::mapped(201))],
        },
        longer("blocked_on_io", fixtures::network_fs(), 320),
        longer("sync", waits::fsync_each(), 540),
        changed("metadata", record(waits::metadata_remote()), |job| {
            set(job, Sched::blocked_metadata_waits, 99);
        }),
        changed("memory_maps", record(waits::memory_maps()), |job| {
            set(job, Sched::blocked_memory_waits, 99);
        }),
        changed("starting_children", record(waits::vfork()), |job| {
            let whole_ns = job.totals.elapsed_ns;
            set(job, Sched::blocked_child_ns, whole_ns / 25);
        }),
        longer("blocked_otherwise", waits::ring(), 200),
        changed("waited_for_cpu", record(fixtures::oversubscribed()), |job| {
            // 14 % of the time.
            waits_for(job, 14);
        }),
        changed("cpu_quota", record(fixtures::throttled()), |job| {
            // The quota is behind less than half of the wait.
            set(job, Cpu::throttled_ns, 12_000 * MS);
        }),
        changed("bound_to_few", record(fixtures::pinned()), |job| {
            // It could have used 4.8 cores, and 2.95 equally busy ones are more than 60 % of these.
            set(job, Sched::busiest_cpu_ns, 20_000 * MS);
        }),
        changed("node_busy", record(fixtures::beside_others()), |job| {
            waits_for(job, 14);
        }),
        changed("many_programs", record(fixtures::short_programs()), |job| {
            let on_cpu_ns = number(job, Sched::on_cpu_ns);
            set(job, Sched::execs, on_cpu_ns / (3 * MS));
        }),
        longer("major_faults", fixtures::thrash(), 1_100),
        changed("mapped_files", record(fixtures::mapped()), |job| {
            let peak_bytes = number(job, Memory::peak_bytes);
            set(job, Memory::limit_bytes, peak_bytes);
        }),
        changed("blocked_on_large_io", record(fixtures::large_writes()), |job| {
            set(job, Block::bytes, 4_000 * (127 << 10));
        }),
        changed("minor_faults", record(fixtures::first_touch()), |job| {
            let faults = number(job, Fault::minor);
            set(job, Fault::minor, faults / 3);
        }),
        changed("all_asleep", record(fixtures::sleeper()), |job| {
            let elapsed_ns = job.totals.elapsed_ns;
            set(job, Sched::on_cpu_ns, elapsed_ns * 51 / 100);
        }),
        changed("workers_wait", record(waits::workers_wait()), |job| {
            let elapsed_ns = job.totals.elapsed_ns;
            set(job, Sched::sleep_pipe_ns, elapsed_ns * 19 / 10);
        }),
        changed("waiting_in_poll", record(waits::mpi_poll()), |job| {
            set(job, Sched::sleep_poll_waits, 999);
        }),
        changed("waiting_for_locks", record(waits::locks()), |job| {
            set(job, Sched::sleep_lock_waits, 999);
        }),
        changed("idle_cores", record(fixtures::few_cores()), |job| {
            let held_ns = number(job, Cpu::cores_held) * job.totals.elapsed_ns / 1000;
            set(job, Sched::on_cpu_ns, held_ns * 51 / 100);
            *job = record(job.totals.clone());
        }),
        Case { rule: "slowest_node", speaks: uneven(8), silent: balanced() },
        changed("memory_short", at_memory_limit(fixtures::cpu_bound(), 95, 70), |job| {
            let limit = number(job, Memory::limit_bytes);
            set(job, Memory::peak_bytes, limit / 100 * 94 + 100);
        }),
        changed("cache_at_limit", at_memory_limit(fixtures::cpu_bound(), 95, 69), |job| {
            let limit = number(job, Memory::limit_bytes);
            set(job, Memory::used_peak_bytes, limit / 100 * 70 + 100);
        }),
        Case {
            rule: "memory_kept",
            speaks: vec![remembers(|second| 30 + 20 * second)],
            // The last but one: it let go once.
            silent: vec![remembers(|second| if second == 12 { 100 } else { 30 + 20 * second })],
        },
        changed("memory_unused", slurm(fixtures::cpu_bound(), 4), |job| {
            job.facts.set(MEMORY_ASKED, 7 * GIB / 2);
        }),
        changed("time_unused", slurm(fixtures::cpu_bound(), 4), |job| {
            let start_ns = job.facts.number(START).unwrap();
            job.facts.set(LIMIT, start_ns + job.totals.elapsed_ns * 100 / 61);
        }),
        changed("gpu_idle", record(fixtures::gpus::starved_gpu()), |job| {
            // Too few readings to tell.
            for group in job.totals.stats.groups.iter_mut().filter(|group| group.is(&GPU)) {
                let mut few = Hist::default();
                (0..4).for_each(|_| few.record(100_000));
                group.set_hist(Gpu::utilization_ratio, few);
            }
        }),
        Case { rule: "gpu_busy", speaks: vec![busy_gpu(900_000)], silent: vec![busy_gpu(899_000)] },
        changed("gpu_unused", record(fixtures::gpus::gpus_held()), |job| {
            set(job, Gpu::used_ns, MS)
        }),
        changed("gpu_too_large", small_gpu(), |job| {
            set(job, Gpu::memory_peak_bytes, 10 * GIB);
        }),
    ]
}
