//! Python packages whose names differ: what is imported, and under which names it may be installed. What is in the
//! table, or among the well-known, may be told wherever it lies.
//!
//! Pure.

/// A name that is imported, with the distributions that may have brought it, the usual one first. One without any is
/// brought by many: nobody can tell which.
#[rustfmt::skip]
static ALIASES: &[(&str, &[&str])] = &[
    ("sklearn", &["scikit-learn"]), ("skimage", &["scikit-image"]), ("PIL", &["pillow", "pillow-simd"]),
    ("yaml", &["pyyaml"]), ("_yaml", &["pyyaml"]), ("cv2", &["opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless", "opencv"]),
    ("bs4", &["beautifulsoup4"]), ("dateutil", &["python-dateutil"]), ("attr", &["attrs"]), ("attrs", &["attrs"]), ("OpenSSL", &["pyopenssl"]),
    ("Crypto", &["pycryptodome", "pycrypto"]), ("Cryptodome", &["pycryptodomex"]), ("serial", &["pyserial"]), ("usb", &["pyusb"]), ("zmq", &["pyzmq"]),
    ("jwt", &["pyjwt"]), ("dotenv", &["python-dotenv"]), ("git", &["gitpython"]), ("gitdb", &["gitdb"]), ("docx", &["python-docx"]), ("pptx", &["python-pptx"]),
    ("magic", &["python-magic"]), ("slugify", &["python-slugify"]), ("Levenshtein", &["levenshtein", "python-levenshtein"]), ("MySQLdb", &["mysqlclient"]), ("psycopg2", &["psycopg2", "psycopg2-binary"]),
    ("pkg_resources", &["setuptools"]), ("_distutils_hack", &["setuptools"]), ("setuptools", &["setuptools"]), ("win32api", &["pywin32"]), ("fitz", &["pymupdf"]),
    ("pymupdf", &["pymupdf"]), ("mpl_toolkits", &["matplotlib"]), ("pylab", &["matplotlib"]), ("_cffi_backend", &["cffi"]), ("markdown", &["markdown"]), ("jinja2", &["jinja2"]),
    ("markupsafe", &["markupsafe"]), ("osgeo", &["gdal"]), ("gdal", &["gdal"]), ("netCDF4", &["netcdf4"]), ("cftime", &["cftime"]), ("tables", &["tables"]), ("h5py", &["h5py"]),
    ("Bio", &["biopython"]), ("BioSQL", &["biopython"]), ("Cython", &["cython"]), ("cython", &["cython"]), ("pyximport", &["cython"]), ("IPython", &["ipython"]), ("pywt", &["pywavelets"]),
    ("faiss", &["faiss-cpu", "faiss-gpu", "faiss-gpu-cu12", "faiss"]), ("torch", &["torch", "pytorch"]), ("functorch", &["torch", "pytorch"]), ("torchgen", &["torch", "pytorch"]),
    ("tensorflow", &["tensorflow", "tensorflow-cpu", "tensorflow-gpu", "intel-tensorflow", "tensorflow-rocm"]), ("tensorboard", &["tensorboard"]), ("keras", &["keras"]),
    ("flatbuffers", &["flatbuffers"]), ("jaxlib", &["jaxlib"]), ("cupy", &["cupy", "cupy-cuda12x", "cupy-cuda11x", "cupy-cuda13x", "cupy-rocm-5-0"]), ("cupy_backends", &["cupy", "cupy-cuda12x", "cupy-cuda11x", "cupy-cuda13x"]),
    ("cupyx", &["cupy", "cupy-cuda12x", "cupy-cuda11x", "cupy-cuda13x"]), ("onnxruntime", &["onnxruntime", "onnxruntime-gpu"]), ("triton", &["triton", "pytorch-triton"]), ("dgl", &["dgl"]), ("xgboost", &["xgboost", "xgboost-cpu", "py-xgboost"]),
    ("lightning", &["lightning"]), ("pytorch_lightning", &["pytorch-lightning"]), ("lightning_fabric", &["lightning-fabric"]), ("lightning_utilities", &["lightning-utilities"]),
    ("sentence_transformers", &["sentence-transformers"]), ("huggingface_hub", &["huggingface-hub"]), ("torch_geometric", &["torch-geometric"]), ("sentencepiece", &["sentencepiece"]), ("flash_attn", &["flash-attn"]),
    ("llama_cpp", &["llama-cpp-python"]), ("tiktoken_ext", &["tiktoken"]), ("past", &["future"]), ("libfuturize", &["future"]), ("grpc", &["grpcio"]), ("umap", &["umap-learn"]), ("hdbscan", &["hdbscan"]),
    ("community", &["python-louvain"]), ("igraph", &["igraph", "python-igraph"]), ("louvain", &["louvain"]), ("skopt", &["scikit-optimize"]), ("skbio", &["scikit-bio"]), ("sksurv", &["scikit-survival"]), ("imblearn", &["imbalanced-learn"]),
    ("ruamel", &["ruamel-yaml"]), ("ruamel_yaml", &["ruamel-yaml"]), ("simplejson", &["simplejson"]), ("ldap", &["python-ldap"]), ("pynvml", &["nvidia-ml-py", "pynvml"]), ("nvml", &["nvidia-ml-py"]),
    ("vtkmodules", &["vtk"]), ("vtk", &["vtk"]), ("OpenGL", &["pyopengl"]), ("wx", &["wxpython"]), ("gi", &["pygobject"]), ("cairo", &["pycairo"]), ("Xlib", &["python-xlib"]), ("mdurl", &["mdurl"]), ("markdown_it", &["markdown-it-py"]),
    ("MDAnalysis", &["mdanalysis"]), ("openmm", &["openmm"]), ("simtk", &["openmm"]), ("rdkit", &["rdkit", "rdkit-pypi"]), ("openbabel", &["openbabel", "openbabel-wheel"]), ("parmed", &["parmed"]), ("prody", &["prody"]), ("pymatgen", &["pymatgen"]),
    ("pyscf", &["pyscf"]), ("psi4", &["psi4"]), ("gpaw", &["gpaw"]), ("ase", &["ase"]), ("phonopy", &["phonopy"]), ("spglib", &["spglib"]), ("qutip", &["qutip"]), ("astropy", &["astropy"]), ("yt", &["yt"]), ("healpy", &["healpy"]),
    ("mpi4py", &["mpi4py"]), ("petsc4py", &["petsc4py"]), ("slepc4py", &["slepc4py"]), ("dolfin", &["fenics-dolfin"]), ("ufl", &["fenics-ufl"]), ("mshr", &["mshr"]), ("firedrake", &["firedrake"]), ("eccodes", &["eccodes"]), ("gribapi", &["eccodes"]),
    ("cartopy", &["cartopy"]), ("shapefile", &["pyshp"]), ("mpl_scatter_density", &["mpl-scatter-density"]), ("snakemake", &["snakemake"]), ("pulp", &["pulp"]), ("gurobipy", &["gurobipy"]), ("docplex", &["docplex"]), ("cvxpy", &["cvxpy"]),
    ("wandb", &["wandb"]), ("sentry_sdk", &["sentry-sdk"]), ("ray", &["ray"]), ("distributed", &["distributed"]), ("dask_mpi", &["dask-mpi"]), ("dask_jobqueue", &["dask-jobqueue"]), ("tlz", &["toolz"]), ("sortedcontainers", &["sortedcontainers"]),
    ("google", &[]), ("nvidia", &[]), ("azure", &[]), ("zope", &[]), ("backports", &[]), ("jaraco", &[]), ("sphinxcontrib", &[]), ("opentelemetry", &[]),
];

