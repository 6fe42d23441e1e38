//! What is told of what was seen: names instead of paths, numbers where a name is a user's own.
//!
//! Pure: what is installed where arrives as an argument.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use regex::Regex;

use super::{
    aliases::{candidates, is_known, normal},
    listing::Listing,
    place::{Place, file_name, site_of},
    rules::{CONTAINERS, Match, Rules, is_fit},
    site::whole,
    soname,
};
use crate::model::{
    seen::{Consent, Means, Seen, SeenLibrary, SeenPackage, SeenProgram},
    software::{Level, Library, MOST_NAMES, Package, Program, Software, Stack},
};

/// Modules that Python's own start brings, whatever is imported then.
const STARTUP: [&str; 6] = [
    "_distutils_hack",
    "sitecustomize",
    "usercustomize",
    "_virtualenv",
    "distutils-precedence",
    "__pycache__",
];
/// Names of files that are scripts: somebody wrote them, and they are nobody's program.
const SCRIPTS: [&str; 9] = [".py", ".sh", ".pl", ".R", ".r", ".jl", ".rb", ".csh", ".bash"];

/// Families that have no other name, wherever they lie.
const PLAIN: [&str; 6] = ["libcuda", "libcudart", "libcudnn", "libnccl", "libamdhip64", "libmpi"];

/// What is told, and by which rules.
#[derive(Clone)]
pub struct Naming {
    level: Level,
    rules: Arc<Rules>,
    allow: Vec<Regex>,
    deny: Vec<Regex>,
}

/// What is known of a site's folder.
#[derive(Clone, Copy, Debug)]
pub enum Installed<'a> {
    /// This is installed there.
    Listed(&'a Listing),
    /// Nobody could read it, or nobody has yet.
    Unread,
}

/// Whether a name may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Yes,
    No,
}

impl Naming {
    /// By `rules`, at this level.
    ///
    /// # Errors
    /// When a name to allow or deny is no regular expression.
    pub fn new(level: Level, rules: Rules) -> anyhow::Result<Self> {
        let compiled = |patterns: &[String]| {
            let regexes = patterns.iter().map(|pattern| whole(pattern).map_err(anyhow::Error::msg));
            regexes.collect::<anyhow::Result<Vec<_>>>()
        };
        let (allow, deny) = (compiled(&rules.site.allow)?, compiled(&rules.site.deny)?);
        Ok(Self { level, rules: Arc::new(rules), allow, deny })
    }

    /// How much is told of `seen`.
    pub fn level_of(&self, seen: &Seen) -> Level {
        match seen.consent {
            Consent::Unknown | Consent::Missed => Level::Counts,
            Consent::Given | Consent::Refused => self.level,
        }
    }

    /// The Python modules that were seen, those of compiled ones and bundled libraries included.
    pub fn packages(seen: &Seen) -> BTreeSet<SeenPackage> {
        let of_library = |library: &SeenLibrary| {
            let (site, name) = site_of(&library.path)?;
            let interpreter = library.by.clone();
            Some(SeenPackage {
                site: site.into(),
                site_inode: None,
                name: name.into(),
                interpreter,
            })
        };
        let all = seen.packages.iter().cloned().chain(seen.libraries.iter().filter_map(of_library));
        // One that tells its folder's inode stands for one that does not.
        let mut by_name = BTreeMap::<_, SeenPackage>::new();
        for package in all {
            let key = (package.site.clone(), package.name.clone(), package.interpreter.clone());
            let known = by_name.entry(key).or_insert_with(|| package.clone());
            known.site_inode = known.site_inode.max(package.site_inode);
        }
        by_name.into_values().collect()
    }

