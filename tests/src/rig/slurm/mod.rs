//! A private Slurm of one node: munged, slurmctld and slurmd, with the scheduler's default shapes of
//! cgroups, v1 or v2. The node's name holds the test's process id, so that its cgroups are its own:
//! whatever is in them at the end is killed. Jobs: `jobs.rs`; settings: `config.rs`.
//!
//! What v2 cannot do on a host whose controllers belong to v1: limit memory or cores, so no job is
//! killed for its memory there, and `jobacct_gather` reads /proc instead of cgroups.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use jobtrace::cgroup::hierarchies::Hierarchies;
use tempfile::TempDir;

use super::{PATIENCE, cgroups, daemon::Daemon, folder, free_port, program, run, wait_for};

mod config;
mod jobs;
mod shim;
mod stale;

pub use jobs::{Job, JobId, StepUse, Task};

/// How long the last jobs may take to end at the end.
const LAST_JOBS: Duration = Duration::from_secs(10);
/// Controllers that Slurm makes directories in, v1.
const CONTROLLERS: &[&str] = &["freezer", "cpuset", "memory", "cpuacct", "devices"];

/// Which cgroup plugin slurmd uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `cgroup/v1`: `/slurm_<node>/uid_<U>/job_<N>/step_<S>/task_<T>`.
    V1,
    /// `cgroup/v2`: `/system.slice/<node>_slurmstepd.scope/job_<N>/step_<S>/user/task_<T>`.
    V2,
}

/// A running Slurm.
#[derive(Debug)]
pub struct Slurm {
    mode: Mode,
    node: String,
    // Dropped in this order.
    daemon: Option<Daemon>,
    controller: Option<Daemon>,
    munge: Option<Daemon>,
    own_cgroups: Vec<PathBuf>,
    _slice: cgroups::Shared,
    folder: TempDir,
}

impl Slurm {
    /// Starts one and waits until its node takes jobs, 1 to 2 s.
    ///
    /// # Errors
    /// When a package is missing, the host has not the hierarchies of `mode`, or a server does not
    /// start: the end of its log says why.
    pub fn start(mode: Mode) -> Result<Self> {
        Self::start_with(mode, "")
    }

    /// As [`Self::start`], with `more` lines in its slurm.conf.
    ///
    /// # Errors
    /// As there.
    pub fn start_with(mode: Mode, more: &str) -> Result<Self> {
        for name in ["srun", "sbatch", "scancel", "scontrol", "sstat", "squeue"] {
            program(name, "slurm-client")?;
        }
        let found = Hierarchies::read()?;
        if mode == Mode::V1 {
            ensure!(
                ["freezer", "memory", "cpuset", "cpuacct"]
                    .iter()
                    .all(|&name| found.v1(name).is_some()),
                "no Slurm on cgroup v1 here: its hierarchies are not mounted"
            );
        }
        stale::remove(&found);
        let folder = folder("slurm")?;
        let node = node_name();
        let (own_cgroups, slice) = own_cgroups(mode, &found, &node)?;
        let mut slurm = Self {
            mode,
            node,
            daemon: None,
            controller: None,
            munge: None,
            own_cgroups,
            _slice: slice,
            folder,
        };
        slurm.start_servers(&found, more)?;
        Ok(slurm)
    }

    /// Which cgroup plugin it uses.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The node's name, which is in the path of its cgroups.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// A folder that jobs of every user may write to; their outputs are there.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// The cgroups that hold its jobs' and no others: one for each hierarchy.
    pub fn own_cgroups(&self) -> &[PathBuf] {
        &self.own_cgroups
    }

    /// The end of what slurmctld and slurmd have logged.
    pub fn last_log(&self) -> String {
        let end = |name: &str| {
            let text = fs::read(self.path(name)).unwrap_or_default();
            String::from_utf8_lossy(&text[text.len().saturating_sub(2_000)..]).into_owned()
        };
        ["log/slurmctld.log", "log/slurmd.log"].map(end).join("\n")
    }

