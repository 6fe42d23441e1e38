//! What the job ran, in a sentence: "gmx_mpi 2024.1, Python 3.11, numpy 2.4.6, torch 2.9 (CUDA 12.4), GPU held and used
//! 3 %". What most jobs run (shells, tools) and what other packages bring is counted, not named.

use super::facts::Facts;
use crate::{
    base::{text::clean, units},
    model::{
        software::{Library, Package, Program, Software},
        software_text::{library_name, library_version, package_name},
        tables::{GPU, Gpu},
    },
};

/// Kinds of programs that tell nothing of what a job is for.
const COMMON: [&str; 7] =
    ["python", "shell", "tool", "build", "scheduler", "container", "mpi_launcher"];
/// Packages that tell most of it, those first.
const TELLING: [&str; 38] = [
    "torch",
    "tensorflow",
    "jax",
    "keras",
    "transformers",
    "vllm",
    "deepspeed",
    "pytorch-lightning",
    "lightning",
    "cupy",
    "numba",
    "cudf",
    "numpy",
    "scipy",
    "pandas",
    "polars",
    "scikit-learn",
    "scikit-image",
    "xgboost",
    "lightgbm",
    "dask",
    "distributed",
    "ray",
    "mpi4py",
    "joblib",
    "xarray",
    "netCDF4",
    "h5py",
    "zarr",
    "matplotlib",
    "opencv-python",
    "MDAnalysis",
    "openmm",
    "ase",
    "pyscf",
    "pymatgen",
    "biopython",
    "astropy",
];
/// What compute on GPUs, and are built for one version of CUDA.
const ON_CUDA: [&str; 6] = ["torch", "tensorflow", "jax", "cupy", "numba", "cudf"];
/// Libraries that are worth a word.
const LIBRARIES: [&str; 15] = [
    "OpenMPI",
    "IntelMPI",
    "MPICH",
    "CrayMPICH",
    "MVAPICH",
    "ParaStationMPI",
    "MKL",
    "OpenBLAS",
    "BLIS",
    "FlexiBLAS",
    "reference-BLAS",
    "cuDNN",
    "NCCL",
    "ROCm",
    "PETSc",
];
/// Packages, and programs, that are named.
const MOST_PACKAGES: usize = 6;
const MOST_PROGRAMS: usize = 4;
/// Libraries and stacks that are.
const MOST_OTHERS: usize = 4;

/// The sentence; `None` where nobody watched, or there is nothing to say.
pub fn in_words(facts: &Facts) -> Option<String> {
    let software = facts.totals.software.as_ref()?;
    if software.opted_out {
        return Some("not told, as the job asked".to_owned());
    }
    let mut parts = programs(software);
    parts.extend(packages(software));
    parts.extend(libraries(software));
    parts.extend(stacks(software));
    parts.extend(python_processes(software));
    parts.extend(gpu(facts, software));
    if parts.is_empty() {
        return counts(software);
    }
    if software.is_partial() {
        parts.push("not all of it was seen".to_owned());
    }
    Some(clean(&parts.join(", "), facts.unicode))
}

/// Numbers alone, where no names are told.
fn counts(software: &Software) -> Option<String> {
    let programs = software.programs.len() as u64 + software.other_programs;
    let libraries = software.libraries.len() as u64 + software.other_libraries;
    let packages =
        software.packages.len() as u64 + software.own_modules + software.unknown_packages;
    let of = |number: u64, one: &str, several: &str| {
        let what = if number == 1 { one } else { several };
        (number > 0).then(|| format!("{} {what}", units::count(number)))
    };
    let parts = [
        of(programs, "program", "programs"),
        of(libraries, "shared library", "shared libraries"),
        of(packages, "Python package", "Python packages"),
    ];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then_some(text)
}

fn named(name: &str, version: Option<&str>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name} {}", short(version)))
}

/// Without what comes after the numbers that people say: `2.9.0+cu124` is 2.9.0.
fn short(version: &str) -> &str {
    version.split('+').next().unwrap_or(version)
}

fn programs(software: &Software) -> Vec<String> {
    let is_common = |of: &&Program| of.kind.as_deref().is_some_and(|kind| COMMON.contains(&kind));
    let mut own: Vec<_> = software.programs.iter().filter(|of| !is_common(of)).collect();
    // What a rule knows says more than what lies in a system's folder.
    own.sort_by_key(|of| (of.kind.is_none(), std::cmp::Reverse(of.executions)));
    own.retain(|of| of.kind.is_some() || of.version.is_some());
    let named = own.iter().take(MOST_PROGRAMS).map(|of| named(&of.name, of.version.as_deref()));
    named.collect()
}

