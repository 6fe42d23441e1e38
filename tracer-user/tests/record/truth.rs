//! What is true of a job's record whatever happens to it: clocks that are set, files that counted before, an end that has
//! a reason, what was not counted.

use jobtrace::{
    cgroup::{
        place::{Place, Places},
        seldom::Moves,
    },
    commands::agent::details::Details,
    model::{gaps::Gap, group::since_all, job::Losses},
    probes::Cgroup,
    record::{head::Head, merge},
    resolve::{Resolver, facts::JobFacts},
};

use super::{agents::*, *};

fn kills(count: u64) -> Vec<Group> {
    let mut faults = Group::unknown(&tables::FAULT, vec![]);
    faults.set(tables::Fault::oom_kills, count);
    vec![faults]
}

#[test]
fn only_an_end_that_follows_at_once_has_a_reason() {
    // Seconds after the begin: of a kill's interval, the limit, the end.
    for (killed_s, limit_s, ended_s, reason) in [
        (Some(10), None, 12, "out_of_memory"),
        (Some(10), None, 15, "out_of_memory"),
        (Some(10), None, 7_200, ""),
        (None, Some(60), 60, "time_limit"),
        (None, Some(60), 59, ""),
        (None, Some(60), 130, "time_limit"),
        (None, Some(60), 7_200, ""),
        (Some(60), Some(60), 61, "out_of_memory"),
    ] {
        let mut details = details();
        let end_s = limit_s.map(|limit_s| BEGIN / SECOND + limit_s);
        details.learn(&JobFacts { end_s, ..JobFacts::default() });
        let mut ended = false;
        for tick in 1..=721u64 {
            let now_s = tick * 10;
            if ended_s <= now_s && !ended {
                ended = true;
                details.set_ended(BEGIN + ended_s * SECOND);
            }
            let is_killed =
                killed_s.is_some_and(|killed_s| (now_s - 9..=now_s).contains(&killed_s));
            details.add(
                &mut kills(u64::from(is_killed)),
                &Losses::default(),
                BEGIN + now_s * SECOND,
            );
        }
        let record = details.record(&origin(), &job());
        let case = (killed_s, limit_s, ended_s);
        assert_eq!(record.facts.text(const { fact("end_reason") }), reason, "{case:?}");
    }
}

#[test]
fn whoever_sets_the_clock_moves_nothing() {
    // The wall clock was right when the job began, and CLOCK_MONOTONIC alone is asked from then on.
    let boot_ns = 1_795_305_600 * SECOND;
    let answer = Resolver::new(&[]).unwrap().path("/slurm/uid_1000/job_4711");
    let mut details = Details::new(&answer, boot_ns + 50 * SECOND, boot_ns);
    for now_s in [51, 60, 61, 70] {
        details.add(&mut written(1), &Losses::default(), now_s * SECOND);
    }
    details.set_ended(75 * SECOND);
    details.add(&mut written(1), &Losses::default(), 80 * SECOND);
    let record = details.record(&origin(), &job());
    assert_eq!(record.totals.elapsed_ns, 25 * SECOND);
    let timeline = &record.timeline;
    assert_eq!(
        (timeline.begin_ns(), timeline.end_ns()),
        (boot_ns + 50 * SECOND, boot_ns + 75 * SECOND)
    );
    assert_eq!(number(&record, const { fact("end") }), Some(boot_ns + 75 * SECOND));
}

#[test]
fn a_job_over_midnight_has_one_file() {
    let boot_ns = 1_795_391_990 * SECOND;
    let answer = Resolver::new(&[]).unwrap().path("/slurm/uid_1000/job_4711");
    let mut details = Details::new(&answer, boot_ns, boot_ns);
    let mut places = Vec::new();
    for tick in 1..=200 {
        details.add(&mut written(1), &Losses::default(), tick * 10 * SECOND);
        if let Some(unsaved) = due_record(&mut details) {
            places.push(jobtrace::record::name::place(&unsaved.record));
            unsaved.saved();
        }
    }
    let days = ["2026-11-22", "2026-11-23"].map(str::to_owned);
    assert_eq!(jobtrace::record::name::day(boot_ns), days[0]);
    assert_eq!(jobtrace::record::name::day(boot_ns + 2_000 * SECOND), days[1]);
    assert_eq!(places.len(), 2);
    assert!(places[0] == places[1] && places[0].day == days[0], "{places:?}");
}

