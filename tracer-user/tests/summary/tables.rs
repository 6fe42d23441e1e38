//! Steps and tasks by name, devices, faults and memory, as the report tells of them.

use jobtrace::{
    model::{
        group::Group,
        hist::Hist,
        parts::Part,
        tables::{BLOCK, MEMORY, Memory, WAIT, Wait, fact},
    },
    record::Record,
    report::{Report, Whole, render},
    view::Style,
};

use crate::{
    fixtures,
    reports::{record, slurm, uneven},
};

const S: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
const USUAL: Style = Style { width: 80, color: false, unicode: true };

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
fn of_equal_tasks_the_first_is_named_and_stands_in_the_table_or_none() {
    let mut record = slurm(fixtures::serial(), 60);
    with_tasks(&mut record, 3);
    // Two steps that are alike.
    let of_step = record.totals.parts.listed.iter().filter(|part| part.step == "0");
    let other: Vec<_> = of_step.map(|part| Part { step: "1".into(), ..part.clone() }).collect();
    record.totals.parts.listed.extend(other);
    let report = Report::of(&Whole::of(vec![record.clone()]).unwrap(), true);
    let balance = report.parts_balance.as_deref().unwrap();
    assert!(balance.ends_with("; most: task 3 of step 0"), "{balance}");
    let text = render(&report, &USUAL);
    assert!(text.contains("\n  task 3 of step 0"), "{text}");
    // None of eight that are equal did most.
    with_tasks(&mut record, 8);
    let report = Report::of(&Whole::of(vec![record]).unwrap(), true);
    let balance = report.parts_balance.as_deref().unwrap();
    assert!(balance.starts_with("balance 100 %") && !balance.contains("most:"), "{balance}");
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

/// A node that was given back early, or came late, did not compute unevenly.
#[test]
fn a_node_that_was_there_for_half_the_time_is_not_compared() {
    let balance = |nodes: Vec<Record>| Report::of(&Whole::of(nodes).unwrap(), true).balance;
    let mut nodes = uneven(3);
    assert!(balance(nodes.clone()).unwrap().contains("mean of the 3 nodes'"));
    nodes[2].totals.elapsed_ns /= 2;
    assert!(balance(nodes.clone()).unwrap().contains("mean of the 2 nodes'"));
    nodes[1].totals.elapsed_ns /= 2;
    assert_eq!(balance(nodes), None);
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

/// A node of many file systems does not hide its disks, and what has no row is counted.
#[test]
fn devices_without_a_row_are_counted() {
    let of = |disks: usize, mounts: usize| {
        let mut job = slurm(fixtures::io_bound(), 20);
        let groups = &mut job.totals.stats.groups;
        let disk = groups.iter().find(|group| group.is(&BLOCK)).unwrap().clone();
        groups.retain(|group| !group.is(&BLOCK) && !group.is(&WAIT));
        groups.extend((0..disks).map(|at| {
            let mut disk = disk.clone();
            disk.tags = vec![format!("nvme{at}n1"), "read".into()];
            disk
        }));
        groups.extend((0..mounts).map(|at| {
            let mount = format!("/mnt/projects/some/quite/long/mount/point/number-{at:02}");
            let mut wait = Group::unknown(&WAIT, vec!["read".into(), "gpfs".into(), mount]);
            let mut took = Hist::default();
            (0..9_000).for_each(|_| took.record(900_000_000));
            wait.set_hist(Wait::blocked_ns, took);
            wait
        }));
        Report::of(&Whole::of(vec![job]).unwrap(), true)
    };
    let is_disk = |device: &&jobtrace::report::Device| device.name.starts_with("nvme");
    for (disks, mounts, shown, more) in
        [(10, 40, 6, 38), (10, 2, 10, 0), (10, 4, 8, 2), (2, 40, 2, 30)]
    {
        let report = of(disks, mounts);
        assert_eq!(report.devices.iter().filter(is_disk).count(), shown, "{disks} {mounts}");
        assert_eq!(report.more_devices, more, "{disks} {mounts}");
        let text = render(&report, &USUAL);
        let told = format!("  … {more} more, which took less time\n");
        assert_eq!(text.contains(&told), more > 0, "{text}");
    }
    let text = render(&of(1, 3), &USUAL);
    for number in ["number-00)", "number-01)", "number-02)"] {
        assert_eq!(text.matches(number).count(), 1, "{text}");
    }
}

/// The kernel holds a job to its limit: where that is not what was asked for, both are told.
#[test]
fn memory_is_a_share_of_the_limit_that_holds() {
    let of = |asked: Option<u64>, limit: Option<u64>| {
        let mut job = slurm(fixtures::cpu_bound(), 60);
        job.facts.set(const { fact("memory_per_node_bytes") }, asked.map(|gib| gib * GIB));
        for group in job.totals.stats.groups.iter_mut().filter(|group| group.is(&MEMORY)) {
            group.set(Memory::used_peak_bytes, 12 * GIB);
            group.set(Memory::peak_bytes, Some(13 * GIB).filter(|_| limit == Some(8)));
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
    let lowered = "12 GiB needed at its peak; 8 GiB allowed at the end: its limit was lowered; 7 GiB on average; with file cache 13 GiB";
    assert_eq!(of(Some(16), Some(8)), (lowered.to_owned(), None));
}