fn packages(software: &Software) -> Vec<String> {
    let mut parts: Vec<_> =
        software.pythons().into_iter().map(|version| format!("Python {version}")).collect();
    let rank =
        |of: &&Package| TELLING.iter().position(|name| package_name(of).eq_ignore_ascii_case(name));
    let mut told: Vec<&Package> =
        software.packages.iter().filter(|of| rank(of).is_some()).collect();
    told.sort_by_key(rank);
    told.dedup_by_key(|of| package_name(of));
    told.truncate(MOST_PACKAGES);
    let cuda = software.libraries.iter().filter(|of| of.what.as_deref() == Some("CUDA"));
    let cuda = cuda.filter_map(library_version).max().map(major_minor);
    for of in &told {
        let mut text = named(package_name(of), of.version.as_deref());
        if let Some(cuda) = cuda.filter(|_| ON_CUDA.contains(&package_name(of))) {
            text += &format!(" (CUDA {cuda})");
        }
        parts.push(text);
    }
    let names: std::collections::BTreeSet<_> = software.packages.iter().map(package_name).collect();
    let more = names.len().saturating_sub(told.len()) as u64;
    let more = more.saturating_add(software.unknown_packages);
    if more > 0 {
        let s = if more == 1 { "" } else { "s" };
        parts.push(format!("{} other package{s}", units::count(more)));
    }
    if software.own_modules > 0 {
        let s = if software.own_modules == 1 { "" } else { "s" };
        parts.push(format!("{} module{s} of its own", units::count(software.own_modules)));
    }
    parts
}

/// `12.4` of `12.4.127`.
fn major_minor(version: &str) -> &str {
    version.match_indices('.').nth(1).map_or(version, |(at, _)| &version[..at])
}

fn libraries(software: &Software) -> Vec<String> {
    let rank = |of: &&Library| LIBRARIES.iter().position(|name| library_name(of) == *name);
    let mut told: Vec<_> = software.libraries.iter().filter(|of| rank(of).is_some()).collect();
    // The one with a version speaks for the others.
    told.sort_by_key(|of| (rank(of), library_version(of).is_none()));
    told.dedup_by_key(|of| library_name(of));
    let of = |of: &&Library| named(library_name(of), library_version(of));
    told.iter().take(MOST_OTHERS).map(of).collect()
}

fn stacks(software: &Software) -> Vec<String> {
    let worth = ["conda", "spack", "easybuild", "container"];
    let kinds = worth.iter().filter_map(|kind| {
        let of_kind: Vec<_> = software.stacks.iter().filter(|of| of.kind == *kind).collect();
        match &of_kind[..] {
            [] => None,
            [one] if one.name.is_some() && matches!(*kind, "conda" | "container") => {
                Some(format!("{kind} {}", one.name.as_deref().unwrap_or_default()))
            }
            _ => Some(format!("from {kind}")),
        }
    });
    kinds.take(MOST_OTHERS).collect()
}

/// Several Python processes: `multiprocessing` alone is imported by many who never start one.
fn python_processes(software: &Software) -> Option<String> {
    let most = software.python_processes_most.filter(|most| *most > 1)?;
    Some(format!("up to {} Python processes at once", units::count(most)))
}

/// Whether the GPU, for which a library was loaded, was held, and used.
fn gpu(facts: &Facts, software: &Software) -> Option<String> {
    let sum = |field| {
        let groups = facts.totals.stats.groups(&GPU);
        groups.filter_map(|group| group.number(field)).reduce(u64::saturating_add)
    };
    let held_ns = sum(Gpu::held_ns).filter(|ns| *ns > 0);
    match (held_ns, sum(Gpu::busy_ns)) {
        (Some(held_ns), Some(busy_ns)) => {
            let share = units::percent(busy_ns as f64 / held_ns as f64);
            Some(format!("GPU held and used {share}"))
        }
        (Some(_), None) => None,
        (None, _) => software.gpu_library.then(|| "a GPU's library, but no GPU held".to_owned()),
    }
}

#[cfg(test)]
mod tests;
