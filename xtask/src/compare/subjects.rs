//! What is attached while a workload runs: nothing but empty programs, jobtrace, or a peer.

use super::attached::Attached;
use super::cases::Kind;
use super::floor::{Floor, HOOKS};
use super::peers::{PEERS, Peer};
use crate::bench::agent;
use crate::bench::workloads::{Tracing, Workload};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// The agent's own interval, by default.
pub const USUAL_INTERVAL_S: u64 = 10;
/// The hooks on which jobtrace has programs in its full mode.
const OUR_HOOKS: [&str; 3] = ["sched_switch", "page_fault_user", "block_rq_complete"];

/// One column of the comparison.
#[derive(Clone, Copy)]
pub enum Subject {
    /// Programs that do nothing, on jobtrace's hooks.
    Empty,
    /// `jobtrace agent` with its default configuration, but for the folders.
    Agent,
    /// `jobtrace run --quiet -- WORKLOAD`, which traces in full.
    Run,
    /// One of the peers.
    Peer(&'static Peer),
}

/// Where tracers put their files, and the node's cgroups.
pub struct Place {
    /// A folder of ours.
    pub scratch: PathBuf,
    /// The root of the cgroup v2 hierarchy, where one is mounted.
    pub v2: Option<PathBuf>,
}

/// A tracer with a folder of its own.
pub struct Beside {
    /// The tracer.
    pub attached: Attached,
    _folder: tempfile::TempDir,
}

impl Beside {
    /// Ends the tracer, then removes its folder.
    ///
    /// # Errors
    /// When it had ended before, or its programs stay.
    pub fn end(self) -> Result<()> {
        self.attached.end()
    }
}

impl Subject {
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

    /// Ours have more pairs: they have goals.
    pub fn is_peer(&self) -> bool {
        matches!(self, Self::Peer(_))
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
    pub fn start(&self, place: &Place, interval_s: u64) -> Result<Beside> {
        let folder = tempfile::tempdir_in(&place.scratch).context("make a folder for a tracer")?;
        let (command, needs_programs) = match self {
            Self::Empty | Self::Run => bail!("{} is no process of its own", self.id()),
            Self::Agent => (agent::command(folder.path(), interval_s, None)?, true),
            Self::Peer(peer) => {
                let command = peer.command(folder.path(), place.v2.as_deref(), interval_s)?;
                (command, peer.needs_programs())
            }
        };
        let attached = Attached::start(command, folder.path(), needs_programs)?;
        Ok(Beside { attached, _folder: folder })
    }

    /// Runs the workload with it; nanoseconds per operation.
    ///
    /// # Errors
    /// When either fails.
    pub fn time(&self, place: &Place, workload: &Workload) -> Result<f64> {
        match self {
            Self::Empty => {
                let _floor = floor_of_ours()?;
                workload.run(Tracing::Off)
            }
            Self::Run => workload.run(Tracing::On),
            Self::Agent | Self::Peer(_) => {
                let beside = self.start(place, USUAL_INTERVAL_S)?;
                let time_ns = workload.run(Tracing::Off)?;
                beside.end()?;
                Ok(time_ns)
            }
        }
    }
}

fn floor_of_ours() -> Result<Floor> {
    Floor::attach(HOOKS.into_iter().filter(|hook| OUR_HOOKS.contains(&hook.name)))
}

/// The root of the cgroup v2 hierarchy.
///
/// # Errors
/// When the mounts cannot be read.
pub fn v2_root() -> Result<Option<PathBuf>> {
    let hierarchies = jobtrace::cgroup::hierarchies::Hierarchies::read()?;
    Ok(hierarchies.v2.map(|hierarchy| Path::new(&hierarchy.mount).to_owned()))
}