#[test]
fn time_without_a_cgroup_is_passed_over() {
    let mut details = details();
    details.add(&mut written(3), &Losses::default(), BEGIN + 10 * SECOND);
    details.set_ended(BEGIN + 15 * SECOND);
    details.add(&mut written(4), &Losses::default(), BEGIN + 20 * SECOND);
    details.set_returned(BEGIN + 60 * SECOND + SECOND / 2, false);
    details.add(&mut written(5), &Losses::default(), BEGIN + 70 * SECOND);
    let record = details.record(&origin(), &job());
    assert_eq!(record.timeline.end_ns(), BEGIN + 70 * SECOND);
    assert_eq!(record.totals.elapsed_ns, 24 * SECOND, "as long as it was there");
    let columns: Vec<_> = record.timeline.columns().map(|column| column[5]).collect();
    assert!(columns[16..60].iter().all(Option::is_none), "{columns:?}");
    assert_eq!(columns[60..].iter().flatten().sum::<u64>(), 5);
    assert_eq!(bytes(&record), Some(12));
}

#[test]
fn what_was_shed_and_lost_is_told() {
    let mut details = details();
    let mut own = Group::unknown(&tables::SELF, vec![]);
    own.set(tables::Own::dropped_slot, 3);
    own.set(tables::Own::bpf_missed, 4);
    let lost = Losses { own: vec![own], shed: vec!["net"] };
    for tick in 1..=10 {
        let losses = if (4..=6).contains(&tick) { lost.clone() } else { Losses::default() };
        details.add(&mut written(1), &losses, BEGIN + tick * 10 * SECOND);
    }
    let record = details.record(&origin(), &job());
    let gaps = Vec::from_iter(record.totals.gaps.iter().cloned());
    let (from, until) = (BEGIN + 30 * SECOND, BEGIN + 60 * SECOND);
    assert_eq!(gaps, [Gap { what: "net".into(), for_ns: 30 * SECOND, from, until }]);
    let head = Head::from(&record);
    assert_eq!((head.not_counted.as_deref(), head.lost), (Some("net"), Some(21)));
}

/// Directories of a job's as the kernel shows them.
fn cgroup(stalled_us: u64, throttled_us: u64) -> (tempfile::TempDir, Places) {
    let mount = tempfile::tempdir().unwrap();
    let directory = mount.path().join("job_4711");
    std::fs::create_dir(&directory).unwrap();
    let place = Place {
        number: 0,
        controllers: ["cpu".into(), "memory".into()].into(),
        mount: mount.path().into(),
        directory: directory.into(),
        own: true,
    };
    write_counts(&place, stalled_us, throttled_us);
    (mount, Places(vec![place]))
}

