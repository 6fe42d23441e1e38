//! The whole node's cgroups, by the probes themselves: told of at once, charged from their making on.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use jobtrace::{
    cgroup::job::JobCgroup,
    model::{lease::Lease, snapshot::Snapshot, source::Source, tables::Own},
    probes::{self, Event, FaultMode, Options, Probes},
};
use jobtrace_tests::{
    agree::tried_again,
    probed::{cgroup, forks, own, tasks_directory},
    rig::{PATIENCE, wait_for},
    work::on_cpu,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn load(cgroup: &JobCgroup) -> Probes {
    let object = std::env::var_os("JOBTRACE_BPF_OBJECT").map(Into::into);
    let options = Options { object, whole_node: true, ..Options::new(FaultMode::Major) };
    probes::load(&cgroup.layout(), &options).unwrap_or_else(|error| panic!("{error}"))
}

fn snapshot(probes: &mut Probes) -> Snapshot {
    probes.reclaim(Instant::now(), |_, _| Ok(())).expect("readable maps");
    probes.snapshot().expect("a snapshot").expect("probes never end")
}

/// Makes `directory`, forks `count` times inside, and removes it: a job of a few milliseconds.
fn short_job(directory: &Path, count: u32) {
    let dir = directory.display();
    let script = format!(
        "mkdir {dir}; (echo 0 > {dir}/cgroup.procs; i=0; \
         while [ $i -lt {count} ]; do (:); i=$((i + 1)); done); rmdir {dir}"
    );
    let status = Command::new("sh").args(["-c", &script]).status().expect("sh");
    assert!(status.success(), "{status}");
}

fn made(events: &[Event]) -> BTreeMap<PathBuf, Option<Lease>> {
    let made = |event: &Event| match event {
        Event::Made { path, lease, .. } => Some((path.file_name()?.into(), *lease)),
        _ => None,
    };
    events.iter().filter_map(made).collect()
}

#[test]
fn a_cgroup_that_is_gone_before_anyone_looked_is_counted_whole() {
    let own_cgroup = cgroup("node-short");
    let mut probes = load(&own_cgroup);
    assert_eq!(probes.slots.keep_spare(8).expect("room for eight"), 8);
    let parent = tasks_directory(&own_cgroup);
    let begin = Instant::now();
    for n in 0..4_u32 {
        short_job(&parent.join(format!("short{n}")), 10 + n);
    }
    eprintln!("four jobs in {:?}", begin.elapsed());
    let events = probes.slots.events(|_, _, _| ());
    let leases = made(&events);
    for n in 0..4_u32 {
        let lease = leases[Path::new(&format!("short{n}"))].expect("a slot was to spare");
        assert_eq!(forks(&snapshot(&mut probes), lease), u64::from(10 + n), "short{n}");
        let removed = events.iter().filter(|event| matches!(event, Event::Removed { .. }));
        assert!(removed.count() >= 4);
    }
    // Together: the last values come with the next snapshot, and only there.
    for lease in leases.values().flatten() {
        probes.slots.end(*lease, 0).expect("a lease in use");
    }
    sleep(Duration::from_millis(120));
    let last = snapshot(&mut probes);
    let all: u64 = leases.values().flatten().map(|lease| forks(&last, *lease)).sum();
    assert_eq!(all, 10 + 11 + 12 + 13, "last values come once more");
    assert_eq!(own(&last, Own::dropped_slot), 0);
}

#[test]
fn slots_used_for_the_first_time_wait_for_the_kernel_together() {
    tried_again(|| {
        let own_cgroup = cgroup("node-together");
        let mut probes = load(&own_cgroup);
        let mut ready = |count| assert_eq!(probes.slots.keep_spare(count).unwrap(), count);
        let begin = Instant::now();
        (1..=8).for_each(&mut ready);
        let one_by_one = begin.elapsed();
        let begin = Instant::now();
        ready(24);
        let at_once = begin.elapsed();
        assert!(at_once * 2 < one_by_one, "16 in {at_once:?}, 8 one by one in {one_by_one:?}");
    });
}

/// Descriptors stand for whatever the kernel is short of.
#[test]
fn where_not_all_slots_can_be_made_ready_half_of_them_are() {
    let own_cgroup = cgroup("node-short");
    let mut probes = load(&own_cgroup);
    let open = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(open + 10), ..before }).unwrap();
    let made = probes.slots.keep_spare(16);
    setrlimit(Resource::Nofile, before).unwrap();
    assert_eq!(made.unwrap(), 8);
    assert_eq!(probes.slots.keep_spare(16).unwrap(), 16, "with enough of them");
}

