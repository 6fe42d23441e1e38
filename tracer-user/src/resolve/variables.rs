//! Which variables of which scheduler's environment tell what. One table; what it does not name is not
//! looked at.

/// A fact of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Job,
    Sluid,
    Name,
    User,
    Uid,
    Account,
    Queue,
    Nodes,
    NodeCount,
    Tasks,
    /// Cores on this node.
    Cores,
    /// Hosts, each followed by the number of cores there.
    HostCores,
    ArrayJob,
    ArrayTask,
    Gpus,
    /// Memory on this node, in MiB; for each core; for each GPU.
    MemoryMib,
    MemoryPerCoreMib,
    MemoryPerGpuMib,
    Qos,
    /// How often the job began anew.
    Restarts,
    Cluster,
    /// Seconds since the Unix epoch.
    Start,
    End,
    /// A file whose name is the second of submission, a point and the job.
    JobFile,
    /// Seconds of run time that were asked for.
    LimitSeconds,
}

use Fact::{
    Account, ArrayJob, ArrayTask, Cluster, Cores, End, Gpus, HostCores, Job, JobFile, LimitSeconds,
    MemoryMib, MemoryPerCoreMib, MemoryPerGpuMib, Name, NodeCount, Nodes, Qos, Queue, Restarts,
    Sluid, Start, Tasks, Uid, User,
};

/// By manager. Of two variables for one fact the earlier counts.
pub(super) static VARIABLES: &[(&str, &[(&str, Fact)])] = &[
    (
        "slurm",
        &[
            ("SLURM_JOB_ID", Job),
            ("SLURM_JOB_SLUID", Sluid),
            ("SLURM_JOB_NAME", Name),
            ("SLURM_JOB_USER", User),
            ("SLURM_JOB_UID", Uid),
            ("SLURM_JOB_ACCOUNT", Account),
            ("SLURM_JOB_PARTITION", Queue),
            ("SLURM_JOB_NODELIST", Nodes),
            ("SLURM_JOB_NUM_NODES", NodeCount),
            ("SLURM_NTASKS", Tasks),
            ("SLURM_CPUS_ON_NODE", Cores),
            ("SLURM_ARRAY_JOB_ID", ArrayJob),
            ("SLURM_ARRAY_TASK_ID", ArrayTask),
            // A step's own count from zero inside a constrained step; the job's do not.
            ("SLURM_JOB_GPUS", Gpus),
            ("SLURM_STEP_GPUS", Gpus),
            ("CUDA_VISIBLE_DEVICES", Gpus),
            ("ROCR_VISIBLE_DEVICES", Gpus),
            ("SLURM_MEM_PER_NODE", MemoryMib),
            ("SLURM_MEM_PER_CPU", MemoryPerCoreMib),
            ("SLURM_MEM_PER_GPU", MemoryPerGpuMib),
            ("SLURM_JOB_QOS", Qos),
            ("SLURM_RESTART_COUNT", Restarts),
            ("SLURM_CLUSTER_NAME", Cluster),
            ("SLURM_JOB_START_TIME", Start),
            ("SLURM_JOB_END_TIME", End),
        ],
    ),
    ("pbs", PBS),
    ("torque", PBS),
    (
        // As IBM's "Environment variables set for job execution" lists them, and sbatchd of OpenLava sets them. None
        // tells the run limit. The memory in LSB_EFFECTIVE_RSRCREQ is left alone: whether that is of a host or of a
        // task, and in which unit, is the site's to configure (RESOURCE_RESERVE_PER_TASK, LSF_UNIT_FOR_LIMITS).
        "lsf",
        &[
            ("LSB_JOBID", Job),
            ("LSB_JOBNAME", Name),
            ("LSFUSER", User),
            ("LSB_PROJECT_NAME", Account),
            ("LSB_QUEUE", Queue),
            ("LSB_MCPU_HOSTS", Nodes),
            ("LSB_MCPU_HOSTS", HostCores),
            ("LSB_DJOB_NUMPROC", Tasks),
            ("LSB_JOBINDEX", ArrayTask),
            ("LSB_JOBFILENAME", JobFile),
            ("CUDA_VISIBLE_DEVICES", Gpus),
        ],
    ),
    (
        "uge",
        &[
            ("JOB_ID", Job),
            ("JOB_NAME", Name),
            ("SGE_ACCOUNT", Account),
            ("QUEUE", Queue),
            ("NHOSTS", NodeCount),
            ("NSLOTS", Tasks),
            ("SGE_TASK_ID", ArrayTask),
            ("SGE_HGR_gpu", Gpus),
            ("CUDA_VISIBLE_DEVICES", Gpus),
        ],
    ),
    (
        "oar",
        &[
            ("OAR_JOB_ID", Job),
            ("OAR_JOB_NAME", Name),
            ("OAR_USER", User),
            ("OAR_PROJECT_NAME", Account),
            ("OAR_ARRAY_ID", ArrayJob),
            ("OAR_ARRAY_INDEX", ArrayTask),
            ("CUDA_VISIBLE_DEVICES", Gpus),
        ],
    ),
    ("htcondor", &[("CUDA_VISIBLE_DEVICES", Gpus)]),
    (
        "flux",
        &[
            ("FLUX_JOB_ID", Job),
            ("FLUX_JOB_NNODES", NodeCount),
            ("FLUX_JOB_SIZE", Tasks),
            ("CUDA_VISIBLE_DEVICES", Gpus),
        ],
    ),
    (
        "k8s",
        &[
            // By the downward API, where the pod asks for it; else a pod's host name is its own.
            ("POD_NAME", Name),
            ("HOSTNAME", Name),
            ("POD_NAMESPACE", Account),
            ("NODE_NAME", Nodes),
            ("NVIDIA_VISIBLE_DEVICES", Gpus),
        ],
    ),
];

/// PBS Pro sets few of them (openpbs, src/resmom/start_exec.c and the cgroups hook): neither cores, memory nor run time,
/// of which its cgroups tell the first two. NCPUS is the number of threads for OpenMP in one chunk, no number of cores.
const PBS: &[(&str, Fact)] = &[
    ("PBS_JOBID", Job),
    ("PBS_JOBNAME", Name),
    ("PBS_O_LOGNAME", User),
    ("PBS_ACCOUNT", Account),
    ("PBS_QUEUE", Queue),
    ("PBS_NUM_NODES", NodeCount),
    ("PBS_NP", Tasks),
    ("PBS_WALLTIME", LimitSeconds),
    ("PBS_ARRAY_ID", ArrayJob),
    ("PBS_ARRAY_INDEX", ArrayTask),
    ("PBS_ARRAYID", ArrayTask),
    ("CUDA_VISIBLE_DEVICES", Gpus),
];
