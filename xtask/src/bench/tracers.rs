//! What is attached while a workload runs: nothing but empty programs, jobtrace, or a peer.

use super::attached::Attached;
use super::empties::Empties;
use super::peers::{PEERS, Peer};
use super::workload::Kind;
use super::workload::{Workload, jobtrace};
use anyhow::{Context, Result, bail};
use jobtrace::cgroup::hierarchies::Hierarchies;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The agent's own interval, by default.
const USUAL_INTERVAL_S: u64 = 10;

/// How often a tracer tells while a workload is timed. A thread that waits for all others feels each reading: one of the
/// usual interval would come after the workload's end.
fn interval_s(kind: Kind) -> u64 {
    if kind == Kind::Compute { 1 } else { USUAL_INTERVAL_S }
}

/// One of what is compared.
#[derive(Clone, Copy)]
pub enum Tracer {
    /// Programs that do nothing, on jobtrace's hooks.
    Empty,
    /// `jobtrace agent` with its default configuration, but for folders and slots.
    Agent,
    /// `jobtrace run --quiet -- WORKLOAD`, which traces in full.
    Run,
    /// One of the peers.
    Peer(&'static Peer),
}

/// Where tracers put their files, and the node's cgroups.
pub struct Place {
    scratch: PathBuf,
    /// The root of the cgroup v2 hierarchy, where one is mounted.
    v2: Option<PathBuf>,
}

impl Place {
    /// Below this folder of ours.
    ///
    /// # Errors
    /// When the mounts cannot be read.
    pub fn new(scratch: &Path) -> Result<Self> {
        let v2 = Hierarchies::read()?.v2.map(|hierarchy| hierarchy.mount.to_path_buf());
        Ok(Self { scratch: scratch.to_owned(), v2 })
    }
}

/// A tracer with a folder of its own.
pub struct Beside {
    /// The tracer.
    pub attached: Attached,
    /// Its folder.
    pub folder: tempfile::TempDir,
    /// That of its state: in memory, as /run is.
    _state: tempfile::TempDir,
}

/// How a tracer is set; by default as it is by itself.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Between two readings.
    pub interval_s: u64,
    /// Slots of the agent, where not as many as it has by itself.
    pub slots: Option<usize>,
    /// The hierarchy by which the agent tells jobs apart, where it is not to choose.
    pub hierarchy: Option<&'static str>,
    /// How much the agent tells of the software that jobs run, where anything.
    pub census: Option<&'static str>,
}

impl Default for Setting {
    fn default() -> Self {
        Self { interval_s: USUAL_INTERVAL_S, slots: None, hierarchy: None, census: None }
    }
}

impl Tracer {
    /// Empty programs, jobtrace twice, and the peers that are wished for.
    pub fn all(is_wished: impl Fn(&str) -> bool) -> Vec<Self> {
        let peers = PEERS.iter().filter(|peer| is_wished(peer.id)).map(Self::Peer);
        [Self::Empty, Self::Agent, Self::Run].into_iter().chain(peers).collect()
    }

    /// What it is called in tables.
    pub fn id(&self) -> &'static str {
        match self {
            Self::Empty => "empty programs",
            Self::Agent => "jobtrace agent",
            Self::Run => "jobtrace run",
            Self::Peer(peer) => peer.id,
        }
    }

    /// How many runs of so many it takes: ours have goals, a peer's figures are large.
    pub fn share_of(&self, runs: usize) -> usize {
        if matches!(self, Self::Peer(_)) { runs.div_ceil(2) } else { runs }
    }

    /// Whether jobs are not to be slowed by it measurably: what runs on every node, always.
    pub fn has_goal(&self) -> bool {
        matches!(self, Self::Agent)
    }

    /// Whether a workload of this kind makes it work.
    pub fn looks_at(&self, kind: Kind) -> bool {
        match self {
            Self::Empty | Self::Agent | Self::Run => true,
            Self::Peer(peer) => peer.kinds.contains(&kind),
        }
    }

    /// Whether it has BPF programs of its own that a workload can run.
    pub fn has_programs(&self) -> bool {
        match self {
            Self::Empty => false,
            Self::Agent | Self::Run => true,
            Self::Peer(peer) => peer.needs_programs(),
        }
    }

    /// Whether it runs beside the workload and tells at intervals.
    pub fn has_interval(&self) -> bool {
        match self {
            Self::Empty | Self::Run => false,
            Self::Agent => true,
            Self::Peer(peer) => peer.has_interval(),
        }
    }

    /// Starts it, where it is a process beside the workload.
    ///
    /// # Errors
    /// When it is none, is not installed or does not get ready.
    pub fn start(&self, place: &Place, setting: Setting) -> Result<Beside> {
        let folder = tempfile::tempdir_in(&place.scratch).context("make a folder for a tracer")?;
        let state = tempfile::tempdir_in("/dev/shm").context("make a folder in memory")?;
        let (command, needs_programs) = match self {
            Self::Empty | Self::Run => bail!("{} is no process of its own", self.id()),
            Self::Agent => (agent(folder.path(), state.path(), setting)?, true),
            Self::Peer(peer) => {
                let v2 = place.v2.as_deref();
                (peer.command(folder.path(), v2, setting.interval_s)?, peer.needs_programs())
            }
        };
        let attached = Attached::start(command, folder.path(), needs_programs)?;
        Ok(Beside { attached, folder, _state: state })
    }

    /// Runs the workload with it; nanoseconds per operation.
    ///
    /// # Errors
    /// When either fails.
    pub fn time(&self, place: &Place, workload: &Workload) -> Result<f64> {
        match self {
            Self::Empty => {
                let _empties = Empties::on_ours()?;
                workload.run_plain()
            }
            Self::Run => workload.run_traced(),
            Self::Agent | Self::Peer(_) => {
                let interval_s = interval_s(workload.kind);
                let beside = self.start(place, Setting { interval_s, ..Setting::default() })?;
                let time_ns = workload.run_plain()?;
                beside.attached.end()?;
                Ok(time_ns)
            }
        }
    }
}

/// `jobtrace agent` with its configuration, spool and records in `folder`.
fn agent(folder: &Path, state: &Path, setting: Setting) -> Result<Command> {
    let [spool, records] = ["spool", "records"].map(|name| folder.join(name));
    let Setting { interval_s, slots, hierarchy, census } = setting;
    let slots = slots.map_or(String::new(), |slots| format!("slots = {slots}\n"));
    let hierarchy = hierarchy.map_or(String::new(), |name| format!("hierarchy = {name:?}\n"));
    let census = census.map_or(String::new(), |level| format!("census = {level:?}\n"));
    let text = format!(
        "interval = \"{interval_s}s\"\n{slots}{hierarchy}{census}[spool]\ndir = {spool:?}\n[state]\ndir = {state:?}\n\
         [records]\ndir = {records:?}\n"
    );
    let config = folder.join("jobtrace.toml");
    fs::write(&config, text).context("write the agent's configuration")?;
    let mut command = Command::new(jobtrace());
    command.args(["agent", "--config"]).arg(config).stdin(Stdio::null());
    Ok(command)
}
