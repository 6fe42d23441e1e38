//! `jobtrace agent` with `pin = true`: killed at any moment, upgraded, unpinned. What happens while no
//! agent is there is counted by the next one, once.

mod site;
mod waits;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt,
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, sleep},
    time::{Duration, Instant},
};

use jobtrace::model::tables::{MEMORY, Memory};
use jobtrace_tests::{
    agent::records,
    rig::{bpffs::PINS, full_disk::SmallDisk, shaped::Directories, wait_for},
};
use site::{Site, kill, sums, terminate};

#[test]
fn killed_fifty_times_under_load_nothing_is_lost_and_nothing_told_twice() {
    const KILLS: u32 = 50;
    let site = Site::new();
    let mut agent = site.agent();
    let done = AtomicBool::new(false);
    let begin = Instant::now();
    let expected = thread::scope(|scope| {
        let jobs = scope.spawn(|| {
            let mut expected = BTreeMap::new();
            for n in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let (name, count) = (format!("j{n}"), 3 + n % 17);
                site.job(&name, count);
                expected.insert(name, u64::from(count));
                sleep(Duration::from_millis(20));
            }
            expected
        });
        // No seed is worth more than another: any moment will do.
        for n in 0..KILLS {
            sleep(Duration::from_millis(u64::from(n * 7919 % 1300)));
            kill(&mut agent);
            sleep(Duration::from_millis(u64::from(n * 104_729 % 200)));
            agent = site.agent();
        }
        done.store(true, Ordering::Relaxed);
        jobs.join().expect("jobs")
    });
    sleep(Duration::from_millis(1200));
    // The disk may be behind by hundreds of records: each agent that went on saved what the one before may not have.
    // Who had no slot has none.
    let is_saved = || {
        let dropped: u64 = sums(&site.lines(), "jobtrace_self", "dropped_slot").values().sum();
        (site.recorded(&expected).len() + dropped as usize >= expected.len()).then_some(())
    };
    wait_for("a record of each job", Duration::from_secs(60), is_saved).unwrap_or_else(|error| {
        let recorded = site.recorded(&expected);
        let missing: Vec<_> = expected.keys().filter(|job| !recorded.contains_key(*job)).collect();
        panic!("{error}: {} of {}, without {missing:?}", recorded.len(), expected.len())
    });
    // What its end takes is in no interval.
    let span = begin.elapsed();
    terminate(agent);
    let lines = site.lines();
    let counted = sums(&lines, "job_sched", "forks");
    let wrong: Vec<_> = expected
        .iter()
        .filter(|(job, count)| counted.get(*job) != Some(count))
        .map(|(job, count)| format!("{job}: {count} forks, counted {:?}", counted.get(job)))
        .collect();
    eprintln!("{} jobs, {KILLS} kills in {span:?}, {} wrong", expected.len(), wrong.len());
    let dropped = sums(&lines, "jobtrace_self", "dropped_slot").values().sum::<u64>();
    // On a busy machine the agent may be killed too often to keep slots to spare: then, and only then,
    // something may be missing, and is counted.
    assert!(wrong.len() as u64 <= dropped, "{:?}\n{}", &wrong[..wrong.len().min(20)], site.log());
    let told_twice = |(job, count): &(&String, &u64)| counted.get(*job).is_some_and(|n| n > count);
    assert_eq!(expected.iter().filter(told_twice).count(), 0);
    assert!(expected.len() > 50, "{} jobs", expected.len());
    let took_over = site.log().matches("took over").count();
    assert_eq!(took_over, KILLS as usize, "{}", site.log());
    // Each interval once, and together all the time there was.
    let own: Vec<_> = lines.iter().filter(|line| line.starts_with("jobtrace_self,")).collect();
    let stamps: BTreeSet<_> = own.iter().map(|line| line.rsplit(' ').next()).collect();
    assert_eq!(stamps.len(), own.len(), "no interval is told twice");
    let spans: u64 = sums(&lines, "jobtrace_self", "interval_ns").values().sum();
    let spans = Duration::from_nanos(spans);
    assert!(spans <= span + Duration::from_secs(10) && spans + Duration::from_secs(2) >= span);
    // A kill at any moment costs no record, and none is told twice.
    let recorded = site.recorded(&expected);
    let differ: Vec<_> = expected
        .keys()
        .filter(|job| recorded.get(*job).unwrap_or(&0) != counted.get(*job).unwrap_or(&0))
        .map(|job| format!("{job}: {:?} in lines, {:?}", counted.get(job), recorded.get(job)))
        .collect();
    assert!(differ.is_empty(), "{differ:?}\n{}", site.log());
    let dropped = sums(&lines, "jobtrace_self", "dropped_cgroup_event");
    assert_eq!(dropped.values().sum::<u64>(), 0);
    assert!(fs::read_dir(site.path("spool/tmp")).expect("tmp").next().is_none(), "tmp is empty");
}

