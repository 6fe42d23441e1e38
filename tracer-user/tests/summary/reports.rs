//! Reports as people see them: each job against its text in `report/`, to be written anew as the summaries are.

use std::{fs, path::PathBuf};

use jobtrace::{
    model::{
        job::Job,
        lost_files::LostFiles,
        point::Origin,
        tables::{BLOCK, CPU, Cpu, Fact, MEMORY, Memory, SCHED, Sched, fact},
        totals::RunTotals,
    },
    record::{Record, timeline::Timeline},
    report::{Report, Whole, render},
    view::{Style, summary},
};

use serde_json::{Value, json};

use crate::fixtures;

const S: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
/// 2026-11-22, 20:00.
pub const BEGIN: u64 = 1_795_377_600 * S;

/// What a scheduler was asked for, by the rows of `job_info`.
pub const ASKED: [(&Fact, u64); 6] = [
    (const { fact("memory_per_node_bytes") }, 64 * GIB),
    (const { fact("time_limit_end") }, BEGIN + 24 * 3600 * S),
    (const { fact("node_count") }, 1),
    (const { fact("node_cores") }, 64),
    (const { fact("node_memory_bytes") }, 256 * GIB),
    (const { fact("core_count") }, 8),
];

/// The record of a run that took as long as it did.
pub fn record(totals: RunTotals) -> Record {
    let origin = Origin { cluster: "c1".into(), host: "n1".into() };
    let info = totals.info.clone();
    let mut record = Record::new(&origin, totals.stats.job.clone(), info, BEGIN);
    record.facts.set(const { fact("start") }, BEGIN);
    record.facts.set(const { fact("end") }, BEGIN + totals.elapsed_ns);
    record.timeline = Timeline::new(BEGIN);
    record.timeline.add(totals.elapsed_ns, &totals.stats.groups);
    record.totals = totals;
    record
}

/// The same under Slurm, with what it was asked for, `times` as long in all that adds up.
pub fn slurm(totals: RunTotals, times: u64) -> Record {
    let mut totals = totals;
    for group in &mut totals.stats.groups {
        let once = group.clone();
        (1..times).for_each(|_| group.follow(&once));
    }
    totals.elapsed_ns *= times;
    totals.exit = None;
    totals.stats.job =
        Job { job: "4711".into(), manager: "slurm".into(), user: "ada".into(), ..Job::default() };
    totals.notes.clear();
    let held = totals.stats.group(&CPU).and_then(|cpu| cpu.number(Cpu::cores_held));
    let elapsed_ns = totals.elapsed_ns;
    for group in &mut totals.stats.groups {
        if group.is(&MEMORY) {
            group.set(Memory::used_peak_bytes, 5 * GIB / 2);
        }
        if group.is(&CPU) {
            group.set(Cpu::held_ns, held.unwrap_or(0) / 1000 * elapsed_ns);
        }
    }
    let mut record = record(totals);
    ASKED.iter().for_each(|(fact, number)| record.facts.set(fact, *number));
    record.facts.set_text(const { fact("account") }, "physics");
    record.facts.set_text(const { fact("partition") }, "batch");
    record
}

/// Nodes that compute unevenly: the last one twice as much as the others.
pub fn uneven(nodes: u64) -> Vec<Record> {
    let node = |number: u64| {
        let mut record = slurm(fixtures::io_bound(), 20);
        record.hosts = vec![format!("n{number:04}")];
        record.facts.set(const { fact("node_count") }, nodes);
        record.facts.set(const { fact("task_count") }, nodes * 4);
        for group in record.totals.stats.groups.iter_mut().filter(|group| group.is(&SCHED)) {
            let on_cpu_ns = group.number(Sched::on_cpu_ns).unwrap();
            group.set(Sched::cpus_used, 4);
            group.set(Sched::busiest_cpu_ns, on_cpu_ns / 4 * (1 + number % 2));
            if number == nodes {
                group.set(Sched::on_cpu_ns, on_cpu_ns * 2);
            }
        }
        record
    };
    (1..=nodes).map(node).collect()
}

