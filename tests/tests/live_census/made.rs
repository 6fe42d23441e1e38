//! Packages of Python made by hand in a folder of a test's own, on a file system of its own, and what is told of them.

use std::{collections::BTreeSet, fs, path::PathBuf};

pub use jobtrace_tests::rig::venv::python;

use jobtrace_tests::rig::mount::Ext4;
use serde_json::Value;

const MIB: u64 = 1 << 20;
/// Generated packages beside those with a trait of their own.
const GENERATED: usize = 20;
/// A word that nothing that is told may hold: part of a user's folder, argument, module and program.
pub const SECRET: &str = "quietfinch";

/// A folder of modules with packages in it, and the interpreter that imports them.
pub struct Made {
    disk: Ext4,
    /// Name, distribution and version of those that [`Self::imports`] imports.
    pub expected: BTreeSet<[String; 3]>,
    pub python: PathBuf,
}

impl Made {
    /// Makes all of them.
    pub fn new() -> Self {
        let disk = Ext4::mount(128 * MIB).unwrap();
        let mut made = Self { disk, expected: BTreeSet::new(), python: python() };
        let (site, cache) = (made.site(), made.home().join("cache/archive"));
        fs::create_dir_all(&site).unwrap();
        fs::create_dir_all(&cache).unwrap();
        for at in 0..GENERATED {
            let name = format!("made{at:02}");
            made.package(&name, &name, &format!("{at}.2.3"));
        }
        // A file alone, one of another name than its distribution's, and one that a cache has a link to, as conda's and
        // uv's have.
        fs::write(site.join("lone.py"), "value = 1\n").unwrap();
        made.distribution("lone", "lone", "0.9");
        made.package("yaml", "PyYAML", "6.0.1");
        made.package("linked", "linked", "3.1");
        fs::hard_link(site.join("linked/__init__.py"), cache.join("__init__.py")).unwrap();
        fs::hard_link(site.join("linked/part.py"), cache.join("part.py")).unwrap();
        // Nobody imports it.
        made.package("idle", "idle", "9.9");
        made.expected.retain(|package| package[0] != "idle");
        // Nobody installed it.
        fs::write(site.join(format!("{SECRET}_solver.py")), "value = 1\n").unwrap();
        fs::write(made.home().join(format!("{SECRET}_script.py")), made.imports("")).unwrap();
        made
    }

    /// The user's folder.
    pub fn home(&self) -> PathBuf {
        self.disk.path().join(SECRET)
    }

    /// The folder of modules.
    pub fn site(&self) -> PathBuf {
        self.home().join("lib/site-packages")
    }

    fn package(&mut self, name: &str, distribution: &str, version: &str) {
        let folder = self.site().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("__init__.py"), format!("from {name} import part\n")).unwrap();
        fs::write(folder.join("part.py"), "value = 1\n").unwrap();
        self.distribution(name, distribution, version);
    }

    fn distribution(&mut self, name: &str, distribution: &str, version: &str) {
        let folder = self.site().join(format!("{distribution}-{version}.dist-info"));
        fs::create_dir(&folder).unwrap();
        let metadata = format!("Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n");
        fs::write(folder.join("METADATA"), metadata).unwrap();
        self.expected.insert([name.into(), distribution.to_lowercase(), version.into()]);
    }

    /// A script that imports them and the user's own module, then does `after`.
    pub fn imports(&self, after: &str) -> String {
        let names: Vec<_> = self.expected.iter().map(|package| package[0].as_str()).collect();
        format!(
            "import sys\nsys.path.insert(0, {:?})\nimport {}, {SECRET}_solver\n{after}\n",
            self.site().to_str().unwrap(),
            names.join(", ")
        )
    }

    /// The interpreter, without what its installation would import, running `script` with a secret argument.
    pub fn command<'a>(&'a self, script: &'a str) -> [&'a str; 6] {
        [self.python.to_str().unwrap(), "-S", "-E", "-c", script, "--token=quietfinch"]
    }
}

/// Name, distribution and version of the packages that `software` tells.
pub fn packages(software: &Value) -> BTreeSet<[String; 3]> {
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let all = software["packages"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().map(|of| ["name", "distribution", "version"].map(|key| text(of, key))).collect()
}

/// How often `name` was executed, by `software`.
pub fn executions(software: &Value, name: &str) -> u64 {
    let all = software["programs"].as_array().map_or(&[][..], Vec::as_slice);
    let of_name = all.iter().filter(|program| program["name"] == name);
    of_name.filter_map(|program| program["executions"].as_u64()).sum()
}

/// Nothing is in the page cache any more.
pub fn forget_files() {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
}
