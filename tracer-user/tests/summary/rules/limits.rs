//! Each limit that a rule for operations on files tells: where it is reached the rule speaks, and just before it is
//! silent, all else being the same.

mod waits;

use jobtrace::{
    model::{
        files::FileCounts,
        io_threads::{IoCounts, ThreadUse},
        slow_ops::SlowOp,
        tables::Io,
    },
    record::Record,
    view::rules::RULES,
};

use super::{
    jobs::{MIB, MS},
    said,
};
use crate::fixtures::{
    file_ops, hist,
    limits::{IO_NS, missing, of_faults, of_file, of_files, of_ops, op},
};
use crate::reports::record;

/// What all rules but a few say of the time in I/O, of which a test of its own is.
const LEAST: &str = "where I/O takes 5 % of the time";
const S: u64 = 1_000 * MS;
/// Parts of the time in I/O.
const TENTH: u64 = IO_NS / 10;
const FIFTH: u64 = IO_NS / 5;
const THREE_TENTHS: u64 = 3 * TENTH;

struct Limit {
    rule: &'static str,
    /// The words that tell it.
    told: &'static str,
    speaks: Record,
    silent: Record,
}

/// A job by one amount, the one at which its rule speaks and the one at which it does not.
fn limit(
    rule: &'static str,
    told: &'static str,
    job: impl Fn(u64) -> Record,
    speaks: u64,
    silent: u64,
) -> Limit {
    Limit { rule, told, speaks: job(speaks), silent: job(silent) }
}

