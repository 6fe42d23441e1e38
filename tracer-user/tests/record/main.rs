//! Records: what goes in comes out, many are one in any order, and what is damaged is refused by name.

mod agents;
mod damaged;
mod laws;
mod mirrors;
mod stores;
mod timelines;
mod truth;

use jobtrace::{
    docs,
    model::{
        files::{FileCounts, FileUse, Files},
        group::{Group, Value},
        hist::Hist,
        info::{Exit, JobInfo},
        io_latency::IoLatency,
        io_threads::{IoCounts, IoThreads, ProgramUse, ThreadUse},
        job::Job,
        lost_files::LostFiles,
        parts::Part,
        point::Origin,
        seen::Means,
        slow_ops::SlowOp,
        software::{Level, Library, Package, Program, Software, Stack},
        tables::{self, BLOCK, FACTS, Fact, GPU, Io, Memory, NET, SCHED, Sched, fact},
    },
    record::{
        Record,
        document::document,
        schema::{FILES, KEYS},
        series::SERIES,
    },
    view::{Style, render},
};
use tracer_ebpf::table::Kind;

const SECOND: u64 = 1_000_000_000;

fn job() -> Job {
    let [job, manager, user] = ["4711", "slurm", "ada"].map(str::to_owned);
    Job { job, manager, user, ..Job::default() }
}

/// A job that is counted on `host` from `begin_ns` on.
fn begun(host: &str, begin_ns: u64) -> Record {
    let origin = Origin { cluster: "c1".into(), host: host.into() };
    let info = JobInfo {
        name: "md \"x\"\n".into(),
        user: "ada".into(),
        uid: 1000,
        command: "./md -n 8".into(),
        start_wall_ns: 5,
    };
    let mut record = Record::new(&origin, job(), info, begin_ns);
    record.facts.set(const { fact("counted_from") }, begin_ns);
    record
}

/// Every measurement with every field known.
fn groups() -> Vec<Group> {
    let full = |table: &'static tracer_ebpf::table::Measurement| {
        let tags = table
            .tags
            .iter()
            .map(|tag| if *tag == "op" { "read".into() } else { format!("a {tag}") });
        let mut group = Group::unknown(table, tags.collect());
        for (at, (field, value)) in (1u64..).zip(table.fields.iter().zip(&mut group.values)) {
            *value = Some(match field.kind {
                Kind::Histogram => {
                    let mut hist = Hist::default();
                    [70, 5 * at, 1 << 45].into_iter().for_each(|value| hist.record(value));
                    Value::Histogram(hist)
                }
                _ => Value::Number(1000 + at),
            });
        }
        group
    };
    tables::ALL.map(full).into()
}

/// A file with which so much was done.
fn used(path: &str, ops: u64) -> FileUse {
    let counts = FileCounts { ops, time_ns: ops / 2, ..FileCounts::default() };
    let (fs, mount) = ("ext4".into(), "/d".into());
    FileUse { path: path.into(), fs, mount, files: 1, counts }
}

/// An operation that took so long.
fn slow(path: &str, took_ns: u64) -> SlowOp {
    let (op, fs, program) = ("read".into(), "ext4".into(), "cat".into());
    let (offset, bytes) = (Some(took_ns), Some(4096));
    let slow = SlowOp { took_ns, op, path: path.into(), fs, program, ..SlowOp::default() };
    SlowOp { mount: "/d".into(), error: Some("EIO".into()), offset, bytes, ..slow }
}

/// A thread, and its program.
fn threads(thread: u32, ops: u64) -> IoThreads {
    let (program, counts) = ("cat".to_owned(), IoCounts { ops, ..IoCounts::default() });
    let of = ThreadUse { program: program.clone(), thread, counts, ..ThreadUse::default() };
    IoThreads { threads: vec![of], programs: vec![ProgramUse { program, threads: 1, counts }] }
}

/// So many operations, all in one second.
fn latency(second: u64, ops: u64) -> IoLatency {
    let mut group = Group::unknown(&tables::IO, ["ext4", "/d", "read"].map(str::to_owned).into());
    group.set_hist(Io::latency_ns, Hist::from_buckets(ops, 9, [(40, ops % 1_000)]));
    let mut latency = IoLatency::default();
    latency.add((second + 1) * SECOND, SECOND, &[group]);
    latency
}

