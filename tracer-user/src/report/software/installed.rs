//! What is installed and nobody loaded: a list of what a site has in, what no job ran out.
//!
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Row;
use crate::census::{candidates, normal};

/// Something that is installed and was not loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unused {
    /// Its name, as the list has it.
    pub name: String,
    /// Its version, where the list has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Versions of it that were loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_versions: Vec<String>,
}

/// A line of a list: `numpy`, `numpy 2.4.6`, `numpy==2.4.6`, `GROMACS/2024.1-foss-2023b`, `x @ file:///…`, `# comment`.
pub fn parse(line: &str) -> Option<(&str, Option<&str>)> {
    let line = line.split('#').next()?.trim().trim_end_matches("(default)").trim_end();
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, '=' | '/' | '@' | '<' | '>' | '~' | ';' | '[');
    let end = line.find(is_end).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let rest = match rest.starts_with('[') {
        true => rest.split_once(']').map_or("", |(_, rest)| rest),
        false => rest,
    };
    let is_exact = !rest.trim_start().starts_with(['@', '<', '>', '~', ';']);
    let version = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '=' | '/'));
    let version = version.split(|c: char| c.is_whitespace() || c == ';').next();
    let version = version.filter(|version| is_exact && !version.is_empty());
    (!name.is_empty() && !name.starts_with('-')).then_some((name, version))
}

/// What of the list in `text` no row of `rows` has, and how many there are in it. A line with a version asks for that
/// version, where any is known.
pub fn unused(text: &str, rows: &[Row]) -> (Vec<Unused>, usize) {
    let mut loaded = BTreeMap::<String, BTreeSet<&str>>::new();
    for row in rows {
        // A stack's name has its kind before it.
        let name = row.name.rsplit('/').next().unwrap_or_default();
        let of_alias = candidates(name).unwrap_or_default().iter().map(|name| (*name).to_owned());
        for name in of_alias.chain([normal(name)]) {
            let versions = row.versions.iter().map(|of| of.version.as_str());
            loaded.entry(name).or_default().extend(versions);
        }
    }
    let installed: BTreeSet<_> = text.lines().filter_map(parse).collect();
    let mut unused = Vec::new();
    for (name, version) in &installed {
        let versions = loaded.get(&normal(name));
        let is_loaded = versions.is_some_and(|versions| {
            let is_it =
                |loaded: &&str| loaded.is_empty() || version.is_none_or(|of| is_same(of, loaded));
            versions.iter().any(is_it)
        });
        if !is_loaded {
            let others = versions.into_iter().flatten().map(|version| (*version).to_owned());
            let (name, version) = ((*name).to_owned(), version.map(str::to_owned));
            unused.push(Unused { name, version, other_versions: others.collect() });
        }
    }
    (unused, installed.len())
}

/// Whether the version of a list is the one that was loaded: a list of modules has the toolchain behind it.
fn is_same(listed: &str, loaded: &str) -> bool {
    listed == loaded || listed.strip_prefix(loaded).is_some_and(|rest| rest.starts_with(['-', '+']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::software::Version;

    #[test]
    fn lines_of_lists_as_tools_write_them() {
        for (line, expected) in [
            ("numpy", Some(("numpy", None))),
            ("numpy==2.4.6", Some(("numpy", Some("2.4.6")))),
            ("numpy                    2.4.6", Some(("numpy", Some("2.4.6")))),
            ("GROMACS/2024.1-foss-2023b", Some(("GROMACS", Some("2024.1-foss-2023b")))),
            ("gcc/12.2.0 (default)", Some(("gcc", Some("12.2.0")))),
            ("thing @ file:///home/ada/x", Some(("thing", None))),
            ("uvicorn[standard]==0.30", Some(("uvicorn", Some("0.30")))),
            ("a>=1.0", Some(("a", None))),
            ("a==1.0 ; python_version > '3'", Some(("a", Some("1.0")))),
            ("numpy=1.26.4=py311h64a7726_0", Some(("numpy", Some("1.26.4=py311h64a7726_0")))),
            ("# packages", None),
            ("", None),
            ("--index-url https://x", None),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
    }

    #[test]
    fn what_no_job_loaded_is_told() {
        let row = |name: &str, versions: &[&str]| Row {
            name: name.into(),
            versions: versions
                .iter()
                .map(|version| Version { version: (*version).into(), jobs: 1 })
                .collect(),
            ..Row::default()
        };
        let rows = [
            row("numpy", &["2.4.6"]),
            row("scikit_learn", &[""]),
            row("PIL", &[""]),
            row("easybuild/GROMACS", &["2024.1"]),
        ];
        let list = "numpy==2.4.6\nnumpy==1.0\nscikit-learn 1.5\nPillow\nunloved 1\nGROMACS/2024.1-foss-2023b\n";
        let (unused, installed) = unused(list, &rows);
        assert_eq!(installed, 6);
        let told: Vec<_> = unused
            .iter()
            .map(|of| (&*of.name, of.version.as_deref(), &of.other_versions[..]))
            .collect();
        assert_eq!(
            told,
            [("numpy", Some("1.0"), &["2.4.6".to_owned()][..]), ("unloved", Some("1"), &[])]
        );
    }
}
