//! The arithmetic of records: written and read back nothing changes, merging has no order, sums are exact.

use jobtrace::{
    model::{
        gaps::Gap,
        tables::{ALL, CPU, Cpu, MEMORY, Memory},
    },
    record::{document::document, file, merge, parse},
};
use proptest::{collection::vec, prelude::*};
use tracer_ebpf::table::{Kind, Measurement};

use super::*;

fn hist() -> impl Strategy<Value = Hist> {
    vec(0..1u64 << 42, 0..6).prop_map(|values| {
        let mut hist = Hist::default();
        values.into_iter().for_each(|value| hist.record(value));
        hist
    })
}

/// A group of any table, its values absent here and there.
fn group() -> impl Strategy<Value = Group> {
    let numbers = vec(prop::option::of(0..1u64 << 48), 16);
    let hists = vec(prop::option::of(hist()), 16);
    let tags =
        (prop_oneof![Just("sda"), Just("ö \"\\\n")], prop_oneof![Just("read"), Just("write")]);
    (0..ALL.len(), numbers, hists, tags).prop_map(|(table, numbers, hists, (device, op))| {
        let table: &'static Measurement = ALL[table];
        let tags = [device, op].into_iter().cycle().take(table.tags.len()).map(str::to_owned);
        let mut group = Group::unknown(table, tags.collect());
        for (at, (field, value)) in table.fields.iter().zip(&mut group.values).enumerate() {
            *value = match field.kind {
                Kind::Histogram => hists[at % 16].clone().map(Value::Histogram),
                _ => numbers[at % 16].map(Value::Number),
            };
        }
        group
    })
}

/// A record of one of 40 nodes, or of one of the parts of a node's job.
fn record() -> impl Strategy<Value = Record> {
    let intervals = vec((0..400 * SECOND, vec(group(), 0..4)), 0..6);
    let end = prop::option::of(0..1u64 << 40);
    let files = vec((0..6u8, 0..1u64 << 40), 0..4);
    let all = (0..40u32, 0..4u64, intervals, end, files);
    all.prop_map(|(node, part, intervals, end, files)| {
        let mut record = begun(&format!("n{node}"), 1_000 * SECOND * (part + 1) + 13);
        for (span_ns, groups) in intervals {
            let is_own = |group: &Group| group.is(&tables::SELF) || group.is(&tables::NODE_NET);
            let (own, groups): (Vec<_>, Vec<_>) = groups.into_iter().partition(is_own);
            record.add(span_ns, &groups, &own);
        }
        record.facts.set(const { fact("end") }, end);
        let lost = |end: u64| Gap {
            what: ["slot", "net"][end as usize % 2].into(),
            for_ns: end,
            from: 3,
            until: end,
        };
        record.totals.gaps = end.map(lost).into_iter().collect();
        for (path, ops) in files {
            let file = vec![used(&format!("/ö\u{1b}{path}"), ops)];
            let more = Files {
                lost: LostFiles { ops, files: ops / 2 },
                slowest: vec![slow("/ö\u{1b}", ops)],
                threads: threads(path.into(), ops),
                latency: latency(ops % 1_000, ops),
                ..Files::largest(file.clone(), file)
            };
            record.totals.files.merge(&more);
        }
        // Of some nodes nobody knows it, and on a few jobs wanted silence.
        record.totals.software = end.map(|end| match end % 17 {
            0 => Software::opted_out(Level::Names),
            _ => software(["bash", "python", "gmx"][end as usize % 3], end),
        });
        record.totals.exit = end.map(|end| Exit { code: Some((end % 3) as i32), signal: None });
        record
    })
}

