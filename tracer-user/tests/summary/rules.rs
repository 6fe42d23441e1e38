//! Each rule speaks of a job that it is for, and is silent about one that just misses it.

use std::collections::BTreeSet;

use jobtrace::{
    model::{
        group::Group,
        hist::Hist,
        tables::{Block, Cpu, Fact, Fault, GPU, Gpu, IO, Io, Memory, SCHED, Sched, fact},
        totals::RunTotals,
    },
    record::{
        Record,
        series::{SERIES, WIDTH},
        timeline::{Column, Timeline},
    },
    report::{Report, Whole},
    view::rules::RULES,
};
use tracer_ebpf::handle::{Handle, Number};

use crate::{
    fixtures::{self, file_ops, waits},
    reports::{record, slurm, uneven},
};

/// A rule, a job that it speaks of, and the job that it does not speak of.
struct Case {
    rule: &'static str,
    speaks: Vec<Record>,
    silent: Vec<Record>,
}

/// `totals`, and the same with a little more time, in which nothing else happened.
fn longer(rule: &'static str, totals: RunTotals, percent: u64) -> Case {
    let mut more = totals.clone();
    more.elapsed_ns += more.elapsed_ns * percent / 100;
    Case { rule, speaks: vec![record(totals)], silent: vec![record(more)] }
}

/// A record, and the same changed by `change`.
fn changed(rule: &'static str, speaks: Record, change: impl Fn(&mut Record)) -> Case {
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

fn small_gpu() -> Record {
    let mut record = slurm(fixtures::gpus_held(), 60);
    let mut gpus = 0;
    record.totals.stats.groups.retain(|group| {
        gpus += u32::from(group.is(&GPU));
        !group.is(&GPU) || gpus == 1
    });
    let held_ns = number(&record, Gpu::held_ns);
    set(&mut record, Gpu::busy_ns, held_ns / 10);
    set(&mut record, Gpu::memory_peak_bytes, 4 << 30);
    record
}

/// A GPU that was busy for so many millionths of the time.
fn busy_gpu(ratio_ppm: u64) -> Record {
    let mut record = record(fixtures::starved_gpu());
    for group in record.totals.stats.groups.iter_mut().filter(|group| group.is(&GPU)) {
        let mut readings = Hist::default();
        (0..10).for_each(|_| readings.record(ratio_ppm));
        group.set_hist(Gpu::utilization_ratio, readings);
    }
    record
}

/// The job of many small files, where it moved its data as `change` says.
fn moved(rule: &'static str, change: impl Fn(&mut Group)) -> Case {
    changed(rule, record(file_ops::small_files()), |job| {
        let groups = job.totals.stats.groups.iter_mut();
        groups.filter(|group| group.is(&IO) && group.tags[2] == "read").for_each(&change);
    })
}

const LIMIT: &Fact = fact("time_limit_end");
const START: &Fact = fact("start");
const MEMORY_ASKED: &Fact = fact("memory_per_node_bytes");
const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A job that was charged so many percent of its limit, and needed so many of them without file cache.
fn at_memory_limit(totals: RunTotals, charged: u64, needed: u64) -> Record {
    let mut job = slurm(totals, 60);
    let limit = number(&job, Memory::limit_bytes);
    set(&mut job, Memory::peak_bytes, limit / 100 * charged + 100);
    set(&mut job, Memory::used_peak_bytes, limit / 100 * needed + 100);
    set(&mut job, Memory::cache_peak_bytes, limit / 100 * charged.saturating_sub(needed));
    job
}

/// A job whose memory took this course, in MiB.
fn remembers(course: impl Fn(u64) -> u64) -> Record {
    let mut job = record(fixtures::cpu_bound());
    let at = SERIES.iter().position(|series| series.name == "memory_bytes").unwrap();
    let column = |second| {
        let mut column: Column = [None; WIDTH];
        column[at] = Some(course(second) << 20);
        column
    };
    let columns: Vec<Column> = (0..20).map(column).collect();
    let begin_ns = job.timeline.begin_ns();
    let end_ns = begin_ns + 20_000 * MS;
    job.timeline = Timeline::of(begin_ns, end_ns, 1_000 * MS, &columns).unwrap();
    job
}

fn cases() -> Vec<Case> {
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
            let waited = job.totals.stats.group(&SCHED).unwrap().hist(Sched::run_queue_wait_ns);
            // 14 % of the time that it could have run.
            let waited_ns = waited.unwrap().sum;
            set(job, Sched::on_cpu_ns, waited_ns * 86 / 14);
        }),
        longer("major_faults", fixtures::thrash(), 1_100),
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
        changed("gpu_idle", record(fixtures::starved_gpu()), |job| {
            // Too few readings to tell.
            for group in job.totals.stats.groups.iter_mut().filter(|group| group.is(&GPU)) {
                let mut few = Hist::default();
                (0..4).for_each(|_| few.record(100_000));
                group.set_hist(Gpu::utilization_ratio, few);
            }
        }),
        Case { rule: "gpu_busy", speaks: vec![busy_gpu(900_000)], silent: vec![busy_gpu(899_000)] },
        changed("gpu_unused", record(fixtures::gpus_held()), |job| set(job, Gpu::used_ns, MS)),
        changed("gpu_too_large", small_gpu(), |job| {
            set(job, Gpu::memory_peak_bytes, 10 * GIB);
        }),
    ]
}

/// The rules that speak, all of them.
fn said(records: &[Record]) -> BTreeSet<&'static str> {
    let whole = Whole::of(records.to_vec()).unwrap();
    Report::of(&whole, true).rules().into_iter().collect()
}

