//! Packages from PyPI in an environment of their own, kept in the build's folder.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::made::python;

/// What is installed, some 80 MB to fetch, for Python 3.10 to 3.13; with what they need, 44 names or more can be imported.
pub const INSTALLED: [&str; 12] = [
    "numpy==2.2.6",
    "pandas==2.3.3",
    "requests==2.32.5",
    "scipy==1.15.3",
    "dask[distributed]==2025.9.1",
    "scikit-learn==1.7.2",
    "pydantic==2.12.3",
    "rich==14.2.0",
    "tqdm==4.67.1",
    "networkx==3.4.2",
    "cffi==2.0.0",
    "attrs==25.4.0",
];

/// Imports all of them.
pub const IMPORTS: &str = "import numpy, pandas, requests, scipy.sparse, scipy.linalg, dask.array, dask.bag, \
    distributed, sklearn.linear_model, sklearn.cluster, pydantic, rich.markdown, tqdm, networkx, cffi, attr, attrs, \
    tblib, zict, joblib, jinja2, cloudpickle, yaml, psutil";

/// An environment with them.
pub struct Environment {
    /// Its folder of modules.
    pub site: PathBuf,
    /// Its interpreter, a link to [`Self::program`].
    pub python: PathBuf,
    /// The interpreter itself.
    pub program: PathBuf,
}

/// The environment, made where it is not there yet.
pub fn environment() -> &'static Environment {
    static MADE: OnceLock<Environment> = OnceLock::new();
    MADE.get_or_init(|| {
        let program = python();
        let name = program.file_name().unwrap().to_str().unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("census-{name}"));
        let note = folder.join("installed");
        let wanted = format!("{}\n{}\n", program.display(), INSTALLED.join("\n"));
        if fs::read_to_string(&note).is_ok_and(|text| text == wanted) {
            return Environment::at(&folder, program);
        }
        let _ = fs::remove_dir_all(&folder);
        run(Command::new(&program).args(["-m", "venv"]).arg(&folder));
        let made = Environment::at(&folder, program);
        let mut pip = Command::new(&made.python);
        pip.args(["-m", "pip", "install", "--no-cache-dir", "--no-input", "--only-binary=:all:"]);
        run(pip.args(INSTALLED));
        fs::write(note, wanted).unwrap();
        made
    })
}

impl Environment {
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
