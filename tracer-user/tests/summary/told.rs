//! What a scheduler tells beside the record, steps and tasks by name, and the report in ten lines.

use jobtrace::{
    model::{
        info::Exit,
        parts::Part,
        tables::{Fact, Fault, MEMORY, Memory, fact},
    },
    record::Record,
    report::{Report, Whole, render, short},
    scheduler::{EndReason, Told},
    view::Style,
};

use crate::{
    fixtures,
    reports::{record, slurm, uneven},
};

const S: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
const START: &Fact = fact("start");
const USUAL: Style = Style { width: 80, color: false, unicode: true };

/// A job of Slurm's of which the record knows nothing but what it did.
fn bare() -> Record {
    let mut record = slurm(fixtures::serial(), 60);
    for name in ["memory_per_node_bytes", "time_limit_end", "node_count", "core_count"] {
        let row = jobtrace::model::tables::FACTS.iter().find(|row| row.name == name).unwrap();
        record.facts.remove(row);
    }
    record
}

fn told(record: &Record) -> Told {
    let start = record.facts.number(START).unwrap();
    Told {
        source: "sacct",
        state: "COMPLETED".into(),
        end_reason: Some(EndReason::Itself),
        exit: Some(Exit { code: Some(0), signal: None }),
        submit: Some(start - 130 * S),
        start: Some(start),
        end: record.facts.number(const { fact("end") }),
        nodes: Some(1),
        cores: Some(8),
        memory_per_node_bytes: Some(64 * GIB),
        time_limit_ns: Some(24 * 3600 * S),
        partition: "batch".into(),
        account: "physics".into(),
        qos: "normal".into(),
        ..Told::default()
    }
}

/// The report of `record` with what `change` makes of what was told.
fn report(record: Record, change: impl Fn(&mut Told)) -> Report {
    let mut told = told(&record);
    change(&mut told);
    let mut whole = Whole::of(vec![record]).unwrap();
    whole.tell(told);
    Report::of(&whole, true)
}