fn known(groups: &[Group]) -> Vec<Group> {
    let is_known = |group: &&Group| group.values.iter().any(Option::is_some);
    let mut known: Vec<_> = groups.iter().filter(is_known).cloned().collect();
    let order = |group: &Group| ALL.iter().position(|table| group.is(table));
    known.sort_by_key(order);
    known
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 16, ..Default::default() })]

    #[test]
    fn what_is_written_is_read(record in record()) {
        let again = file::decode(&file::encode(&record).unwrap()).unwrap();
        // A series of which nothing is known is not written, and series stand in the tables' order.
        let mut expected = record;
        expected.totals.stats.groups = known(&expected.totals.stats.groups);
        expected.totals.own = known(&expected.totals.own);
        prop_assert_eq!(again, expected);
    }

    #[test]
    fn what_a_later_program_adds_is_no_damage(record in record()) {
        let text = document(&record).unwrap();
        let more = text.replacen("{\"schema\":1,", "{\"schema\":1,\"new\":{\"x\":[null]},", 1);
        let more = more.replace("\"timeline\":{", "\"timeline\":{\"new_ns\":[1],");
        let more = more.replace("\"job\":{", "\"job\":{\"new\":3,");
        prop_assert_eq!(parse(more.as_bytes()).unwrap(), parse(text.as_bytes()).unwrap());
    }

    #[test]
    fn sixty_four_records_are_one_in_any_order(
        (records, shuffled) in vec(record(), 64).prop_flat_map(|records| {
            (Just(records.clone()), Just(records).prop_shuffle())
        }),
    ) {
        // Written and read on the way, as a report gets them.
        let read = |record: &Record| file::decode(&file::encode(record).unwrap()).unwrap();
        let one = merge(records.iter().map(read).collect()).unwrap();
        let other = merge(shuffled.iter().map(read).collect()).unwrap();
        prop_assert_eq!(&one, &other);
        // One that is there twice counts once.
        let twice = records.iter().chain(&shuffled).map(read).collect();
        prop_assert_eq!(merge(twice).unwrap(), one);
    }

    #[test]
    fn counters_of_different_nodes_add_up(records in vec(record(), 1..12)) {
        let mut records = records;
        for (node, record) in records.iter_mut().enumerate() {
            record.hosts = vec![format!("m{node}")];
        }
        let on_cpu = |record: &Record| {
            record.totals.stats.groups(&SCHED).filter_map(|group| group.number(Sched::on_cpu_ns)).sum::<u64>()
        };
        let sum: u64 = records.iter().map(on_cpu).sum();
        let hosts = records.len();
        let longest = records.iter().map(|record| record.totals.elapsed_ns).max();
        let ended = records.iter().all(|record| number(record, const { fact("end") }).is_some());
        let one = merge(records).unwrap();
        prop_assert_eq!(on_cpu(&one), sum);
        prop_assert_eq!(one.timeline.columns().filter_map(|column| column[0]).sum::<u64>(), sum);
        prop_assert_eq!(one.hosts.len(), hosts);
        prop_assert_eq!(Some(one.totals.elapsed_ns), longest);
        prop_assert_eq!(number(&one, const { fact("end") }).is_some(), ended);
    }
}

#[test]
fn a_later_part_on_the_same_node_follows_the_earlier_one() {
    let part = |begin_s: u64, memory: u64, end: Option<u64>| {
        let mut record = begun("n1", begin_s * SECOND);
        let mut sched = Group::unknown(&SCHED, vec![]);
        sched.set(Sched::on_cpu_ns, SECOND);
        let mut held = Group::unknown(&tables::MEMORY, vec![]);
        held.set(Memory::current_bytes, memory);
        record.add(2 * SECOND, &[sched, held], &[]);
        record.facts.set(const { fact("end") }, end);
        record
    };
    let whole = merge(vec![part(100, 7, None), part(50, 9, Some(60 * SECOND))]).unwrap();
    let group = |table| whole.totals.stats.group(table).unwrap();
    assert_eq!(group(&SCHED).number(Sched::on_cpu_ns), Some(2 * SECOND));
    assert_eq!(group(&tables::MEMORY).number(Memory::current_bytes), Some(7), "the later state");
    assert_eq!(whole.totals.elapsed_ns, 4 * SECOND);
    assert_eq!(number(&whole, const { fact("counted_from") }), Some(50 * SECOND));
    assert_eq!(number(&whole, const { fact("end") }), None, "it goes on");
    assert_eq!(merge(Vec::new()), None);
}

