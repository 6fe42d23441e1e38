//! The rules, all of them, in one table. To teach the census a program, a library or a stack, add a row.
//!
//! A pattern is a regular expression. That of a program is for the whole name of its file, that of a library for the
//! family of its soname (`soname.rs`), that of a stack for any part of a path. Named groups give the answer: `name`, `version`, `toolchain`. The first row that matches
//! decides; a site's own come first (`site.rs`).

use serde::{Deserialize, Serialize};

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Programs; the rule's name is their kind.
    Program,
    /// Libraries; the rule's name is what they belong to.
    Library,
    /// Places that software comes from; the rule's name is their kind.
    Stack,
}

impl About {
    /// What one is called.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Library => "library",
            Self::Stack => "stack",
        }
    }
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What it is about.
    pub about: About,
    /// What it tells.
    pub name: &'static str,
    /// See the file's head.
    pub pattern: &'static str,
    /// What a match tells besides.
    pub tells: Tells,
}

/// What a match tells besides its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// Nothing.
    Plain,
    /// The version of the file is that of the whole.
    Version,
    /// The job computes on GPUs.
    Gpu,
    /// Both.
    GpuVersion,
    /// Part of the C library: told in `full` alone.
    Base,
}

impl Tells {
    /// Whether it computes on GPUs.
    pub fn is_gpu(self) -> bool {
        matches!(self, Self::Gpu | Self::GpuVersion)
    }

    /// Whether the file's version is that of what it belongs to.
    pub fn is_versioned(self) -> bool {
        matches!(self, Self::Version | Self::GpuVersion)
    }
}

const fn program(kind: &'static str, pattern: &'static str) -> Row {
    Row { about: About::Program, name: kind, pattern, tells: Tells::Plain }
}

const fn library(what: &'static str, tells: Tells, pattern: &'static str) -> Row {
    Row { about: About::Library, name: what, pattern, tells }
}

const fn stack(kind: &'static str, pattern: &'static str) -> Row {
    Row { about: About::Stack, name: kind, pattern, tells: Tells::Plain }
}

use Tells::{Base, Gpu, GpuVersion, Plain, Version};