/// Distributions that everybody may know of: not named like a user's own, so that they are told wherever they lie, and
/// where nobody could read the folder.
#[rustfmt::skip]
static KNOWN: &[&str] = &[
    "absl-py", "absl", "accelerate", "aiohttp", "aiosignal", "annotated-types", "anyio", "apex", "arviz", "asdf", "asttokens", "astunparse", "biopython", "bitsandbytes", "black", "blinker", "blosc", "bokeh", "boto3", "botocore", "bottleneck",
    "cachetools", "catboost", "certifi", "charset-normalizer", "chardet", "chemprop", "click", "cloudpickle", "colorama", "comm", "contourpy", "coverage", "cryptography", "cudf", "cuml", "cycler", "cykhash", "cytoolz", "dask", "datasets", "datashader", "debugpy",
    "decorator", "deepspeed", "diffusers", "dill", "distro", "einops", "emcee", "evaluate", "fastapi", "fastai", "filelock", "flask", "flax", "fonttools", "frozenlist", "fsspec", "future", "gast", "gensim", "geopandas", "gym", "gymnasium", "h11", "hjson", "holoviews", "horovod",
    "httpx", "hyperopt", "idna", "imageio", "importlib-metadata", "iniconfig", "ipykernel", "ipywidgets", "isodate", "jax", "jedi", "jinja2", "jmespath", "joblib", "jsonschema", "jupyter-client", "jupyter-core", "jupyterlab", "kiwisolver", "kornia", "langchain", "lightgbm",
    "librosa", "llvmlite", "lmdb", "locket", "loguru", "lxml", "lz4", "mako", "matplotlib", "megatron", "mlflow", "ml-dtypes", "modin", "monai", "more-itertools", "mpmath", "msgpack", "multidict", "multiprocess", "namex", "nest-asyncio", "networkx", "ninja", "nibabel", "nilearn", "nltk",
    "numba", "numcodecs", "numexpr", "numpy", "numpyro", "omegaconf", "openai", "openpyxl", "opt-einsum", "optax", "optree", "optuna", "orjson", "packaging", "pandas", "parso", "partd", "pathos", "patsy", "peft", "pexpect", "pint", "pip", "platformdirs", "plotly", "pluggy", "polars", "pooch", "pox", "ppft",
    "prompt-toolkit", "propcache", "protobuf", "psutil", "ptyprocess", "pyarrow", "pyasn1", "pycparser", "pydantic", "pydantic-core", "pygments", "pyhdf", "pymc", "pyparsing", "pyproj", "pyro-ppl", "pysam", "pyspark", "pystan", "pytest", "pytensor", "pytz", "rasterio", "regex", "requests", "rich", "rioxarray",
    "rpy2", "s3fs", "safetensors", "scanpy", "anndata", "scipy", "scvi-tools", "seaborn", "shap", "shapely", "six", "smmap", "sniffio", "soundfile", "spacy", "spyder", "sqlalchemy", "stack-data", "starlette", "statsmodels", "sympy", "tabulate", "tblib", "tensorflow-probability", "termcolor", "thinc", "threadpoolctl",
    "tifffile", "tiktoken", "timm", "tokenizers", "tomli", "toolz", "torchaudio", "torchdata", "torchmetrics", "torchtext", "torchvision", "tornado", "tqdm", "traitlets", "transformers", "trl", "typer", "typing-extensions", "tzdata", "ujson", "urllib3", "uvicorn", "uvloop", "vllm", "wcwidth", "werkzeug", "wheel", "wrapt",
    "xarray", "xformers", "xlrd", "xxhash", "yarl", "zarr", "zict", "zipp", "zstandard",
];