    /// What is told of `seen`, where `installed` knows the folders of Python modules.
    pub fn software<'a>(
        &self,
        seen: &Seen,
        installed: impl Fn(&SeenPackage) -> Installed<'a>,
    ) -> Software {
        let level = self.level_of(seen);
        if level != self.level {
            return Self { level, ..self.clone() }.software(seen, installed);
        }
        if seen.consent == Consent::Refused {
            return Software::opted_out(level);
        }
        let mut software = Software {
            level,
            by: [seen.means]
                .into_iter()
                .chain(seen.is_partial.then_some(Means::Extensions))
                .collect(),
            since_begin: seen.since_begin,
            lost: seen.lost,
            python_processes_most: seen.python_processes_most,
            ..Software::default()
        };
        let mut stacks = BTreeSet::new();
        self.add_programs(seen, &mut software, &mut stacks);
        self.add_libraries(seen, &mut software, &mut stacks);
        self.add_packages(seen, installed, &mut software, &mut stacks);
        if self.level > Level::Counts {
            software.stacks = stacks.into_iter().take(MOST_NAMES).collect();
        }
        software
    }

    /// Whether `name` may be told of what lies at a `public` place or not.
    fn said(&self, name: &str, public: bool) -> Said {
        let is_allowed = || self.allow.iter().any(|pattern| pattern.is_match(name));
        let is_told = is_fit(name)
            && self.level > Level::Counts
            && !self.is_denied(name)
            && (public || is_allowed());
        if is_told { Said::Yes } else { Said::No }
    }

    fn is_denied(&self, name: &str) -> bool {
        self.deny.iter().any(|pattern| pattern.is_match(name))
    }

    fn add_programs(&self, seen: &Seen, software: &mut Software, stacks: &mut BTreeSet<Stack>) {
        let mut named = BTreeMap::<_, u64>::new();
        for SeenProgram { path, executions } in &seen.programs {
            let place = Place::of(path, &self.rules.site.public);
            let file = file_name(place.path);
            let rule = self.rules.program(place.path, file);
            let found = self.add_stacks(path, &place, stacks);
            let name = rule.as_ref().and_then(|rule| rule.name.clone());
            let is_ours = rule.as_ref().is_some_and(|rule| !rule.is_sites);
            let shown = if is_ours && !place.is_public { unadorned(file) } else { file };
            let name = name.unwrap_or_else(|| shown.to_owned());
            let is_script = SCRIPTS.iter().any(|end| name.ends_with(end));
            // What a rule knows is no secret wherever it lies.
            let is_public = (place.is_public && !is_script) || rule.is_some();
            if self.said(&name, is_public) == Said::No || self.is_denied(file) {
                software.other_programs += 1;
                continue;
            }
            let of_rule = rule.as_ref().and_then(|rule| rule.version.clone());
            let version = of_rule.or(found.filter(|_| place.is_public).and_then(|of| of.version));
            let key = (name, version, rule.map(|rule| rule.tells));
            let all = named.entry(key).or_default();
            *all = all.saturating_add(*executions);
        }
        // Where there are more names than are told, those executed most stand.
        let mut named: Vec<_> = named.into_iter().collect();
        named.sort_by_key(|(_, executions)| std::cmp::Reverse(*executions));
        software.other_programs += named.len().saturating_sub(MOST_NAMES) as u64;
        named.truncate(MOST_NAMES);
        let program =
            |((name, version, kind), executions)| Program { name, version, kind, executions };
        software.programs = named.into_iter().map(program).collect();
        software.programs.sort();
    }

    fn add_libraries(&self, seen: &Seen, software: &mut Software, stacks: &mut BTreeSet<Stack>) {
        let (mut named, mut others) = (BTreeSet::new(), BTreeSet::new());
        for SeenLibrary { path, .. } in &seen.libraries {
            let place = Place::of(path, &self.rules.site.public);
            let Some(soname) = soname::parse(place.path) else { continue };
            let rule = self.rules.library(place.path, &soname);
            software.gpu_library |= rule.as_ref().is_some_and(|rule| rule.is_gpu);
            let found = self.add_stacks(path, &place, stacks);
            let is_base = rule.as_ref().is_some_and(|rule| rule.is_base);
            let of_package = site_of(place.path).is_some();
            if of_package && rule.is_none() {
                // It is told as its package.
                continue;
            }
            let is_public = place.is_public || rule.is_some();
            let is_left_out = is_base && self.level < Level::Full;
            if is_left_out || self.said(&soname.family, is_public) == Said::No {
                others.insert(soname.family);
                continue;
            }
            let of_rule = rule.as_ref().and_then(|rule| rule.version.clone());
            let of_place = found.filter(|_| place.is_public).and_then(|of| of.version);
            let version = of_rule.or(of_place).or(soname.version).filter(|text| is_fit(text));
            let what = rule.filter(|rule| !rule.is_base).map(|rule| rule.tells);
            // Its maker may have put a word of his own into its name, or behind it.
            let is_number = |text: &String| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            let version = version.filter(|text| place.is_public || is_number(text));
            let has_own_name = place.is_public || PLAIN.contains(&&*soname.family);
            let name = what.clone().filter(|_| !has_own_name).unwrap_or(soname.family);
            named.insert(Library { name, version, what });
        }
        // Those of a known whole first: the rest is of less interest where there are too many.
        let mut named: Vec<_> = named.into_iter().collect();
        named.sort_by_key(|library| library.what.is_none());
        let beyond = named.len().saturating_sub(MOST_NAMES) as u64;
        named.truncate(MOST_NAMES);
        named.sort();
        software.libraries = named;
        software.other_libraries = others.len() as u64 + beyond;
    }

    fn add_packages<'a>(
        &self,
        seen: &Seen,
        installed: impl Fn(&SeenPackage) -> Installed<'a>,
        software: &mut Software,
        stacks: &mut BTreeSet<Stack>,
    ) {
        let (mut named, mut own, mut unknown) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for package in Self::packages(seen) {
            let Some(name) = import_name(&package.name) else { continue };
            if STARTUP.contains(&name) || !package.site.ends_with("-packages") {
                continue;
            }
            let below = format!("{}/", package.site);
            let place = Place::of(&below, &self.rules.site.public);
            self.add_stacks(&below, &place, stacks);
            let installed = installed(&package);
            let found = match installed {
                Installed::Listed(listing) => listing.distribution(name),
                Installed::Unread => None,
            };
            let is_own = match (installed, found) {
                (_, Some(found)) => found.is_own && !place.is_public,
                (Installed::Listed(_), None) => !place.is_public,
                (Installed::Unread, None) => false,
            };
            let is_told = (place.is_public || found.is_some()) && !is_own || is_known(name);
            let distribution = match (installed, found) {
                (_, Some(found)) => Some(normal(&found.name)),
                (Installed::Unread, None) if is_known(name) => usual(name),
                _ => None,
            };
            let distribution = distribution.filter(|name| is_fit(name));
            let said = distribution.as_deref().unwrap_or(name);
            let is_said = [name, said].map(|name| self.said(name, is_told));
            if is_said != [Said::Yes; 2] {
                let of = if is_own && self.level > Level::Counts { &mut own } else { &mut unknown };
                of.insert((package.site.clone(), name.to_owned()));
                continue;
            }
            let version = found.and_then(|found| found.version.clone());
            named.insert(Package {
                name: name.to_owned(),
                distribution,
                version: version.filter(|version| is_fit(version)),
                python: python(&package),
            });
        }
        let beyond = named.len().saturating_sub(MOST_NAMES) as u64;
        software.packages = named.into_iter().take(MOST_NAMES).collect();
        software.own_modules = own.len() as u64;
        software.unknown_packages = unknown.len() as u64 + beyond;
    }

    /// Adds the stacks that `path` is in; gives the one that tells a version.
    fn add_stacks(&self, path: &str, place: &Place, stacks: &mut BTreeSet<Stack>) -> Option<Match> {
        let mut found = None;
        let outer = &path[..path.len() - place.path.len()];
        let image = self.rules.stacks(path).into_iter();
        let image = image.filter(|of| place.in_image && CONTAINERS.contains(&&*of.tells));
        let of_place = self.rules.stacks(place.path).into_iter();
        let of_place = of_place.filter(|of| !CONTAINERS.contains(&&*of.tells));
        for of in image.take(usize::from(!outer.is_empty())).chain(of_place) {
            let is_container = CONTAINERS.contains(&&*of.tells);
            let kind = if is_container { "container" } else { &*of.tells };
            let name = match (is_container, of.tells.as_str()) {
                (true, runtime) => Some(runtime.to_owned()),
                (false, "conda") if of.name.is_none() => Some("base".to_owned()),
                (false, _) => of.name.clone(),
            };
            let is_named = is_container
                || name
                    .as_deref()
                    .is_some_and(|name| self.said(name, place.is_public) == Said::Yes);
            let of_stack = |text: &Option<String>| text.clone().filter(|_| is_named);
            stacks.insert(Stack {
                kind: kind.to_owned(),
                name: name.filter(|_| is_named),
                version: of_stack(&of.version),
                toolchain: of_stack(&of.toolchain),
            });
            if !is_container {
                found = Some(of);
            }
        }
        found
    }
}

