//! What an agent keeps of a job until its last line and record: late values, times, and the way through a restart.

use jobtrace::{
    commands::agent::{
        details::{Details, Reach},
        records::Unsaved,
        state::Counted,
    },
    model::{job::Losses, point::FieldValue, tables::Block},
    resolve::{Resolver, facts::JobFacts},
};

use super::*;

pub const BEGIN: u64 = 1_000 * SECOND;
pub const EVERY: u64 = 900 * SECOND;

pub fn origin() -> Origin {
    Origin { cluster: "c1".into(), host: "n1".into() }
}

/// A job that began half a second before the end of its first interval.
pub fn details() -> Details {
    let answer = Resolver::new(&[]).unwrap().path("/slurm/uid_1000/job_4711");
    let mut details = Details::new(&answer, BEGIN + SECOND / 2, 0);
    let name = Some("md".to_owned());
    details.learn(&JobFacts { name, account: Some("physics".into()), ..JobFacts::default() });
    details
}

pub fn written(bytes: u64) -> Vec<Group> {
    let mut sched = Group::unknown(&SCHED, vec![]);
    sched.set(Sched::on_cpu_ns, bytes * 3);
    let mut block = Group::unknown(&BLOCK, vec!["sda".into(), "write".into()]);
    block.set(Block::bytes, bytes);
    vec![sched, block]
}

/// What is handed over now, if something is due.
pub fn due_record(details: &mut Details) -> Option<Unsaved> {
    let reach = details.due_record(EVERY, || 0)?;
    details.hand_over(&origin(), &job(), reach)
}

pub fn bytes(record: &Record) -> Option<u64> {
    record.totals.stats.groups(&BLOCK).next().and_then(|group| group.number(Block::bytes))
}

#[test]
fn what_comes_after_the_end_is_in_the_last_line_and_record() {
    let mut details = details();
    let told = |details: &mut Details, stamp_s: u64, has_settled: bool| {
        let point = details.due_info(&origin(), &job(), stamp_s * SECOND, has_settled)?;
        let of =
            |name: &str| point.fields.iter().find(|(key, _)| key == name).map(|(_, v)| v.clone());
        Some((point.time_ns / SECOND, of("end").is_some(), of("block_write_bytes")))
    };
    let due = |details: &mut Details| {
        due_record(details).map(|unsaved| {
            let record = unsaved.record.clone();
            unsaved.saved();
            record
        })
    };
    details.add(&mut written(400), &Losses::default(), BEGIN + SECOND);
    assert_eq!(told(&mut details, 1001, false), Some((1001, false, None)));
    assert!(due(&mut details).is_none());
    details.set_ended(BEGIN + 5 * SECOND);
    details.add(&mut written(600), &Losses::default(), BEGIN + 11 * SECOND);
    let total = |bytes| Some(FieldValue::Integer(bytes));
    assert_eq!(told(&mut details, 1011, false), Some((1011, true, total(1000))));
    let at_end = due(&mut details).unwrap();
    assert_eq!(bytes(&at_end), Some(1000));
    assert_eq!(number(&at_end, const { fact("end") }), Some(BEGIN + 5 * SECOND));
    // Write-back, two minutes later.
    details.add(&mut written(5000), &Losses::default(), BEGIN + 101 * SECOND);
    assert_eq!(told(&mut details, 1101, false), None, "more may come");
    assert!(due(&mut details).is_none());
    details.add(&mut written(0), &Losses::default(), BEGIN + 131 * SECOND);
    assert_eq!(
        told(&mut details, 1131, true),
        Some((1011, true, total(6000))),
        "by the same stamp"
    );
    let last = due(&mut details).unwrap();
    assert_eq!(bytes(&last), Some(6000), "the sum of its lines");
    assert!(details.is_done(true));
    assert_eq!(told(&mut details, 1141, true), None);
    assert!(due(&mut details).is_none(), "its last record is saved once");
    // Its time is that from its begin to its end, whenever its values came.
    for record in [&at_end, &last] {
        assert_eq!(record.totals.elapsed_ns, 4 * SECOND + SECOND / 2);
        let timeline = &record.timeline;
        assert_eq!(
            (timeline.begin_ns(), timeline.end_ns()),
            (BEGIN + SECOND / 2, BEGIN + 5 * SECOND)
        );
    }
    let sum: u64 = last.timeline.columns().filter_map(|column| column[5]).sum();
    assert_eq!(sum, 6000, "late or not, the columns are the total");
    assert_eq!(jobtrace::record::name::place(&at_end), jobtrace::record::name::place(&last));
}

#[test]
fn an_end_after_which_nothing_came_is_told_once() {
    let mut details = details();
    details.add(&mut written(7), &Losses::default(), BEGIN + SECOND);
    details.set_ended(BEGIN + SECOND);
    let mut due = |stamp_s: u64, has_settled| {
        let info = details.due_info(&origin(), &job(), stamp_s * SECOND, has_settled).is_some();
        let record = due_record(&mut details).map(Unsaved::saved).is_some();
        (info, record, details.is_done(true))
    };
    assert_eq!(due(1001, false), (true, true, false));
    assert_eq!(due(1011, false), (false, false, false));
    assert_eq!(due(1131, true), (false, false, true));
}