#[test]
fn of_two_parts_the_later_one_tells_how_it_ended() {
    const REASON: &Fact = fact("end_reason");
    const ACCOUNT: &Fact = fact("account");
    let part = |begin_s: u64, account: &str, counted_from: Option<u64>| {
        let mut record = begun("n1", begin_s * SECOND);
        record.add(2 * SECOND, &[], &[]);
        record.facts.set_text(ACCOUNT, account);
        record.facts.set(const { fact("counted_from") }, counted_from);
        record
    };
    let (first, mut last) = (part(50, "old", None), part(100, "new", Some(100 * SECOND)));
    let running = merge(vec![last.clone(), first.clone()]).unwrap();
    assert_eq!(running.facts.text(ACCOUNT), "new");
    assert_eq!(
        number(&running, const { fact("counted_from") }),
        None,
        "the first began with the job"
    );
    let gap = running.totals.gaps.iter().next().cloned().unwrap();
    let expected = ("agent", 48 * SECOND, 52 * SECOND, 100 * SECOND);
    assert_eq!((gap.what.as_str(), gap.for_ns, gap.from, gap.until), expected);
    last.facts.set(const { fact("end") }, 102 * SECOND);
    last.facts.set_text(REASON, "time_limit");
    let ended = merge(vec![first.clone(), last.clone()]).unwrap();
    assert_eq!(ended.facts.text(REASON), "time_limit");
    // A part that ended once more: its reason is not the whole's.
    let mut more = part(200, "new", None);
    more.totals.exit = Some(Exit { code: Some(0), signal: None });
    last.totals.exit = Some(Exit { code: Some(9), signal: None });
    let whole = merge(vec![more, last, first]).unwrap();
    assert_eq!((whole.facts.text(REASON), whole.totals.exit.unwrap().code), ("", Some(0)));
}

#[test]
fn steps_that_began_together_are_two() {
    let step = |step: &str| {
        let mut record = begun("n1", 100 * SECOND);
        record.totals.stats.job.step = step.into();
        let mut sched = Group::unknown(&SCHED, vec![]);
        sched.set(Sched::on_cpu_ns, SECOND);
        record.add(2 * SECOND, &[sched], &[]);
        record
    };
    let whole = merge(vec![step("0"), step("1"), step("0")]).unwrap();
    let on_cpu = whole.totals.stats.group(&SCHED).unwrap().number(Sched::on_cpu_ns);
    assert_eq!((on_cpu, whole.totals.elapsed_ns), (Some(2 * SECOND), 2 * SECOND));
    assert_eq!((whole.hosts.len(), whole.job().step.as_str()), (1, ""));
}

#[test]
fn steps_share_what_their_job_may_use_on_a_node() {
    let step = |host: &str, step: &str| {
        let mut record = begun(host, 100 * SECOND);
        record.totals.stats.job.step = step.into();
        let mut groups = [&SCHED, &CPU, &MEMORY].map(|table| Group::unknown(table, vec![]));
        groups[0].set(Sched::on_cpu_ns, 3 * SECOND);
        groups[1].set(Cpu::cores_held, 4_000);
        groups[2].set(Memory::limit_bytes, 8 << 30);
        record.add(2 * SECOND, &groups, &[]);
        record
    };
    let allowed = |records: Vec<Record>| {
        let totals = merge(records).unwrap().totals;
        let number = |table, of| totals.stats.group(table).unwrap().number(of).unwrap();
        let cores = number(&CPU, Cpu::cores_held);
        (cores, number(&MEMORY, Memory::limit_bytes) >> 30, totals.peaks.millicores)
    };
    let one = vec![step("n1", ""), step("n1", "0"), step("n1", "1"), step("n1", "2")];
    assert_eq!(allowed(one.clone()), (4_000, 8, 4_000));
    let two = one.iter().cloned().chain([step("n2", ""), step("n2", "0")]).rev();
    // Cores allowed are those of one node.
    assert_eq!(allowed(two.collect()), (4_000, 16, 7_000));
}

