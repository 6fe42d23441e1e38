//! Packages from PyPI in an environment of their own, kept in the build's folder.

use std::{path::Path, sync::OnceLock};

pub use jobtrace_tests::rig::venv::Environment;

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

/// The environment, made where it is not there yet.
pub fn environment() -> &'static Environment {
    static MADE: OnceLock<Environment> = OnceLock::new();
    MADE.get_or_init(|| {
        Environment::of(Path::new(env!("CARGO_TARGET_TMPDIR")), "census", &INSTALLED)
    })
}