#[test]
fn what_finds_no_slot_to_spare_is_told_and_counted() {
    let own_cgroup = cgroup("node-full");
    let mut probes = load(&own_cgroup);
    probes.slots.keep_spare(2).expect("room for two");
    let parent = tasks_directory(&own_cgroup);
    for n in 0..5_u32 {
        fs::create_dir(parent.join(format!("c{n}"))).expect("a cgroup");
    }
    let leases = made(&probes.slots.events(|_, _, _| ()));
    let ours = |n: u32| leases[Path::new(&format!("c{n}"))];
    assert!(ours(0).is_some() && ours(1).is_some() && ours(0) != ours(1));
    assert_eq!((ours(2), ours(3), ours(4)), (None, None, None));
    assert!(own(&snapshot(&mut probes), Own::dropped_slot) >= 3);
    for n in 0..5_u32 {
        fs::remove_dir(parent.join(format!("c{n}"))).expect("an empty cgroup");
    }
}

#[test]
fn what_is_made_inside_a_job_is_the_jobs_and_a_fold_loses_nothing() {
    let own_cgroup = cgroup("node-fold");
    let mut probes = load(&own_cgroup);
    probes.slots.keep_spare(4).expect("room for four");
    let parent = tasks_directory(&own_cgroup);
    let job = parent.join("job");
    fs::create_dir(&job).expect("a cgroup");
    fs::create_dir(job.join("before")).expect("a cgroup");
    let leases = made(&probes.slots.events(|_, _, _| ()));
    let (job_lease, before) =
        (leases[Path::new("job")].unwrap(), leases[Path::new("before")].unwrap());
    assert_ne!(job_lease, before, "nobody knew yet");
    probes.slots.keep(job_lease, true, false);
    fs::create_dir(job.join("after")).expect("a cgroup");
    assert_eq!(made(&probes.slots.events(|_, _, _| ()))[Path::new("after")], Some(job_lease));
    // A task that runs through the fold, and beyond, until it is told to end; it tells how often it forked.
    let folder = tempfile::tempdir().expect("a folder");
    let [go_on, count] = ["go-on", "count"].map(|name| folder.path().join(name));
    fs::write(&go_on, "").expect("a file");
    let script = format!(
        "echo 0 > {}/cgroup.procs; n=0; while [ -e {} ]; do (:); n=$((n + 1)); done; echo $n > {}",
        job.join("before").display(),
        go_on.display(),
        count.display()
    );
    let mut child = Command::new("sh").args(["-c", &script]).spawn().expect("sh");
    // The last values of a lease that ended come in one snapshot, whichever.
    let mut closed = 0;
    let mut look = |probes: &mut Probes, lease: Lease| {
        let now = snapshot(probes);
        if now.slots.contains_key(&before) {
            closed = forks(&now, before);
        }
        forks(&now, lease)
    };
    wait_for("forks before", PATIENCE, || (look(&mut probes, before) >= 20).then_some(())).unwrap();
    probes.slots.end(before, job_lease).expect("a lease in use");
    wait_for("forks after", PATIENCE, || (look(&mut probes, job_lease) >= 20).then_some(()))
        .unwrap();
    fs::remove_file(&go_on).expect("a file");
    assert!(child.wait().expect("sh").success());
    sleep(Duration::from_millis(120));
    let after = look(&mut probes, job_lease);
    let made = fs::read_to_string(count).expect("a file").trim().parse::<u64>().expect("a number");
    assert_eq!(closed + after, made, "{closed} before, {after} after: each is one or the other's");
    for name in ["before", "after", ""] {
        fs::remove_dir(job.join(name)).expect("an empty cgroup");
    }
}

/// Two milliseconds on two CPUs, and as much for each two more, whose banks are read too. Unoptimised code
/// may take ten times as long.
fn drain_bound(possible_cpus: u32) -> Duration {
    let optimised = Duration::from_millis(2) * possible_cpus.max(2) / 2;
    if cfg!(debug_assertions) { optimised * 10 } else { optimised }
}

#[test]
fn two_hundred_fifty_six_slots_are_drained_in_two_milliseconds() {
    let own_cgroup = cgroup("node-drain");
    let mut probes = load(&own_cgroup);
    for n in 0..255_u64 {
        probes.slots.track((1 << 40) + n, None).expect("room for 255 slots");
    }
    snapshot(&mut probes);
    let mut drain = || {
        let begin = on_cpu();
        assert_eq!(snapshot(&mut probes).slots.len(), 256);
        on_cpu() - begin
    };
    let mut median = || {
        let mut times: Vec<Duration> = (0..21).map(|_| drain()).collect();
        times.sort();
        times[10]
    };
    // A loaded machine makes every drain of a round slow, but not of ten rounds.
    let bound = drain_bound(possible_cpus());
    let mut medians = Vec::new();
    while medians.len() < 10 && medians.last().is_none_or(|last| *last >= bound) {
        medians.push(median());
        sleep(Duration::from_millis(100));
    }
    eprintln!("drains of 256 slots, the median of each round: {medians:?}");
    assert!(medians.last().is_some_and(|last| *last < bound), "{medians:?}, at most {bound:?}");
}

/// CPUs for which the kernel allocates per-CPU maps.
fn possible_cpus() -> u32 {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").expect("possible CPUs");
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<u32>().ok());
    last.expect("a list of CPUs") + 1
}