/// The table.
#[rustfmt::skip]
pub static ROWS: &[Row] = &[
    program("python", r"(?<name>python|pypy)(?<version>\d(?:\.\d+)?)?t?"),
    program("shell", r"bash|r?dash|sh|zsh(?:-[\d.]+)?|ksh(?:93)?|mksh|tcsh|csh|fish|busybox"),
    program("mpi_launcher", r"mpirun|mpiexec(?:\.\w+)?|orterun|orted|prte(?:run|d)?|hydra_(?:pmi_proxy|bstrap_proxy)|srun|aprun|jsrun|ibrun|poe|ccc_mprun|pmi_proxy"),
    program("compiler", r"(?:x86_64-[\w-]+-|aarch64-[\w-]+-)?(?<name>gcc|g\+\+|cc1|cc1plus|gfortran|f951|clang|clang\+\+|flang|flang-new|collect2|ld|ld\.bfd|ld\.gold|ld\.lld|lld|as)(?:-(?<version>\d+(?:\.\d+)*))?"),
    program("compiler", r"lto1|lto-wrapper|nvcc|cicc|ptxas|fatbinary|cudafe\+\+|hipcc|amdclang(?:\+\+)?|amdflang|ifort|ifx|icc|icpc|icx|icpx|dpcpp|fortcom|mcpcom|nvc|nvc\+\+|nvfortran|pgcc|pgfortran|rustc|ghc|craycc|crayftn|cfe|ftnfe"),
    program("build", r"g?make|cmake|ninja|meson|bazel|cargo|go|ctest"),
    program("interpreter", r"(?<name>R|Rscript|julia|perl|java|ruby|node|lua|luajit|octave-cli|octave-gui|octave|MATLAB|matlab|mono|php|tclsh|wolframscript|WolframKernel|idl|gawk|mawk)(?<version>\d+(?:\.\d+)*)?"),
    program("container", r"apptainer|singularity|starter(?:-suid)?|podman|docker|crun|runc|conmon|enroot|nvidia-container-cli|ch-run|shifter|udocker|squashfuse(?:_ll)?|fuse-overlayfs"),
    program("scheduler", r"sbatch|squeue|sacct|scontrol|salloc|scancel|qsub|qstat|bsub|bjobs|flux|slurmstepd|slurm_script|pbs_mom"),
    program("notebook", r"jupyter(?:-lab|-notebook|hub-singleuser)?|code-server|rserver|rsession|vscode-server"),
    program("molecular_dynamics", r"gmx(?:_mpi)?(?:_d)?|mdrun(?:_mpi)?|lmp(?:_\w+)?|namd[23]|charmm|pmemd(?:\.\w+)*|sander(?:\.MPI)?|desmond"),
    program("quantum_chemistry", r"vasp(?:_(?:std|gam|ncl))?|(?:pw|cp|ph|pp|neb|projwfc|dos)\.x|cp2k(?:\.\w+)?|orca(?:_\w+)?|g(?:09|16)|l\d+\.exel?|nwchem|siesta|turbomole|ridft|dscf|molpro(?:\.exe)?|psi4|dftb\+|abinit|octopus|fhi-aims|xtb|crest|qchem|castep\.mpi|elk"),
    program("engineering", r"simpleFoam|pimpleFoam|pisoFoam|icoFoam|interFoam|snappyHexMesh|blockMesh|decomposePar|(?:ansys|fluent|cfx5solve)\d*(?:[._-][\w.]*)?|abaqus|standard|explicit_dp|starccm\+|ls-?dyna(?:_\w+)?|comsol|nastran|SU2_CFD|nek5000|ElmerSolver(?:_mpi)?|code_aster|telemac[23]d"),
    program("weather_climate", r"wrf\.exe|real\.exe|icon|nemo\.exe|cesm\.exe|mpas_\w+|cdo|nc(?:ks|ra|rcat|ea|bo|o)|oceanM|gchp"),
    program("bioinformatics", r"bl(?:astn|astp|astx|at)|tblastn|makeblastdb|samtools|bcftools|bwa(?:-mem2)?|bowtie2(?:-align-[sl])?|hisat2(?:-align-[sl])?|STAR|salmon|kallisto|minimap2|hmm(?:search|scan|er)|jackhmmer|hhblits|mafft|muscle|raxml(?:HPC)?(?:-\w+)*|iqtree2?|diamond|fastp|fastqc|bedtools|plink2?|spades|megahit|kraken2|mmseqs|vg"),
    program("tool", r"rsync|scp|sftp|ssh|curl|wget|git|tar|gzip|pigz|zstd|xz|bzip2|7z|rclone|globus-url-copy|numactl|taskset|parallel|gdb|valgrind|perf|strace|nsys|ncu|nvidia-smi|rocm-smi|tmux|screen|vim?|nano|emacs|dask|ray|torchrun|accelerate|deepspeed"),
    program("ai_serving", r"ollama|llama-(?:server|cli)|tritonserver|text-generation-launcher|vllm"),

    // A container's layers, before what is in them.
    stack("docker", r"/docker/(?:overlay2|vfs)/"),
    stack("podman", r"/containers/storage/(?:overlay|vfs)(?:-\w+)?/"),
    stack("containerd", r"/io\.containerd\.[\w.]+/"),
    stack("apptainer", r"/(?:apptainer|singularity)/mnt/session/|/var/(?:lib/)?(?:apptainer|singularity)/"),
    stack("enroot", r"/enroot/(?:data/)?[^/]+/"),
    // Stacks with their names.
    stack("nix", r"/nix/store/[0-9a-z]{32}-(?<name>[A-Za-z][\w+.-]*?)-(?<version>\d[\w.+]*)(?:-\w+)?/"),
    stack("guix", r"/gnu/store/[0-9a-z]{32}-(?<name>[A-Za-z][\w+.-]*?)-(?<version>\d[\w.+]*)(?:-\w+)?/"),
    stack("spack", r"/(?:[a-z]+-[\w]+-\w+|(?:linux|cray)[\w-]*)/(?:(?<toolchain>[a-z]+(?:-[a-z]+)?-\d[\d.]*)/)?(?<name>[a-z0-9][a-z0-9_-]*?)-(?<version>\d[\w.+-]*|develop|main|master)-[a-z0-9]{7,32}/"),
    stack("easybuild", r"/software/(?<name>[A-Za-z][\w+.-]*)/(?<version>v?\d[\w.+]*?)(?:-(?<toolchain>(?:GCCcore|GCC|foss|gfbf|gompi|intel|iimpi|iimkl|fosscuda|gompic|NVHPC|nvompi|nvofbf|system|ClangGCC|cpe\w+|iccifort|intel-compilers|llvm-compilers)-\d[\w.]*))?(?:-[\w.+-]*)?/"),
    stack("easybuild", r"/software/\d{4}\w*/[\w-]+/(?:Core|(?:Compiler|MPI|CUDA)/(?<toolchain>[\w.+-]+(?:/[a-z]\w*\d[\w.]*)*?))/(?<name>[A-Za-z][\w+.-]*)/(?<version>v?\d[\w.+-]*)/"),
    stack("conda", r"/(?:[\w.-]*(?:conda|mamba|miniforge)[\w.-]*|pixi)(?:/\d[\w.-]*)?/(?:\.?pkgs/[^/]+/)?(?:envs/(?<name>[^/]+)/)?(?:bin|lib|libexec|sbin|x86_64-conda[\w-]*)/"),
    stack("conda", r"/(?:\.conda|\.mamba|\.pixi|micromamba)?/?envs/(?<name>[^/]+)/(?:bin|lib)/"),
    stack("virtualenv", r"/(?:\.?v?envs?|\.?venv[\w.-]*|\.virtualenvs/[^/]+|virtualenvs?/[^/]+)/(?:bin|lib)/"),
    stack("uv", r"/\.local/share/uv/|/\.cache/uv/"),
    stack("pyenv", r"/\.pyenv/versions/(?<version>\d[\w.-]*)/"),
    stack("module", r"^/usr/local/(?<name>cuda)-(?<version>\d[\d.]*)/"),
    stack("module", r"^/opt/(?<name>rocm)-(?<version>\d[\d.]*)/"),
    stack("module", r"^/opt/nvidia/(?<name>hpc_sdk)/[^/]+/(?<version>\d[\d.]*)/"),
    stack("module", r"^/opt/intel/oneapi/(?<name>[a-z][\w-]*)/(?<version>\d[\d.]*)/"),
    stack("module", r"^/opt/cray/(?:pe/)?(?<name>[a-z][\w-]*)/(?<version>\d[\d.]*)/"),
    stack("module", r"^/opt/ohpc/pub/(?:apps|libs|mpi|compiler|utils)(?:/gnu\d*|/intel\d*|/openmpi\d*|/mpich\d*)*/(?<name>[A-Za-z][\w+.-]*)/(?<version>v?\d[\w.+-]*)/"),
    stack("module", r"^/(?:[^/]+/){0,2}(?:apps?|sw|soft|software|modules|pkg|packages|opt)/(?:[^/]+/){0,2}?(?<name>[A-Za-z][\w+.]*(?:-[A-Za-z][\w+.]*)*)[/-](?<version>v?\d[\w.+-]*)/"),

    // BLAS and its kin.
    library("OpenBLAS", Version, r"lib(?:scipy_)?openblas\w*"),
    library("MKL", Plain, r"libmkl_\w+"),
    library("BLIS", Version, r"libblis(?:-mt)?|libAOCL-LibBLIS\w*|libflame"),
    library("FlexiBLAS", Version, r"libflexiblas\w*"),
    library("ATLAS", Version, r"lib[st]?atlas"),
    library("ArmPL", Plain, r"libarmpl\w*"),
    library("NVPL", Plain, r"libnvpl_\w+"),
    library("ESSL", Plain, r"libessl\w*"),
    library("reference-BLAS", Version, r"lib(?:c?blas|lapacke?)(?:64)?"),
    library("FFTW", Plain, r"libfftw3\w*"),
    library("ScaLAPACK", Version, r"libscalapack[\w-]*"),
    library("ELPA", Plain, r"libelpa\w*"),
    // MPI. One soname is Intel's and MPICH's: the folder tells them apart (`libraries.rs`).
    library("CrayMPICH", Plain, r"libmpi(?:fort|cxx)?_(?:cray|gnu|intel|nvidia|aocc|amd)\w*"),
    library("OpenMPI", Plain, r"libmpi_(?:mpifh|usempi\w*|cxx|java)|libopen-(?:rte|pal)|libmca_\w+|mca_\w+|liboshmem|libompi\w*"),
    library("MPICH", Plain, r"libmpich\w*|libmpl|libopa"),
    library("MPI", Plain, r"libmpi(?:fort|cxx|_ilp64)?"),
    library("UCX", Plain, r"libuc[mpst](?:_\w+)?|libuct_\w+"),
    library("libfabric", Plain, r"libfabric"),
    library("PMIx", Plain, r"libpmix"),
    library("PMI", Plain, r"libpmi2?"),
    // GPUs.
    library("CUDA", GpuVersion, r"libcudart"),
    library("CUDA", Gpu, r"lib(?:cublas(?:Lt)?|cufft\w*|curand|cusolver(?:Mg)?|cusparse|nvrtc\w*|nvrtc-builtins|cupti|nvJitLink|npp\w+|nvjpeg|cufile\w*|cudadevrt)"),
    library("NVIDIA-driver", GpuVersion, r"libcuda|libnvidia-ptxjitcompiler"),
    library("cuDNN", GpuVersion, r"libcudnn"),
    library("cuDNN", Gpu, r"libcudnn_\w+"),
    library("NCCL", GpuVersion, r"libnccl"),
    library("NVSHMEM", Gpu, r"libnvshmem\w*"),
    library("cuTENSOR", GpuVersion, r"libcutensor\w*"),
    library("TensorRT", GpuVersion, r"libnvinfer\w*|libnvonnxparser"),
    library("RCCL", Gpu, r"librccl"),
    library("MIOpen", Gpu, r"libMIOpen"),
    library("ROCm", GpuVersion, r"libamdhip64"),
    library("ROCm", Gpu, r"lib(?:hsa-runtime64|roc(?:blas|fft|solver|sparse|rand)|hip(?:blas\w*|fft|solver|sparse|rand|rtc)|hiprtc\w*|rocm_smi64)"),
    library("LevelZero", Gpu, r"libze_(?:loader|intel_gpu)"),
    library("OpenCL", Plain, r"libOpenCL"),
    library("SYCL", Plain, r"libsycl"),
    // Frameworks.
    library("PyTorch", Plain, r"libtorch\w*|libc10\w*|libshm"),
    library("TensorFlow", Version, r"libtensorflow\w*"),
    library("XLA", Plain, r"xla_(?:cuda|rocm)_plugin|libxla\w*"),
    library("ONNX-Runtime", Version, r"libonnxruntime\w*"),
    library("Python", Plain, r"libpython(?<version>\d(?:\.\d+)?)\w*"),
    library("R", Plain, r"libR(?:blas|lapack|math)?"),
    library("Julia", Version, r"libjulia(?:-internal|-codegen)?"),
    library("JVM", Plain, r"libjvm"),
    library("Kokkos", Version, r"libkokkos\w*"),
    library("PETSc", Version, r"libpetsc\w*"),
    library("SLEPc", Version, r"libslepc\w*"),
    library("Trilinos", Plain, r"lib(?:tpetra|epetra|teuchos|belos|ifpack2?|amesos2?|zoltan2?|xpetra|muelu)\w*"),
    library("HYPRE", Version, r"libHYPRE\w*"),
    library("SuiteSparse", Plain, r"lib(?:umfpack|cholmod|amd|colamd|ccolamd|camd|klu|spqr|suitesparseconfig)"),
    library("SuperLU", Plain, r"libsuperlu\w*"),
    library("MUMPS", Plain, r"lib[sdcz]mumps\w*|libmumps_common\w*"),
    library("METIS", Plain, r"lib(?:par)?metis"),
    library("SCOTCH", Plain, r"lib(?:pt)?scotch\w*"),
    library("SUNDIALS", Plain, r"libsundials_\w+"),
    library("GSL", Plain, r"libgsl(?:cblas)?"),
    library("oneTBB", Plain, r"libtbb(?:malloc\w*|bind\w*)?"),
    library("OpenMP", Plain, r"libgomp|libiomp5|libomp\d*"),
    library("libxc", Version, r"libxc(?:f\w*)?"),
    // Data.
    library("HDF5", Plain, r"libhdf5\w*"),
    library("NetCDF", Plain, r"libnetcdf(?:f|ff|_c\+\+4?|-cxx4)?"),
    library("PnetCDF", Plain, r"libpnetcdf"),
    library("ADIOS2", Version, r"libadios2\w*"),
    library("GDAL", Plain, r"libgdal"),
    library("PROJ", Plain, r"libproj"),
    library("ecCodes", Plain, r"libeccodes\w*"),
    library("Arrow", Plain, r"lib(?:arrow|parquet)(?:_\w+)?"),
    library("Boost", Version, r"libboost_\w+"),
    library("Qt", Version, r"libQt[56]\w+"),
    library("VTK", Plain, r"libvtk\w+(?:-\d[\d.]*)?"),
    library("OpenFOAM", Plain, r"libOpenFOAM|libfiniteVolume|libmeshTools|libPstream"),
    library("OpenCV", Plain, r"libopencv_\w+"),
    library("FFmpeg", Plain, r"lib(?:avcodec|avformat|avutil|swscale|swresample)"),
    // Tools that watch.
    library("Darshan", Plain, r"libdarshan\w*"),
    library("XALT", Plain, r"libxalt\w*"),
    library("Score-P", Plain, r"libscorep\w*"),
    library("PAPI", Version, r"libpapi"),
    library("C library", Base, r"ld-linux[\w-]*|ld-musl-\w+|ld-\d[\d.]*|ld|libc|libm|libmvec|libpthread|libdl|librt|libutil|libresolv|libanl|libnsl|libcrypt|libnss_\w+|libgcc_s|libtinfow?|libselinux|libpcre2?(?:-8)?"),
];
