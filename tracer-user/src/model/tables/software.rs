//! The fields of `job_software`, for docs/METRICS.md.

/// Name of the measurement.
pub const JOB_SOFTWARE: &str = "job_software";

/// A field: its name, never renamed, what it is, and one sentence on its meaning.
pub type SoftwareField = (&'static str, &'static str, &'static str);

/// All of them, in the order of their output.
pub const SOFTWARE_FIELDS: &[SoftwareField] = &[
    ("level", "string", "How much is told: `counts`, `names` or `full`."),
    (
        "by",
        "string",
        "How Python modules were seen: `open`, `read`, `extensions`, the compiled ones alone, or `programs`, neither modules nor libraries.",
    ),
    (
        "programs",
        "string",
        "Programs that were executed, with their versions where those are known: `gmx_mpi 2024.1, python 3.11, +3`. At the end of this and the next two the number of those that have no name here: a user's own, denied ones, those beyond 8 KiB.",
    ),
    (
        "libraries",
        "string",
        "What the shared libraries belong to (`OpenMPI 4.1.5`, `CUDA 12.4.127`), or their sonames' families.",
    ),
    (
        "packages",
        "string",
        "Python packages by the names that they are installed by, where those are known.",
    ),
    (
        "stacks",
        "string",
        "Where they came from: `easybuild/GROMACS 2024.1`, `conda/pangeo`, `container/podman`; without a name where it is a user's own.",
    ),
    ("python", "string", "Versions of Python: `3.11, 3.12`."),
    ("opted_out", "integer", "1: the job asked that nothing is told of it, and nothing else is."),
    (
        "partial",
        "integer",
        "1: something is missing: it ran before it was watched, sightings found no room, or Python modules without compiled parts are not seen.",
    ),
    ("gpu_library", "integer", "1: a library was loaded that computes on GPUs."),
    (
        "own_modules",
        "integer",
        "Python modules of a user's own in folders of packages (`site-packages`), which have no names here. Those beside a script are not seen.",
    ),
    ("lost", "integer", "Sightings that found no room."),
    ("python_processes_most", "integer", "The most Python processes at once on this node."),
];