fn limits() -> Vec<Limit> {
    [
        accesses(),
        names(),
        files(),
        waits::in_no_order(),
        waits::cache(),
        waits::direct(),
        together(),
        others(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn accesses() -> Vec<Limit> {
    let job = |number, bytes, took_ns| {
        let mut reads = op("read", number, took_ns, &[]);
        reads.set_hist(Io::size_bytes, hist(&[(bytes, number)]));
        of_ops(vec![reads])
    };
    let rule = "small_accesses";
    vec![
        limit(rule, "20 % of the time in I/O", |ns| job(5_000, 4_096, ns), FIFTH, FIFTH - 1),
        limit(rule, "below 1 MiB", |bytes| job(5_000, bytes, IO_NS), MIB - 1, MIB),
        limit(rule, "1.00k", |number| job(number, 4_096, IO_NS), 1_000, 999),
    ]
}

fn names() -> Vec<Limit> {
    let opened = |number, took_ns, bytes| {
        let failed = [(Io::errors, 300), (Io::bytes, bytes)];
        of_ops(vec![op("open", number + 300, took_ns, &failed), op("read", number, 0, &[])])
    };
    let missed = |of, took_ns, number| {
        let took = op("open", of, took_ns, &[(Io::errors, number)]);
        of_ops(vec![took, missing(number)])
    };
    let stat = |number, took_ns| of_ops(vec![op("stat", number, took_ns, &[])]);
    let all_bytes = 2_000 * (64 << 10);
    vec![
        limit(
            "small_files",
            "more than 30 % of the time in I/O",
            |ns| opened(2_000, ns, 0),
            THREE_TENTHS + 1,
            THREE_TENTHS,
        ),
        limit("small_files", "1.00k opens", |number| opened(number, IO_NS, 0), 1_000, 999),
        limit(
            "small_files",
            "less than 64 KiB",
            |bytes| opened(2_000, IO_NS, bytes),
            all_bytes - 1,
            all_bytes,
        ),
        limit(
            "missing_files",
            "more than 20 % of opens",
            |number| missed(6_000, IO_NS, number),
            1_201,
            1_200,
        ),
        limit("missing_files", "1.00k times", |number| missed(2_000, IO_NS, number), 1_000, 999),
        // Of the job's time, by opens and stats alone.
        limit("missing_files", LEAST, |ns| missed(2_000, ns, 2_000), 5 * S, 5 * S - 1),
        limit(
            "many_names",
            "more than 30 % of the time in I/O",
            |ns| stat(1_000, ns),
            THREE_TENTHS + 1,
            THREE_TENTHS,
        ),
        limit("many_names", "1.00k calls", |number| stat(number, IO_NS), 1_000, 999),
        limit(
            "file_locks",
            "20 % of the time in I/O",
            |ns| of_ops(vec![op("lock", 1, IO_NS, &[(Io::waited_ns, ns)])]),
            FIFTH,
            FIFTH - 1,
        ),
    ]
}

fn files() -> Vec<Limit> {
    let synced = |syncs, written_bytes, sync_ns| {
        of_file(FileCounts { syncs, written_bytes, sync_ns, ..FileCounts::default() })
    };
    let opened = |files, opens, open_ns| {
        of_files(files, FileCounts { opens, open_ns, ..FileCounts::default() })
    };
    let again = |read_bytes, read_ns| {
        let size_bytes = 100 * MIB;
        of_file(FileCounts { size_bytes, read_bytes, read_ns, ..FileCounts::default() })
    };
    vec![
        limit(
            "sync_each_record",
            "10 % of the time goes",
            |ns| synced(1_000, 0, ns),
            10 * S,
            10 * S - 1,
        ),
        limit("sync_each_record", "100 times", |syncs| synced(syncs, 0, 20 * S), 100, 99),
        limit(
            "sync_each_record",
            "less than 1 MiB",
            |bytes| synced(1_000, bytes, 20 * S),
            1_000 * MIB - 1,
            1_000 * MIB,
        ),
        limit(
            "opened_again",
            "10 % of the time in I/O",
            |ns| opened(1, 2_000, ns),
            TENTH,
            TENTH - 1,
        ),
        limit("opened_again", "10 times", |files| opened(files, 2_000, IO_NS), 200, 201),
        limit("opened_again", "1.00k times", |opens| opened(1, opens, IO_NS), 1_000, 999),
        // A quarter of it had to be.
        limit(
            "read_again",
            "20 % of the time in I/O",
            |ns| again(400 * MIB, ns),
            FIFTH / 3 * 4 + 2,
            FIFTH / 3 * 4 - 2,
        ),
        limit("read_again", "3 times", |bytes| again(bytes, IO_NS), 300 * MIB, 300 * MIB - 1),
    ]
}

fn together() -> Vec<Limit> {
    // Writes of several that took so long, and of one alone, 1 ms each.
    let job = |shared, shared_ns, alone| {
        of_file(FileCounts {
            writes: shared + alone,
            written_bytes: (shared + alone) << 12,
            write_ns: shared_ns + alone * MS,
            shared_writes: shared,
            shared_written_bytes: shared << 12,
            shared_write_ns: shared_ns,
            ..FileCounts::default()
        })
    };
    let shared = "shared_writes";
    // 5 ms each, of which 4 ms are waiting.
    let fifth = FIFTH / (4 * MS);
    let uneven = |elapsed_ns, times: [u64; 2]| {
        let mut job = record(file_ops::named());
        job.totals.elapsed_ns = elapsed_ns;
        let thread = |(process, time_ns)| ThreadUse {
            program: "sol".into(),
            process,
            thread: process,
            counts: IoCounts { ops: 1_000, time_ns, ..IoCounts::default() },
            ..ThreadUse::default()
        };
        job.totals.files.threads.threads = [1, 2].into_iter().zip(times).map(thread).collect();
        job
    };
    vec![
        limit(
            shared,
            "20 % of the time in I/O",
            |writes| job(writes, writes * 5 * MS, 1_000),
            fifth,
            fifth - 1,
        ),
        limit(shared, "3 times as long", |ns| job(10_000, 10_000 * ns, 1_000), 3 * MS, 3 * MS - 1),
        limit(shared, "100 of each kind", |writes| job(writes, 20 * S, 1_000), 100, 99),
        limit(shared, "100 of each kind", |writes| job(1_000, 20 * S, writes), 100, 99),
        limit(
            "uneven_io",
            "15 % of its time",
            |other_ns| uneven(60 * S, [40 * S, other_ns]),
            34 * S,
            34 * S + 1,
        ),
        limit(
            "uneven_io",
            "5 % of the run",
            |other_ns| uneven(60 * S, [10 * S, other_ns]),
            7 * S,
            7 * S + 1,
        ),
    ]
}

fn others() -> Vec<Limit> {
    let hanging = |elapsed_ns, took_ns| {
        let mut job = record(file_ops::named());
        job.totals.elapsed_ns = elapsed_ns;
        let slowest = SlowOp { under_way: true, took_ns, ..job.totals.files.slowest[0].clone() };
        job.totals.files.slowest = vec![slowest];
        job
    };
    vec![
        limit("file_hangs", "1.00 s", |ns| hanging(2 * S, ns), S, S - 1),
        limit("file_hangs", "25 % of the time", |ns| hanging(60 * S, ns), 15 * S, 15 * S - 1),
        limit("mmap_random", "5 % of the time", |ns| of_faults(ns, 1_000, 0), 5 * S, 5 * S - 1),
        limit("mmap_random", "1.00k", |faults| of_faults(20 * S, faults, 0), 1_000, 999),
        limit("mmap_random", "80 %", |more| of_faults(20 * S, 1_000, more), 200, 201),
    ]
}

#[test]
fn each_limit_of_operations_on_files_is_where_it_is_told_to_be() {
    for Limit { rule, told, speaks, silent } in limits() {
        assert!(said(&[speaks]).contains(rule), "{rule} is silent: {told}");
        assert!(!said(&[silent]).contains(rule), "{rule} speaks: {told}");
    }
}

/// So nobody adds one without a near miss.
#[test]
fn each_limit_that_is_told_is_tried() {
    let limits = limits();
    for rule in RULES.iter().filter(|rule| rule.shown == "dive") {
        let mut text = (rule.threshold)();
        for Limit { told, .. } in limits.iter().filter(|limit| limit.rule == rule.id) {
            assert!((rule.threshold)().contains(told), "{}: {told}", rule.id);
            text = text.replace(told, "");
        }
        let left = text.replace(LEAST, "");
        assert!(!left.contains(|c: char| c.is_ascii_digit()), "{}: {left}", rule.id);
    }
}

#[test]
fn rules_speak_from_a_twentieth_of_the_time_on() {
    let limits = limits();
    let rules = RULES.iter().filter(|rule| (rule.threshold)().contains(LEAST));
    let tried = rules.map(|rule| {
        // All of its I/O is of that kind, or most.
        let of_rule = || limits.iter().filter(|limit| limit.rule == rule.id);
        let told = |elapsed_ns| {
            of_rule().any(|limit| {
                let mut job = limit.speaks.clone();
                job.totals.elapsed_ns = elapsed_ns;
                said(&[job]).contains(rule.id)
            })
        };
        assert!(told(20 * IO_NS), "{}", rule.id);
        assert!(!told(20 * IO_NS + 1_000), "{}", rule.id);
    });
    assert_eq!(tried.count(), 13);
}

/// The same calls are told once: by what they are for, where that is known.
#[test]
fn names_are_told_where_neither_small_nor_missing_files_are() {
    let told = |opens, missed| {
        let opened = op("open", opens + missed, TENTH, &[(Io::errors, missed)]);
        let stat = op("stat", 2_000, 4 * TENTH, &[]);
        let read = op("read", opens, 0, &[]);
        let said = said(&[of_ops(vec![opened, stat, read, missing(missed)])]);
        ["many_names", "small_files", "missing_files"].map(|rule| said.contains(rule))
    };
    assert_eq!(told(999, 0), [true, false, false]);
    assert_eq!(told(1_000, 0), [false, true, false]);
    assert_eq!(told(900, 999), [true, false, false]);
    assert_eq!(told(900, 1_000), [false, false, true]);
}

#[test]
fn only_failures_of_storage_are_told() {
    let told = |error, fs, op: &str| {
        let mut totals = file_ops::failing(error, op, 1);
        let failed = totals.stats.groups.last_mut().unwrap();
        failed.tags[1] = String::from(fs);
        said(&[record(totals)]).contains("file_errors")
    };
    for error in ["EIO", "ENOSPC", "EDQUOT", "ESTALE"] {
        assert!(told(error, "lustre", "write"), "{error}");
        // Of a pipe, and of the kernel's own files: their errors are answers.
        assert!(!told(error, "pipefs", "write"), "{error}");
        assert!(!told(error, "sysfs", "write"), "{error}");
    }
    for error in ["EAGAIN", "ENOENT", "EACCES", "EFBIG"] {
        assert!(!told(error, "lustre", "write"), "{error}");
    }
}
