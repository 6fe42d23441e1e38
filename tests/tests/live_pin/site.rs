//! A place for an agent that pins, its jobs, and what was written.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
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
        shaped::Directories,
        wait_for,
    },
    stalls::Stalls,
    traced::program,
};
use tempfile::TempDir;

/// A folder with the agent's configuration, spool and state, and the cgroup whose children are jobs.
pub struct Site {
    folder: TempDir,
    hierarchy: String,
    parent: PathBuf,
    _bpffs: Bpffs,
}

impl Site {
    pub fn new() -> Self {
        let found = Hierarchies::read().expect("cgroups");
        match (found.v2, found.v1.first()) {
            (Some(v2), _) => Self::of(&v2.mount, "v2"),
            (None, Some(v1)) => Self::of(&v1.mount, &v1.controllers[0]),
            (None, None) => panic!("no cgroups are mounted"),
        }
    }

    /// One whose jobs are told apart where memory is counted.
    pub fn in_memory() -> Self {
        match Hierarchies::read().expect("cgroups").v1("memory") {
            Some(v1) => Self::of(&v1.mount, "memory"),
            None => Self::new(),
        }
    }

    fn of(mount: &Path, hierarchy: &str) -> Self {
        let (bpffs, hierarchy) = (Bpffs::mount(), hierarchy.to_owned());
        let parent = mount.join(format!("jobtrace-pin-{}", std::process::id()));
        fs::create_dir(&parent).expect("a cgroup");
        let folder = TempDir::new().expect("a folder");
        let site = Self { folder, hierarchy, parent, _bpffs: bpffs };
        site.configure("");
        site
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn configure(&self, more: &str) {
        let hierarchy = &self.hierarchy;
        let folder = self.folder.path().display();
        let name = self.parent.file_name().unwrap().to_str().unwrap();
        let interval = if more.contains("interval") { "" } else { "interval = \"1s\"\n" };
        let text = format!(
            "{interval}hierarchy = \"{hierarchy}\"\npin = true\n{more}\n\
             [spool]\ndir = \"{folder}/spool\"\n[state]\ndir = \"{folder}/state\"\n[records]\ndir = \"{folder}/records\"\n\
             [[rule]]\nname = \"pin\"\nmanager = \"pin\"\n\
             pattern = '/(.*/)?{name}/job_(?<job>[a-z0-9]+)'\n"
        );
        fs::write(self.path("agent.toml"), text).expect("a file");
    }

    /// The agent, measuring.
    pub fn agent(&self) -> Child {
        self.agent_by(Command::new(program().expect("jobtrace")))
    }

    /// The same, through `command`, which becomes it.
    pub fn agent_by(&self, mut command: Command) -> Child {
        let log = File::options().create(true).append(true).open(self.path("log")).expect("a file");
        let before = self.log().matches("tracing the jobs").count();
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

    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The cgroup of a job.
    pub fn directory(&self, name: &str) -> Directories {
        let dir = self.parent.join(format!("job_{name}"));
        fs::create_dir(&dir).expect("a cgroup");
        Directories(vec![dir])
    }

    /// The directory in which the jobs' memory is counted, made where it is not that of the jobs themselves.
    pub fn memory(&self) -> PathBuf {
        let Some(v1) =
            Hierarchies::read().expect("cgroups").v1("memory").map(|v1| v1.mount.clone())
        else {
            fs::write(self.parent.join("cgroup.subtree_control"), "+memory").expect("memory");
            return self.parent.clone();
        };
        let memory = v1.join(self.parent.file_name().expect("a name"));
        fs::create_dir_all(&memory).expect("a cgroup");
        memory
    }

    /// A job that forks `count` times, for `sleep_s` seconds at least.
    pub fn job(&self, name: &str, count: u32) {
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

    /// Waits until that many forks of a job are told.
    pub fn has_told(&self, name: &str, forks: u64) {
        let told =
            || (sums(&self.lines(), "job_sched", "forks").get(name) == Some(&forks)).then_some(());
        let what = format!("{forks} forks of {name}");
        wait_for(&what, Duration::from_secs(30), told).unwrap_or_else(|_| panic!("{}", self.log()));
    }

    pub fn lines(&self) -> Vec<String> {
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
    pub fn recorded(&self, jobs: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
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

    /// An agent with folders of its own, which pins or not, or is to unpin: whether it came to run, and what it said.
    pub fn beside(&self, pins: bool, unpins: bool) -> (bool, String) {
        let text = fs::read_to_string(self.path("agent.toml")).expect("a file");
        let folder = self.folder.path().display().to_string();
        let text = text.replace(&folder, &format!("{folder}/beside"));
        let text = text.replace("pin = true", &format!("pin = {pins}"));
        fs::write(self.path("beside.toml"), text).expect("a file");
        let log = self.path("beside.log");
        let mut command = Command::new(program().expect("jobtrace"));
        command.arg("agent").args(unpins.then_some("--unpin")).arg("--config");
        command.arg(self.path("beside.toml")).stderr(File::create(&log).expect("a file"));
        let mut child = command.spawn().expect("jobtrace");
        let said = || fs::read_to_string(&log).expect("a file");
        let runs = || said().contains("tracing the jobs of");
        let ended = wait_for("it to run or to end", Duration::from_secs(60), || {
            if runs() { Some(None) } else { child.try_wait().expect("a child").map(Some) }
        });
        let Some(status) = ended.expect("an end") else {
            terminate(child);
            return (true, said());
        };
        assert!(!status.success(), "{}", said());
        (false, said())
    }

    pub fn unpin(&self) -> String {
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
pub fn sums(lines: &[String], measurement: &str, field: &str) -> BTreeMap<String, u64> {
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

/// Ends the agent as an administrator would.
pub fn terminate(mut agent: Child) {
    let (stalls, begin) = (Stalls::watch(), Instant::now());
    // SAFETY: our own child.
    unsafe { libc::kill(agent.id() as i32, libc::SIGTERM) };
    let status = agent.wait().expect("a child");
    assert!(status.success(), "{status} after {:?}", begin.elapsed());
    let took = begin.elapsed().saturating_sub(stalls.longest());
    assert!(took < Duration::from_secs(2), "ended after {took:?}");
}

/// Ends it as nobody should.
pub fn kill(agent: &mut Child) {
    agent.kill().expect("a child");
    agent.wait().expect("a child");
}