/// The name of a user's own build of a well-known program, without what the user may have put behind it: `lmp` of
/// `lmp_thesis`.
fn unadorned(file: &str) -> &str {
    let stem = [".exe", ".x"].iter().find_map(|end| file.strip_suffix(end)).unwrap_or(file);
    match stem.find(['_', '.', '-']) {
        None => file,
        Some(at) => &file[..at],
    }
}

/// The name that is imported, of an entry of a folder of modules; `None` where it is none.
fn import_name(entry: &str) -> Option<&str> {
    let is_no_module = [".libs", ".dist-info", ".egg-info", ".data", ".pth", ".egg-link"];
    // A finder of what is installed in place names somebody's own project.
    if is_no_module.iter().any(|end| entry.ends_with(end)) || entry.starts_with("__editable__") {
        return None;
    }
    if let Some(egg) = entry.strip_suffix(".egg") {
        return egg.split('-').next();
    }
    entry.split('.').next().filter(|name| !name.is_empty())
}

/// The distribution of a well-known module, where there is one alone.
fn usual(name: &str) -> Option<String> {
    match candidates(name) {
        None => Some(normal(name)),
        Some([one]) => Some((*one).to_owned()),
        Some(_) => None,
    }
}

/// The version of Python that a package is for.
fn python(package: &SeenPackage) -> Option<String> {
    let of = |part: &str| {
        let version = part.strip_prefix("python").or_else(|| part.strip_prefix("pypy"))?;
        let (major, minor) = version.split_once('.')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let minor = minor.trim_end_matches('t');
        (is_number(major) && is_number(minor)).then(|| format!("{major}.{minor}"))
    };
    let of_site = package.site.rsplit('/').nth(1).and_then(of);
    of_site.or_else(|| of(file_name(&package.interpreter)))
}

#[cfg(test)]
mod tests;