fn cases() -> Vec<(&'static str, Vec<Record>, Style)> {
    let usual = Style { width: 80, color: false, unicode: true };
    let narrow = Style { width: 40, unicode: false, ..usual };
    let mut running = slurm(fixtures::cpu_bound(), 10);
    running.facts.set(const { fact("end") }, None);
    for group in running.totals.stats.groups.iter_mut().filter(|group| group.is(&SCHED)) {
        let on_cpu_ns = group.number(Sched::on_cpu_ns).unwrap();
        group.set(Sched::cpus_used, 8);
        group.set(Sched::busiest_cpu_ns, on_cpu_ns / 7);
    }
    let mut limit = slurm(fixtures::cpu_bound(), 60);
    limit.facts.set_text(const { fact("end_reason") }, "time_limit");
    limit.facts.set(const { fact("time_limit_end") }, BEGIN + 4980 * S);
    vec![
        ("short", vec![record(fixtures::short())], usual),
        ("serial", vec![slurm(fixtures::serial(), 60)], usual),
        ("gpus_held", vec![slurm(fixtures::gpus::gpus_held(), 60)], usual),
        ("starved_gpu", vec![slurm(fixtures::gpus::starved_gpu(), 60)], usual),
        ("network_fs_named", vec![slurm(fixtures::waits::network_fs_named(), 60)], usual),
        ("files", vec![slurm(fixtures::file_ops::named(), 60)], usual),
        ("file_ops", vec![slurm(fixtures::file_ops::small_files(), 60)], usual),
        ("killed", vec![slurm(fixtures::killed(), 1)], usual),
        ("running", vec![running], usual),
        ("time_limit", vec![limit], usual),
        ("uneven", uneven(64), Style { width: 100, color: true, ..usual }),
        ("hostile", vec![record(fixtures::hostile())], narrow),
        ("unknown", vec![record(fixtures::unknown())], usual),
    ]
}

#[test]
fn reports_read_as_agreed() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/summary/report");
    let bless = std::env::var_os("BLESS").is_some();
    let mut differ = Vec::new();
    for (name, records, style) in cases() {
        let path = folder.join(format!("{name}.txt"));
        let whole = Whole::of(records).unwrap();
        let text = render(&Report::of(&whole, style.unicode), &style);
        if bless {
            fs::write(&path, &text).expect("the folder of the texts can be written");
        } else if fs::read_to_string(&path).ok().as_deref() != Some(&*text) {
            differ.push(format!("{name}:\n{text}"));
        }
    }
    assert!(differ.is_empty(), "not as in tests/summary/report:\n{}", differ.join("\n"));
}

#[test]
fn no_line_is_wider_than_the_terminal_nor_has_what_drives_it() {
    for (name, records, style) in cases() {
        let report = Report::of(&Whole::of(records).unwrap(), style.unicode);
        for width in [20, 40, 57, 80, 100, 300] {
            let style = Style { width, color: false, ..style };
            let text = render(&report, &style);
            for line in text.lines() {
                let columns = jobtrace::base::text::width(line);
                assert!(columns <= width.clamp(40, 100), "{name} {width}: {line}");
                assert!(!line.chars().any(char::is_control), "{name}: {line:?}");
                assert!(style.unicode || line.is_ascii(), "{name}: {line}");
            }
        }
    }
}

/// The node nearest its limit is not the one that needs most, and what one of them kept in its file cache tells nothing
/// of another.
#[test]
fn memory_is_that_of_the_node_that_needed_most() {
    let told = |memory: [(u64, u64, u64, u64); 2]| {
        let mut nodes = uneven(2);
        for (node, (used, cached, charged, limit)) in nodes.iter_mut().zip(memory) {
            let groups = &mut node.totals.stats.groups;
            let of_node = groups.iter_mut().find(|group| group.is(&MEMORY)).unwrap();
            of_node.set(Memory::used_peak_bytes, used * GIB);
            of_node.set(Memory::cache_peak_bytes, cached * GIB);
            of_node.set(Memory::peak_bytes, charged * GIB);
            of_node.set(Memory::limit_bytes, limit * GIB);
            node.facts.set(const { fact("memory_per_node_bytes") }, 64 * GIB);
        }
        let report = Report::of(&Whole::of(nodes).unwrap(), true);
        let memory = report.used.iter().find(|bar| bar.name == "Memory").unwrap().words.clone();
        let asks: Vec<_> = report.next.iter().map(|next| next.what.clone()).collect();
        assert!(asks.contains(&"--mem=60G".to_owned()), "{asks:?}");
        assert!(!report.rules().contains(&"memory_short"), "{:?}", report.rules());
        (report.nodes.iter().filter_map(|node| node.memory_bytes).max(), report.rules(), memory)
    };
    let (most, rules, memory) = told([(3, 40, 50, 60), (49, 0, 50, 64)]);
    assert_eq!(most, Some(49 * GIB));
    assert!(memory.starts_with("49 GiB needed at its peak"), "{memory}");
    assert!(!rules.contains(&"cache_at_limit"), "{rules:?}");
    let (_, rules, memory) = told([(2, 1, 50, 64), (3, 60, 63, 64)]);
    assert!(memory.starts_with("up to 50 GiB needed at its peak"), "{memory}");
    assert!(rules.contains(&"cache_at_limit"), "{rules:?}");
}

