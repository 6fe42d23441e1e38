//! Python's own environments with packages from PyPI, kept in the build's folder: they are made once.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// An environment with packages in it.
pub struct Environment {
    /// Its folder of modules.
    pub site: PathBuf,
    /// Its interpreter, a link to [`Self::program`].
    pub python: PathBuf,
    /// The interpreter itself.
    pub program: PathBuf,
}

impl Environment {
    /// One with `packages`, each with its version, of this name in `folder`; made where it is not there yet.
    ///
    /// # Panics
    /// When Python's module venv is missing or PyPI is not reached.
    pub fn of(folder: &Path, name: &str, packages: &[&str]) -> Self {
        let program = python();
        let version = program.file_name().unwrap().to_str().unwrap();
        let folder = folder.join(format!("{name}-{version}"));
        let note = folder.join("installed");
        let wanted = format!("{}\n{}\n", program.display(), packages.join("\n"));
        if fs::read_to_string(&note).is_ok_and(|text| text == wanted) {
            return Self::at(&folder, program);
        }
        let _ = fs::remove_dir_all(&folder);
        let made = Self::empty(&folder);
        let mut pip = Command::new(&made.python);
        pip.args(["-m", "pip", "install", "--no-cache-dir", "--no-input", "--only-binary=:all:"]);
        run(pip.args(packages));
        fs::write(note, wanted).unwrap();
        made
    }

    /// A new one at `folder`, with pip alone.
    ///
    /// # Panics
    /// When Python's module venv is missing.
    pub fn empty(folder: &Path) -> Self {
        let program = python();
        run(Command::new(&program).args(["-m", "venv"]).arg(folder));
        Self::at(folder, program)
    }

    fn at(folder: &Path, program: PathBuf) -> Self {
        let lib = fs::read_dir(folder.join("lib")).expect("the environment's modules");
        let version = lib.flatten().next().expect("one version of Python").path();
        let python = folder.join("bin/python3");
        Self { site: version.join("site-packages"), python, program }
    }

    /// The interpreter running `script`.
    pub fn command<'a>(&'a self, script: &'a str) -> [&'a str; 4] {
        [self.python.to_str().unwrap(), "-E", "-c", script]
    }
}

/// The interpreter itself: what is in the path may be somebody's script.
///
/// # Panics
/// When there is none.
pub fn python() -> PathBuf {
    let text = "import os, sys; print(os.path.realpath(sys.executable))";
    let output = Command::new("python3").args(["-c", text]).output().expect("python3");
    assert!(output.status.success(), "{output:?}");
    Path::new(String::from_utf8(output.stdout).unwrap().trim()).to_owned()
}

/// Runs `command`, which fetches from PyPI: without it there is no test.
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "cannot make an environment with packages of PyPI, is it reached? {command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