fn write_counts(place: &Place, stalled_us: u64, throttled_us: u64) {
    let write =
        |name: &str, text: String| std::fs::write(place.directory.join(name), text).unwrap();
    write("io.pressure", format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={stalled_us}\n"));
    write("cpu.max", "100000 100000\n".into());
    write("cpu.stat", format!("usage_usec 9\nthrottled_usec {throttled_us}\n"));
    write("memory.current", "4096\n".into());
    write("memory.stat", "anon 100\nfile 3\nshmem 20\n".into());
}

/// What its files told of stalls and throttling, in µs, by a reading at each of `counts`.
fn told(details: &mut Details, counts: &[(u64, u64)]) -> (Option<u64>, Option<u64>) {
    let (_mount, places) = cgroup(0, 0);
    let mut before = Vec::new();
    for (at, (stalled_us, throttled_us)) in (1..).zip(counts) {
        write_counts(&places.0[0], *stalled_us, *throttled_us);
        let mut groups = Vec::new();
        details.read(|| places.clone(), &mut groups, Moves::default(), BEGIN + at * SECOND);
        let mut interval = since_all(&groups, &before);
        before = groups;
        details.add(&mut interval, &Losses::default(), BEGIN + at * SECOND);
    }
    let groups = details.record(&origin(), &job()).totals.stats.groups;
    let number = |table, field| groups.iter().find(|group| group.is(table))?.number(field);
    (
        number(&tables::MEMORY, Memory::io_some_stall_ns).map(|ns| ns / 1000),
        number(&tables::CPU, tables::Cpu::throttled_ns).map(|ns| ns / 1000),
    )
}

#[test]
fn what_the_files_counted_before_is_not_the_jobs() {
    let counts = [(70, 700), (75, 760), (95, 780), (96, 790)];
    assert_eq!(told(&mut details(), &counts), (Some(96), Some(790)), "it began under our eyes");
    let mut before = details();
    before.set_counted_from(BEGIN + SECOND / 2);
    assert_eq!(told(&mut before, &counts), (Some(26), Some(90)), "it was there before");
}

#[test]
fn a_job_without_a_slot_has_a_record_of_what_its_files_show() {
    let mut details = details();
    let (_mount, places) = cgroup(5, 0);
    for at in 1..=3 {
        write_counts(&places.0[0], 5 * at, 0);
        details.add_unserved(|| places.clone(), BEGIN + at * 10 * SECOND);
    }
    let of = |record: &Record, field| record.totals.stats.group(&tables::MEMORY)?.number(field);
    let record = details.record(&origin(), &job());
    assert_eq!(of(&record, Memory::used_peak_bytes), Some(120));
    assert_eq!(of(&record, Memory::io_some_stall_ns), None, "no line tells what adds up");
    assert!(record.totals.stats.group(&SCHED).is_none(), "unknown is not zero");
    let gap = |record: &Record| record.totals.gaps.iter().next().cloned().unwrap();
    assert_eq!((gap(&record).what.as_str(), gap(&record).from), ("slot", BEGIN + SECOND / 2));
    // Then it has one: its counts are those from there on, in the same file.
    details.set_served_from(BEGIN + 35 * SECOND);
    let mut first = written(8);
    details.read(|| places.clone(), &mut first, Moves::default(), BEGIN + 40 * SECOND);
    details.add(&mut first, &Losses::default(), BEGIN + 40 * SECOND);
    let later = details.record(&origin(), &job());
    assert_eq!(later.totals.elapsed_ns, 5 * SECOND);
    assert_eq!((bytes(&later), of(&later, Memory::io_some_stall_ns)), (Some(8), Some(0)));
    assert_eq!(
        (gap(&later).for_ns, gap(&later).until),
        (34 * SECOND + SECOND / 2, BEGIN + 35 * SECOND)
    );
    assert_eq!(number(&later, const { fact("counted_from") }), Some(BEGIN + 35 * SECOND));
    assert_eq!(jobtrace::record::name::place(&record), jobtrace::record::name::place(&later));
}

#[test]
fn another_job_of_the_same_id_is_told_by_its_path_or_its_tasks() {
    let path = |path: &str| Resolver::new(&[]).unwrap().path(path);
    let mut details = details();
    let begun = |start_s: u64, restarts: Option<u64>| JobFacts {
        start_s: Some(start_s),
        restarts,
        ..JobFacts::default()
    };
    details.learn(&begun(7, None));
    details.made_by = Some(0);
    assert!(!details.is_another(&path("/slurm/uid_1000/job_4711/step_1"), 0));
    assert!(details.is_another(&path("/slurm/uid_1001/job_4711/step_1"), 0), "another user's");
    assert!(details.is_another(&path("/slurm/uid_1000/job_4711/step_1"), 5), "made by another");
    details.add(&mut written(1), &Losses::default(), BEGIN + 10 * SECOND);
    details.set_ended(BEGIN + 12 * SECOND);
    details.add(&mut written(1), &Losses::default(), BEGIN + 20 * SECOND);
    assert!(details.set_returned(BEGIN + 30 * SECOND, false));
    assert_eq!(details.end_of_another(&JobFacts::default()), None, "they tell nothing");
    assert_eq!(details.end_of_another(&begun(7, Some(0))), None, "the same");
    assert_eq!(details.end_of_another(&begun(7, Some(1))), Some(BEGIN + 12 * SECOND));
    let record = details.record(&origin(), &job());
    assert_eq!(record.timeline.end_ns(), BEGIN + 12 * SECOND);
    assert_eq!(number(&record, const { fact("end") }), Some(BEGIN + 12 * SECOND));
    assert_eq!(details.end_of_another(&begun(8, None)), Some(BEGIN + 12 * SECOND), "another start");
}

#[test]
fn a_limit_is_known_by_its_length_or_by_its_end() {
    let limits = |facts: JobFacts| {
        let mut details = details();
        details.learn(&facts);
        let record = details.record(&origin(), &job());
        [const { fact("time_limit_ns") }, const { fact("time_limit_end") }]
            .map(|fact| number(&record, fact))
    };
    let by_length = JobFacts { limit_s: Some(60), ..JobFacts::default() };
    assert_eq!(limits(by_length), [Some(60 * SECOND), Some(BEGIN + SECOND / 2 + 60 * SECOND)]);
    let by_end = JobFacts { start_s: Some(900), end_s: Some(4500), ..JobFacts::default() };
    assert_eq!(limits(by_end), [Some(3600 * SECOND), Some(4500 * SECOND)]);
    assert_eq!(limits(JobFacts { cores: Some(1), ..JobFacts::default() }), [None, None]);
}

#[test]
fn the_submission_is_told_by_the_path_or_the_environment() {
    const SUBMITTED_MS: u64 = 1_773_765_869_741;
    let sluid = "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00";
    let submitted = |path: &str, begin_ns: u64, submitted_s: Option<u64>| {
        let mut details = Details::new(&Resolver::new(&[]).unwrap().path(path), begin_ns, 0);
        details.learn(&JobFacts { submitted_s, ..JobFacts::default() });
        number(&details.record(&origin(), &job()), const { fact("submitted") })
    };
    let submitted_ns = SUBMITTED_MS * 1_000_000;
    assert_eq!(submitted(sluid, submitted_ns + 5, None), Some(submitted_ns));
    assert_eq!(submitted(sluid, submitted_ns - 1, None), None, "a clock is wrong");
    let lsf = "/lsf/c/job.748.1.2";
    assert_eq!(submitted(lsf, 9 * SECOND, Some(7)), Some(7 * SECOND));
    assert_eq!(submitted(lsf, 9 * SECOND, Some(u64::MAX)), None);
    assert_eq!(submitted(lsf, 9 * SECOND, None), None);
}

#[test]
fn steps_and_tasks_have_names_and_counts() {
    let resolver = Resolver::new(&[]).unwrap();
    let mut details = details();
    let top = "/system.slice/slurmstepd.scope/job_4711";
    let made = [
        "/step_0",
        "/step_0/user",
        "/step_0/user/task_0",
        "/step_0/user/task_1",
        "/step_0/user/task_1/own",
    ];
    let cgroup = |id| Cgroup { table: 0, id };
    for (id, below) in (0..).zip(made) {
        let path = format!("{top}{below}");
        details.begin_part(cgroup(id), path.clone().into(), &resolver.path(&path), BEGIN + SECOND);
    }
    let folder = tempfile::tempdir().unwrap();
    let places = |path: &std::path::PathBuf| {
        let directory = folder.path().join(path.strip_prefix("/").unwrap());
        std::fs::create_dir_all(&directory).unwrap();
        let usage = if path.ends_with("task_1") { 9_000 } else { 1_000 };
        std::fs::write(directory.join("cpu.stat"), format!("usage_usec {usage}\n")).unwrap();
        Places(vec![Place {
            number: 0,
            controllers: [].into(),
            mount: folder.path().into(),
            directory: directory.into(),
            own: true,
        }])
    };
    details.read_parts(places, Moves::default(), BEGIN + 10 * SECOND);
    details.end_part(cgroup(3), BEGIN + 12 * SECOND);
    // A file of a cgroup that is gone tells nothing, even to who has it open.
    for below in made {
        let file = folder.path().join(&format!("{top}{below}/cpu.stat")[1..]);
        if file.exists() {
            std::fs::write(file, "").unwrap();
        }
    }
    std::fs::remove_dir_all(folder.path().join("system.slice")).unwrap();
    details.read_parts(places, Moves::default(), BEGIN + 20 * SECOND);
    details.set_ended(BEGIN + 30 * SECOND);
    let record = details.record(&origin(), &job());
    let parts = record.totals.parts.listed.iter();
    let told = parts.map(|part| {
        let s = |ns: u64| (ns - BEGIN) / SECOND;
        (part.step.as_str(), part.task.as_str(), part.on_cpu_ns, part.seen.map(s), part.end.map(s))
    });
    let ms = |ms: u64| Some(ms * 1_000_000);
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("0", "", ms(1), Some(10), Some(30)),
            ("0", "0", ms(1), Some(10), Some(30)),
            ("0", "1", ms(9), Some(10), Some(12)),
        ],
    );
    // A record of two nodes says where each was.
    let mut other = record.clone();
    other.hosts = vec!["n2".into()];
    let both = merge(vec![other, record]).unwrap();
    let hosts: Vec<_> = both.totals.parts.listed.iter().map(|part| part.host.as_str()).collect();
    assert_eq!(hosts, ["n1", "n1", "n1", "n2", "n2", "n2"]);
}