#[test]
fn what_the_record_lacks_is_taken_over() {
    let without = Report::of(&Whole::of(vec![bare()]).unwrap(), true);
    assert_eq!(without.who.state, "ended");
    assert!(!without.rules().contains(&"memory_unused"), "{:?}", without.rules());
    let report = report(bare(), |_| {});
    assert_eq!(report.who.state, "succeeded (exit status 0)");
    for rule in ["memory_unused", "time_unused"] {
        assert!(report.rules().contains(&rule), "{:?}", report.rules());
    }
    let expected = "handed in 2026-11-22 19:57:50 UTC; waited 2 min 10 s in the queue; given 8 cores, 64 GiB of \
                    memory a node, at most 1 d 0 h; QOS normal; sacct says COMPLETED";
    assert_eq!(report.scheduler_says, [expected]);
    let text = render(&report, &USUAL);
    assert!(text.contains("waited 2 min 10 s in the queue"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["scheduler"]["end_reason"], "itself");
    assert_eq!(json["scheduler"]["cores"], 8);
    assert!(serde_json::to_value(&without).unwrap().get("scheduler").is_none());
}

#[test]
fn how_it_ended_is_the_schedulers_to_tell() {
    for (reason, exit, state) in [
        (EndReason::Itself, Some(3), "failed (exit status 3)"),
        (EndReason::TimeLimit, Some(0), "ended at its time limit"),
        (EndReason::OutOfMemory, None, "ran out of memory"),
        (EndReason::Cancelled, None, "was cancelled"),
        (EndReason::Preempted, None, "was ended for a job of higher priority"),
        (EndReason::NodeFailed, None, "ended as a node failed"),
        (EndReason::Requeued, None, "was put back into the queue"),
    ] {
        let report = report(bare(), |told| {
            told.end_reason = Some(reason);
            told.exit = exit.map(|code| Exit { code: Some(code), signal: None });
        });
        assert_eq!(report.who.state, state);
        assert_eq!(report.rules().contains(&"time_limit"), reason == EndReason::TimeLimit);
    }
    // A job that reached its limit in time is none that ended at it.
    let mut at_limit = bare();
    at_limit.facts.set_text(const { fact("end_reason") }, "time_limit");
    assert_eq!(report(at_limit, |_| {}).who.state, "succeeded (exit status 0)");
    // Kills were counted.
    let mut killed = bare();
    killed.facts.set_text(const { fact("end_reason") }, "out_of_memory");
    for group in killed.totals.stats.groups.iter_mut() {
        if group.is(Fault::oom_kills.measurement()) {
            group.set(Fault::oom_kills, 1);
        }
    }
    let report = report(killed, |told| told.end_reason = Some(EndReason::Cancelled));
    assert_eq!(report.who.state, "ran out of memory");
    assert_eq!(
        report.scheduler_says[1..],
        ["sacct says end_reason cancelled, the record out_of_memory"]
    );
}

#[test]
fn differences_are_said_and_the_record_stands() {
    let start = slurm(fixtures::serial(), 60).facts.number(START).unwrap();
    let report = report(slurm(fixtures::serial(), 60), |told| {
        told.memory_per_node_bytes = Some(32 * GIB);
        told.partition = "gpu".into();
        told.start = Some(start - 60 * S);
        told.cores = Some(1);
        told.qos = "a\u{1b}[31mb".into();
    });
    let expected = [
        "sacct says memory per node 32 GiB, the record 64 GiB",
        "sacct says partition gpu, the record batch",
        "sacct says start 2026-11-22 19:59:00, the record 2026-11-22 20:00:00 UTC",
        "sacct says 1 core, and the job may use 8",
    ];
    assert_eq!(report.scheduler_says[1..], expected);
    assert!(!report.scheduler_says[0].contains('\u{1b}'), "{:?}", report.scheduler_says);
    assert_eq!((report.who.partition.as_str(), report.who.start), ("batch", start));
    let mut whole = Whole::of(vec![bare()]).unwrap();
    whole.not_told("sacct did not answer in time; scontrol says: \u{1b}no");
    let vain = &Report::of(&whole, false).scheduler_says;
    assert_eq!(
        vain[..],
        [
            "what its scheduler knows of it is not known: sacct did not answer in time; scontrol says: ?no"
        ]
    );
}

/// A step of eight tasks on a node, of which `slow` computes twice as long.
fn with_tasks(record: &mut Record, slow: u64) {
    let part = |step: &str, task: String, on_cpu_ns: u64| Part {
        step: step.into(),
        task,
        begin: 5,
        seen: Some(400 * S),
        end: Some(401 * S),
        on_cpu_ns: Some(on_cpu_ns),
        memory_peak_bytes: Some(GIB),
        disk_read_bytes: Some(4096),
        ..Part::default()
    };
    let tasks = (0..8).map(|task| (task, if task == slow { 200 * S } else { 100 * S }));
    let mut parts: Vec<_> = tasks.map(|(task, ns)| part("0", task.to_string(), ns)).collect();
    // Slurm's own, on cgroup v2.
    parts.push(part("0", "special".into(), 0));
    parts.push(part("0", String::new(), 900 * S));
    parts.push(part("batch", String::new(), S));
    parts.push(part("extern", String::new(), 0));
    record.totals.parts.listed = parts;
}

#[test]
fn the_slowest_task_has_a_name() {
    let mut record = slurm(fixtures::serial(), 60);
    with_tasks(&mut record, 3);
    let report = Report::of(&Whole::of(vec![record.clone()]).unwrap(), true);
    let names: Vec<_> = report.parts.iter().take(4).map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["step 0", "step batch", "task 3 of step 0", "task 0 of step 0"]);
    assert_eq!((report.parts.len(), report.parts[0].elapsed_ns), (10, 401 * S - 5));
    let balance = report.parts_balance.as_deref().unwrap();
    assert!(
        balance.starts_with("balance 56 %") && balance.ends_with("task 3 of step 0"),
        "{balance}"
    );
    let finding = report.advice.iter().find(|advice| advice.rule == "slowest_node").unwrap();
    let expected = "task 3 of step 0 computed 1.78 times as long as the mean of its 8 tasks: the others wait for it";
    assert_eq!(finding.text, expected);
    let text = render(&report, &USUAL);
    assert!(text.contains("Steps and tasks\n  balance 56 %"), "{text}");
    assert!(text.contains("… 2 more"), "the least busy are shown too: {text}");
    // A job that is one script has no parts worth a table.
    record.totals.parts.listed.retain(|part| part.task.is_empty() && part.step != "0");
    let plain = Report::of(&Whole::of(vec![record]).unwrap(), true);
    assert!(plain.parts.is_empty() && plain.parts_balance.is_none());
}

#[test]
fn tasks_of_several_nodes_are_told_with_their_node() {
    let mut nodes = uneven(2);
    nodes.iter_mut().for_each(|node| with_tasks(node, 3));
    nodes[1].totals.parts.listed[5].on_cpu_ns = Some(300 * S);
    let report = Report::of(&Whole::of(nodes).unwrap(), true);
    let step = report.parts.iter().find(|part| part.name == "step 0").unwrap();
    assert_eq!(step.on_cpu_ns, Some(1800 * S), "of both nodes");
    let balance = report.parts_balance.as_deref().unwrap();
    assert!(balance.ends_with("most: task 5 of step 0 on n0002"), "{balance}");
    assert!(report.balance.is_some(), "and of the nodes");
}

