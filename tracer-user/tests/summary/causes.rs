//! Causes that other causes used to hide, or to be told in place of.

use jobtrace::{
    model::{
        group::Group,
        tables::{Block, Cpu, SCHED, Sched},
        totals::RunTotals,
    },
    report::{Report, Whole, render},
    view::Style,
};

use crate::{
    fixtures,
    reports::{record, slurm},
    rules::{number, set},
};

const S: u64 = 1_000_000_000;

/// The report of a job of Slurm's that did this a hundred times.
fn report(totals: RunTotals) -> Report {
    Report::of(&Whole::of(vec![slurm(totals, 100)]).unwrap(), true)
}

fn sched(totals: &mut RunTotals) -> &mut Group {
    totals.stats.groups.iter_mut().find(|group| group.is(&SCHED)).unwrap()
}

/// A job that used so many thousandths of 64 cores, asleep else if it is less than one.
fn uses(millicores: u64) -> RunTotals {
    let mut totals = fixtures::serial();
    totals.elapsed_ns = 60 * S;
    totals.peaks.millicores = millicores;
    let asleep =
        fixtures::hist(&[(60_000_000 / 1_000 * 1_000_u64.saturating_sub(millicores), 1_000)]);
    let sched = sched(&mut totals);
    sched.set(Sched::on_cpu_ns, 60 * S / 1_000 * millicores);
    sched.set_hist(Sched::run_queue_wait_ns, fixtures::hist(&[]));
    sched.set_hist(Sched::sleep_ns, asleep);
    for group in &mut totals.stats.groups {
        if group.is(Cpu::cores_held.measurement()) {
            group.set(Cpu::cores_held, 64_000);
        }
    }
    totals
}

#[test]
fn cores_that_nobody_uses_are_told_whatever_the_job_slept() {
    for (millicores, enough) in [
        (0, 1),
        (300, 1),
        (550, 1),
        (640, 1),
        (840, 1),
        (950, 1),
        (1_100, 1),
        (1_190, 2),
        (1_500, 2),
        (2_200, 3),
    ] {
        let report = report(uses(millicores));
        let idle = report.advice.iter().find(|advice| advice.rule == "idle_cores");
        let option = format!("--cpus-per-task={enough}");
        let found = idle.unwrap_or_else(|| panic!("{millicores}: {:?}", report.rules()));
        assert_eq!(found.option.as_ref(), Some(&option), "{millicores}");
        let why = report.next.iter().find(|next| next.what == option).unwrap();
        let filled =
            format!("it filled {} at its busiest moment", jobtrace::base::units::cores(millicores));
        assert_eq!(why.why, filled);
        let saved = found.core_hours.unwrap() / 100.0 * 60.0;
        assert!((saved - (64.0 - enough as f64)).abs() < 0.01, "{millicores}: {saved}");
    }
    let half = report(uses(33_000));
    assert!(!half.rules().contains(&"idle_cores"));
    let never = report(uses(0));
    let asleep = never.advice.iter().find(|advice| advice.rule == "all_asleep").unwrap();
    assert!(asleep.text.starts_with("every task slept all the time"), "{}", asleep.text);
}

#[test]
fn tasks_that_wait_are_not_called_serial() {
    // Four readers, each on a CPU for a quarter of the time.
    let mut readers = fixtures::serial();
    (readers.elapsed_ns, readers.peaks.millicores) = (80 * S, 1_000);
    let of = sched(&mut readers);
    of.set(Sched::on_cpu_ns, 80 * S);
    of.set_hist(Sched::blocked_ns, fixtures::hist(&[(10_000_000, 24_000)]));
    for group in &mut readers.stats.groups {
        if group.is(Cpu::cores_held.measurement()) {
            group.set(Cpu::cores_held, 4_000);
        }
    }
    let told = report(readers.clone());
    let rules: Vec<_> = told.advice.iter().map(|advice| advice.rule).collect();
    let at = |rule| rules.iter().position(|told| *told == rule);
    assert!(at("blocked_on_io").unwrap() < at("idle_cores").unwrap(), "the cause first: {rules:?}");
    let idle = &told.advice[at("idle_cores").unwrap()];
    assert_eq!(
        idle.text,
        "1 of 4 cores used: tasks that could use the rest were blocked or asleep"
    );
    assert_eq!(idle.option.as_deref(), Some("--cpus-per-task=2"), "with room");
    // As many that are asleep, and fewer.
    let asleep = |seconds: u64| {
        let mut job = readers.clone();
        sched(&mut job).set_hist(Sched::blocked_ns, fixtures::hist(&[]));
        sched(&mut job).set_hist(Sched::sleep_ns, fixtures::hist(&[(S, seconds)]));
        let told = report(job);
        told.advice.into_iter().find(|advice| advice.rule == "idle_cores").unwrap().text
    };
    assert!(asleep(180).ends_with(": tasks that could use the rest were blocked or asleep"));
    assert!(asleep(179).ends_with(": serial as it is, so more cores do not make it faster"));
}

#[test]
fn other_work_on_the_node_hides_no_cause() {
    let text = |totals| {
        let report = Report::of(&Whole::of(vec![record(totals)]).unwrap(), true);
        let text = render(&report, &Style { width: 100, color: false, unicode: true });
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = text(fixtures::fsync_beside_others());
    let [busy, sync] = [
        "waited for a CPU 95 % of",
        "blocked in fsync and the like on ext4 (/scratch) 50 % of the time in \
                         which it did not wait for a CPU",
    ]
    .map(|said| told.find(said).unwrap_or_else(|| panic!("{said}: {told}")));
    assert!(busy < sync, "what costs most is first: {told}");
    assert!(!told.contains("start as many threads"), "{told}");
    let alone = text(fixtures::beside_others());
    assert!(
        alone.contains(
            "the 4 cores allowed: other work runs there > run it when the node is less busy"
        ),
        "{alone}"
    );
    // A little waiting in a job that mostly sleeps is no trouble.
    let mut job = record(fixtures::sleeper());
    let waiting = fixtures::hist(&[(S / 100, 1_400)]);
    for group in job.totals.stats.groups.iter_mut().filter(|group| group.is(&SCHED)) {
        group.set_hist(Sched::run_queue_wait_ns, waiting.clone());
    }
    let told = text(job.totals);
    assert!(!told.contains("waited for a CPU"), "14 of 120 s: {told}");
}

#[test]
fn the_largest_cause_has_a_name_however_small() {
    let mut job = record(fixtures::waits::fsync_each());
    // Sixty times as long, asleep: one per cent is blocked, nearly all of it in fsync.
    job.totals.elapsed_ns *= 60;
    let causes = Report::of(&Whole::of(vec![job]).unwrap(), true).causes;
    assert!(
        causes[0].starts_with("blocked 1 %: ") && causes[0].contains("fsync on ext4"),
        "{causes:?}"
    );
}

#[test]
fn large_requests_are_not_to_be_larger() {
    let of = |bytes: u64| {
        let mut job = record(fixtures::large_writes());
        let ops = number(&job, Block::ops);
        set(&mut job, Block::bytes, ops * bytes);
        let report = Report::of(&Whole::of(vec![job]).unwrap(), true);
        let told = |rule| {
            report.advice.iter().find(|advice| advice.rule == rule).map(|advice| advice.advice)
        };
        (told("blocked_on_io"), told("blocked_on_large_io"))
    };
    let ((small, None), (None, large)) = (of(4 << 10), of(512 << 10)) else {
        panic!("one of both each")
    };
    assert!(small.unwrap().contains("larger pieces") && !large.unwrap().contains("larger"));
}
