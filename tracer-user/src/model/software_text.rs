//! Names and versions of software as one text of bounded length: `numpy 2.4.6, torch 2.9.0, +12`. What there was no room
//! for is counted at its end. The form in heads and lines.

use super::software::{Library, Package, Program, Software, Stack};

/// Bytes of a text.
pub const LONGEST_BYTES: usize = 8 << 10;
/// Between two.
const BETWEEN: &str = ", ";

/// A name with its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Named<'a> {
    /// The name.
    pub name: &'a str,
    /// Its version.
    pub version: Option<&'a str>,
}

/// What a text says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// The names in it.
    pub named: Vec<Named<'a>>,
    /// How many it has not.
    pub others: u64,
}

/// `named` as a text; empty without any. Each once, in their order; a name that is no word counts among the `others`.
pub fn text<'a>(named: impl IntoIterator<Item = Named<'a>>, others: u64) -> String {
    let is_word = |text: &str| {
        !text.is_empty()
            && !text.starts_with('+')
            && text.chars().all(|c| !c.is_whitespace() && !c.is_control() && c != ',')
    };
    let (mut out, mut others) = (String::new(), others);
    let mut all: Vec<_> = named.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    for Named { name, version } in all {
        let version = version.filter(|version| is_word(version));
        let length = BETWEEN.len() + name.len() + version.map_or(0, |version| 1 + version.len());
        // Room for the number at its end.
        if !is_word(name) || out.len() + length + 24 > LONGEST_BYTES {
            others = others.saturating_add(1);
            continue;
        }
        if !out.is_empty() {
            out += BETWEEN;
        }
        out += name;
        if let Some(version) = version {
            out += " ";
            out += version;
        }
    }
    if others > 0 {
        let between = if out.is_empty() { "" } else { BETWEEN };
        out += &format!("{between}+{others}");
    }
    out
}

/// What `text` says; of a text that no program wrote whatever can be read.
pub fn parse(text: &str) -> Names<'_> {
    let mut names = Names::default();
    for part in text.split(BETWEEN).filter(|part| !part.is_empty()) {
        if let Some(others) = part.strip_prefix('+').and_then(|number| number.parse().ok()) {
            names.others = names.others.saturating_add(others);
            continue;
        }
        let (name, version) = match part.split_once(' ') {
            Some((name, version)) => (name, Some(version)),
            None => (part, None),
        };
        names.named.push(Named { name, version });
    }
    names
}

/// The name by which packages are told: the one that they are installed by, where that is known.
pub fn package_name(package: &Package) -> &str {
    package.distribution.as_deref().unwrap_or(&package.name)
}

/// What libraries belong to, or their names.
pub fn library_name(library: &Library) -> &str {
    library.what.as_deref().unwrap_or(&library.name)
}

/// Libraries whose files' versions are not that of what they belong to, where another's are.
const SPEAKS_FOR: [(&str, &str); 3] =
    [("CUDA", "libcudart"), ("cuDNN", "libcudnn"), ("ROCm", "libamdhip64")];

/// The version of what a library belongs to, as far as it tells.
pub fn library_version(library: &Library) -> Option<&str> {
    let is_other = SPEAKS_FOR
        .iter()
        .any(|(what, name)| library.what.as_deref() == Some(what) && library.name != *name);
    library.version.as_deref().filter(|_| !is_other)
}

impl Software {
    /// Its programs.
    pub fn programs_text(&self) -> String {
        let named = |of: &Program| (of.name.clone(), of.version.clone());
        owned(self.programs.iter().map(named), self.other_programs)
    }

    /// Its libraries, by what they belong to.
    pub fn libraries_text(&self) -> String {
        let named = self
            .libraries
            .iter()
            .map(|of| (library_name(of).to_owned(), library_version(of).map(str::to_owned)));
        owned(without_lesser(named.collect()).into_iter(), self.other_libraries)
    }

    /// Its Python packages.
    pub fn packages_text(&self) -> String {
        let named = |of: &Package| (package_name(of).to_owned(), of.version.clone());
        owned(self.packages.iter().map(named), self.unknown_packages)
    }

    /// Its stacks: the kind, and the name where it has one: `easybuild/GROMACS 2024.1`.
    pub fn stacks_text(&self) -> String {
        let named = |of: &Stack| {
            let name = of.name.as_ref().map_or(String::new(), |name| format!("/{name}"));
            (of.kind.clone() + &name, of.version.clone())
        };
        owned(self.stacks.iter().map(named), 0)
    }

    /// Versions of Python.
    pub fn python_text(&self) -> String {
        let pythons = self.pythons();
        text(pythons.into_iter().map(|name| Named { name, version: None }), 0)
    }
}

/// Without those of no version, where another of the name has one.
fn without_lesser(named: Vec<(String, Option<String>)>) -> Vec<(String, Option<String>)> {
    let is_versioned =
        |name: &str| named.iter().any(|(of, version)| of == name && version.is_some());
    let keep =
        |(name, version): &&(String, Option<String>)| version.is_some() || !is_versioned(name);
    named.iter().filter(keep).cloned().collect()
}

fn owned(named: impl Iterator<Item = (String, Option<String>)>, others: u64) -> String {
    let all: Vec<_> = named.collect();
    let lent = all.iter().map(|(name, version)| Named { name, version: version.as_deref() });
    text(lent, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(name: &'a str, version: Option<&'a str>) -> Named<'a> {
        Named { name, version }
    }

    #[test]
    fn what_is_written_is_read() {
        let all = [named("torch", Some("2.9.0+cu124")), named("numpy", Some("2.4.6"))];
        let written = text(all, 12);
        assert_eq!(written, "numpy 2.4.6, torch 2.9.0+cu124, +12");
        let read = parse(&written);
        assert_eq!((read.named.len(), read.others), (2, 12));
        assert_eq!(read.named[1], all[0]);
        assert_eq!(text([], 0), "");
        assert_eq!(text([], 3), "+3");
        assert_eq!(parse("+3"), Names { named: vec![], others: 3 });
        assert_eq!(parse(""), Names::default());
    }

    #[test]
    fn what_is_no_word_is_counted() {
        let all =
            [named("a, b", None), named("", None), named("ok", Some("1 2")), named("+7", None)];
        assert_eq!(text(all, 0), "ok, +3");
    }

    #[test]
    fn it_has_a_bound_and_loses_none() {
        let names: Vec<String> = (0..10_000).map(|n| format!("package-number-{n}")).collect();
        let written = text(names.iter().map(|name| named(name, Some("1.0"))), 5);
        assert!(written.len() <= LONGEST_BYTES, "{}", written.len());
        let read = parse(&written);
        assert_eq!(read.named.len() as u64 + read.others, 10_005);
    }

    #[test]
    fn the_version_of_a_whole_is_that_of_one_of_its_libraries() {
        let library = |name: &str, version: &str| Library {
            name: name.into(),
            version: Some(version.into()),
            what: Some("CUDA".into()),
        };
        let mut software = Software {
            libraries: vec![library("libcublas", "12.4.5.8"), library("libcudart", "12.4.127")],
            other_libraries: 2,
            ..Software::default()
        };
        assert_eq!(software.libraries_text(), "CUDA 12.4.127, +2");
        software.libraries.pop();
        assert_eq!(software.libraries_text(), "CUDA, +2");
    }
}
