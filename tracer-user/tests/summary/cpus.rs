//! Why a job waited for a CPU, and whether it left cores idle, where the rules' own cases are not enough.

use jobtrace::{
    model::tables::{CPU, Cpu, SCHED, Sched, fact},
    record::Record,
    report::{self, Report, Whole},
    view::{Style, render},
};

use crate::{
    fixtures::{self, hist, waits},
    reports::{record, slurm},
    rules::set,
};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// The sentences of the report, each with its rule.
fn told(records: Vec<Record>) -> Vec<(&'static str, String)> {
    let report = Report::of(&Whole::of(records).unwrap(), true);
    report.advice.iter().map(|advice| (advice.rule, advice.text.clone())).collect()
}

fn of(rule: &str, records: Vec<Record>) -> Option<String> {
    told(records).into_iter().find(|(told, _)| *told == rule).map(|(_, text)| text)
}

/// A minute on a node: its time on CPU and its waiting, the CPUs that it ran on and its time on the busiest of them.
fn node(host: &str, held: u64, seconds: [u64; 2], cpus_used: u64, busiest_s: u64) -> Record {
    let mut totals = fixtures::pinned();
    let [on_cpu_s, waiting_s] = seconds;
    for group in &mut totals.stats.groups {
        if group.is(&SCHED) {
            group.set(Sched::on_cpu_ns, on_cpu_s * S);
            group.set(Sched::cpus_used, cpus_used);
            group.set(Sched::busiest_cpu_ns, busiest_s * S);
            group.set_hist(Sched::run_queue_wait_ns, hist(&[(waiting_s * 10 * MS, 100)]));
        }
        if group.is(&CPU) {
            group.set(Cpu::cores_held, held * 1_000);
        }
    }
    let mut node = record(totals);
    node.hosts = vec![host.into()];
    node
}

#[test]
fn nodes_that_are_busy_evenly_are_not_bound() {
    // Four tasks on four cores of each, with a little of others' work: all CPUs are equally busy.
    let even = |host| node(host, 4, [225, 60], 4, 57);
    assert_eq!(of("bound_to_few", vec![even("n1"), even("n2")]), None);
    // One CPU of four on each.
    let bound = |host| node(host, 4, [59, 177], 1, 59);
    let text = of("bound_to_few", vec![bound("n1"), bound("n2")]).unwrap();
    assert!(text.ends_with("its tasks shared 2 of the 8 cores allowed"), "{text}");
}

#[test]
fn tasks_that_never_leave_one_cpu_are_bound_to_it() {
    // It could have used 1.33 cores, and then 1.18.
    let alone = |waiting_s| vec![node("n1", 2, [60, waiting_s], 1, 60)];
    let text = of("bound_to_few", alone(20)).unwrap();
    assert!(text.ends_with("its tasks shared 1 of the 2 cores allowed"), "{text}");
    assert_eq!(of("node_busy", alone(20)), None);
    assert_eq!(of("bound_to_few", alone(11)), None);
    assert_eq!(of("bound_to_few", vec![node("n1", 2, [60, 20], 2, 50)]), None);
}

#[test]
fn tasks_on_one_cpu_are_bound_to_it_though_few_readings_do_not_tell_when() {
    let short = |held, waiting_s| {
        let mut node = node("n1", held, [60, waiting_s], 1, 60);
        node.totals.intervals = 2;
        vec![node]
    };
    let text = of("bound_to_few", short(2, 60)).unwrap();
    assert!(text.ends_with("its tasks shared 1 of the 2 cores allowed"), "{text}");
    assert_eq!(of("waited_for_cpu", short(2, 60)), None);
    assert_eq!(of("bound_to_few", short(2, 5)), None);
    assert_eq!(of("bound_to_few", short(1, 60)), None, "one is all that it has");
}