#[test]
fn what_adds_up_over_nodes_is_added_and_what_is_a_nodes_own_is_not() {
    let nodes = uneven(4);
    let one = nodes[0].totals.stats.clone();
    let whole = Whole::of(nodes).unwrap();
    let of = |table| whole.record.totals.stats.group(table).unwrap();
    let of_one = |table| one.group(table).unwrap();
    let cores = of_one(&CPU).number(Cpu::cores_held).unwrap();
    assert_eq!(of(&CPU).number(Cpu::cores_held), Some(4 * cores));
    for field in [Memory::limit_bytes, Memory::peak_bytes, Memory::used_peak_bytes] {
        assert_eq!(of(&MEMORY).number(field), of_one(&MEMORY).number(field), "of the fullest");
    }
    let on_cpu_ns = of_one(&SCHED).number(Sched::on_cpu_ns).unwrap();
    assert_eq!(of(&SCHED).number(Sched::on_cpu_ns), Some(5 * on_cpu_ns));
    let reads = |stats: &jobtrace::model::job::JobStats| stats.groups(&BLOCK).count();
    assert_eq!(reads(&whole.record.totals.stats), reads(&one), "devices of a name are one");
    let report = Report::of(&whole, true);
    assert_eq!(report.nodes.len(), 4);
    assert_eq!(report.nodes[0].name, "n0004");
    assert!(report.used[0].share.unwrap() < 1.0, "{:?}", report.used[0]);
}

/// Files and folders, more of them than a page has room for, and all others in one row: together all that was done.
#[test]
fn rows_of_files_and_of_folders_and_their_rests_are_all_that_was_done() {
    let mut totals = fixtures::file_ops::named();
    totals.files.folders[0].files = 1;
    let one = totals.files.folders[0].clone();
    let more = (1..40).map(|number| {
        let mut folder = one.clone();
        folder.path = format!("/scratch/{number}");
        (folder.counts.opens, folder.counts.ops) = (number, 2 * number);
        folder
    });
    totals.files.folders.extend(more);
    let files = Report::of(&Whole::of(vec![record(totals)]).unwrap(), true).files;
    // The first by time and bytes, by which all but one are alike, and the last by the others.
    assert_eq!(files.folders.len(), 1 + 9 + 9, "ten by each measure, without repetition");
    assert!(files.folders.iter().all(|folder| folder.files == Some(1)), "{:?}", files.folders);
    for (rows, others) in [(&files.files, &files.others), (&files.folders, &files.other_folders)] {
        let sum: u64 = rows.iter().chain(others).map(|row| row.ops).sum();
        // On storage, as the fixture has them.
        assert_eq!(sum, 90_000 + 156_000 + 91_000 + 78_000 + 12 + 4, "{rows:?}, {others:?}");
        let opens: u64 = rows.iter().chain(others).map(|row| row.opens).sum();
        assert_eq!(opens, 90_000 - 12_000, "{rows:?}, {others:?}");
    }
}

/// The command is not yet there when jobtrace begins, and of a job that runs a part is counted: an operation begins
/// within the time that is told.
#[test]
fn slow_operations_begin_after_the_counting_and_not_after_its_end() {
    let begins = |counted_from_ns| {
        let mut one = record(fixtures::file_ops::named());
        one.timeline = Timeline::new(counted_from_ns);
        one.timeline.add(66 * S, &[]);
        let text = summary(&one, &Style { width: 100, color: false, unicode: false });
        assert!(text.contains("began after"), "{text}");
        let report = Report::of(&Whole::of(vec![one]).unwrap(), true);
        (report.slowest.iter().map(|op| op.after_ns).collect::<Vec<_>>(), text)
    };
    let (after_ns, text) = begins(BEGIN + 2 * S);
    assert_eq!(after_ns, [Some(63 * S), Some(S), Some(0)]);
    assert!(text.contains(" 1 min 3 s ") && !text.contains(" 1 min 5 s "), "{text}");
    assert_eq!(begins(BEGIN).0, [Some(65 * S), Some(3 * S), Some(0)]);
}

/// What there was no room for is told where it is, as numbers and in words.
#[test]
fn files_that_found_no_room_are_told_of() {
    let of = |ops, files| {
        let mut totals = fixtures::file_ops::named();
        totals.files.lost = LostFiles { ops, files };
        let report = Report::of(&Whole::of(vec![record(totals)]).unwrap(), true);
        let json = serde_json::to_value(&report).unwrap();
        (json["files"]["lost"].clone(), json["files"]["says"].clone())
    };
    assert_eq!(of(0, 0), (Value::Null, Value::Null));
    assert_eq!(
        of(1, 2_000),
        (
            json!({"ops": 1, "files": 2_000}),
            json!(
                "1 operation on files is in no row of a file or folder, only in the rest: between two readings threads \
                 used more files, each thread's counted anew, than there is room for: 2048 with 64 operations or more, \
                 8192 with fewer (with `run`, a shorter --interval loses fewer); 2.00k files are told by the folder \
                 alone: there were more files than are kept apart"
            )
        )
    );
}