#[test]
fn what_waited_and_is_written_at_the_end_is_not_told_again() {
    let (site, disk) = (Site::new(), SmallDisk::new(1 << 20).expect("a disk"));
    let spool = disk.path().join("spool");
    fs::create_dir(&spool).expect("a folder");
    std::os::unix::fs::symlink(&spool, site.path("spool")).expect("a link");
    let patience = Duration::from_secs(20);
    let agent = site.agent();
    site.job("before", 5);
    let outbox = site.path("spool/outbox");
    let some = || fs::read_dir(&outbox).is_ok_and(|files| files.count() > 1).then_some(());
    wait_for("files", patience, some).expect("files");
    disk.fill().expect("a full disk");
    site.job("during", 7);
    let refused = || site.log().contains("cannot write to the spool").then_some(());
    wait_for("that the disk refuses", patience, refused).expect("words");
    // Attempts are rare by now, after one, three and seven intervals: the last tick is none of them.
    sleep(Duration::from_millis(4500));
    disk.empty().expect("room");
    terminate(agent);
    assert!(site.log().contains("the spool can be written again"), "{}", site.log());
    let agent = site.agent();
    assert!(site.log().contains("took over"), "{}", site.log());
    // What is known of everybody's jobs is for the agent alone.
    for entry in fs::read_dir(site.path("state")).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mode = entry.metadata().expect("a file").mode();
        let is_known = name == "state.json" || name.starts_with("journal-");
        assert!(!is_known || mode & 0o077 == 0, "{name}: {mode:o}");
    }
    assert!(site.path("state/state.json").exists(), "it is looked at");
    site.job("after", 9);
    let jobs =
        [("before", 5), ("during", 7), ("after", 9)].map(|(name, count)| (name.to_owned(), count));
    let expected = BTreeMap::from(jobs);
    let recorded = || (site.recorded(&expected).len() == 3).then_some(());
    wait_for("the records", patience, recorded).unwrap_or_else(|_| panic!("{}", site.log()));
    terminate(agent);
    let lines = site.lines();
    let forks = sums(&lines, "job_sched", "forks");
    let counted: BTreeMap<_, _> =
        forks.into_iter().filter(|(job, _)| expected.contains_key(job)).collect();
    assert_eq!((&counted, &site.recorded(&expected)), (&expected, &expected));
    let stamps: Vec<_> = lines.iter().filter(|line| line.starts_with("jobtrace_self,")).collect();
    let once: BTreeSet<_> = stamps.iter().map(|line| line.rsplit(' ').next()).collect();
    assert_eq!(once.len(), stamps.len(), "no interval is told twice");
}

#[test]
fn other_settings_and_half_a_set_are_replaced_and_unpinning_leaves_nothing() {
    let site = Site::new();
    let mut agent = site.agent();
    site.job("one", 5);
    site.has_told("one", 5);
    kill(&mut agent);
    fs::create_dir(format!("{PINS}/new-1234")).expect("bpffs");
    site.configure("slots = 77\nspare_slots = 5");
    let agent = site.agent();
    let log = site.log();
    assert!(log.contains("ran other programs or settings"), "{log}");
    assert!(log.contains("removed set-") && log.contains("removed new-1234"), "{log}");
    let sets: Vec<_> = fs::read_dir(PINS).expect("bpffs").collect();
    assert_eq!(sets.len(), 1, "{sets:?}");
    site.job("two", 6);
    site.has_told("two", 6);
    terminate(agent);
    let forks = sums(&site.lines(), "job_sched", "forks");
    assert_eq!((forks["one"], forks["two"]), (5, 6));
    let said = site.unpin();
    assert!(said.contains("removed set-"), "{said}");
    assert_eq!(fs::read_dir(PINS).expect("bpffs").count(), 0);
    assert!(site.unpin().contains("nothing is pinned"));
}

