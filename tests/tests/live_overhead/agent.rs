//! An agent on this node, its configuration, its words, and the points that it wrote.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use jobtrace_tests::{
    account::Report,
    agent::{Point, Points},
    own_cgroup::OwnCgroup,
    rig::{PATIENCE, daemon::Daemon, wait_for},
    traced::program,
};
use tempfile::TempDir;

/// The agent. Ended when dropped.
pub struct Agent {
    daemon: Daemon,
    folder: TempDir,
}

impl Agent {
    /// Starts one that reads each second and takes the cgroups of [`job`] for jobs; `prefix` is a command
    /// that becomes it.
    pub fn start(prefix: &[&str], overhead: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("jobtrace-overhead-").tempdir().unwrap();
        let config = folder.path().join("config");
        let mut words: Vec<_> = prefix.iter().map(PathBuf::from).collect();
        words.extend([program().unwrap(), "agent".into(), "--config".into(), config]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        configure(&folder, overhead);
        let daemon = Daemon::start(&mut command, &folder.path().join("log")).unwrap();
        let mut agent = Self { daemon, folder };
        agent.wait_for("tracing the jobs");
        agent
    }

    /// Has it read `[overhead]` anew.
    pub fn reload(&mut self, overhead: &str) {
        configure(&self.folder, overhead);
        self.daemon.signal(libc::SIGHUP);
        self.wait_for("configuration reloaded");
    }

    /// What it said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Waits until it has said `words`.
    pub fn wait_for(&mut self, words: &str) {
        let log = self.folder.path().join("log");
        let said = || fs::read_to_string(&log).unwrap().contains(words).then_some(());
        self.daemon.wait_until(words, PATIENCE, said).unwrap();
    }

    /// Waits until the points satisfy `are_there`.
    pub fn wait_for_points(&self, what: &str, are_there: impl Fn(&[Point]) -> bool) {
        wait_for(what, PATIENCE, || are_there(&self.points()).then_some(())).unwrap();
    }

    /// Descriptors of attached programs.
    pub fn attachments(&self) -> usize {
        let folder = fs::read_dir(format!("/proc/{}/fd", self.daemon.pid())).unwrap();
        let target = |entry: std::io::Result<fs::DirEntry>| fs::read_link(entry.ok()?.path()).ok();
        let is_link = |target: &PathBuf| {
            let name = target.to_string_lossy();
            name.contains("bpf_link") || name.contains("bpf-link") || name.contains("perf_event")
        };
        folder.filter_map(target).filter(is_link).count()
    }

    /// What /proc says of its memory, `field` of its status in KiB.
    pub fn memory_kib(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.daemon.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap().trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }

    /// Ends it; all that it wrote.
    pub fn end(mut self) -> Vec<Point> {
        self.daemon.stop();
        let status = self.daemon.ended().unwrap();
        assert!(status.success(), "{status}: {}", self.log());
        self.points()
    }

    /// All points so far, in the order of their stamps.
    pub fn points(&self) -> Vec<Point> {
        let mut points = Points::read(&self.folder.path().join("spool/outbox")).unwrap().0;
        points.sort_by_key(|point| point.time_ns);
        points
    }
}

fn configure(folder: &TempDir, overhead: &str) {
    let path = folder.path().display();
    let text = format!(
        "interval = \"1s\"\nfaults = \"full\"\nspool.dir = \"{path}/spool\"\nstate.dir = \"{path}/state\"\nrecords.dir = \"{path}/records\"\n\
         overhead = {{ {overhead} }}\n[[rule]]\nname = \"tests\"\nmanager = \"test\"\n\
         pattern = '/jobtrace-test-(?<job>\\d+)-overhead$'\n"
    );
    fs::write(folder.path().join("config"), text).unwrap();
}

/// A cgroup that is job `std::process::id()` of manager `test`.
pub fn job() -> OwnCgroup {
    OwnCgroup::make("overhead", &["freezer", "memory", "blkio", "cpuacct"])
}

/// A workload under way.
pub struct Inside(Option<Child>);

/// Starts `words` inside `cgroup`.
pub fn start_inside(cgroup: &OwnCgroup, words: &[&str]) -> Inside {
    let procs = cgroup.procs();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped());
    let enter = move || procs.iter().try_for_each(|procs| fs::write(procs, "0"));
    // SAFETY: the child opens and writes files, and the paths were made before the fork.
    unsafe { command.pre_exec(enter) };
    jobtrace_tests::rig::daemon::die_with_us(&mut command);
    Inside(Some(command.spawn().unwrap()))
}

impl Inside {
    /// Waits for its end; what it says of itself.
    pub fn end(mut self) -> Report {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