/// Names under which what is imported as `name` may be installed; `None` where the table does not have it.
pub fn candidates(name: &str) -> Option<&'static [&'static str]> {
    ALIASES.iter().find(|(import, _)| *import == name).map(|(_, of)| *of)
}

/// Whether everybody may know of what is imported as `name`.
pub fn is_known(name: &str) -> bool {
    let normal = normal(name);
    candidates(name).is_some() || KNOWN.contains(&&*normal)
}

/// A distribution's name as all spellings of it are compared (PEP 503).
pub fn normal(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            c => out.push(c.to_ascii_lowercase()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_one() {
        for name in ["typing_extensions", "Typing.Extensions", "typing-_extensions"] {
            assert_eq!(normal(name), "typing-extensions");
            assert!(is_known(name));
        }
        assert!(is_known("PIL") && is_known("google") && !is_known("my_thesis"));
    }

    #[test]
    fn the_tables_are_normal_and_without_doubles() {
        let of_aliases = ALIASES.iter().flat_map(|(_, of)| of.iter());
        for name in of_aliases.chain(KNOWN) {
            assert_eq!(normal(name), *name);
        }
        let mut imports: Vec<_> = ALIASES.iter().map(|(import, _)| import).collect();
        imports.sort_unstable();
        imports.dedup();
        assert_eq!(imports.len(), ALIASES.len());
    }
}