#[test]
fn of_steps_that_follow_each_other_the_busiest_moment_is_that_of_one() {
    let part = |step: &str, begin_s: u64, span_s: u64, cores: u64| {
        let mut record = begun("n1", begin_s * SECOND);
        record.totals.stats.job.step = step.into();
        let mut sched = Group::unknown(&SCHED, vec![]);
        sched.set(Sched::on_cpu_ns, cores * span_s * SECOND);
        let mut cpu = Group::unknown(&CPU, vec![]);
        cpu.set(Cpu::cores_held, 8_000);
        record.add(span_s * SECOND, &[sched, cpu], &[]);
        record
    };
    let busiest = |records: Vec<Record>| merge(records).unwrap().totals.peaks;
    // The job itself does nothing, all the time.
    let (job, first, second) = (part("", 100, 30, 0), part("0", 100, 10, 2), part("1", 110, 15, 3));
    let peaks = busiest(vec![job.clone(), first.clone(), second.clone()]);
    assert_eq!(peaks.millicores, 3_000);
    assert_eq!(busiest(vec![second.clone(), job.clone(), first.clone()]), peaks);
    let beside = part("2", 105, 10, 2);
    assert_eq!(busiest(vec![job, first, second, beside]).millicores, 5_000);
}

#[test]
fn a_busiest_moment_is_one_of_the_course_though_steps_or_nodes_were_there_at_once() {
    // Seconds at work and idle, in this order, in readings of a second.
    let part = |host: &str, step: &str, course: &[(u64, u64)]| {
        let mut record = begun(host, 100 * SECOND);
        record.totals.stats.job.step = step.into();
        for (seconds, cores) in course {
            for _ in 0..*seconds {
                let mut groups = [&SCHED, &CPU, &tables::BLOCK].map(|table| {
                    let tags = table.tags.iter().map(|_| "write".to_owned()).collect();
                    Group::unknown(table, tags)
                });
                groups[0].set(Sched::on_cpu_ns, cores * SECOND);
                groups[1].set(Cpu::cores_held, 4_000);
                groups[2].set(tables::Block::bytes, cores << 20);
                record.add(SECOND, &groups, &[]);
            }
        }
        record
    };
    let busiest = |records: Vec<Record>| {
        let peaks = merge(records).unwrap().totals.peaks;
        // Columns are rounded.
        (peaks.millicores, (peaks.disk_bytes_per_s + (1 << 19)) >> 20)
    };
    for (other_host, other_step) in [("n1", "1"), ("n2", "0")] {
        let first = part("n1", "0", &[(4, 1), (6, 0)]);
        let after = part(other_host, other_step, &[(6, 0), (4, 1)]);
        assert_eq!(busiest(vec![first.clone(), after]), (1_000, 1), "{other_host}");
        let beside = part(other_host, other_step, &[(3, 0), (7, 2)]);
        assert_eq!(busiest(vec![first, beside]), (3_000, 3), "{other_host}");
    }
}

#[test]
fn an_exit_of_which_a_later_program_knows_more_is_read() {
    let mut record = begun("n1", SECOND);
    record.totals.exit = Some(Exit { code: Some(3), signal: None });
    let text = document(&record).unwrap();
    let more = text.replacen("\"exit\":{", "\"exit\":{\"core_dumped\":true,", 1);
    assert_ne!(text, more);
    assert_eq!(parse(more.as_bytes()).unwrap().totals.exit, record.totals.exit);
}
