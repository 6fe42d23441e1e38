//! The rules, ready to be tried: those of the table behind those of a site.
//!
//! Pure.

use anyhow::{Context, Result};
use regex::bytes::{Captures, Regex, RegexSet};

use super::{
    rows::{About, ROWS, Tells},
    site::Site,
    soname::Soname,
};
use crate::model::software::LONGEST_NAME;

/// What a rule says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// What the rule tells: a kind, or what a library belongs to.
    pub tells: String,
    /// The name that its pattern found.
    pub name: Option<String>,
    /// The version.
    pub version: Option<String>,
    /// What it was built with.
    pub toolchain: Option<String>,
    /// Whether it computes on GPUs.
    pub is_gpu: bool,
    /// Whether the version of the file is that of the whole.
    pub is_versioned: bool,
    /// Whether it is part of the C library.
    pub is_base: bool,
    /// Whether a site wrote the rule.
    pub is_sites: bool,
}

struct Compiled {
    about: About,
    tells: String,
    regex: Regex,
    what: Tells,
    is_sites: bool,
}

/// All rules, those of one subject beside each other.
pub struct Rules {
    rules: Vec<Compiled>,
    /// Of a site's the patterns are for paths, of the table's for file names, but for stacks.
    paths: RegexSet,
    files: RegexSet,
    /// Positions in `rules` of the patterns in both sets.
    of_paths: Vec<usize>,
    of_files: Vec<usize>,
    /// The site's settings.
    pub site: Site,
}

impl Rules {
    /// Those of the table, and of `site`.
    ///
    /// # Errors
    /// When a pattern of the site's is no regular expression.
    pub fn new(site: Site) -> Result<Self> {
        let mut rules = Vec::new();
        for rule in &site.rule {
            rule.compile().map_err(anyhow::Error::msg)?;
            let regex = Regex::new(&rule.pattern)?;
            let what = if rule.gpu { Tells::GpuVersion } else { Tells::Version };
            let tells = rule.name.clone();
            rules.push((Compiled { about: rule.about, tells, regex, what, is_sites: true }, true));
        }
        for row in ROWS {
            let is_stack = row.about == About::Stack;
            // What is told is ASCII; with all of Unicode's letters it would take long to make them.
            let pattern = match is_stack {
                true => format!("(?-u){}", row.pattern),
                false => format!("(?-u)^(?:{})$", row.pattern),
            };
            let regex = Regex::new(&pattern).with_context(|| format!("rule {}", row.name))?;
            let tells = row.name.to_owned();
            let rule =
                Compiled { about: row.about, tells, regex, what: row.tells, is_sites: false };
            rules.push((rule, is_stack));
        }
        let at = |of_path: bool| {
            let wanted = rules.iter().enumerate().filter(|(_, (_, is_path))| *is_path == of_path);
            wanted.map(|(at, _)| at).collect::<Vec<_>>()
        };
        let set = |at: &[usize]| RegexSet::new(at.iter().map(|at| rules[*at].0.regex.as_str()));
        let (of_paths, of_files) = (at(true), at(false));
        let (paths, files) = (set(&of_paths)?, set(&of_files)?);
        let rules = rules.into_iter().map(|(rule, _)| rule).collect();
        Ok(Self { rules, paths, files, of_paths, of_files, site })
    }

    /// What the first rule says of the program at `path`, whose file is `file`.
    pub fn program(&self, path: &str, file: &str) -> Option<Match> {
        self.first(About::Program, path, file)
    }

    /// The same of a library.
    pub fn library(&self, path: &str, soname: &Soname) -> Option<Match> {
        let mut found = self.first(About::Library, path, &soname.family)?;
        if found.tells == "MPI" {
            found.tells = mpi(path, soname).to_owned();
        }
        Some(found)
    }

    /// The stacks that `path` is in: of containers' and of others' the first.
    pub fn stacks(&self, path: &str) -> Vec<Match> {
        let found = self.paths.matches(path.as_bytes());
        let mut stacks = Vec::<Match>::new();
        let is_container = |tells: &str| CONTAINERS.contains(&tells);
        for at in found.iter().map(|at| self.of_paths[at]) {
            let rule = &self.rules[at];
            let is_known = |known: &Match| is_container(&known.tells) == is_container(&rule.tells);
            if rule.about == About::Stack && !stacks.iter().any(is_known) {
                stacks.extend(rule.apply(path));
            }
        }
        stacks
    }

    fn first(&self, about: About, path: &str, file: &str) -> Option<Match> {
        // A site's come first, and their patterns are for paths.
        let of_path = self.paths.matches(path.as_bytes()).into_iter().map(|at| self.of_paths[at]);
        let of_path = of_path.filter(|at| self.rules[*at].about == about).min();
        if let Some(at) = of_path {
            return self.rules[at].apply(path);
        }
        let of_file = self.files.matches(file.as_bytes()).into_iter().map(|at| self.of_files[at]);
        let at = of_file.filter(|at| self.rules[*at].about == about).min()?;
        self.rules[at].apply(file)
    }
}

/// Kinds of stacks that are containers.
pub const CONTAINERS: [&str; 5] = ["docker", "podman", "containerd", "apptainer", "enroot"];

impl Compiled {
    fn apply(&self, text: &str) -> Option<Match> {
        let captures = self.regex.captures(text.as_bytes())?;
        let group = |name| group(&captures, name);
        Some(Match {
            tells: self.tells.clone(),
            name: group("name"),
            version: group("version"),
            toolchain: group("toolchain"),
            is_gpu: self.what.is_gpu(),
            is_versioned: self.what.is_versioned(),
            is_base: self.what == Tells::Base,
            is_sites: self.is_sites,
        })
    }
}

fn group(captures: &Captures, name: &str) -> Option<String> {
    let text = str::from_utf8(captures.name(name)?.as_bytes()).ok()?;
    is_fit(text).then(|| text.to_owned())
}

/// Whether `text` can be told as a name or version: no space, no comma, nothing that a terminal or a line would take
/// otherwise, and no path.
pub fn is_fit(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte);
    !text.is_empty()
        && text.len() <= LONGEST_NAME
        && !text.starts_with(['.', '-', '+'])
        && text.bytes().all(is_plain)
}

/// Whose `libmpi` it is: two share one soname, and some only differ by their folder.
fn mpi(path: &str, soname: &Soname) -> &'static str {
    let path = path.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| path.contains(word));
    match soname.major {
        _ if has(&["/impi", "oneapi/mpi", "intel/mpi", "intelmpi", "/intel64/lib"]) => "IntelMPI",
        _ if has(&["mvapich"]) => "MVAPICH",
        _ if has(&["psmpi", "parastation"]) => "ParaStationMPI",
        _ if has(&["cray"]) => "CrayMPICH",
        _ if has(&["openmpi", "hpcx", "ompi"]) => "OpenMPI",
        Some(12) => "MPICH",
        Some(20 | 40 | 80) => "OpenMPI",
        _ => "MPI",
    }
}
