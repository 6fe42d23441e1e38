//! What the dashboards are shown: one agent with two jobs, one of which does everything at once, and one
//! command under `jobtrace run` on a GPU of a driver made for tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    thread,
};

use fake_nvml::{Fake, Gpm, Gpu, Process, Scenario};
use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::{
    agent::{Point, Points, Value},
    daemon::files,
    disk::RamDisk,
    rig::{
        PATIENCE,
        daemon::Daemon,
        shaped::{Directories, Shaped},
        wait_for,
    },
    traced::program,
};

const MIXED: &str = env!("CARGO_BIN_EXE_mixed");
const SECONDS: &str = "8";
/// The step of time in queries: several of the agent's intervals, so that how points become one shows.
pub const STEP_MS: i64 = 4000;
/// The owner of the agent's jobs, whom every system has.
const NOBODY: u32 = 65_534;
/// Of cgroup v2, for memory, block I/O and CPU time of the jobs.
const CONTROLLERS: [&str; 3] = ["memory", "io", "cpu"];
const LIMIT: u64 = 1 << 30;
/// What the agent calls the node, and whose points are then the test's own.
const HOST: &str = "node1";
const OWN: [&str; 3] = ["71", "72", "_system"];
/// Stands for the command's number in what the GPU's driver is to say, until the command puts its own there.
const PLACEHOLDER: u32 = 4_242_424_242;

/// Files of real runs.
pub struct Data {
    /// Their lines.
    pub lines: String,
    points: Points,
}

impl Data {
    /// Of runs that are made once, in some 20 seconds.
    pub fn get() -> &'static Self {
        static DATA: OnceLock<Data> = OnceLock::new();
        DATA.get_or_init(Self::make)
    }

    fn make() -> Self {
        let lines = agents() + &on_a_gpu();
        let folder = tempfile::tempdir().unwrap();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, lines.as_bytes()).unwrap();
        fs::write(folder.path().join("all.lp.gz"), packed.finish().unwrap()).unwrap();
        let points = Points::read(folder.path()).unwrap();
        Self { lines, points }
    }

    /// A range of whole steps around all stamps, in milliseconds.
    pub fn range_ms(&self) -> (i64, i64) {
        let stamps = || self.points.0.iter().map(|point| point.time_ns);
        let step = |ns: i64| ns.div_euclid(STEP_MS * 1_000_000);
        let (first, last) = (stamps().min().unwrap(), stamps().max().unwrap());
        ((step(first) - 1) * STEP_MS, (step(last) + 1) * STEP_MS)
    }

    /// The fields that were written, by measurement.
    pub fn fields(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for point in &self.points.0 {
            let fields = point.fields.keys().map(String::as_str);
            all.entry(point.measurement.as_str()).or_default().extend(fields);
        }
        all
    }

    /// Whether a job is none of the test's: the agent also tells of what it finds on the node, such as the
    /// cgroup of a run that was killed.
    pub fn is_strange(&self, job: &str) -> bool {
        let strange = |point: &Point| point.tag("host") == HOST && !OWN.contains(&point.tag("job"));
        self.points.0.iter().any(|point| point.tag("job") == job && strange(point))
    }

    /// All points.
    pub fn points(&self) -> &[Point] {
        &self.points.0
    }

    /// Sum of a field over all points of a job's, those of some tags where `only` names them.
    pub fn sum(&self, of: &str, job: &str, field: &str, only: &[(&str, &str)]) -> f64 {
        let wanted = |point: &&Point| {
            point.measurement == of
                && point.tag("job") == job
                && only.iter().all(|(tag, value)| point.tag(tag) == *value)
        };
        let number = |value: &Value| match value {
            Value::Integer(number) => *number as f64,
            Value::Float(number) => *number,
            Value::Text(_) => 0.0,
        };
        let points = self.points.0.iter().filter(wanted);
        points.filter_map(|point| point.fields.get(field).map(number)).sum()
    }
}

