//! What a scheduler tells beside the record.

use jobtrace::{
    model::{
        end_reason::EndReason,
        info::Exit,
        tables::{Fact, Fault, fact},
    },
    record::{Record, head::Head},
    report::{Report, Whole, render},
    scheduler::Told,
    view::Style,
};

use crate::{fixtures, reports::slurm};

const S: u64 = 1_000_000_000;
const GIB: u64 = 1 << 30;
const START: &Fact = fact("start");
const USUAL: Style = Style { width: 80, color: false, unicode: true };

/// A job of Slurm's of which the record knows nothing but what it did.
pub fn bare() -> Record {
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
    let expected =
        "given 8 cores, 64 GiB of memory a node, at most 1 d 0 h; QOS normal; sacct says COMPLETED";
    assert_eq!(report.scheduler_says, [expected]);
    let text = render(&report, &USUAL);
    assert!(text.contains("waited 2 min 10 s in the queue"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["scheduler"]["end_reason"], "itself");
    assert_eq!(json["scheduler"]["cores"], 8);
    assert!(serde_json::to_value(&without).unwrap().get("scheduler").is_none());
}

#[test]
fn the_wait_in_the_queue_is_told_once_whoever_knows_of_it() {
    const SUBMITTED: &Fact = fact("submitted");
    let handed_in = "handed in 2026-11-22 17:00:00 UTC, waited 3 h 0 min in the queue";
    let mut known = bare();
    let start = known.facts.number(START).unwrap();
    known.facts.set(SUBMITTED, start - 3 * 3600 * S);
    let alone = Report::of(&Whole::of(vec![known.clone()]).unwrap(), true);
    let both = report(known, |told| told.submit = Some(start - 3 * 3600 * S));
    let asked = report(bare(), |told| told.submit = Some(start - 3 * 3600 * S));
    for report in [alone, both, asked] {
        let who = serde_json::to_value(&report.who).unwrap();
        assert_eq!(who["queued_ns"], 3 * 3600 * S);
        assert_eq!(who["submitted"], start - 3 * 3600 * S);
        let wide = Style { width: 100, ..USUAL };
        let text = render(&report, &wide);
        assert_eq!(text.matches(handed_in).count(), 1, "{text}");
        assert_eq!(text.matches("in the queue").count(), 1, "{text}");
    }
    // By a clock that is ahead of the node's.
    let ahead = report(bare(), |told| told.submit = Some(start + 5 * S));
    assert_eq!(ahead.who.queued_ns, None);
    let unknown = Report::of(&Whole::of(vec![bare()]).unwrap(), true);
    assert_eq!(unknown.who.queue(), None);
}

/// A clock that is set back while a job runs makes it end before its start.
#[test]
fn an_end_before_the_start_is_told_and_no_time_is_taken_from_it() {
    let known = bare();
    let (mut back, start) = (known.clone(), known.facts.number(START).unwrap());
    back.facts.set(const { fact("end") }, start - 3600 * S);
    let mut late = back.clone();
    late.facts.set(const { fact("counted_from") }, start);
    let right = Report::of(&Whole::of(vec![known]).unwrap(), true);
    for record in [back, late] {
        let report = Report::of(&Whole::of(vec![record]).unwrap(), true);
        let text = render(&report, &Style { width: 100, ..USUAL });
        let times = "UTC by a clock that was set back meanwhile";
        assert!(text.contains(times), "{text}");
        let told = report.unseen.iter().filter(|told| told.contains("its end is before its start"));
        assert_eq!(told.count(), 1, "{:?}", report.unseen);
        let next =
            |report: &Report| report.next.iter().map(|next| next.what.clone()).collect::<Vec<_>>();
        assert_eq!(next(&report), next(&right));
        assert_eq!(report.who.elapsed_ns, right.who.elapsed_ns);
        assert!(!right.unseen.iter().any(|told| told.contains("set back")), "{:?}", right.unseen);
    }
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

/// Of a job that an agent found running, or whose file operations were counted for a while, only a part is known.
#[test]
fn a_part_that_was_counted_is_not_taken_for_how_long_it_ran() {
    let title = |counted_from: Option<u64>, without_agent_s: u64| {
        let mut record = bare();
        let end = record.facts.number(const { fact("end") }).unwrap();
        record.facts.set(START, end - 7200 * S);
        record.facts.set(const { fact("counted_from") }, counted_from.map(|ago| end - ago * S));
        record.totals.elapsed_ns = 60 * S;
        if without_agent_s > 0 {
            record.totals.gaps.add("agent", end - 7140 * S, end - 7140 * S + without_agent_s * S);
        }
        let took_ns = Head::from(&record).took_ns;
        let report = Report::of(&Whole::of(vec![record]).unwrap(), true);
        (render(&report, &USUAL).lines().next().unwrap().to_owned(), took_ns)
    };
    let (all, took_ns) = title(None, 0);
    assert!(all.ends_with(" after 1 min 0 s") && took_ns.is_none(), "{all} {took_ns:?}");
    // It was found running, or the agent was started anew meanwhile.
    for (part, took_ns) in [title(Some(60), 0), title(None, 7140)] {
        assert_eq!(took_ns, Some(7200 * S));
        assert!(part.ends_with(" after 2 h 0 min, of which 1 min 0 s was counted"), "{part}");
    }
}
