//! What a user would pick instead of jobtrace, as a table: how each is started, what it tells, how
//! it is got. A peer that is not installed is named and skipped.

use super::one_liners::{BLOCK_BY_CGROUP, FAULTS_BY_CGROUP, RUN_QUEUE_BY_CGROUP};
use super::workload::Kind::{self, Block, Compile, Compute, Fault, Switch};
use crate::process::find;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One peer in one way of using it.
pub struct Peer {
    /// What `--peers` calls it.
    pub id: &'static str,
    /// What it tells, and by what.
    pub tells: &'static str,
    /// The kinds of events that it looks at.
    pub kinds: &'static [Kind],
    how: How,
}

/// How a peer is started.
enum How {
    /// bpftrace with a one-liner; `INTERVAL` in it is replaced.
    Bpftrace(&'static str),
    /// A program of libbpf-tools with these options and the interval in seconds.
    Libbpf(&'static str, &'static [&'static str]),
    /// One with the cgroup v2 root and the interval in seconds.
    LibbpfCgroup(&'static str),
    /// One that goes on until it is ended: it has no interval.
    LibbpfEndless(&'static str),
    /// rezolus with a configuration that has only these samplers, or all.
    Rezolus(&'static [&'static str]),
    /// below, recording into a folder of ours at the interval.
    Below,
}

const fn peer(id: &'static str, how: How, kinds: &'static [Kind], tells: &'static str) -> Peer {
    Peer { id, tells, kinds, how }
}

const SCHED: &[Kind] = &[Switch, Compile, Compute];
const RUN_QUEUE: How = How::Bpftrace(RUN_QUEUE_BY_CGROUP);
const BLOCK: How = How::Bpftrace(BLOCK_BY_CGROUP);
const SAMPLERS: How = How::Rezolus(&["blockio_latency", "blockio_requests"]);
const ALL_KINDS: &[Kind] = &[Switch, Block, Compile, Compute];

/// All of them.
pub const PEERS: [Peer; 13] = [
    peer("bpftrace-runq", RUN_QUEUE, SCHED, "run-queue latency by cgroup, one-liner"),
    peer(
        "runqlat-cgroup",
        How::LibbpfCgroup("runqlat"),
        SCHED,
        "run-queue latency of one cgroup (`-c`)",
    ),
    peer("runqlat", How::Libbpf("runqlat", &[]), &[Switch], "run-queue latency of the node"),
    peer(
        "cpudist-cgroup",
        How::LibbpfCgroup("cpudist"),
        &[Switch],
        "time on a CPU of one cgroup (`-c`)",
    ),
    peer("offcputime", How::LibbpfEndless("offcputime"), &[Switch], "time off a CPU by stack"),
    peer(
        "rezolus-sched",
        How::Rezolus(&["scheduler_runqueue"]),
        SCHED,
        "its scheduler sampler alone: the node's histograms",
    ),
    peer(
        "bpftrace-fault",
        How::Bpftrace(FAULTS_BY_CGROUP),
        &[Fault, Compile],
        "page faults counted by cgroup, one-liner",
    ),
    peer("bpftrace-block", BLOCK, &[Block], "block latency by cgroup, one-liner"),
    peer(
        "biolatency-cgroup",
        How::LibbpfCgroup("biolatency"),
        &[Block],
        "block latency of one cgroup (`-c`)",
    ),
    peer(
        "biolatency",
        How::Libbpf("biolatency", &["-D"]),
        &[Block],
        "block latency of the node by disk (`-D`)",
    ),
    peer("rezolus-block", SAMPLERS, &[Block], "its block samplers alone: the node's histograms"),
    peer("rezolus", How::Rezolus(&[]), ALL_KINDS, "all its samplers, as it comes"),
    peer("below", How::Below, SCHED, "`below record`: reads files, at intervals"),
];

/// Those that keep run-queue latency as a histogram for each cgroup or for a cgroup.
pub const RUN_QUEUE_BY_CGROUP_IDS: [&str; 2] = ["bpftrace-runq", "runqlat-cgroup"];

/// Peers look for tracefs and debugfs, which a node need not have mounted. They get them in a mount
/// namespace of their own, so that nothing is left behind however they end.
const WITH_TRACEFS: &str = "\
[ -d /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing
[ -d /sys/kernel/debug/tracing/events ] || mount -t debugfs debugfs /sys/kernel/debug
exec \"$@\"";

impl Peer {
    fn program(&self) -> &'static str {
        match self.how {
            How::Bpftrace(_) => "bpftrace",
            How::Libbpf(name, _) | How::LibbpfCgroup(name) | How::LibbpfEndless(name) => name,
            How::Rezolus(_) => "rezolus",
            How::Below => "below",
        }
    }

    /// How it is got.
    fn cure(&self) -> &'static str {
        match self.how {
            How::Bpftrace(_) => "apt-get install bpftrace",
            How::Rezolus(_) => {
                "apt-get install clang libelf-dev && \
                 cargo install --git https://github.com/iopsystems/rezolus rezolus"
            }
            How::Below => {
                "apt-get install clang libelf-dev && cargo install below (clang 19 does, 14 does not)"
            }
            _ => "apt-get install libbpf-tools",
        }
    }

    /// Where its program is, if it is installed; some distributions put `bpf-` before the name.
    pub fn find(&self) -> Option<PathBuf> {
        find(self.program()).or_else(|| find(&format!("bpf-{}", self.program())))
    }

    /// Whether it tells what it has seen by itself every so often.
    pub fn has_interval(&self) -> bool {
        !matches!(self.how, How::LibbpfEndless(_) | How::Rezolus(_))
    }

    /// Whether its version is that of the package libbpf-tools.
    pub fn is_in_package(&self) -> bool {
        matches!(self.how, How::Libbpf(..) | How::LibbpfCgroup(_) | How::LibbpfEndless(_))
    }

    /// Whether BPF programs of it are to be waited for; `below` may work without.
    pub fn needs_programs(&self) -> bool {
        !matches!(self.how, How::Below)
    }

    /// The command; its files lie in `folder`, `v2` is the root of the cgroup v2 hierarchy.
    ///
    /// # Errors
    /// When it is not installed, or its configuration cannot be written.
    pub fn command(&self, folder: &Path, v2: Option<&Path>, interval_s: u64) -> Result<Command> {
        let program = self.find().with_context(|| format!("missing: {}", self.cure()))?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", WITH_TRACEFS, "sh"]).arg(program);
        command.args(self.arguments(folder, v2, interval_s)?);
        Ok(command)
    }

    fn arguments(&self, folder: &Path, v2: Option<&Path>, seconds: u64) -> Result<Vec<OsString>> {
        let interval = OsString::from(seconds.to_string());
        Ok(match self.how {
            How::Bpftrace(text) => {
                vec!["-e".into(), text.replace("INTERVAL", &seconds.to_string()).into()]
            }
            How::Libbpf(_, options) => {
                options.iter().map(OsString::from).chain([interval]).collect()
            }
            How::LibbpfCgroup(_) => {
                let root = v2.context("no cgroup v2 hierarchy is mounted for `-c`")?;
                vec!["-c".into(), root.into(), interval]
            }
            How::LibbpfEndless(_) => Vec::new(),
            How::Rezolus(samplers) => {
                let file = folder.join("rezolus.toml");
                fs::write(&file, rezolus_config(samplers)).context("write rezolus.toml")?;
                vec![file.into()]
            }
            How::Below => {
                let file = folder.join("below.conf");
                let store = folder.join("store");
                let mut text = format!("log_dir = {folder:?}\nstore_dir = {store:?}\n");
                if let Some(root) = v2 {
                    text.push_str(&format!("cgroup_root = {root:?}\n"));
                }
                fs::write(&file, text).context("write below.conf")?;
                let (option, record, every) = ("--config", "record", "--interval-s");
                vec![option.into(), file.into(), record.into(), every.into(), interval]
            }
        })
    }
}

/// Port 0 is any free one: nobody asks for its values here. A sampler that the kernel refuses says
/// so at the level `debug` only.
fn rezolus_config(samplers: &[&str]) -> String {
    let all = samplers.is_empty();
    let mut text = format!(
        "[general]\nlisten = \"127.0.0.1:0\"\n[log]\nlevel = \"debug\"\n\
         [defaults]\nenabled = {all}\n"
    );
    for sampler in samplers {
        text.push_str(&format!("[samplers.{sampler}]\nenabled = true\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn words(id: &str, v2: Option<&str>) -> Result<Vec<String>> {
        let peer = PEERS.iter().find(|peer| peer.id == id).expect("in the table");
        let words = peer.arguments(Path::new("/nowhere"), v2.map(Path::new), 7)?;
        Ok(words.iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn each_peer_has_its_own_id() {
        let ids: BTreeSet<_> = PEERS.iter().map(|peer| peer.id).collect();
        assert_eq!(ids.len(), PEERS.len());
        assert!(RUN_QUEUE_BY_CGROUP_IDS.iter().all(|id| ids.contains(id)));
    }

    #[test]
    fn intervals_and_cgroups_reach_the_peers() {
        let line = words("bpftrace-runq", None).expect("needs nothing");
        assert!(line[1].contains("interval:s:7 ") && !line[1].contains("INTERVAL"), "{line:?}");
        assert_eq!(words("biolatency", None).expect("needs nothing"), ["-D", "7"]);
        assert_eq!(words("runqlat-cgroup", Some("/cg")).expect("has it"), ["-c", "/cg", "7"]);
        assert!(words("runqlat-cgroup", None).is_err());
        let one = rezolus_config(&["blockio_latency"]);
        assert!(one.contains("enabled = false\n[samplers.blockio_latency]\nenabled = true\n"));
        assert!(rezolus_config(&[]).ends_with("[defaults]\nenabled = true\n"));
    }
}