/// The hierarchy that tells jobs apart and knows their memory: v2 where it has the controller.
fn hierarchy() -> &'static str {
    let found = Hierarchies::read().unwrap();
    if found.v1("memory").is_some() { "memory" } else { "v2" }
}

fn directories(hierarchy: &'static str) -> Vec<&'static str> {
    let found = Hierarchies::read().unwrap();
    let more = ["blkio", "cpuacct", "cpuset", "cpu"];
    let more = more.into_iter().filter(|name| found.v1(name).is_some());
    [if hierarchy == "v2" { "" } else { hierarchy }].into_iter().chain(more).collect()
}

/// Gives the job's cgroups a limit of memory and CPU time.
fn limit(job: &Directories) {
    for directory in &job.0 {
        for (name, value) in [
            ("memory.limit_in_bytes", LIMIT.to_string()),
            ("memory.max", LIMIT.to_string()),
            ("cpu.cfs_quota_us", "150000".into()),
            ("cpu.max", "150000 100000".into()),
        ] {
            if directory.join(name).exists() {
                fs::write(directory.join(name), value).unwrap();
            }
        }
    }
}

/// What is made below has the parent's CPUs (v1) and the controllers (v2). Where a controller is not to be
/// had, the test says which field lacks.
fn hand_down(directory: &Path) {
    let mut above: Vec<_> = directory.ancestors().collect();
    above.reverse();
    // The mount is everybody's, and `Lent` hands out what it has.
    let is_own = |path: &&Path| path.to_string_lossy().contains("/jobtrace-agent-");
    for (parent, own) in above.iter().zip(&above[1..]).filter(|(_, own)| is_own(own)) {
        for name in ["cpuset.cpus", "cpuset.mems"] {
            if let Ok(value) = fs::read(parent.join(name)) {
                let _ = fs::write(own.join(name), value);
            }
        }
        if *own != directory {
            for controller in CONTROLLERS {
                let _ = fs::write(own.join("cgroup.subtree_control"), format!("+{controller}"));
            }
        }
    }
}

/// Controllers that cgroup v2's root hands out while this lives, beside those that it did before.
struct Lent {
    file: PathBuf,
    controllers: Vec<&'static str>,
}

impl Lent {
    fn hand_out() -> Option<Self> {
        let file = Hierarchies::read().unwrap().v2?.mount.join("cgroup.subtree_control");
        let before = fs::read_to_string(&file).ok()?;
        let lacks = |name: &&str| !before.split_whitespace().any(|known| known == *name);
        let taken = |name: &&str| fs::write(&file, format!("+{name}")).is_ok();
        let controllers = CONTROLLERS.into_iter().filter(lacks).filter(taken).collect();
        Some(Self { file, controllers })
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        for name in &self.controllers {
            // Refused while somebody below uses it, who then needs it.
            let _ = fs::write(&self.file, format!("-{name}"));
        }
    }
}

/// The lines of an agent with two jobs.
fn agents() -> String {
    let disks = [RamDisk::new(256 * 4096), RamDisk::new(4 << 20)];
    let [pages, file] = disks.each_ref().map(RamDisk::path);
    let hierarchy = hierarchy();
    // Before the cgroups, so that it ends after them.
    let _lent = Lent::hand_out();
    let shaped = Shaped::make(&directories(hierarchy));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = format!(
        "interval = \"1s\"\nhierarchy = {hierarchy:?}\nhost = {HOST:?}\ncluster = \"c1\"\n\
         [export]\nprofile = \"histogram\"\n[spool]\ndir = {:?}\n[state]\ndir = {:?}\n[records]\ndir = {:?}\n",
        path("spool"),
        path("state"),
        path("records")
    );
    fs::write(path("jobtrace.toml"), text).unwrap();
    let mut command = Command::new(program().unwrap());
    command.arg("agent").arg("--config").arg(path("jobtrace.toml"));
    let mut agent = Daemon::start(&mut command, &path("log")).unwrap();
    let traces =
        || fs::read_to_string(path("log")).ok()?.contains("tracing the jobs").then_some(());
    agent.wait_until("the agent traces", PATIENCE, traces).unwrap();

    let [busy, idle] = [71, 72].map(|job| shaped.job(NOBODY, job, "step_0"));
    [&busy, &idle].into_iter().flat_map(|job| &job.0).for_each(|directory| hand_down(directory));
    for job in [71, 72] {
        limit(&shaped.job(NOBODY, job, ""));
    }
    let named = |job: &Directories, number: &str, words: &[&str]| {
        let mut command = job.command(words[0]);
        command.args(&words[1..]).env("SLURM_JOB_ID", number).env("SLURM_JOB_NAME", "try");
        command.env("SLURM_JOB_ACCOUNT", format!("physics{number}"));
        command.env("SLURM_JOB_PARTITION", "short");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?} failed: {output:?}");
    };
    thread::scope(|scope| {
        scope.spawn(|| named(&busy, "71", &[MIXED, SECONDS, &pages, &file]));
        scope.spawn(|| named(&idle, "72", &["sleep", SECONDS]));
    });
    [71, 72].into_iter().for_each(|job| shaped.remove_job(NOBODY, job));
    let outbox = path("spool/outbox");
    let ended = || {
        let points = Points::read(&outbox).ok()?;
        let ended = |job: &str| {
            points.0.iter().any(|p| p.tag("job") == job && p.fields.contains_key("end"))
        };
        (ended("71") && ended("72")).then_some(())
    };
    wait_for("both jobs' ends are told", PATIENCE, ended).unwrap();
    agent.signal(libc::SIGTERM);
    let status = wait_for("the agent's end", PATIENCE, || agent.ended()).unwrap();
    assert!(status.success(), "{status}: {}", agent.last_lines());
    text_of(&outbox)
}

