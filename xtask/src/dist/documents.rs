//! The documents that packages must hold: those for users, and what these name.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use xtask::root;

/// Where the packages have what is in `docs` here.
pub const INSTALLED: &str = "/usr/share/doc/jobtrace";
/// Those for users.
const FOR_USERS: [&str; 6] =
    ["CLI.md", "FINDINGS.md", "METRICS.md", "OPERATING.md", "RECORD.md", "SIZING.md"];

/// Their paths, below `docs` here.
///
/// # Errors
/// When one for users cannot be read.
pub fn documents() -> Result<BTreeSet<PathBuf>> {
    let docs = root().join("docs");
    let mut all = BTreeSet::new();
    for name in FOR_USERS {
        let text = fs::read_to_string(docs.join(name)).with_context(|| format!("read {name}"))?;
        all.insert(PathBuf::from(name));
        all.extend(named(&text).into_iter().filter(|path| docs.join(path).is_file()));
    }
    Ok(all)
}

/// What looks like a path below `docs`, as from a file in it: `RECORD.md`, `docs/RECORD.md`, where it is installed.
fn named(text: &str) -> Vec<PathBuf> {
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let words = text.split(|c| !is_of_path(c)).map(|word| word.trim_end_matches('.'));
    words
        .map(|word| {
            let installed = word.strip_prefix(INSTALLED).map(|rest| rest.trim_start_matches('/'));
            Path::new(installed.or_else(|| word.strip_prefix("docs/")).unwrap_or(word))
        })
        .filter(|path| path.extension().is_some())
        .filter(|path| path.components().all(|part| matches!(part, Component::Normal(_))))
        .map(Path::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::Value;

    #[test]
    fn documents_are_named_in_each_of_three_ways() {
        let text = "see [0007](decisions/0007-a.md), docs/B.md. `/usr/share/doc/jobtrace/epilogs/c.sh`; /etc/d.toml e";
        let paths = ["decisions/0007-a.md", "B.md", "epilogs/c.sh"].map(PathBuf::from);
        assert_eq!(named(text), paths);
    }

    /// Each kind's list in the manifest: sources, as paths below `docs` here with at most one `*`, and folders.
    fn assets() -> [Vec<(String, String)>; 2] {
        let text = fs::read_to_string(root().join("tracer-user/Cargo.toml")).expect("a manifest");
        let manifest: Value = toml::from_str(&text).expect("TOML");
        let of = |kind: &str| manifest["package"]["metadata"][kind]["assets"].as_array().cloned();
        let pair = |source: &Value, folder: &Value| {
            let source = source.as_str()?.trim_start_matches("../").strip_prefix("docs/")?;
            Some((source.to_owned(), folder.as_str()?.trim_start_matches('/').to_owned()))
        };
        let deb = of("deb").expect("a list");
        let rpm = of("generate-rpm").expect("a list");
        [
            deb.iter().filter_map(|asset| pair(&asset[0], &asset[1])).collect(),
            rpm.iter().filter_map(|asset| pair(&asset["source"], &asset["dest"])).collect(),
        ]
    }

    #[test]
    fn each_kind_of_package_has_what_its_documents_name() {
        let documents = documents().expect("documents");
        for needed in [
            "SIZING.md",
            "decisions/0028-what-a-scheduler-knows.md",
            "epilogs/slurm-task-epilog.sh",
        ] {
            assert!(documents.contains(Path::new(needed)), "{needed} is named: {documents:?}");
        }
        for assets in assets() {
            for document in &documents {
                let folder = document.parent().expect("a relative path");
                let installed = Path::new(INSTALLED.trim_start_matches('/')).join(folder);
                let path = document.to_str().expect("ASCII");
                let has = |(source, to): &&(String, String)| {
                    let (before, after) = source.split_once('*').unwrap_or((source, ""));
                    let is_in = Path::new(source).parent() == Some(folder);
                    is_in
                        && path.starts_with(before)
                        && path.ends_with(after)
                        && Path::new(to) == installed
                };
                assert!(
                    assets.iter().any(|asset| has(&asset)),
                    "{path} is in no line of {assets:?}"
                );
            }
        }
    }
}