    /// Kills slurmd and starts it again, as an upgrade does: jobs go on meanwhile.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn restart_slurmd(&mut self) -> Result<()> {
        self.daemon = None;
        self.start_slurmd(&Hierarchies::read()?)
    }

    /// A command of Slurm's that talks to this one.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("SLURM_CONF", self.configuration()).current_dir(self.folder());
        command
    }

    fn configuration(&self) -> PathBuf {
        self.path("etc/slurm.conf")
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn start_servers(&mut self, found: &Hierarchies, more: &str) -> Result<()> {
        for name in ["etc", "state", "spool", "munge", "log", "out"] {
            fs::create_dir(self.path(name))?;
        }
        fs::set_permissions(self.path("munge"), Permissions::from_mode(0o755))?;
        fs::set_permissions(self.folder(), Permissions::from_mode(0o1777))?;
        self.start_munge()?;
        let settings = config::Settings {
            mode: self.mode,
            folder: self.folder.path(),
            node: &self.node,
            host: &host_name(),
            ports: [free_port()?, free_port()?],
            more,
        };
        fs::write(self.configuration(), settings.slurm())?;
        fs::write(self.path("etc/cgroup.conf"), settings.cgroup(found)?)?;
        let mut controller = self.server("slurmctld", "slurmctld")?;
        controller.arg("-c");
        self.controller = Some(Daemon::start(&mut controller, &self.path("log/slurmctld.out"))?);
        self.start_slurmd(found)
    }

    /// As root: who runs it owns its key.
    fn start_munge(&mut self) -> Result<()> {
        let key = self.path("munge/key");
        let mut secret = [0_u8; 128];
        rustix::io::read(fs::File::open("/dev/urandom")?, &mut secret)?;
        fs::write(&key, secret)?;
        fs::set_permissions(&key, Permissions::from_mode(0o400))?;
        let mut command = Command::new(program("munged", "munge")?);
        command.args(["--foreground", "--force", "--num-threads=1", "--key-file"]).arg(&key);
        for (option, name) in [
            ("--socket", "sock"),
            ("--seed-file", "seed"),
            ("--pid-file", "pid"),
            ("--log-file", "log"),
        ] {
            command.arg(option).arg(self.path("munge").join(name));
        }
        let mut munge = Daemon::start(&mut command, &self.path("log/munged.out"))?;
        let socket = self.path("munge/sock");
        munge.wait_until("munged listens", PATIENCE, || socket.exists().then_some(()))?;
        self.munge = Some(munge);
        Ok(())
    }

    fn start_slurmd(&mut self, found: &Hierarchies) -> Result<()> {
        let mut command = self.server("slurmd", "slurmd")?;
        command.args(["-N", &self.node]);
        if self.mode == Mode::V2 && !found.v1.is_empty() {
            command.env("LD_PRELOAD", shim::compiled(self.folder.path())?);
        }
        let mut daemon = Daemon::start(&mut command, &self.path("log/slurmd.out"))?;
        daemon.wait_until("slurmd's node takes jobs", PATIENCE, || {
            let output = self.command("sinfo").args(["--noheader", "--format=%T"]).output().ok()?;
            let states = String::from_utf8_lossy(&output.stdout).into_owned();
            ["idle", "mixed", "allocated"].contains(&states.trim()).then_some(())
        })?;
        self.daemon = Some(daemon);
        Ok(())
    }

    fn server(&self, name: &str, package: &str) -> Result<Command> {
        let mut command = Command::new(program(name, package)?);
        command.arg("-D").arg("-f").arg(self.configuration());
        Ok(command)
    }

    /// Ends the jobs that are still there, by Slurm as far as it answers.
    fn end_jobs(&self) {
        let ids = |_: ()| {
            let output =
                self.command("squeue").args(["--noheader", "--format=%A"]).output().ok()?;
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        for job in ids(()).unwrap_or_default().split_whitespace() {
            let _ = self.command("scancel").args(["--quiet", job]).output();
        }
        let none = || ids(()).is_none_or(|text| text.trim().is_empty()).then_some(());
        if let Err(error) = wait_for("the last jobs' end", LAST_JOBS, none) {
            eprintln!("slurm: {error}: their processes are killed");
        }
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        if self.controller.is_some() && self.daemon.is_some() {
            self.end_jobs();
        }
        // Before slurmctld, which would call its silence an error, and before munged, whom both ask.
        self.daemon = None;
        self.controller = None;
        self.munge = None;
        for cgroup in &self.own_cgroups {
            if let Err(error) = cgroups::remove(cgroup) {
                eprintln!("slurm: {error:#}");
            }
        }
    }
}

/// Unique on the machine; `jobtrace` in it makes the residue check see what is left. `stale.rs` reads
/// the process id back.
fn node_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("jobtrace{}n{number}", std::process::id())
}

/// As slurmctld compares it: up to the first dot.
fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    name.split('.').next().unwrap_or("localhost").to_owned()
}

/// The directories that will be this node's own; makes and holds the slice of v2.
fn own_cgroups(
    mode: Mode,
    found: &Hierarchies,
    node: &str,
) -> Result<(Vec<PathBuf>, cgroups::Shared)> {
    match mode {
        Mode::V1 => {
            let mut own: Vec<PathBuf> = CONTROLLERS
                .iter()
                .filter_map(|name| Some(found.v1(name)?.mount.join(format!("slurm_{node}"))))
                .collect();
            own.dedup();
            Ok((own, cgroups::Shared::before([])))
        }
        Mode::V2 => {
            let mount = &found.v2.as_ref().context("cgroup v2 is not mounted")?.mount;
            let slice = mount.join("system.slice");
            let shared = cgroups::Shared::make([slice.clone()])?;
            Ok((vec![slice.join(format!("{node}_slurmstepd.scope"))], shared))
        }
    }
}