#[test]
fn each_rule_speaks_and_is_silent_in_a_near_miss() {
    let mut tried = BTreeSet::new();
    for case in cases() {
        assert!(said(&case.speaks).contains(case.rule), "{} is silent", case.rule);
        assert!(!said(&case.silent).contains(case.rule), "{} speaks", case.rule);
        tried.insert(case.rule);
    }
    let all: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(tried, all);
    assert_eq!(all.len(), RULES.len(), "names are unique");
}

/// What would have to be more and what would have to be less are two stories: a report tells one of them.
#[test]
fn nobody_is_told_to_ask_for_more_memory_and_for_less() {
    let more = ["out_of_memory", "major_faults", "memory_short"];
    let mut told = BTreeSet::new();
    let levels =
        [50, 94, 95, 100].map(|charged| [5, 40, 69, 70, 94, 100].map(|used| (charged, used)));
    for (charged, needed) in levels.concat() {
        for (of, kills) in
            [(fixtures::cpu_bound(), 0), (fixtures::cpu_bound(), 1), (fixtures::thrash(), 0)]
        {
            for asked_by_limit in [1, 2, 4] {
                let mut job = at_memory_limit(of.clone(), charged, needed);
                let limit = number(&job, Memory::limit_bytes);
                job.facts.set(MEMORY_ASKED, limit * asked_by_limit);
                set(&mut job, Fault::oom_kills, kills);
                let said = said(&[job]);
                let is_short = more.iter().any(|rule| said.contains(rule));
                assert!(!(is_short && said.contains("memory_unused")), "{said:?}");
                assert!(!(is_short && said.contains("cache_at_limit")), "{said:?}");
                told.extend(said);
            }
        }
    }
    let all = more.iter().chain(&["memory_unused", "cache_at_limit"]);
    assert!(all.into_iter().all(|rule| told.contains(rule)), "{told:?}");
}

#[test]
fn memory_that_no_reading_saw_is_not_taken_for_file_cache() {
    let told = |charged: u64, cached: u64| {
        let mut job = at_memory_limit(fixtures::cpu_bound(), charged, 20);
        let limit = number(&job, Memory::limit_bytes);
        job.facts.set(MEMORY_ASKED, limit);
        set(&mut job, Memory::cache_peak_bytes, limit / 100 * cached);
        let said = said(&[job]);
        ["cache_at_limit", "memory_short", "memory_unused"].map(|rule| said.contains(rule))
    };
    assert_eq!(told(100, 66), [true, false, true], "the kernel's own for it is charged too");
    assert_eq!(told(100, 64), [false, true, false], "it came and went between two readings");
    assert_eq!(told(75, 50), [false, false, true]);
    assert_eq!(told(75, 30), [false, false, false], "so much may have been needed");
    assert_eq!(told(50, 0), [false, false, true], "and of this there is enough");
}

#[test]
fn memory_that_is_there_from_the_begin_or_comes_at_the_end_is_not_kept() {
    let told = |job: Record| said(&[job]).contains("memory_kept");
    assert!(told(remembers(|second| 100 + 400 * second.min(12) / 12)), "most of the time");
    assert!(!told(remembers(|_| 500)));
    assert!(!told(remembers(|second| if second < 18 { 100 } else { 500 })));
    assert!(!told(remembers(|second| 10 * second)), "little");
    assert!(!told(remembers(|second| 250 + 20 * second)), "most of it at once");
}

/// Workers of Python's pools wait for a lock, one of them on a pipe.
#[test]
fn a_pool_that_waits_for_locks_is_told_from_threads_that_nobody_uses() {
    let mut job = record(waits::workers_wait());
    let pipe_ns = number(&job, Sched::sleep_pipe_ns);
    set(&mut job, Sched::sleep_pipe_ns, pipe_ns / 8);
    set(&mut job, Sched::sleep_lock_ns, pipe_ns / 8 * 7);
    assert!(!said(&[job.clone()]).contains("workers_wait"), "it was never busier");
    job.totals.peaks.millicores = 8_000;
    assert!(said(&[job.clone()]).contains("workers_wait"));
    assert!(!said(&[job]).contains("idle_cores"), "of which that says why");
}

#[test]
fn rules_are_silent_below_their_least_time() {
    for case in cases() {
        let rule = RULES.iter().find(|rule| rule.id == case.rule).unwrap();
        if rule.least_ns == 0 {
            continue;
        }
        let mut records = case.speaks;
        records.iter_mut().for_each(|record| record.totals.elapsed_ns = rule.least_ns - 1);
        assert!(!said(&records).contains(case.rule), "{}", case.rule);
    }
}

#[test]
fn at_most_five_are_shown_the_dearest_first_with_the_schedulers_own_option() {
    let mut record = slurm(fixtures::gpus_held(), 60);
    set(&mut record, Fault::oom_kills, 1);
    let report = Report::of(&Whole::of(vec![record]).unwrap(), true);
    let rules: Vec<_> = report.advice.iter().map(|advice| advice.rule).collect();
    assert!(rules.len() <= 5 && rules[0] == "out_of_memory", "{rules:?}");
    let hours = report.advice[1..]
        .iter()
        .map(|advice| advice.core_hours.unwrap_or(0.0) + 16.0 * advice.gpu_hours.unwrap_or(0.0));
    let hours: Vec<f64> = hours.collect();
    assert!(hours.is_sorted_by(|a, b| a >= b), "{rules:?} {hours:?}");
    let of = |rule| report.advice.iter().find(|advice| advice.rule == rule).unwrap();
    assert_eq!(of("idle_cores").option.as_deref(), Some("--cpus-per-task=1"));
    assert_eq!(of("gpu_unused").option.as_deref(), Some("--gpus-per-node=1"));
}
