//! Real paths: of Debian, conda, EasyBuild, Spack, EESSI, the Alliance's stack, Cray, containers, virtual environments.

use std::sync::LazyLock;

use super::*;
use crate::{
    census::{
        listing::Distribution,
        site::{Site, SiteRule},
    },
    model::seen::Means,
};

fn naming_of(level: Level, site: Site) -> Naming {
    Naming::new(level, Rules::new(site).unwrap()).unwrap()
}

fn naming() -> &'static Naming {
    static NAMING: LazyLock<Naming> = LazyLock::new(|| naming_of(Level::Names, Site::default()));
    &NAMING
}

fn of_programs(paths: &[&str]) -> Seen {
    let program = |path: &&str| SeenProgram { path: (*path).into(), executions: 1 };
    Seen { programs: paths.iter().map(program).collect(), ..Seen::default() }
}

fn of_libraries(paths: &[&str]) -> Seen {
    let by = "/usr/bin/python3.11";
    let library = |path: &&str| SeenLibrary { path: (*path).into(), by: by.into() };
    Seen { libraries: paths.iter().map(library).collect(), ..Seen::default() }
}

fn named(seen: &Seen) -> Software {
    naming().software(seen, |_| Installed::Unread)
}

/// Kind, name, version, toolchain of the stacks that a program's path tells.
fn stack(path: &str) -> String {
    let stacks = named(&of_programs(&[path])).stacks;
    let text = |text: &Option<String>| text.clone().unwrap_or("-".into());
    let row = |of: &Stack| {
        format!("{} {} {} {}", of.kind, text(&of.name), text(&of.version), text(&of.toolchain))
    };
    stacks.iter().map(row).collect::<Vec<_>>().join("; ")
}

#[test]
fn programs_by_their_rules() {
    for (path, name, version, kind) in [
        ("/usr/bin/python3.11", "python", Some("3.11"), Some("python")),
        ("/home/ada/miniconda3/envs/x/bin/python3.12", "python", Some("3.12"), Some("python")),
        ("/usr/bin/dash", "dash", None, Some("shell")),
        ("/usr/bin/x86_64-linux-gnu-gcc-12", "gcc", Some("12"), Some("compiler")),
        ("/usr/libexec/gcc/x86_64-linux-gnu/12/cc1plus", "cc1plus", None, Some("compiler")),
        ("/usr/bin/mpiexec.hydra", "mpiexec.hydra", None, Some("mpi_launcher")),
        ("/apps/gromacs/2024.1/bin/gmx_mpi", "gmx_mpi", Some("2024.1"), Some("molecular_dynamics")),
        ("/home/ada/lammps/build/lmp", "lmp", None, Some("molecular_dynamics")),
        ("/usr/bin/uptime", "uptime", None, None),
    ] {
        let software = named(&of_programs(&[path]));
        let told = &software.programs[0];
        let told = (&*told.name, told.version.as_deref(), told.kind.as_deref());
        assert_eq!(told, (name, version, kind), "{path}");
    }
}