#[test]
fn a_quota_that_was_changed_is_named_without_its_size() {
    let quota = |held_ns: u64| {
        let mut node = node("n1", 2, [60, 60], 2, 30);
        for group in node.totals.stats.groups.iter_mut().filter(|group| group.is(&CPU)) {
            group.set(Cpu::throttled_ns, 59 * S);
            group.set(Cpu::held_ns, held_ns);
        }
        let text =
            of("cpu_quota", vec![node.clone()]).unwrap_or_else(|| panic!("{:?}", told(vec![node])));
        text.split_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(quota(120 * S), "its CPU quota of 2 cores held it back for 59.0 s");
    assert_eq!(quota(80 * S), "its CPU quota held it back for 59.0 s");
}

#[test]
fn of_two_causes_each_tells_its_own_part_of_the_wait() {
    // Of 120 s on two cores it had 90: 30 were missed, and 60 are those of a third task.
    let both = || vec![node("n1", 2, [90, 90], 2, 46)];
    let waited = |rule| of(rule, both()).unwrap();
    let (busy, crowded) = (waited("node_busy"), waited("waited_for_cpu"));
    assert!(busy.starts_with("waited for a CPU 17 % of the time it could have run"), "{busy}");
    assert!(crowded.starts_with("waited for a CPU 33 % of the time it could"), "{crowded}");
}

/// A moment's crowd and idle cores after it are one number where nobody looked between.
#[test]
fn of_two_readings_nobody_tells_why_several_tasks_waited() {
    let told = |intervals, forks| {
        let mut job = node("n1", 2, [90, 90], 2, 46);
        job.totals.intervals = intervals;
        set(&mut job, Sched::forks, forks);
        [of("node_busy", vec![job.clone()]), of("waited_for_cpu", vec![job])]
    };
    let [busy, crowded] = told(2, 8);
    assert_eq!(busy, None);
    let text = crowded.unwrap();
    assert!(text.ends_with(": more runnable tasks than cores, or other work beside it"), "{text}");
    assert!(told(3, 8).iter().all(Option::is_some), "three tell");
    assert!(told(2, 0)[0].is_some(), "a task alone has no other to wait for");
}

/// Nobody knows how many tasks there were, or what cores it may use, but it computed and waited like one.
#[test]
fn what_waits_as_one_task_would_does_so_for_others() {
    let told = |on_cpu_s, waiting_s, forks, held| {
        let mut job = node("n1", 2, [on_cpu_s, waiting_s], 2, on_cpu_s);
        job.totals.intervals = if held { 2 } else { 60 };
        set(&mut job, Sched::forks, forks);
        job.totals.stats.groups.retain(|group| held || !group.is(&CPU));
        [of("node_busy", vec![job.clone()]), of("waited_for_cpu", vec![job])]
    };
    for held in [true, false] {
        let [busy, crowded] = told(25, 35, 8, held);
        let said = "waited for a CPU 58 % of the time it could have run, as one task alone: usually other work runs there";
        assert_eq!((busy.as_deref(), crowded), (Some(said), None));
        // A crowd for a moment, and several all the time.
        assert!(told(15, 30, 8, held)[0].is_none() && told(15, 30, 8, held)[1].is_some());
        assert!(told(60, 60, 8, held)[0].is_none() && told(60, 60, 8, held)[1].is_some());
    }
}

/// The agent had detached the probes that count it.
#[test]
fn shares_are_those_of_the_time_that_was_counted() {
    let shed = |seconds: u64| {
        let mut job = node("n1", 2, [30, 0], 1, 30);
        let begin_ns = job.timeline.begin_ns();
        job.totals.gaps.add("sched", begin_ns, begin_ns + seconds * S);
        job.totals.gaps.add("block", begin_ns, begin_ns + S);
        let report = Report::of(&Whole::of(vec![job]).unwrap(), true);
        (report::render(&report, &Style { width: 100, color: false, unicode: true }), report)
    };
    let (text, report) = shed(30);
    for said in [
        "100 % = the 30.0 s counted",
        "1 of 2 cores used on average",
        "for 30.0 s time on CPU, waits and sleep were not counted",
        "for 1.00 s `block` was not counted",
    ] {
        assert!(text.replace("\n          ", " ").contains(said), "{said}: {text}");
    }
    assert!(!text.contains("all tasks asleep"), "{text}");
    assert_eq!(report.advice.iter().find(|one| one.rule == "all_asleep").map(|one| one.rule), None);
    let (text, report) = shed(58);
    let rules: Vec<_> = report.advice.iter().map(|one| one.rule).collect();
    assert!(!rules.contains(&"all_asleep") && !rules.contains(&"idle_cores"), "{rules:?} {text}");
}

/// The agent found it running.
#[test]
fn a_part_that_was_counted_says_nothing_of_cores_that_the_rest_may_have_used() {
    let rules = |began_s: u64| {
        let mut job = node("n1", 8, [60, 0], 1, 60);
        let end_ns = job.timeline.end_ns();
        job.facts.set(const { fact("start") }, end_ns - began_s * S);
        job.facts.set(const { fact("end") }, end_ns);
        job.facts.set(const { fact("counted_from") }, end_ns - 60 * S);
        told(vec![job]).into_iter().map(|(rule, _)| rule).collect::<Vec<_>>()
    };
    assert!(rules(90).contains(&"idle_cores"), "{:?}", rules(90));
    assert!(!rules(300).contains(&"idle_cores"), "{:?}", rules(300));
}

/// A sleep counts when it ends.
#[test]
fn nobody_knows_what_a_sleep_is_for_that_has_not_ended() {
    let mut job = record(fixtures::hardly());
    for group in job.totals.stats.groups.iter_mut().filter(|group| group.is(&SCHED)) {
        group.set_hist(Sched::sleep_ns, hist(&[(3 * MS, 1)]));
        group.set(Sched::sleep_child_ns, MS);
        group.set(Sched::sleep_child_waits, 1);
    }
    let text = told(vec![job]).into_iter().find(|(rule, _)| *rule == "all_asleep").unwrap().1;
    assert!(text.ends_with(", mostly in sleeps that have not ended, so that nobody knows what for, or without tasks"), "{text}");
}

#[test]
fn a_quota_that_nobody_knows_may_be_why_it_did_not_get_its_cores() {
    let text = |throttled_ns| {
        let mut job = record(fixtures::beside_others());
        for group in job.totals.stats.groups.iter_mut().filter(|group| group.is(&CPU)) {
            group.set(Cpu::throttled_ns, throttled_ns);
        }
        of("node_busy", vec![job]).unwrap()
    };
    assert!(text(Some(0)).ends_with("4 cores allowed: other work runs there"), "{}", text(Some(0)));
    assert!(text(None).ends_with(": usually other work runs there"), "{}", text(None));
}

/// A node of its own is charged with all its cores.
#[test]
fn cores_that_nobody_else_uses_are_not_counted_as_saved() {
    let report = Report::of(&Whole::of(vec![slurm(fixtures::beside_others(), 60)]).unwrap(), true);
    let advice = report.advice.iter().find(|advice| advice.rule == "node_busy").unwrap();
    assert_eq!(advice.core_hours, None);
    assert!(advice.advice.contains("all of the node is then charged"), "{}", advice.advice);
}

/// Nobody allocated the cores of a run: those that it does not use are no news, unless one task alone computes.
#[test]
fn idle_cores_of_a_run_are_told_where_it_computes() {
    let speaks = |job: Record| of("idle_cores", vec![job]).is_some();
    assert!(speaks(record(fixtures::few_cores())), "it computes");
    assert!(speaks(record(fixtures::serial())));
    let mut little = record(fixtures::few_cores());
    let elapsed_ns = little.totals.elapsed_ns;
    set(&mut little, Sched::on_cpu_ns, elapsed_ns / 10 * 7);
    let little = record(little.totals);
    assert!(!speaks(little.clone()), "most of the time it did something else");
    assert!(speaks(slurm(little.totals, 1)), "the scheduler gave them to it alone");
}

/// Cores that nobody allocated are no reason why it was slow.
#[test]
fn a_summary_tells_causes_before_idle_cores() {
    let style = Style { width: 100, color: false, unicode: true };
    let text = render(&waits::fsync_each(), &style);
    let found = text.split("In short").nth(1).unwrap();
    assert!(found.contains("fsync") && !found.contains(" cores used"), "{text}");
}
