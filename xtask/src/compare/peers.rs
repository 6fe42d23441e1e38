//! What a user would pick instead of jobtrace, as a table: how each is started, what it tells, how
//! it is got. A peer that is not installed is named and skipped.

use super::cases::Kind;
use super::one_liners::{BLOCK_BY_CGROUP, FAULTS_BY_CGROUP, RUN_QUEUE_BY_CGROUP};
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
    /// Its program; some distributions put `bpf-` before the name.
    pub program: &'static str,
    /// The kinds of events that it looks at.
    pub kinds: &'static [Kind],
    /// Whether it keeps run-queue latency as a histogram for each cgroup or for a cgroup.
    pub is_run_queue_by_cgroup: bool,
    /// How it is got.
    pub cure: &'static str,
    how: How,
}

/// How a peer is started.
enum How {
    /// With a one-liner; `INTERVAL` in it is replaced.
    Bpftrace(&'static str),
    /// With these options and the interval in seconds.
    Libbpf(&'static [&'static str]),
    /// With these options, the cgroup v2 root and the interval in seconds.
    LibbpfCgroup,
    /// Until it is ended: it has no interval.
    LibbpfEndless,
    /// With a configuration that has only these samplers, or all.
    Rezolus(&'static [&'static str]),
    /// Recording into a folder of ours at the interval.
    Below,
}

const BPFTRACE: &str = "apt-get install bpftrace";
const LIBBPF_TOOLS: &str = "apt-get install libbpf-tools";
const REZOLUS: &str = "apt-get install clang libelf-dev && \
     cargo install --git https://github.com/iopsystems/rezolus rezolus";
const BELOW: &str =
    "apt-get install clang libelf-dev && cargo install below (clang 19 does, 14 does not)";
const SWITCH: &[Kind] = &[Kind::Switch, Kind::Compile, Kind::Compute];
const BLOCK: &[Kind] = &[Kind::Block];

/// All of them.
pub const PEERS: &[Peer] = &[
    Peer {
        id: "bpftrace-runq",
        tells: "run-queue latency by cgroup, one-liner",
        program: "bpftrace",
        kinds: SWITCH,
        is_run_queue_by_cgroup: true,
        cure: BPFTRACE,
        how: How::Bpftrace(RUN_QUEUE_BY_CGROUP),
    },
    Peer {
        id: "runqlat-cgroup",
        tells: "run-queue latency of one cgroup (`-c`)",
        program: "runqlat",
        kinds: SWITCH,
        is_run_queue_by_cgroup: true,
        cure: LIBBPF_TOOLS,
        how: How::LibbpfCgroup,
    },
    Peer {
        id: "runqlat",
        tells: "run-queue latency of the node",
        program: "runqlat",
        kinds: &[Kind::Switch],
        is_run_queue_by_cgroup: false,
        cure: LIBBPF_TOOLS,
        how: How::Libbpf(&[]),
    },
    Peer {
        id: "cpudist-cgroup",
        tells: "time on a CPU of one cgroup (`-c`)",
        program: "cpudist",
        kinds: &[Kind::Switch],
        is_run_queue_by_cgroup: false,
        cure: LIBBPF_TOOLS,
        how: How::LibbpfCgroup,
    },
    Peer {
        id: "offcputime",
        tells: "time off a CPU by stack",
        program: "offcputime",
        kinds: &[Kind::Switch],
        is_run_queue_by_cgroup: false,
        cure: LIBBPF_TOOLS,
        how: How::LibbpfEndless,
    },
    Peer {
        id: "rezolus-sched",
        tells: "its scheduler sampler alone: the node's histograms",
        program: "rezolus",
        kinds: SWITCH,
        is_run_queue_by_cgroup: false,
        cure: REZOLUS,
        how: How::Rezolus(&["scheduler_runqueue"]),
    },
    Peer {
        id: "bpftrace-fault",
        tells: "page faults counted by cgroup, one-liner",
        program: "bpftrace",
        kinds: &[Kind::Fault, Kind::Compile],
        is_run_queue_by_cgroup: false,
        cure: BPFTRACE,
        how: How::Bpftrace(FAULTS_BY_CGROUP),
    },
    Peer {
        id: "bpftrace-block",
        tells: "block latency by cgroup, one-liner",
        program: "bpftrace",
        kinds: BLOCK,
        is_run_queue_by_cgroup: false,
        cure: BPFTRACE,
        how: How::Bpftrace(BLOCK_BY_CGROUP),
    },
    Peer {
        id: "biolatency-cgroup",
        tells: "block latency of one cgroup (`-c`)",
        program: "biolatency",
        kinds: BLOCK,
        is_run_queue_by_cgroup: false,
        cure: LIBBPF_TOOLS,
        how: How::LibbpfCgroup,
    },
    Peer {
        id: "biolatency",
        tells: "block latency of the node by disk (`-D`)",
        program: "biolatency",
        kinds: BLOCK,
        is_run_queue_by_cgroup: false,
        cure: LIBBPF_TOOLS,
        how: How::Libbpf(&["-D"]),
    },
    Peer {
        id: "rezolus-block",
        tells: "its block samplers alone: the node's histograms",
        program: "rezolus",
        kinds: BLOCK,
        is_run_queue_by_cgroup: false,
        cure: REZOLUS,
        how: How::Rezolus(&["blockio_latency", "blockio_requests"]),
    },
    Peer {
        id: "rezolus",
        tells: "all its samplers, as it comes",
        program: "rezolus",
        kinds: &[Kind::Switch, Kind::Block, Kind::Compile, Kind::Compute],
        is_run_queue_by_cgroup: false,
        cure: REZOLUS,
        how: How::Rezolus(&[]),
    },
    Peer {
        id: "below",
        tells: "`below record`: reads files, at intervals",
        program: "below",
        kinds: SWITCH,
        is_run_queue_by_cgroup: false,
        cure: BELOW,
        how: How::Below,
    },
];