/// Software of a job, of which everything is known.
fn software(name: &str, executions: u64) -> Software {
    let text = |text: &str| Some(text.to_owned());
    Software {
        level: Level::Full,
        by: [Means::Read].into(),
        since_begin: executions.is_multiple_of(2),
        lost: executions % 7,
        opted_out: false,
        programs: vec![Program {
            name: name.into(),
            version: text("3.11"),
            kind: text("python"),
            executions,
        }],
        other_programs: 1 + executions % 3,
        libraries: vec![Library {
            name: "libcudart".into(),
            version: text("12.4.127"),
            what: text("CUDA"),
        }],
        other_libraries: 2,
        packages: vec![Package {
            name: name.into(),
            distribution: text("x"),
            version: text("1.0"),
            python: text("3.11"),
        }],
        own_modules: 3,
        unknown_packages: 4,
        stacks: vec![Stack {
            kind: "easybuild".into(),
            name: text("X"),
            version: text("1"),
            toolchain: text("foss-2023b"),
        }],
        python_processes_most: Some(executions % 5),
        gpu_library: true,
    }
}

/// A record of which everything is known.
fn full() -> Record {
    let mut record = begun("n1", 10 * SECOND + 7);
    let own = |group: &Group| group.is(&tables::SELF) || group.is(&tables::NODE_NET);
    let (own, groups): (Vec<_>, Vec<_>) = groups().into_iter().partition(own);
    record.add(3 * SECOND, &groups, &own);
    for fact in FACTS {
        match fact.unit {
            Some(_) => record.facts.set(fact, 42),
            None => record.facts.set_text(fact, "a \"text\""),
        }
    }
    record.totals.info = JobInfo { user: "ada".into(), ..JobInfo::from(&record.facts) };
    record.totals.exit = Some(Exit { code: Some(3), signal: None });
    record.totals.gaps.add("net", 3, 5);
    record.totals.parts.begin(Part { step: "0".into(), task: "3".into(), ..Part::default() });
    record.totals.parts.others.count = 2;
    record.totals.files = Files {
        lost: LostFiles { ops: 3, files: 1 },
        slowest: vec![slow("/d/a", 9)],
        threads: threads(7, 9),
        latency: latency(11, 9),
        ..Files::largest(vec![used("/d/a", 7)], vec![used("/d", 7)])
    };
    record.totals.software = Some(software("python", 9));
    record.totals.unknown = vec!["block".into()];
    record.totals.notes = vec!["a note".into()];
    record
}

#[test]
fn each_key_is_explained_and_each_explained_one_is_written() {
    let mut record = full();
    record.totals.stats.job.step = "0".into();
    // Then nothing else is told: nothing but this test writes both.
    record.totals.software.as_mut().unwrap().opted_out = true;
    let json: serde_json::Value = serde_json::from_str(&document(&record).unwrap()).unwrap();
    let mut paths = Vec::new();
    for (key, value) in json.as_object().unwrap() {
        let is_split = ["job", "exit", "peaks", "software", "timeline"].contains(&key.as_str());
        match value.as_object().filter(|_| is_split) {
            Some(map) => paths.extend(map.keys().map(|inner| format!("{key}.{inner}"))),
            None => paths.push(key.clone()),
        }
    }
    let keys = KEYS.iter().map(|key| key.path.to_owned());
    let facts = FACTS.iter().map(|fact| format!("job.{}", fact.name));
    let series = SERIES.iter().map(|series| format!("timeline.{}", series.name));
    let tables = tables::ALL.iter().map(|table| table.key.to_owned());
    let mut explained: Vec<_> = keys.chain(facts).chain(series).chain(tables).collect();
    paths.sort();
    explained.sort();
    assert_eq!(paths, explained);
    let text = docs::record();
    let (text, _) = text.split_once("## Files").unwrap();
    for name in FileCounts::NAMES {
        let of_files = KEYS.iter().find(|key| key.path == FILES).unwrap();
        assert!(of_files.help.contains(&format!("`{name}`")), "{name}");
    }
    for key in KEYS {
        assert_eq!(text.matches(&format!("\n| `{}` |", key.path)).count(), 1, "{}", key.path);
    }
}

#[test]
fn the_summary_is_the_same_from_a_saved_record() {
    let mut record = full();
    record.totals.intervals = 3;
    let again = jobtrace::record::file::decode(&jobtrace::record::file::encode(&record).unwrap());
    let again = again.unwrap();
    assert_eq!(again, record);
    let style = Style { width: 90, color: false, unicode: true };
    let text = render(&again.totals, &style);
    assert!(text.contains("./md") || text.contains("a \"text\""), "{text}");
    assert_eq!(text, render(&record.totals, &style));
}

/// A fact by its name.
fn number(record: &Record, fact: &'static Fact) -> Option<u64> {
    record.facts.number(fact)
}