/// The lines of a command on a GPU that is at work for a fifth of the time, and fails once.
fn on_a_gpu() -> String {
    let gpu = Gpu {
        uuid: "GPU-own".into(),
        name: "NVIDIA H100 80GB HBM3".into(),
        utilization: 20,
        memory_used: 41 << 30,
        memory_total: 80 << 30,
        power_mw: 312_000,
        sm_clock_mhz: 1980,
        temperature: 61,
        gpm: Some(Gpm {
            sm: Some(12.0),
            tensor: Some(3.0),
            dram: Some(7.0),
            pcie: Some([100.0, 200.0]),
            nvlink: Some([300.0, 400.0]),
            ..Gpm::default()
        }),
        processes: vec![Process { pid: PLACEHOLDER, memory: Some(40 << 30), ..Process::default() }],
        ecc: Some(0),
        ..Gpu::default()
    };
    let failed = Gpu { ecc: Some(2), xids: vec![(31, None)], ..gpu.clone() };
    let fake = Fake::new(&Scenario::default());
    // It begins as the last one of these.
    let [after, before] = [failed, gpu].map(|gpu| {
        let template = fake.folder().join(format!("template-{}", gpu.xids.len()));
        fake.set(&Scenario { gpus: vec![gpu], ..Scenario::default() });
        fs::copy(fake.scenario(), &template).unwrap();
        let scenario = fake.scenario();
        format!(
            "sed s/{PLACEHOLDER}/$$/ {0} > {0}.new && mv {0}.new {1}",
            template.display(),
            scenario.display()
        )
    });
    let script = format!("{before} && sleep 2.5 && {after} && exec sleep 2.5");
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(program().unwrap());
    command.env("LD_LIBRARY_PATH", fake.folder());
    command.args(["run", "--quiet", "--cluster", "c1", "--out"]).arg(out.path());
    let output = command.args(["--", "sh", "-c", &script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    text_of(out.path())
}

fn text_of(folder: &Path) -> String {
    files::list(folder).unwrap().iter().map(|file| files::text(file).unwrap()).collect()
}
