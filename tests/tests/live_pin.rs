//! `jobtrace agent` with `pin = true`: killed at any moment, upgraded, unpinned. What happens while no
//! agent is there is counted by the next one, once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::Read,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, sleep},
    time::{Duration, Instant},
};

use flate2::read::MultiGzDecoder;
use jobtrace::{
    cgroup::hierarchies::Hierarchies,
    model::tables::{SCHED, Sched},
};
use jobtrace_tests::{
    agent::records,
    rig::{
        bpffs::{Bpffs, PINS},
        wait_for,
    },
    traced::program,
};
use tempfile::TempDir;

/// A folder with the agent's configuration, spool and state, and the cgroup whose children are jobs.
struct Site {
    folder: TempDir,
    hierarchy: String,
    parent: PathBuf,
    _bpffs: Bpffs,
}

impl Site {
    fn new() -> Self {
        let bpffs = Bpffs::mount();
        let found = Hierarchies::read().expect("cgroups");
        let (chosen, hierarchy) = match (found.v2, found.v1.first()) {
            (Some(v2), _) => (v2.mount, "v2".to_owned()),
            (None, Some(v1)) => (v1.mount.clone(), v1.controllers[0].clone()),
            (None, None) => panic!("no cgroups are mounted"),
        };
        let parent = chosen.join(format!("jobtrace-pin-{}", std::process::id()));
        fs::create_dir(&parent).expect("a cgroup");
        let folder = TempDir::new().expect("a folder");
        let site = Self { folder, hierarchy, parent, _bpffs: bpffs };
        site.configure("");
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configure(&self, more: &str) {
        let hierarchy = &self.hierarchy;
        let folder = self.folder.path().display();
        let name = self.parent.file_name().unwrap().to_str().unwrap();
        let text = format!(
            "interval = \"1s\"\nhierarchy = \"{hierarchy}\"\npin = true\n{more}\n\
             [spool]\ndir = \"{folder}/spool\"\n[state]\ndir = \"{folder}/state\"\n[records]\ndir = \"{folder}/records\"\n\
             [[rule]]\nname = \"pin\"\nmanager = \"pin\"\n\
             pattern = '/(.*/)?{name}/job_(?<job>[a-z0-9]+)'\n"
        );
        fs::write(self.path("agent.toml"), text).expect("a file");
    }

    /// The agent, measuring.
    fn agent(&self) -> Child {
        let log = File::options().create(true).append(true).open(self.path("log")).expect("a file");
        let before = self.log().matches("tracing the jobs").count();
        let mut command = Command::new(program().expect("jobtrace"));
        command.args(["agent", "--config"]).arg(self.path("agent.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // SAFETY: prctl is async-signal-safe; a test that dies takes its agent with it.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let mut child = command.spawn().expect("jobtrace");
        let begin = Instant::now();
        while self.log().matches("tracing the jobs").count() == before {
            if let Some(status) = child.try_wait().expect("a child") {
                panic!("the agent ended, {status}: {}", self.log());
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "not ready: {}", self.log());
            sleep(Duration::from_millis(10));
        }
        child
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// A job that forks `count` times, for `sleep_s` seconds at least.
    fn job(&self, name: &str, count: u32) {
        let dir = self.parent.join(format!("job_{name}"));
        let (procs, dir) = (dir.join("cgroup.procs"), dir.display().to_string());
        let script = format!(
            "mkdir {dir}; (echo 0 > {}; i=0; while [ $i -lt {count} ]; do (:); i=$((i + 1)); done); \
             rmdir {dir}",
            procs.display()
        );
        let status = Command::new("sh").args(["-c", &script]).status().expect("sh");
        assert!(status.success(), "{status}");
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut files: Vec<_> = fs::read_dir(self.path("spool/outbox"))
            .expect("the outbox")
            .map(|entry| entry.expect("a file").path())
            .collect();
        files.sort();
        for file in files {
            let mut text = String::new();
            let mut gz = MultiGzDecoder::new(File::open(&file).expect("a file"));
            gz.read_to_string(&mut text).unwrap_or_else(|error| panic!("{file:?}: {error}"));
            assert!(text.ends_with('\n'), "{file:?} is whole");
            lines.extend(text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned));
        }
        lines
    }

    /// The forks in the record of each of `jobs`, of which there is one.
    fn recorded(&self, jobs: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        let mut forks = BTreeMap::new();
        for record in records(&self.path("records")).expect("records") {
            let sched = record.totals.stats.group(&SCHED);
            let count = sched.and_then(|sched| sched.number(Sched::forks)).unwrap_or(0);
            let job = record.job().job.clone();
            // Others have jobs on this machine.
            if jobs.contains_key(&job) {
                assert_eq!(forks.insert(job.clone(), count), None, "two records of {job}");
            }
        }
        forks
    }

    fn unpin(&self) -> String {
        let mut command = Command::new(program().expect("jobtrace"));
        let command = command.args(["agent", "--unpin", "--config"]).arg(self.path("agent.toml"));
        let output = command.output().expect("jobtrace");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if Path::new(PINS).exists() {
            self.unpin();
            let _ = fs::remove_dir(PINS);
        }
        for entry in fs::read_dir(&self.parent).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(entry.path());
        }
        let _ = fs::remove_dir(&self.parent);
    }
}

/// Sum of `field` over all lines of `measurement`, by job.
fn sums(lines: &[String], measurement: &str, field: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in lines {
        let Some(rest) = line.strip_prefix(&format!("{measurement},")) else { continue };
        let job = rest.split([',', ' ']).find_map(|tag| tag.strip_prefix("job="));
        let value = rest.split([',', ' ']).find_map(|part| part.strip_prefix(&format!("{field}=")));
        let value = value.and_then(|value| value.trim_end_matches('i').parse::<u64>().ok());
        if let (Some(job), Some(value)) = (job, value) {
            *sums.entry(job.to_owned()).or_default() += value;
        }
    }
    sums
}

fn terminate(mut agent: Child) {
    // SAFETY: our own child.
    unsafe { libc::kill(agent.id() as i32, libc::SIGTERM) };
    let begin = Instant::now();
    let status = agent.wait().expect("a child");
    assert!(status.success(), "{status} after {:?}", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(2), "ended after {:?}", begin.elapsed());
}

fn kill(agent: &mut Child) {
    agent.kill().expect("a child");
    agent.wait().expect("a child");
}

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
    let is_saved = || (site.recorded(&expected).len() == expected.len()).then_some(());
    wait_for("a record of each job", Duration::from_secs(60), is_saved).expect("records");
    terminate(agent);
    let span = begin.elapsed();
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
        .filter(|job| recorded.get(*job).copied() != Some(counted.get(*job).copied().unwrap_or(0)))
        .map(|job| format!("{job}: {:?} in lines, {:?}", counted.get(job), recorded.get(job)))
        .collect();
    assert!(differ.is_empty(), "{differ:?}\n{}", site.log());
    let dropped = sums(&lines, "jobtrace_self", "dropped_cgroup_event");
    assert_eq!(dropped.values().sum::<u64>(), 0);
    assert!(fs::read_dir(site.path("spool/tmp")).expect("tmp").next().is_none(), "tmp is empty");
}

#[test]
fn other_settings_and_half_a_set_are_replaced_and_unpinning_leaves_nothing() {
    let site = Site::new();
    let mut agent = site.agent();
    site.job("one", 5);
    sleep(Duration::from_millis(1300));
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
    sleep(Duration::from_millis(1300));
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
