//! Programs, libraries and Python packages under `jobtrace run --software`: a program called like an interpreter, and
//! what it was told to execute, map and open, beside the same work with other files that is not the job's.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use jobtrace_tests::{agree::Agreement, sibling::Sibling, traced::Traced};
use serde_json::Value;

use super::{Found, unknown, workload};
use crate::setup::mount_at;

const PROGRAMS: usize = 4;
const LIBRARIES: usize = 18;
const PACKAGES: usize = 6;

/// A tree of files whose names hold `word`.
struct Tree {
    root: PathBuf,
    word: &'static str,
}

impl Tree {
    /// Makes it, in a folder that is a site's.
    fn make(word: &'static str) -> Self {
        let tree = Self { root: Path::new("/opt").join(word), word };
        for folder in [tree.root.join("bin"), tree.libraries(), tree.site()] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let imports = workload("imports");
        for copy in tree.programs().iter().chain([&tree.python()]) {
            fs::copy(&imports, copy).expect("a program's copy");
        }
        for number in 0..LIBRARIES {
            let name = format!("lib{word}{}.so.1", letter(number));
            fs::copy(&imports, tree.libraries().join(name)).expect("a library");
        }
        for number in 0..PACKAGES {
            let name = format!("{word}{}", letter(number));
            let package = tree.site().join(&name);
            fs::create_dir(&package).expect("a package");
            fs::write(package.join("__init__.py"), "value = 1\n").expect("a module");
            if number % 2 == 0 {
                fs::copy(&imports, package.join("_core.so")).expect("a compiled module");
            }
            fs::create_dir(tree.site().join(format!("{name}-{number}.2.dist-info")))
                .expect("what tells its version");
        }
        tree
    }

    fn libraries(&self) -> PathBuf {
        self.root.join("lib")
    }

    fn site(&self) -> PathBuf {
        self.libraries().join("python3.11/site-packages")
    }

    fn python(&self) -> PathBuf {
        self.root.join("bin/python3.11")
    }

    fn programs(&self) -> Vec<PathBuf> {
        let path = |number| self.root.join(format!("bin/{}{}", self.word, letter(number)));
        (0..PROGRAMS).map(path).collect()
    }

    /// The interpreter, and what it is to do.
    fn command(&self) -> Vec<String> {
        let text = |path: PathBuf| path.to_str().expect("a name of ours").to_owned();
        let head = [self.python(), self.libraries()].map(text);
        let programs = self.programs().into_iter().map(text);
        head.into_iter().chain(["--".to_owned()]).chain(programs).collect()
    }
}

/// `a` for 0, so that no name ends in a number that is a version.
fn letter(number: usize) -> char {
    char::from(b'a' + number as u8)
}

pub fn census() -> Found {
    mount_at("software", Path::new("/opt"), "tmpfs", "")
        .unwrap_or_else(|error| panic!("{error:#}"));
    let (own, beside) = (Tree::make("own"), Tree::make("beside"));
    let mut agree = Agreement::new();
    for is_killed in [false, true] {
        if is_killed {
            fs::write(own.libraries().join("kill"), "").expect("a file");
        }
        let command = own.command();
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let others = beside.command();
        let others: Vec<_> = others.iter().map(String::as_str).collect();
        let sibling = Sibling::start(&others);
        let job = Traced::run(&["--software"], &words);
        sibling.end();
        let status = job.output.status.code();
        assert_eq!(status, Some(if is_killed { 128 + 9 } else { 0 }), "{:?}", job.output);
        for what in ["Python packages", "libraries of job_software"] {
            if let Some(why) = unknown(&job, what) {
                return Err(why);
            }
        }
        counted(&mut agree, &own, &job.json["software"], is_killed);
    }
    Ok(agree)
}

/// All of `own` is in `software`, and nothing else.
fn counted(agree: &mut Agreement, own: &Tree, software: &Value, is_killed: bool) {
    let when = if is_killed { ", killed" } else { "" };
    let names = |list: &str, begin: &str| -> BTreeSet<String> {
        let all = software[list].as_array().map_or(&[][..], Vec::as_slice);
        let names = all.iter().filter_map(|one| one["name"].as_str());
        names.filter(|name| name.starts_with(begin)).map(str::to_owned).collect()
    };
    let (lib, word) = (format!("lib{}", own.word), own.word);
    for (list, begin, truth) in
        [("programs", word, PROGRAMS), ("libraries", &lib, LIBRARIES), ("packages", word, PACKAGES)]
    {
        agree.exact(&format!("{list}{when}"), names(list, begin).len() as u64, truth as u64);
        let others = if list == "libraries" { "libbeside" } else { "beside" };
        agree.exact(&format!("{list} of others{when}"), names(list, others).len() as u64, 0);
    }
    let packages = software["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let is_right = |number: &usize| {
        let (name, version) = (format!("{word}{}", letter(*number)), format!("{number}.2"));
        packages.iter().any(|package| {
            package["name"] == name
                && package["distribution"] == name
                && package["version"] == version
        })
    };
    let versions = (0..PACKAGES).filter(is_right).count();
    agree.exact(&format!("packages with their versions{when}"), versions as u64, PACKAGES as u64);
    agree.exact(&format!("all packages{when}"), packages.len() as u64, PACKAGES as u64);
    let executed = software["programs"].as_array().map_or(&[][..], Vec::as_slice);
    let executed = executed.iter().filter_map(|program| program["executions"].as_u64());
    agree.exact(&format!("executions{when}"), executed.sum(), PROGRAMS as u64 + 1);
    // A child is one until it executes another program.
    let most = software["python_processes_most"].as_u64().unwrap_or(0);
    agree.between(&format!("Python processes at once{when}"), most, 1..=2);
    agree.exact(&format!("lost{when}"), software["lost"].as_u64().unwrap_or(0), 0);
    let is_by_opening = software["by"][0] == "open" && software["by"].get(1).is_none();
    agree.exact(&format!("seen by opening{when}"), is_by_opening.into(), 1);
}
