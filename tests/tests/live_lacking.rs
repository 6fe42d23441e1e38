//! Kernels that lack a field: what needs it is unknown by name, the rest is counted as ever.

use std::{fs, process::Command};

use jobtrace::{
    bpf::hook::HookState,
    cgroup::{hierarchies::Hierarchies, job::JobCgroup},
    model::{
        group::Group,
        source::Source,
        tables::{Fault, Sched, WAIT},
    },
    probes::{self, FaultMode, Options, Probes, WaitMode},
};
use tracer_ebpf::handle::{Handle, Histogram, Number};

const FORKS: u32 = 20;

/// What a job that forks [`FORKS`] times is said to have done, by probes that do `without` some fields; and
/// the programs that are attached.
fn traced(without: &'static [&'static str]) -> (Vec<Group>, Vec<&'static str>) {
    let (groups, probes) = traced_by(without);
    let attached = probes.hooks().filter(|(_, state)| **state == HookState::Attached);
    (groups, attached.map(|(row, _)| row.hook.program).collect())
}

/// The same, and the probes.
fn traced_by(without: &'static [&'static str]) -> (Vec<Group>, Probes) {
    let hierarchies = Hierarchies::read().expect("cgroups");
    let cgroup = JobCgroup::create(&hierarchies, "lacking").expect("a cgroup of our own");
    let object = std::env::var_os("JOBTRACE_BPF_OBJECT").map(Into::into);
    let options = Options { object, without, ..Options::new(FaultMode::Full) };
    let loaded = probes::load(&cgroup.layout(), &options);
    let mut probes = loaded.unwrap_or_else(|error| panic!("{error}"));
    let id = cgroup.tasks();
    let lease = probes.slots.track(id.id, None).expect("a free slot");
    let place = cgroup.places().own().find(|place| place.number == id.hierarchy);
    let procs = place.expect("the tasks' hierarchy").directory.join("cgroup.procs");
    let script = format!(
        "echo 0 > {}; i=0; while [ $i -lt {FORKS} ]; do (sleep 0.01); i=$((i + 1)); done",
        procs.display()
    );
    assert!(Command::new("sh").args(["-c", &script]).status().expect("sh").success());
    assert_eq!(fs::read_to_string(&procs).expect("a cgroup"), "", "all have ended");
    let snapshot = probes.snapshot().expect("a snapshot").expect("probes never end");
    (snapshot.slots[&lease].clone(), probes)
}

fn number(groups: &[Group], field: Handle<Number>) -> Option<u64> {
    groups.iter().find(|group| group.is(field.measurement()))?.number(field)
}

fn count(groups: &[Group], field: Handle<Histogram>) -> Option<u64> {
    let group = groups.iter().find(|group| group.is(field.measurement()))?;
    Some(group.hist(field)?.count())
}

#[test]
fn without_the_kernels_times_the_counters_are_right_and_the_times_unknown() {
    let (all, programs) = traced(&[]);
    assert!(count(&all, Sched::sleep_ns).expect("known here") >= FORKS.into());
    let with = programs.iter().find(|name| name.contains("switch")).expect("a switch program");
    let (groups, programs) = traced(&["TASK_LAST_QUEUED", "TASK_PCOUNT"]);
    let without = programs.iter().find(|name| name.contains("switch")).expect("a switch program");
    assert_eq!(without.replace("switch_untimed", "sched_switch"), **with, "{programs:?}");
    let times =
        [Sched::run_queue_wait_ns, Sched::on_cpu_slice_ns, Sched::sleep_ns, Sched::blocked_ns];
    for field in times {
        assert_eq!(count(&groups, field), None, "{field:?}");
    }
    assert_eq!(count(&groups, Fault::major_wait_ns), None);
    assert_eq!(number(&groups, Sched::forks), Some(FORKS.into()));
    // Each sleep ends in a switch; the shell waits for each child.
    let switches = number(&groups, Sched::switches_voluntary).expect("known without times");
    // A child that has ended before it is waited for needs none.
    assert!(
        (u64::from(2 * FORKS * 9 / 10)..u64::from(8 * FORKS)).contains(&switches),
        "{switches}"
    );
    assert!(number(&groups, Sched::on_cpu_ns).expect("known without times") > 1_000_000);
    assert!(number(&groups, Fault::minor).expect("known without times") > 100);
}

#[test]
fn a_field_that_one_hook_needs_takes_nothing_from_the_others() {
    let (groups, programs) = traced(&["REQUEST_BYTES_LEFT", "TASK_IN_USER_FAULT"]);
    assert!(!programs.contains(&"block_rq_complete"), "{programs:?}");
    assert!(programs.contains(&"major_fault"), "{programs:?}");
    assert_eq!(number(&groups, Sched::forks), Some(FORKS.into()));
    assert!(count(&groups, Sched::sleep_ns).expect("known") >= FORKS.into());
}

#[test]
fn without_what_tells_them_causes_and_file_systems_are_unknown_and_that_is_said() {
    for (without, lost, has_causes) in [
        (&[][..], None, true),
        (&["CALL_NUMBER"], Some("what tasks sleep and are blocked for"), false),
        (&["SUPER_MAGIC"], Some("job_wait"), true),
    ] {
        let (groups, probes) = traced_by(without);
        assert_eq!(probes.missing_waits(WaitMode::Files).map(|(gives, _)| gives), lost);
        assert_eq!(probes.missing_waits(WaitMode::Off), None);
        assert!(count(&groups, Sched::sleep_ns).expect("known") >= FORKS.into());
        // Each child sleeps once.
        let timers = number(&groups, Sched::sleep_timer_waits);
        assert_eq!(timers.is_some(), has_causes, "{timers:?}");
        let few = u64::from(FORKS * 9 / 10)..=u64::from(FORKS);
        assert!(timers.is_none_or(|timers| few.contains(&timers)), "{timers:?}");
        assert_eq!(number(&groups, Sched::sleep_child_ns).is_some(), has_causes);
        assert!(lost.is_none() || !groups.iter().any(|group| group.is(&WAIT)), "{groups:?}");
    }
}
