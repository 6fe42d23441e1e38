//! A copy of the library with its scenario, for one test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::scenario::Scenario;

/// The library's name, as the loader knows it.
const LIBRARY: &str = "libnvidia-ml.so.1";
/// The scenario, in the library's folder.
pub const SCENARIO: &str = "scenario.json";
/// What each reference holds open, as drivers do their device files.
pub const REFERENCE: &str = "nvidia0";

/// A driver for one test, gone with it.
pub struct Fake {
    folder: TempDir,
}

impl Fake {
    /// A driver in the state `scenario`.
    pub fn new(scenario: &Scenario) -> Self {
        let fake = Self::without_library();
        fs::copy(built(), fake.library()).expect("the library of this package was built");
        fake.set(scenario);
        fake
    }

    /// A folder that has no library (yet).
    pub fn without_library() -> Self {
        Self { folder: TempDir::new().expect("a folder for the test") }
    }

    /// A driver whose library lacks functions.
    pub fn lacking(scenario: &Scenario, functions: &[&str]) -> Self {
        let fake = Self::new(scenario);
        let mut bytes = fs::read(fake.library()).expect("the copy can be read");
        for function in functions {
            let name = [b"\0", function.as_bytes(), b"\0"].concat();
            let at: Vec<_> = (0..bytes.len() - name.len())
                .filter(|at| bytes[*at..].starts_with(&name))
                .collect();
            assert!(!at.is_empty(), "the library has a function {function}");
            for at in at {
                // The loader looks the right name up and finds another.
                bytes[at + function.len()] = b'~';
            }
        }
        // A new file: the old one's pages may be mapped.
        fs::remove_file(fake.library()).expect("the copy can be replaced");
        fs::write(fake.library(), bytes).expect("the copy can be replaced");
        fake
    }

    /// Puts the library where [`Fake::without_library`] had none.
    pub fn install(&self) {
        let new = self.folder().join("new");
        fs::copy(built(), &new).expect("the library of this package was built");
        fs::rename(new, self.library()).expect("the library can be put in place");
    }

    /// Changes the state.
    pub fn set(&self, scenario: &Scenario) {
        let text = serde_json::to_vec(scenario).expect("a scenario is JSON");
        let new = self.folder().join("new.json");
        fs::write(&new, text).expect("the scenario can be written");
        fs::rename(new, self.scenario()).expect("the scenario can be replaced");
    }

    /// The file of the scenario; replace it by renaming another.
    pub fn scenario(&self) -> PathBuf {
        self.folder().join(SCENARIO)
    }

    /// How often a process has the driver initialised, by its open files.
    pub fn references(&self, pid: u32) -> usize {
        let reference = self.folder().join(REFERENCE);
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter(|file| fs::read_link(file.path()).is_ok_and(|to| to == reference)).count()
    }

    /// The folder, for `LD_LIBRARY_PATH`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The library.
    pub fn library(&self) -> PathBuf {
        self.folder().join(LIBRARY)
    }
}

/// What cargo built beside the test that runs.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.parent().expect("a test lies in a folder");
    let places = [folder.join("libfake_nvml.so"), folder.join("deps/libfake_nvml.so")];
    let found = places.iter().find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("no libfake_nvml.so beside {}", test.display())).clone()
}