#[test]
fn a_users_own_programs_and_scripts_have_no_names() {
    let own = [
        "/home/ada/bin/solve_secret",
        "/scratch/ada/a.out",
        "/tmp/x",
        "/usr/local/bin/job_of_ada.sh",
        "/var/lib/docker/overlay2/ab12/diff/app/solver",
        "/usr/bin/we ird",
    ];
    let software = named(&of_programs(&own));
    assert_eq!((software.programs.len(), software.other_programs), (0, own.len() as u64));
    let text = serde_json::to_string(&software).unwrap();
    for word in ["ada", "solve", "a.out", "job", "ird"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
}

#[test]
fn a_users_own_build_of_what_is_well_known_has_no_word_of_the_users() {
    let seen = of_programs(&["/home/ada/lmp_thesis", "/home/ada/pw.x", "/home/ada/gmx_mpi"]);
    let told: Vec<_> = named(&seen).programs.iter().map(|of| of.name.clone()).collect();
    assert_eq!(told, ["gmx", "lmp", "pw.x"]);
    let software =
        named(&of_libraries(&["/home/ada/libtorch_thesis.so.1.ada", "/home/ada/libcudart.so.12"]));
    let told: Vec<_> =
        software.libraries.iter().map(|of| (&*of.name, of.version.as_deref())).collect();
    assert_eq!(told, [("PyTorch", None), ("libcudart", Some("12"))]);
    assert!(software.gpu_library);
}

#[test]
fn stacks_by_their_paths() {
    for (path, expected) in [
        ("/usr/bin/bash", ""),
        ("/apps/gromacs/2024.1/bin/gmx", "module gromacs 2024.1 -"),
        ("/opt/apps/libs/hdf5/1.14.3/bin/h5dump", "module hdf5 1.14.3 -"),
        ("/usr/local/cuda-12.4/bin/ptxas", "module cuda 12.4 -"),
        ("/opt/rocm-6.0.2/bin/hipcc", "module rocm 6.0.2 -"),
        ("/opt/cray/pe/python/3.11.7/bin/python3.11", "module python 3.11.7 -"),
        ("/opt/ohpc/pub/mpi/openmpi4-gnu12/4.1.5/bin/mpirun", "module openmpi4-gnu12 4.1.5 -"),
        ("/opt/intel/oneapi/mpi/2021.9.0/bin/mpiexec.hydra", "module mpi 2021.9.0 -"),
        (
            "/apps/easybuild/software/Python/3.10.4-GCCcore-11.3.0/bin/python3.10",
            "easybuild Python 3.10.4 GCCcore-11.3.0",
        ),
        (
            "/cvmfs/software.eessi.io/versions/2023.06/software/linux/x86_64/amd/zen2/software/GROMACS/2024.1-foss-2023b/bin/gmx",
            "easybuild GROMACS 2024.1 foss-2023b",
        ),
        (
            "/sw/eb/software/PyTorch/2.1.2-foss-2023a-CUDA-12.1.1/bin/torchrun",
            "easybuild PyTorch 2.1.2 foss-2023a",
        ),
        (
            "/cvmfs/soft.computecanada.ca/easybuild/software/2023/x86-64-v3/Compiler/gcc12/openmpi/4.1.5/bin/mpirun",
            "easybuild openmpi 4.1.5 gcc12",
        ),
        (
            "/opt/spack/opt/spack/linux-rocky8-zen2/gcc-12.2.0/hdf5-1.14.1-2-4kvh3rjtaqmk3cr7jbcstgqxkkkkpfez/bin/h5ls",
            "spack hdf5 1.14.1-2 gcc-12.2.0",
        ),
        (
            "/sw/spack/linux-x86_64_v3/openmpi-5.0.8-abcdefghijklmnopqrstuvwxyz234567/bin/mpirun",
            "spack openmpi 5.0.8 -",
        ),
        ("/nix/store/0c1ym9zrgxp5qx0lybmyqnnhv1v8hxyn-bash-5.2p15/bin/bash", "nix bash 5.2p15 -"),
        ("/opt/conda/bin/python3.11", "conda base - -"),
        ("/apps/miniforge3/envs/pangeo/bin/python3.11", "conda pangeo - -"),
        ("/home/ada/miniconda3/envs/secret/bin/python3.11", "conda - - -"),
        ("/home/ada/.conda/envs/secret/bin/python3.11", "conda - - -"),
        ("/home/ada/thesis/.venv/bin/python3.11", "virtualenv - - -"),
        ("/home/ada/.pyenv/versions/3.11.4/bin/python3.11", "pyenv - - -"),
        (
            "/var/lib/containers/storage/overlay/0f3a/diff/usr/bin/python3.11",
            "container podman - -",
        ),
        (
            "/var/lib/docker/overlay2/0f3a/diff/opt/conda/bin/python3.11",
            "conda - - -; container docker - -",
        ),
        ("/var/lib/apptainer/mnt/session/final/usr/bin/R", "container apptainer - -"),
    ] {
        assert_eq!(stack(path), expected, "{path}");
    }
}

#[test]
fn libraries_by_their_sonames_and_places() {
    for (path, name, version, what) in [
        (
            "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblasp-r0.3.21.so",
            "libopenblasp",
            "0.3.21",
            "OpenBLAS",
        ),
        (
            "/home/ada/v/lib/python3.11/site-packages/numpy.libs/libscipy_openblas64_-ff651d7f.so",
            "OpenBLAS",
            "-",
            "OpenBLAS",
        ),
        ("/opt/intel/oneapi/mkl/2024.0/lib/libmkl_core.so.2", "libmkl_core", "2024.0", "MKL"),
        ("/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4", "libmpi", "40.30.4", "OpenMPI"),
        ("/usr/lib/x86_64-linux-gnu/libmpi.so.12.2.1", "libmpi", "12.2.1", "MPICH"),
        ("/home/ada/lib/libmpi.so.40.thesis", "libmpi", "-", "OpenMPI"),
        (
            "/opt/intel/oneapi/mpi/2021.9.0/lib/release/libmpi.so.12.0.0",
            "libmpi",
            "2021.9.0",
            "IntelMPI",
        ),
        (
            "/opt/cray/pe/mpich/8.1.27/ofi/gnu/9.1/lib/libmpi_gnu_91.so.12.0.0",
            "libmpi_gnu_91",
            "8.1.27",
            "CrayMPICH",
        ),
        (
            "/usr/local/cuda-12.4/targets/x86_64-linux/lib/libcudart.so.12.4.127",
            "libcudart",
            "12.4",
            "CUDA",
        ),
        (
            "/home/ada/v/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9",
            "libcudnn",
            "9",
            "cuDNN",
        ),
        (
            "/home/ada/v/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2",
            "libnccl",
            "2",
            "NCCL",
        ),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14", "libcuda", "550.54.14", "NVIDIA-driver"),
        ("/opt/rocm-6.0.2/lib/libamdhip64.so.6.0.60002", "libamdhip64", "6.0.2", "ROCm"),
        (
            "/home/ada/v/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so",
            "PyTorch",
            "-",
            "PyTorch",
        ),
        (
            "/apps/easybuild/software/HDF5/1.14.3-gompi-2023b/lib/libhdf5.so.310.3.0",
            "libhdf5",
            "1.14.3",
            "HDF5",
        ),
        ("/usr/lib/x86_64-linux-gnu/libexpat.so.1.8.10", "libexpat", "1.8.10", "-"),
    ] {
        let software = named(&of_libraries(&[path]));
        let told = &software.libraries[0];
        let text = |text: &Option<String>| text.clone().unwrap_or("-".into());
        let told = (told.name.clone(), text(&told.version), text(&told.what));
        assert_eq!(told, (name.into(), version.into(), what.into()), "{path}");
        let is_gpu = ["CUDA", "cuDNN", "NCCL", "NVIDIA-driver", "ROCm"].contains(&what);
        assert_eq!(software.gpu_library, is_gpu, "{path}");
    }
}

#[test]
fn a_users_own_libraries_are_counted_and_the_c_library_is_told_in_full_alone() {
    let paths = [
        "/home/ada/lib/libsecret.so.1",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/home/ada/v/lib/python3.11/site-packages/numpy/core/_x.cpython-311-x86_64-linux-gnu.so",
        "/home/ada/v/lib/python3.11/site-packages/numpy/libown.so",
    ];
    let software = named(&of_libraries(&paths));
    assert_eq!((software.libraries.len(), software.other_libraries), (0, 2));
    let full = naming_of(Level::Full, Site::default());
    let software = full.software(&of_libraries(&paths), |_| Installed::Unread);
    assert_eq!((&*software.libraries[0].name, software.other_libraries), ("libc", 1));
}

fn listing(of: &[(&str, &str, bool)]) -> Listing {
    let mut listing = Listing::default();
    for (name, version, is_own) in of {
        let (name, version) = ((*name).to_owned(), Some((*version).to_owned()));
        let key = crate::census::normal(&name);
        let found = Distribution { name, version, is_own: *is_own };
        listing.distributions.insert(key, found);
    }
    listing
}

fn of_packages(site: &str, names: &[&str]) -> Seen {
    let interpreter = "/usr/bin/python3.11".to_owned();
    let package = |name: &&str| SeenPackage {
        site: site.into(),
        site_inode: None,
        name: (*name).into(),
        interpreter: interpreter.clone(),
    };
    Seen { packages: names.iter().map(package).collect(), ..Seen::default() }
}

const VENV: &str = "/home/ada/thesis/.venv/lib/python3.12/site-packages";

#[test]
fn packages_of_a_users_environment_are_named_and_own_ones_counted() {
    let listing = listing(&[
        ("numpy", "2.4.6", false),
        ("scikit_learn", "1.5.0", false),
        ("six", "1.16.0", false),
        ("rare_but_public", "0.3", false),
        ("thesis", "0.1", true),
    ]);
    let entries = [
        "numpy",
        "numpy.libs",
        "sklearn",
        "six.py",
        "six.cpython-312.pyc",
        "rare_but_public",
        "thesis",
        "helper_of_ada.py",
        "__editable___thesis_0_1_finder.py",
        "numpy-2.4.6.dist-info",
        "_distutils_hack",
        "_cffi_backend.cpython-312-x86_64-linux-gnu.so",
    ];
    let seen = of_packages(VENV, &entries);
    let software = naming().software(&seen, |_| Installed::Listed(&listing));
    let told: Vec<_> = software
        .packages
        .iter()
        .map(|of| (&*of.name, of.distribution.as_deref(), of.version.as_deref()))
        .collect();
    let expected = [
        ("_cffi_backend", None, None),
        ("numpy", Some("numpy"), Some("2.4.6")),
        ("rare_but_public", Some("rare-but-public"), Some("0.3")),
        ("six", Some("six"), Some("1.16.0")),
        ("sklearn", Some("scikit-learn"), Some("1.5.0")),
    ];
    assert_eq!(told, expected);
    assert_eq!((software.own_modules, software.unknown_packages), (2, 0));
    assert!(software.packages.iter().all(|package| package.python.as_deref() == Some("3.12")));
    let text = serde_json::to_string(&software).unwrap();
    assert!(!text.contains("thesis") && !text.contains("ada"), "{text}");
}

#[test]
fn where_nobody_can_read_the_folder_only_the_well_known_have_names() {
    let software = named(&of_packages(
        VENV,
        &["numpy", "sklearn", "rare_but_public", "google", "yaml", "cv2"],
    ));
    let told: Vec<_> =
        software.packages.iter().map(|of| (&*of.name, of.distribution.as_deref())).collect();
    let expected = [
        ("cv2", None),
        ("google", None),
        ("numpy", Some("numpy")),
        ("sklearn", Some("scikit-learn")),
        ("yaml", Some("pyyaml")),
    ];
    assert_eq!(told, expected, "one that several may bring has none");
    assert_eq!((software.own_modules, software.unknown_packages), (0, 1));
}

#[test]
fn what_a_site_installed_has_its_name() {
    let site = "/usr/lib/python3/dist-packages";
    let software = named(&of_packages(site, &["apt_pkg.cpython-311-x86_64-linux-gnu.so", "yaml"]));
    let told: Vec<_> =
        software.packages.iter().map(|of| (&*of.name, of.python.as_deref())).collect();
    assert_eq!(told, [("apt_pkg", Some("3.11")), ("yaml", Some("3.11"))]);
    let stdlib = named(&of_packages("/usr/lib/python3.11", &["json", "multiprocessing"]));
    assert_eq!((stdlib.packages.len(), stdlib.unknown_packages), (0, 0), "no package");
}

#[test]
fn compiled_modules_tell_their_packages() {
    let mut seen =
        of_libraries(&[&format!("{VENV}/numpy/core/_x.cpython-312-x86_64-linux-gnu.so")]);
    seen.means = Means::Extensions;
    let software = named(&seen);
    assert_eq!((&*software.packages[0].name, software.is_partial()), ("numpy", true));
}

#[test]
fn a_site_has_rules_folders_and_names_of_its_own() {
    let rule = SiteRule {
        name: "solver".into(),
        about: crate::census::About::Program,
        pattern: r"^/proj/solver/(?<version>[\d.]+)/bin/(?<name>\w+)$".into(),
        gpu: false,
    };
    let site = Site {
        rule: vec![rule],
        public: vec!["/home/software".into()],
        allow: vec!["our-.*".into()],
        deny: vec!["vasp.*".into(), "numpy".into()],
    };
    let naming = naming_of(Level::Names, site);
    let seen = of_programs(&[
        "/proj/solver/2.1/bin/solve",
        "/home/software/bin/tool9",
        "/home/ada/our-tool",
        "/apps/vasp/6.4.2/bin/vasp_std",
        "/home/ada/other",
    ]);
    let software = naming.software(&seen, |_| Installed::Unread);
    let told: Vec<_> = software
        .programs
        .iter()
        .map(|of| (&*of.name, of.version.as_deref(), of.kind.as_deref()))
        .collect();
    let expected =
        [("our-tool", None, None), ("solve", Some("2.1"), Some("solver")), ("tool9", None, None)];
    assert_eq!((told, software.other_programs), (expected.to_vec(), 2));
    let software = naming.software(&of_packages(VENV, &["numpy"]), |_| Installed::Unread);
    assert_eq!((software.packages.len(), software.unknown_packages), (0, 1));
}

#[test]
fn numbers_alone_where_no_more_is_wanted() {
    let counts = naming_of(Level::Counts, Site::default());
    let mut seen = of_packages(VENV, &["numpy", "helper.py"]);
    seen.programs = of_programs(&["/usr/bin/bash", "/home/ada/x"]).programs;
    seen.libraries = of_libraries(&["/usr/lib/libcudart.so.12.4.127"]).libraries;
    let software = counts.software(&seen, |_| Installed::Unread);
    assert_eq!((software.other_programs, software.other_libraries), (2, 1));
    assert_eq!((software.unknown_packages, software.own_modules), (2, 0));
    assert!(software.gpu_library && software.stacks.is_empty() && software.programs.is_empty());
}
