//! What was seen of the software of a job, as the kernel tells it: raw paths. They stay in memory; what is told of them is
//! [`super::software`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// First sightings of one lease. Paths are a set; numbers are the lease's so far, and only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Programs that were executed.
    pub programs: Vec<SeenProgram>,
    /// Files that were mapped to be executed.
    pub libraries: Vec<SeenLibrary>,
    /// Python modules that were opened or read.
    pub packages: Vec<SeenPackage>,
    /// The most Python processes at once; `None` where nobody counts them.
    pub python_processes_most: Option<u64>,
    /// Sightings that found no room.
    pub lost: u64,
    /// How the Python modules were seen.
    pub means: Means,
    /// Whether compiled modules were mapped that were not seen otherwise: pure ones beside them are missing.
    pub is_partial: bool,
    /// Whether the job was watched from its begin on.
    pub since_begin: bool,
    /// What the job's environment says of telling it.
    pub consent: Consent,
}

impl Seen {
    /// Adds what another lease of the same job was seen to run. Consent is the job's.
    pub fn add(&mut self, other: Self) {
        let mut programs = BTreeMap::<String, u64>::new();
        for SeenProgram { path, executions } in self.programs.drain(..).chain(other.programs) {
            *programs.entry(path).or_default() += executions;
        }
        let program = |(path, executions)| SeenProgram { path, executions };
        self.programs = programs.into_iter().map(program).collect();
        join(&mut self.libraries, other.libraries);
        join(&mut self.packages, other.packages);
        self.python_processes_most = self.python_processes_most.max(other.python_processes_most);
        self.lost = self.lost.saturating_add(other.lost);
        self.means = self.means.max(other.means);
        self.is_partial |= other.is_partial;
        self.since_begin &= other.since_begin;
    }
}

fn join<T: Ord>(own: &mut Vec<T>, others: Vec<T>) {
    own.extend(others);
    own.sort();
    own.dedup();
}

/// What a job's environment says of telling which software it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// Nobody could read it: numbers alone are told.
    Unknown,
    /// Nothing against it.
    #[default]
    Given,
    /// Nobody could read that of one of its first programs, which may have refused: numbers alone are told.
    Missed,
    /// It asks that nothing is told.
    Refused,
}

impl Consent {
    /// What is known once another program was asked and told `next`.
    pub fn heard(self, next: Self) -> Self {
        match (self, next) {
            (Self::Unknown, next) => next,
            (_, Self::Refused) => Self::Refused,
            (known, _) => known,
        }
    }

    /// Whether nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenProgram {
    /// Path of its file.
    pub path: String,
    /// How often it was executed.
    pub executions: u64,
}

/// A shared library.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenLibrary {
    /// Path of its file.
    pub path: String,
    /// Path of the executable that mapped it.
    pub by: String,
}

/// A Python module's topmost part.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenPackage {
    /// Path of the folder that modules are found in: `…/site-packages`, `…/dist-packages`, `…/python3.11`.
    pub site: String,
    /// Inode of that folder, where it is known: a path of a container may be another folder's here.
    pub site_inode: Option<u64>,
    /// Name in that folder, as on disk: `numpy`, `six.py`, `_cffi_backend.cpython-311-x86_64-linux-gnu.so`.
    pub name: String,
    /// Path of the interpreter.
    pub interpreter: String,
}

/// How Python modules are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// When their files are opened.
    #[default]
    Open,
    /// When their files' first pages are read.
    Read,
    /// By the compiled ones' mappings alone: pure ones are missing.
    Extensions,
    /// By nothing, nor are libraries: programs alone are told.
    Programs,
}

impl Means {
    /// As the record writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Extensions => "extensions",
            Self::Programs => "programs",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_stands_unless_silence_is_asked_for() {
        use Consent::{Given, Missed, Refused, Unknown};
        for next in [Unknown, Given, Missed, Refused] {
            assert_eq!(Unknown.heard(next), next);
            assert_eq!(Refused.heard(next), Refused);
            for known in [Given, Missed] {
                assert_eq!(known.heard(next), if next == Refused { Refused } else { known });
            }
        }
    }

    #[test]
    fn what_two_leases_ran_is_one_jobs() {
        let program = |path: &str, executions| SeenProgram { path: path.into(), executions };
        let library =
            |path: &str| SeenLibrary { path: path.into(), by: "/usr/bin/python3.11".into() };
        let mut seen = Seen {
            programs: vec![program("/usr/bin/true", 2), program("/usr/bin/env", 1)],
            libraries: vec![library("/lib/b.so")],
            python_processes_most: Some(3),
            lost: 1,
            since_begin: true,
            ..Seen::default()
        };
        let other = Seen {
            programs: vec![program("/usr/bin/true", 5), program("/usr/bin/cat", 1)],
            libraries: vec![library("/lib/b.so"), library("/lib/a.so")],
            python_processes_most: Some(2),
            lost: 2,
            since_begin: false,
            ..Seen::default()
        };
        seen.add(other);
        let programs = [("cat", 1), ("env", 1), ("true", 7)];
        assert_eq!(
            seen.programs,
            programs.map(|(name, n)| program(&format!("/usr/bin/{name}"), n))
        );
        assert_eq!(seen.libraries, [library("/lib/a.so"), library("/lib/b.so")]);
        assert_eq!((seen.python_processes_most, seen.lost, seen.since_begin), (Some(3), 3, false));
    }
}