#[test]
fn a_running_job_has_a_record_every_quarter_of_an_hour() {
    let mut details = details();
    let mut made = Vec::new();
    for tick in 1..=200u64 {
        let stamp_ns = BEGIN + tick * 10 * SECOND;
        details.add(&mut written(1), &Losses::default(), stamp_ns);
        if let Some(unsaved) = due_record(&mut details) {
            let record = &unsaved.record;
            assert_eq!(number(record, const { fact("end") }), None);
            assert_eq!(record.timeline.end_ns(), stamp_ns, "last seen");
            made.push((tick, bytes(record)));
            unsaved.saved();
        }
    }
    assert_eq!(made, [(91, Some(91)), (181, Some(181))]);
}

#[test]
fn what_is_not_saved_stays_due() {
    let mut details = details();
    details.add(&mut written(7), &Losses::default(), BEGIN + SECOND);
    let due = |details: &mut Details, s: u64| {
        details.add(&mut written(0), &Losses::default(), BEGIN + s * SECOND);
        due_record(details)
    };
    assert!(due(&mut details, 1).is_none());
    // While it runs.
    let running = due(&mut details, 901).unwrap();
    assert!(due(&mut details, 911).is_none(), "one is on its way");
    drop(running);
    due(&mut details, 921).unwrap().saved();
    assert!(due(&mut details, 931).is_none());
    details.set_ended(BEGIN + 940 * SECOND);
    assert_eq!(details.due_record(EVERY, || 0), Some(Reach::End));
    assert!(details.hand_over(&origin(), &job(), Reach::Running).is_none(), "it has ended");
    let ended = due(&mut details, 941).unwrap();
    details.due_info(&origin(), &job(), BEGIN + 1061 * SECOND, false);
    details.due_info(&origin(), &job(), BEGIN + 1061 * SECOND, true);
    assert!(!details.is_done(true) && details.is_done(false) && !details.counted().end_saved);
    // The disk refuses, again and again.
    drop(ended);
    for s in 950..960 {
        assert!(!details.is_done(true) && due(&mut details, s).is_some());
    }
    due(&mut details, 960).unwrap().saved();
    assert!(details.counted().end_saved && details.is_done(true));
    assert!(due(&mut details, 970).is_none());
    // It has a cgroup again: what was saved tells of a part.
    details.set_returned(BEGIN + 971 * SECOND, false);
    assert!(!details.counted().end_saved);
    details.set_ended(BEGIN + 980 * SECOND);
    assert!(due(&mut details, 981).is_some());
    details.give_up();
    assert!(due(&mut details, 991).is_none(), "more had ended than may wait");
}

#[test]
fn facts_and_values_survive_a_restart_that_takes_over() {
    let mut details = details();
    details.set_counted_from(BEGIN + SECOND);
    let mut own = Group::unknown(&tables::SELF, vec![]);
    own.set(tables::Own::dropped_slot, 3);
    let lost = Losses { own: vec![own], shed: vec!["block"] };
    for tick in 1..400u64 {
        let end_ns = BEGIN + tick * 10 * SECOND;
        details.add(&mut written(tick), &lost, end_ns);
    }
    let before = details.record(&origin(), &job());
    let text = serde_json::to_string(&details.counted()).unwrap();
    let counted: Counted = serde_json::from_str(&text).unwrap();
    assert_eq!(counted, details.counted());
    let info = details.info.clone();
    let resumed = Details::resumed(info, details.uid, details.end(), counted);
    assert_eq!(resumed.record(&origin(), &job()), before);
    assert_eq!(before.facts.text(const { fact("account") }), "physics");
    assert_eq!(before.facts.text(const { fact("name") }), "md");
    assert_eq!(number(&before, const { fact("counted_from") }), Some(BEGIN + SECOND));
    for damage in ["", "A", "AA=="] {
        let damaged = text.replacen("\"rows\":\"", &format!("\"rows\":\"{damage}!"), 1);
        assert_ne!(damaged, text);
        assert!(serde_json::from_str::<Counted>(&damaged).is_err());
    }
}

#[test]
fn held_cores_and_the_reason_of_the_end_are_told() {
    let mut details = details();
    let limit_s = (BEGIN + 20 * SECOND) / SECOND;
    details.learn(&JobFacts { end_s: Some(limit_s), cores: Some(4), ..JobFacts::default() });
    let cpu = || {
        let mut cpu = Group::unknown(&tables::CPU, vec![]);
        cpu.set(tables::Cpu::cores_held, 4000);
        cpu
    };
    let mut first = [written(1), vec![cpu()]].concat();
    details.add(&mut first, &Losses::default(), BEGIN + 10 * SECOND);
    let held = |groups: &[Group]| {
        groups
            .iter()
            .find_map(|group| group.is(&tables::CPU).then(|| group.number(tables::Cpu::held_ns))?)
    };
    assert_eq!(held(&first), Some(38 * SECOND), "nine and a half seconds, in the line too");
    details.set_ended(BEGIN + 20 * SECOND + 1);
    let mut last = written(1);
    details.add(&mut last, &Losses::default(), BEGIN + 30 * SECOND);
    assert_eq!(held(&last), Some(40 * SECOND + 4), "its cgroup had gone");
    let mut late = written(1);
    details.add(&mut late, &Losses::default(), BEGIN + 40 * SECOND);
    assert_eq!(held(&late), None);
    let record = details.record(&origin(), &job());
    assert_eq!(held(&record.totals.stats.groups), Some(78 * SECOND + 4));
    assert_eq!(record.facts.text(const { fact("end_reason") }), "time_limit");
    assert_eq!(number(&record, const { fact("core_count") }), Some(4));
}
