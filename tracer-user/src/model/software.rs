//! Which software a job ran, as it is told: names without paths. Holds nothing of a user's own but numbers.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::seen::Means;

/// Names that a list has on one node at most; those beyond are counted.
pub const MOST_NAMES: usize = 256;
/// Bytes of a name or a version.
pub const LONGEST_NAME: usize = 64;

/// How much is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Numbers, and whether a GPU's library was loaded.
    Counts,
    /// Names too.
    #[default]
    Names,
    /// Also the C library's parts, and distributions that only their lists of files tell.
    Full,
}

impl Level {
    /// As the record writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Names => "names",
            Self::Full => "full",
        }
    }
}

/// A program that was executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Program {
    /// Name of its file.
    pub name: String,
    /// Its version, where its name or its folder tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it is: `shell`, `python`, `mpi_launcher`, `compiler`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How often it was executed.
    #[serde(default)]
    pub executions: u64,
}

/// A shared library that was mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Library {
    /// Family of its soname: `libopenblas`.
    pub name: String,
    /// Its version, where its name or its folder tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it belongs to: `OpenBLAS`, `CUDA`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

/// A Python package that was imported, or tried to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// The name it is imported by: `sklearn`.
    pub name: String,
    /// The name it is installed by, as all spellings are compared (PEP 503): `scikit-learn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The Python's: `3.11`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
}

/// Where software came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stack {
    /// What kind of one: `conda`, `easybuild`, `spack`, `module`, `container`, …
    pub kind: String,
    /// Its name; absent where it is a user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it was built with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolchain: Option<String>,
}

/// Software of one job, on one node or on all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Software {
    /// How much is told; of several nodes the least.
    pub level: Level,
    /// How Python modules were seen.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub by: BTreeSet<Means>,
    /// Whether the job was watched from its begin on, on every node.
    pub since_begin: bool,
    /// Sightings that found no room.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Whether the job asked that nothing is told: then nothing else is.
    #[serde(skip_serializing_if = "is_false")]
    pub opted_out: bool,
    /// Programs, in order of their names as all lists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<Program>,
    /// Programs that are not named: a user's own, denied ones, those beyond the bound. Of several nodes the largest.
    #[serde(skip_serializing_if = "is_zero")]
    pub other_programs: u64,
    /// Libraries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<Library>,
    /// Libraries that are not named.
    #[serde(skip_serializing_if = "is_zero")]
    pub other_libraries: u64,
    /// Python packages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<Package>,
    /// Python modules of a user's own, which are not named.
    #[serde(skip_serializing_if = "is_zero")]
    pub own_modules: u64,
    /// Packages that are not named for another reason: nobody could tell whose they are, they are denied, or beyond the
    /// bound.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown_packages: u64,
    /// Where it came from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
    /// The most Python processes at once on one node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python_processes_most: Option<u64>,
    /// Whether a library was loaded that computes on GPUs.
    pub gpu_library: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_false(whether: &bool) -> bool {
    !whether
}

impl Software {
    /// Of a job that asked that nothing is told.
    pub fn opted_out(level: Level) -> Self {
        Self { level, opted_out: true, ..Self::default() }
    }

    /// Whether something is missing that was there: Python modules without compiled parts, what came before the
    /// watching, what found no room.
    pub fn is_partial(&self) -> bool {
        self.lost > 0 || !self.since_begin || self.by.iter().any(|means| *means > Means::Read)
    }

    /// Versions of Python that ran.
    pub fn pythons(&self) -> BTreeSet<&str> {
        let of_packages = self.packages.iter().filter_map(|package| package.python.as_deref());
        let is_python = |program: &&Program| program.kind.as_deref() == Some("python");
        let programs = self.programs.iter().filter(is_python);
        let of_programs = programs.filter_map(|program| program.version.as_deref());
        // That of `python3` alone is no version.
        of_packages.chain(of_programs).filter(|version| version.contains('.')).collect()
    }

