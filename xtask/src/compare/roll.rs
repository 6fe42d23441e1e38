//! Which tracers work here: each is started once and ended, before anything is measured. One that
//! is missing or refused is named with the reason and left out of what follows.

use super::peers::Peer;
use super::subjects::{Place, Subject, USUAL_INTERVAL_S};
use crate::process::{find, output, say, target_dir};
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
pub fn call(place: &Place, subjects: Vec<Subject>) -> (Vec<Subject>, Vec<Entry>) {
    let (mut works, mut entries) = (Vec::new(), Vec::new());
    for subject in subjects {
        let entry = match subject {
            Subject::Empty | Subject::Run => {
                works.push(subject);
                continue;
            }
            Subject::Agent => Entry {
                id: subject.id(),
                tells: "sched, faults (major), block: all jobs",
                version: version_of(&target_dir().join("release/jobtrace")),
                seen: look(place, subject),
            },
            Subject::Peer(peer) => Entry {
                id: peer.id,
                tells: peer.tells,
                version: version_of_peer(peer),
                seen: look(place, subject),
            },
        };
        match &entry.seen {
            Ok(_) => works.push(subject),
            Err(why) => say(format_args!("{} is skipped: {why}", entry.id)),
        }
        entries.push(entry);
    }
    (works, entries)
}

fn look(place: &Place, subject: Subject) -> Result<Seen, String> {
    let look = || {
        let beside = subject.start(place, USUAL_INTERVAL_S)?;
        let watch = &beside.attached.watch;
        let programs: BTreeSet<String> =
            beside.attached.read_programs()?.into_iter().map(|program| program.name).collect();
        let map_bytes = watch.map_bytes.values().sum();
        beside.end()?;
        Ok::<_, anyhow::Error>(Seen { programs: programs.into_iter().collect(), map_bytes })
    };
    look().map_err(|error| format!("{error:#}"))
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
