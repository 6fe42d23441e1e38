//! Which tracers work here: each is started once and ended, before anything is measured. One that
//! is missing or refused is named with the reason and left out of what follows.

use super::found::told;
use super::peers::Peer;
use super::tracers::{Place, Setting, Tracer};
use super::workload::jobtrace;
use crate::process::{find, output, say};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// One tracer.
pub struct Entry {
    /// Who.
    pub id: &'static str,
    /// What it tells.
    pub tells: &'static str,
    /// Which version, in its own words.
    pub version: String,
    /// Its BPF programs and the memory of its maps, or why it does not work here.
    pub seen: Result<Seen, String>,
}

/// What a tracer holds in the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Names of its programs, each once.
    pub programs: Vec<String>,
    /// Its maps.
    pub map_bytes: u64,
}

/// Starts each; those that work, and what there is to say of all.
pub fn call(place: &Place, tracers: Vec<Tracer>) -> (Vec<Tracer>, Vec<Entry>) {
    let (mut works, mut entries) = (Vec::new(), Vec::new());
    for tracer in tracers {
        let entry = match tracer {
            Tracer::Empty | Tracer::Run => {
                works.push(tracer);
                continue;
            }
            Tracer::Agent => Entry {
                id: tracer.id(),
                tells: "sched, faults (major), block: all jobs",
                version: version_of(&jobtrace()),
                seen: look(place, tracer),
            },
            Tracer::Peer(peer) => Entry {
                id: peer.id,
                tells: peer.tells,
                version: version_of_peer(peer),
                seen: look(place, tracer),
            },
        };
        match &entry.seen {
            Ok(_) => works.push(tracer),
            Err(why) => say(format_args!("{} is skipped: {why}", entry.id)),
        }
        entries.push(entry);
    }
    (works, entries)
}

fn look(place: &Place, tracer: Tracer) -> Result<Seen, String> {
    let look = || {
        let beside = tracer.start(place, Setting::default())?;
        let programs = beside.attached.read_programs()?.into_iter().map(|program| program.name);
        let programs: BTreeSet<String> = programs.collect();
        let map_bytes = beside.attached.watch.all_map_bytes();
        beside.attached.end()?;
        Ok(Seen { programs: programs.into_iter().collect(), map_bytes })
    };
    told(look())
}

fn version_of_peer(peer: &Peer) -> String {
    let Some(program) = peer.find() else { return "–".to_owned() };
    if peer.is_in_package() {
        // The tools' own version is 0.1 whatever they were built from.
        let of = |manager: &str, words: &[&str]| {
            find(manager)?;
            let mut command = Command::new(manager);
            output(command.args(words).arg("libbpf-tools").stderr(Stdio::null())).ok()
        };
        let package = of("dpkg-query", &["-W", "-f=${Package} ${Version}"])
            .or_else(|| of("rpm", &["--query"]));
        if let Some(package) = package {
            return package.trim().to_owned();
        }
    }
    version_of(&program)
}

fn version_of(program: &Path) -> String {
    let printed = output(Command::new(program).arg("--version")).unwrap_or_default();
    let first = printed.lines().find(|line| !line.trim().is_empty());
    first.unwrap_or("version unknown").trim().to_owned()
}