#[test]
fn page_faults_are_told() {
    let faults = |totals| Report::of(&Whole::of(vec![record(totals)]).unwrap(), true).faults;
    let thrash = faults(fixtures::thrash()).unwrap();
    assert!(thrash.contains(" major (read from disk), which blocked it for "), "{thrash}");
    let timed = faults(fixtures::first_touch()).unwrap();
    assert!(timed.starts_with("page faults: ") && timed.contains(" each, "), "{timed}");
    assert_eq!(faults(fixtures::unknown()), None);
}

/// The kernel holds a job to its limit: where that is not what was asked for, both are told.
#[test]
fn memory_is_a_share_of_the_limit_that_holds() {
    let of = |asked: Option<u64>, limit: Option<u64>| {
        let mut job = slurm(fixtures::cpu_bound(), 60);
        job.facts.set(const { fact("memory_per_node_bytes") }, asked.map(|gib| gib * GIB));
        for group in job.totals.stats.groups.iter_mut().filter(|group| group.is(&MEMORY)) {
            group.set(Memory::used_peak_bytes, 12 * GIB);
            group.set(Memory::peak_bytes, None);
            group.set(Memory::limit_bytes, limit.map(|gib| gib * GIB));
            group.set(Memory::used_byte_s, 7 * GIB * (job.totals.elapsed_ns / S));
        }
        let report = Report::of(&Whole::of(vec![job]).unwrap(), true);
        let memory = report.used.into_iter().find(|bar| bar.name == "Memory").unwrap();
        (memory.words, memory.share)
    };
    for (asked, limit, expected, share) in [
        (Some(8), Some(16), "of 16 GiB allowed, 8 GiB asked", 0.75),
        (Some(16), Some(16), "of 16 GiB allowed", 0.75),
        (None, Some(16), "of 16 GiB allowed", 0.75),
        (Some(24), None, "of 24 GiB asked", 0.5),
        (None, None, "of the node's 256 GiB", 12.0 / 256.0),
    ] {
        let words = format!("12 GiB needed at its peak {expected}; 7 GiB on average");
        assert_eq!(of(asked, limit), (words, Some(share)));
    }
}

#[test]
fn ten_lines_at_most_however_much_there_is_to_say() {
    let hostile = record(fixtures::hostile());
    for record in
        [hostile, slurm(fixtures::gpus_held(), 60), slurm(fixtures::io_bound(), 20), bare()]
    {
        for (width, unicode) in [(40, false), (80, true), (100, true)] {
            let report = Report::of(&Whole::of(vec![record.clone()]).unwrap(), unicode);
            let text = short(
                &report,
                "4711 --from /shared/records",
                &Style { width, unicode, color: false },
            );
            let lines: Vec<_> = text.lines().collect();
            assert!((4..=10).contains(&lines.len()), "{text}");
            assert!(lines.iter().all(|line| jobtrace::base::text::width(line) <= width), "{text}");
            assert!(!text.contains('\u{1b}'), "{text}");
            assert!(lines[0].starts_with("jobtrace: "), "{text}");
            let last = lines[lines.len() - 1];
            assert!(last.starts_with("  all of it: jobtrace report "), "{text}");
        }
    }
    let report = Report::of(&Whole::of(vec![slurm(fixtures::serial(), 60)]).unwrap(), true);
    let expected = "\
jobtrace: python ended after 1 h 23 min
  Cores 12 %: 0.99 of 8 cores used on average (12 %), 1.01 at the busiest moment
  Memory 16 %: 2.50 GiB needed at its peak of 16 GiB allowed, 64 GiB asked; wit…
  Time 6 %: 1 h 23 min of the 1 d 0 h asked
  • it needed 2.50 GiB of the 64 GiB of memory asked (4 %), file cache not
    included: --mem=3G
  • 0.99 of 8 cores used: serial, more cores would not make it faster:
    --cpus-per-task=1
  all of it: jobtrace report 4711 --from /shared/records
";
    assert_eq!(short(&report, "4711 --from /shared/records", &USUAL), expected);
    let mut running = slurm(fixtures::cpu_bound(), 10);
    running.facts.set(const { fact("end") }, None);
    running.totals.exit = None;
    let text = short(&Report::of(&Whole::of(vec![running]).unwrap(), true), "4711", &USUAL);
    assert!(text.lines().next().unwrap().contains(" so far, after "), "{text}");
}