#[test]
fn an_agent_that_does_not_pin_removes_what_is_pinned() {
    let site = Site::new();
    let mut agent = site.agent();
    kill(&mut agent);
    assert_eq!(fs::read_dir(PINS).expect("bpffs").count(), 1);
    let text = fs::read_to_string(site.path("agent.toml")).expect("a file");
    fs::write(site.path("agent.toml"), text.replace("pin = true", "pin = false")).expect("a file");
    terminate(site.agent());
    assert!(site.log().contains("which a previous agent left attached"), "{}", site.log());
    assert_eq!(fs::read_dir(PINS).expect("bpffs").count(), 0);
}

#[test]
fn what_an_agent_that_runs_has_pinned_is_left_alone_by_others() {
    let site = Site::new();
    let agent = site.agent();
    let sets = || -> Vec<_> {
        fs::read_dir(PINS).expect("bpffs").flatten().map(|set| set.file_name()).collect()
    };
    let before = sets();
    assert_eq!(before.len(), 1);
    for (pins, unpins, cure) in [
        (true, true, "end that one first"),
        (true, false, "end that one, or set `pin` to false"),
        // One that does not pin runs.
        (false, false, "tracing the jobs of"),
    ] {
        let (ran, said) = site.beside(pins, unpins);
        assert!(said.contains(cure), "{said}");
        assert_eq!(ran, !pins, "{said}");
        assert_eq!(said.contains("runs on this node and has pinned its probes"), pins, "{said}");
    }
    assert_eq!(sets(), before);
    site.job("one", 5);
    site.has_told("one", 5);
    terminate(agent);
    assert!(site.unpin().contains("removed set-"));
}

/// Of a job that had ended when the agent was killed, and of which nothing was told; and of one that ended while no
/// agent was there, with memory counted where jobs are told apart, and elsewhere.
#[test]
fn the_peak_of_a_job_is_not_lost_with_the_agent() {
    const TOUCH: &str = env!("CARGO_BIN_EXE_touch");
    for (is_in_memory, ends_first) in [(false, true), (true, true), (false, false), (true, false)] {
        let site = if is_in_memory { Site::in_memory() } else { Site::new() };
        site.configure("interval = \"60s\"");
        let mut agent = site.agent();
        let (memory, job) = (site.memory(), site.directory("a"));
        let counted = Directories(vec![job.0[0].clone(), memory.join("job_a")]);
        let _ = fs::create_dir(&counted.0[1]);
        counted.run(&[TOUCH, "fresh", "10000"]);
        let peaks = ["memory.max_usage_in_bytes", "memory.peak"];
        let mut peaks = peaks.iter().map(|file| fs::read_to_string(counted.0[1].join(file)));
        let peak = peaks.find_map(Result::ok).expect("a peak");
        let remove = || counted.0.iter().for_each(|directory| drop(fs::remove_dir(directory)));
        if ends_first {
            remove();
        }
        // The kernel tells the agent at once.
        sleep(Duration::from_millis(500));
        kill(&mut agent);
        remove();
        terminate(site.agent());
        let _ = fs::remove_dir(memory);
        let what =
            format!("in memory: {is_in_memory}, before the kill: {ends_first}: {}", site.log());
        let told = sums(&site.lines(), "job_memory", "peak_bytes").get("a").copied();
        assert_eq!(told, Some(peak.trim().parse().expect("a number")), "{what}");
        let records = records(&site.path("records")).expect("records");
        let record = records.iter().find(|record| record.job().job == "a").expect("a record");
        let saved = record.totals.stats.group(&MEMORY).and_then(|of| of.number(Memory::peak_bytes));
        assert_eq!(saved, told, "in its record, {what}");
    }
}