/// Peers look for tracefs and debugfs, which a node need not have mounted. They get them in a mount
/// namespace of their own, so that nothing is left behind however they end.
const WITH_TRACEFS: &str = "\
[ -d /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing
[ -d /sys/kernel/debug/tracing/events ] || mount -t debugfs debugfs /sys/kernel/debug
exec \"$@\"";

impl Peer {
    /// Where its program is, if it is installed.
    pub fn find(&self) -> Option<PathBuf> {
        find(self.program).or_else(|| find(&format!("bpf-{}", self.program)))
    }

    /// Whether it tells what it has seen by itself every so often.
    pub fn has_interval(&self) -> bool {
        match self.how {
            How::Bpftrace(_) | How::Libbpf(_) | How::LibbpfCgroup | How::Below => true,
            How::LibbpfEndless | How::Rezolus(_) => false,
        }
    }

    /// Whether its version is that of the package libbpf-tools.
    pub fn is_in_package(&self) -> bool {
        self.cure == LIBBPF_TOOLS
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
        let program = self.find().with_context(|| format!("missing: {}", self.cure))?;
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
            How::Libbpf(options) => options.iter().map(OsString::from).chain([interval]).collect(),
            How::LibbpfCgroup => {
                let root = v2.context("no cgroup v2 hierarchy is mounted for `-c`")?;
                vec!["-c".into(), root.into(), interval]
            }
            How::LibbpfEndless => Vec::new(),
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

    #[test]
    fn each_peer_has_its_own_id_and_a_cure() {
        let ids: BTreeSet<_> = PEERS.iter().map(|peer| peer.id).collect();
        assert_eq!(ids.len(), PEERS.len());
        assert!(PEERS.iter().all(|peer| peer.cure.contains(" install ")));
    }

    #[test]
    fn intervals_and_cgroups_reach_the_peers() {
        let words = |id: &str, v2: Option<&str>| {
            let peer = PEERS.iter().find(|peer| peer.id == id).expect("in the table");
            let words = peer.arguments(Path::new("/nowhere"), v2.map(Path::new), 7)?;
            Ok::<_, anyhow::Error>(
                words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>(),
            )
        };
        let line = words("bpftrace-runq", None).expect("needs nothing");
        assert!(line[1].contains("interval:s:7 ") && !line[1].contains("INTERVAL"), "{line:?}");
        assert_eq!(words("biolatency", None).expect("needs nothing"), ["-D", "7"]);
        assert_eq!(words("runqlat-cgroup", Some("/cg")).expect("has it"), ["-c", "/cg", "7"]);
        assert!(words("runqlat-cgroup", None).is_err());
    }

    #[test]
    fn rezolus_is_told_which_samplers_to_run() {
        let one = rezolus_config(&["blockio_latency"]);
        assert!(one.contains("enabled = false\n[samplers.blockio_latency]\nenabled = true\n"));
        assert!(rezolus_config(&[]).ends_with("[defaults]\nenabled = true\n"));
    }
}
