//! Each rule speaks of a job that it is for, and is silent about one that just misses it.

pub mod cases;
mod jobs;
mod limits;

use std::collections::BTreeSet;

use jobtrace::{
    model::{
        files::{FileCounts, FileUse},
        info::Exit,
        tables::{Fault, IO, Memory, Sched},
    },
    record::Record,
    report::{Report, Whole},
    view::rules::RULES,
};

use crate::{
    fixtures::{self, file_ops, limits as exact, waits},
    reports::{record, slurm},
};

use cases::cases;
pub use cases::{number, set};
use jobs::{MEMORY_ASKED, MS, at_memory_limit, read_at_random, remembers, shared_writes};

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
    let mut record = slurm(fixtures::gpus::gpus_held(), 60);
    set(&mut record, Fault::oom_kills, 1);
    // It went on without that task.
    record.totals.exit = Some(Exit { code: Some(0), signal: None });
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

/// The same syncs are told once, with their files where these are known.
#[test]
fn syncs_are_told_by_file_or_by_call_but_not_by_both() {
    let both = |syncs| {
        let mut job = record(waits::fsync_each());
        job.totals
            .stats
            .groups
            .extend(file_ops::named().stats.groups.into_iter().filter(|g| g.is(&IO)));
        job.totals.files = file_ops::with_file(|file| {
            (file.counts.syncs, file.counts.sync_ns) = (syncs, 30_000 * MS);
        })
        .files;
        let said = said(&[job]);
        ["sync", "sync_each_record", "blocked_on_io"].map(|rule| said.contains(rule))
    };
    assert_eq!(both(9_000), [false, true, false]);
    assert_eq!(both(9), [true, false, false], "no habit with this file");
}

#[test]
fn a_file_that_is_opened_again_is_not_many_small_files() {
    let opened = |opens, files| {
        let mut job = record(file_ops::with_file(|file| {
            (file.counts.opens, file.counts.open_ns, file.files) = (opens, 10_000 * MS, files);
        }));
        job.totals.files.files.truncate(1);
        let said = said(&[job]);
        ["small_files", "opened_again"].map(|rule| said.contains(rule))
    };
    // Of 78,000 opens.
    assert_eq!(opened(78_000, 1), [false, true]);
    assert_eq!(opened(78_000, 78_000), [true, false]);
    assert_eq!(opened(7_000, 1), [true, true]);
}

/// A record lists the foremost files alone: of the others their folders tell.
#[test]
fn files_that_are_not_listed_are_opened_again_too() {
    let opened = |files: u64| {
        let mut job = record(file_ops::with_file(|file| {
            (file.counts.opens, file.counts.open_ns, file.files) = (800, 100 * MS, 1);
        }));
        job.totals.files.files.truncate(1);
        let mut folder = job.totals.files.files[0].clone();
        folder.path = folder.path.rsplit_once('/').unwrap().0.into();
        folder.files = files + 1;
        (folder.counts.opens, folder.counts.open_ns) = (77_800, 10_000 * MS);
        job.totals.files.folders = vec![folder];
        let said = said(&[job]);
        ["small_files", "opened_again"].map(|rule| said.contains(rule))
    };
    assert_eq!(opened(1_000), [false, true]);
    assert_eq!(opened(77_000), [true, false]);
}

/// Who moves more at once of what is read in no order reads more than is needed.
#[test]
fn reads_in_no_order_are_not_told_to_be_larger() {
    let rules = |job| {
        let said = said(&[job]);
        ["small_accesses", "random_reads"].map(|rule| said.contains(rule))
    };
    assert_eq!(rules(record(read_at_random(600))), [false, true]);
}

/// What is used through a mapping moves by no call: at most all of the file.
#[test]
fn files_that_may_be_mapped_are_as_small_as_their_size() {
    let told = |reads, sizes: &[(u64, u64, u64)], faults| {
        let opened = exact::op("open", 6_000, exact::IO_NS, &[]);
        let read = exact::op("read", reads, 0, &[]);
        let mut job = exact::of_ops(vec![opened, read]);
        let folder = |(at, (opens, files, size_bytes)): (usize, &(u64, u64, u64))| FileUse {
            path: format!("/scratch/{at}"),
            fs: "lustre".into(),
            mount: "/scratch".into(),
            files: *files,
            counts: FileCounts {
                opens: *opens,
                size_bytes: files * size_bytes,
                faults,
                ..FileCounts::default()
            },
        };
        job.totals.files.folders = sizes.iter().enumerate().map(folder).collect();
        let report = said(&[job]);
        report.contains("small_files")
    };
    let (large, small) = ([(6_000, 1_500, 128 << 10)], [(6_000, 1_500, 4 << 10)]);
    assert!(told(3_000, &large, 0), "read");
    assert!(!told(2_999, &large, 0), "used through a mapping, all of them in the page cache");
    assert!(!told(6_000, &large, 3_000), "their heads are read, the rest by page faults");
    assert!(told(6_000, &large, 2_999));
    assert!(told(0, &small, 0), "small also where all of it is used");
    assert!(told(0, &[(6_000, 6_000, 0)], 0), "empty ones that are made");
    assert!(!told(0, &[], 0), "of unknown size");
    // One that is large and opened once makes no others larger.
    let mixed = [(6_000, 1_500, 4 << 10), (1, 1, 100 << 30)];
    assert!(told(6_000, &mixed, 100_000) && told(6_000, &mixed, 0));
}

/// What another file or mount tells of writes by one thread is of use only where those are as large.
#[test]
fn shared_writes_are_compared_with_those_that_are_as_large() {
    let told = |change: &dyn Fn(&mut FileUse)| {
        let mut job = record(file_ops::with_file(|file| {
            file.counts = shared_writes(3_000 * 8_500);
            file.counts.writes = file.counts.shared_writes;
            file.counts.written_bytes = file.counts.shared_written_bytes;
            file.counts.write_ns = file.counts.shared_write_ns;
        }));
        let mut alone = job.totals.files.files[0].clone();
        alone.path = "/scratch/alone".into();
        alone.counts = FileCounts {
            writes: 100,
            written_bytes: 100 << 12,
            write_ns: 100 * MS,
            ..FileCounts::default()
        };
        change(&mut alone);
        job.totals.files.files.push(alone);
        said(&[job]).contains("shared_writes")
    };
    assert!(told(&|_| {}));
    assert!(!told(&|alone| alone.counts.written_bytes -= 1), "smaller");
    assert!(!told(&|alone| alone.counts.writes -= 1), "too few to tell");
    assert!(!told(&|alone| alone.mount = "/elsewhere".into()));
    assert!(!told(&|alone| alone.counts.write_ns = 101 * MS), "2.97 times as long");
}