    /// Adds another node's, or a later time's. The order does not matter.
    pub fn merge(&mut self, other: &Self) {
        let level = self.level.min(other.level);
        if self.opted_out || other.opted_out {
            *self = Self::opted_out(level);
            return;
        }
        self.level = level;
        self.by.extend(&other.by);
        self.since_begin &= other.since_begin;
        self.lost = self.lost.saturating_add(other.lost);
        let mut programs = BTreeMap::<_, u64>::new();
        for program in self.programs.drain(..).chain(other.programs.iter().cloned()) {
            let of_all = programs.entry((program.name, program.version, program.kind)).or_default();
            *of_all = of_all.saturating_add(program.executions);
        }
        let program =
            |((name, version, kind), executions)| Program { name, version, kind, executions };
        self.programs = programs.into_iter().map(program).collect();
        join(&mut self.libraries, &other.libraries);
        join(&mut self.packages, &other.packages);
        join(&mut self.stacks, &other.stacks);
        for (own, others) in [
            (&mut self.other_programs, other.other_programs),
            (&mut self.other_libraries, other.other_libraries),
            (&mut self.own_modules, other.own_modules),
            (&mut self.unknown_packages, other.unknown_packages),
        ] {
            *own = (*own).max(others);
        }
        self.python_processes_most = self.python_processes_most.max(other.python_processes_most);
        self.gpu_library |= other.gpu_library;
    }

    /// Those of two, where there are any.
    pub fn merge_known(own: &mut Option<Self>, other: Option<&Self>) {
        match (own.as_mut(), other) {
            (Some(own), Some(other)) => own.merge(other),
            (None, Some(other)) => *own = Some(other.clone()),
            (_, None) => {}
        }
    }
}

fn join<T: Ord + Clone>(own: &mut Vec<T>, others: &[T]) {
    let all: BTreeSet<T> = own.drain(..).chain(others.iter().cloned()).collect();
    own.extend(all);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, executions: u64) -> Program {
        Program { name: name.into(), executions, ..Program::default() }
    }

    fn software(programs: &[(&str, u64)], packages: &[&str], own_modules: u64) -> Software {
        let package = |name: &&str| Package { name: (*name).into(), ..Package::default() };
        Software {
            programs: programs.iter().map(|(name, n)| program(name, *n)).collect(),
            packages: packages.iter().map(package).collect(),
            own_modules,
            since_begin: true,
            by: BTreeSet::from([Means::Open]),
            ..Software::default()
        }
    }

    #[test]
    fn merging_knows_no_order() {
        let mut late = software(&[("bash", 1)], &["numpy"], 7);
        (late.since_begin, late.lost, late.python_processes_most) = (false, 2, Some(9));
        late.by = BTreeSet::from([Means::Extensions]);
        let all = [
            software(&[("bash", 2), ("gmx", 1)], &["torch"], 1),
            late,
            software(&[], &["numpy", "scipy"], 3),
        ];
        let merged = |order: [usize; 3]| {
            let mut whole = all[order[0]].clone();
            whole.merge(&all[order[1]]);
            whole.merge(&all[order[2]]);
            let mut other = all[order[1]].clone();
            other.merge(&all[order[2]]);
            let mut right = all[order[0]].clone();
            right.merge(&other);
            assert_eq!(whole, right);
            whole
        };
        let whole = merged([0, 1, 2]);
        for order in [[1, 0, 2], [2, 1, 0], [0, 2, 1]] {
            assert_eq!(merged(order), whole);
        }
        assert_eq!(whole.programs, [program("bash", 3), program("gmx", 1)]);
        let packages: Vec<_> = whole.packages.iter().map(|package| &*package.name).collect();
        assert_eq!(packages, ["numpy", "scipy", "torch"]);
        assert_eq!((whole.own_modules, whole.lost, whole.python_processes_most), (7, 2, Some(9)));
        assert!(whole.is_partial());
    }

    #[test]
    fn who_asked_for_silence_anywhere_has_it_everywhere() {
        let mut whole = software(&[("bash", 1)], &["numpy"], 2);
        whole.merge(&Software::opted_out(Level::Full));
        assert_eq!(whole, Software::opted_out(Level::Names));
        let json = serde_json::to_string(&whole).unwrap();
        assert_eq!(
            json,
            r#"{"level":"names","since_begin":false,"opted_out":true,"gpu_library":false}"#
        );
    }

    #[test]
    fn pythons_are_told_by_packages_and_programs() {
        let mut software = software(&[], &["numpy"], 0);
        software.packages[0].python = Some("3.11".into());
        let kind = Some("python".to_owned());
        let version = |version: &str| Some(version.to_owned());
        let name = || "python".to_owned();
        software.programs = vec![
            Program { name: name(), version: version("3.12"), kind: kind.clone(), executions: 1 },
            Program { name: name(), version: version("3"), kind, executions: 1 },
        ];
        assert_eq!(software.pythons(), BTreeSet::from(["3.11", "3.12"]));
    }
}
