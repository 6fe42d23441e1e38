//! One row for each key of the configuration: what it means, what it may be and when a change counts.
//! Help texts, the printed configuration, suggestions and SIGHUP all read this table.

/// When a changed key counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// From the next interval after SIGHUP.
    Reload,
    /// From the agent's next start: it shapes maps, series or files that are there already.
    Restart,
}

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One value, or a list on one line.
    Value,
    /// A table with names of the site's own; the example shows one entry.
    Map(&'static str),
    /// A list of tables; the example shows one.
    Tables(&'static str),
}

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Where it stands: `spool.dir`.
    pub path: &'static str,
    /// What it means.
    pub help: &'static str,
    /// What it may be.
    pub allowed: &'static str,
    /// When a change counts.
    pub effect: Effect,
    /// What it holds.
    pub shape: Shape,
}

impl Key {
    /// The table it is in, empty for the top, and its name there.
    pub fn split(&self) -> (&'static str, &'static str) {
        self.path.rsplit_once('.').unwrap_or(("", self.path))
    }
}

/// The key at `path`.
pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The names that the table at `path` knows; `None` where names are the site's own.
pub fn names(path: &str) -> Option<Vec<&'static str>> {
    if path == "rule" {
        return Some(RULE_KEYS.to_vec());
    }
    if find(path).is_some() {
        return None;
    }
    let mut names: Vec<_> = KEYS
        .iter()
        .filter_map(|key| match path {
            "" => key.path.split('.').next(),
            _ => key.path.strip_prefix(path)?.strip_prefix('.')?.split('.').next(),
        })
        .collect();
    names.dedup();
    Some(names)
}

/// Keys of a `[[rule]]`.
pub const RULE_KEYS: &[&str] = &["name", "pattern", "manager", "not_a_job"];

const fn value(
    path: &'static str,
    effect: Effect,
    allowed: &'static str,
    help: &'static str,
) -> Key {
    Key { path, help, allowed, effect, shape: Shape::Value }
}

const PROFILES: &str = "\"summary\", \"histogram\" or \"full\"";
const YES_NO: &str = "true or false";

/// All keys, in the order in which they are printed: those at the top first, then table by table.
pub static KEYS: &[Key] = &[
    value(
        "cluster",
        Effect::Restart,
        "a string",
        "Tag `cluster` of every line. If empty, the tag is omitted.",
    ),
    value(
        "host",
        Effect::Restart,
        "a string",
        "Tag `host` of every line. If empty, the node's name is used.",
    ),
    value(
        "interval",
        Effect::Reload,
        "whole seconds, \"1s\" to \"1h\"",
        "Time between two readings. All nodes take their readings at the same seconds.",
    ),
    value(
        "faults",
        Effect::Restart,
        "\"major\" or \"full\"",
        "Which page faults are timed: only major ones taken in user mode, which adds no cost to \
         minor ones, or all, including those taken inside system calls.",
    ),
    value(
        "hierarchy",
        Effect::Restart,
        "\"auto\", \"v2\" or a v1 controller",
        "The cgroup hierarchy in which jobs are identified. \"auto\": v2 if it has the memory or \
         cpu controller, else the first v1 controller present of freezer, memory, cpuset, pids, \
         cpuacct, devices.",
    ),
    value(
        "slots",
        Effect::Restart,
        "1 to 1023",
        "Maximum number of jobs (with `steps`: steps) traced at once. A slot takes memory only \
         while it is in use: about 2.7 KB for each CPU in the kernel, and 8 KB in the agent (3.8 \
         and 11 with faults = \"full\"). Jobs without a slot count in `_system`; `jobtrace_self` \
         reports how often that happened.",
    ),
    value(
        "spare_slots",
        Effect::Restart,
        "0 to less than `slots`",
        "Slots kept ready for cgroups that the agent has not seen yet, so that a job is counted \
         from its first moment.",
    ),
    value(
        "pin",
        Effect::Restart,
        YES_NO,
        "Whether the probes keep counting while the agent is restarted or upgraded. They stay in \
         /sys/fs/bpf/jobtrace until `jobtrace agent --unpin`.",
    ),
    value(
        "steps",
        Effect::Restart,
        YES_NO,
        "Whether each step of a job is a series of its own, with the tag `step`.",
    ),
    value(
        "spool.dir",
        Effect::Restart,
        "an absolute path",
        "Folder for the finished files; a collector takes them from its subfolder `outbox`. The \
         unit file names this folder too: a different one needs a drop-in with ReadWritePaths=.",
    ),
    value(
        "spool.max_bytes",
        Effect::Reload,
        "1 MiB or more",
        "Above this limit the oldest files are removed and counted.",
    ),
    value(
        "spool.max_files",
        Effect::Reload,
        "1 or more",
        "Above this limit the oldest files are removed and counted.",
    ),
    value(
        "spool.max_age",
        Effect::Reload,
        "\"1m\" or more",
        "Files older than this are removed and counted.",
    ),
    value(
        "state.dir",
        Effect::Restart,
        "an absolute path",
        "Folder for the lock that prevents a second agent on this node, the last time stamps and, \
         with `pin`, the state that the next agent needs.",
    ),
    value(
        "export.style",
        Effect::Restart,
        "\"jobtrace\" or \"clustercockpit\"",
        "Format of the lines: jobtrace's own, or that of ClusterCockpit's metric store, which \
         takes metrics of nodes, one per line, with time stamps in seconds. Profiles and buckets \
         apply to the first only.",
    ),
    value(
        "export.profile",
        Effect::Reload,
        PROFILES,
        "What is written for each job: scalars and percentiles, or also the histograms' buckets, \
         coarse or all.",
    ),
    value(
        "export.bucket_style",
        Effect::Restart,
        "\"le\", \"prom\" or \"vmrange\"",
        "How buckets are written: \"le\", each interval's own counts, for InfluxDB and Grafana's \
         heatmap; \"prom\", cumulative, for Prometheus; \"vmrange\" for VictoriaMetrics. The wrong \
         one gives wrong percentiles without any error.",
    ),
    value("export.hlog", Effect::Reload, YES_NO, "Whether HdrHistogram logs are written as well."),
    Key {
        path: "export.by_manager",
        help: "Profiles by manager; they take precedence over `export.profile`.",
        allowed: PROFILES,
        effect: Effect::Reload,
        shape: Shape::Map("slurm = \"histogram\""),
    },
    Key {
        path: "export.by_job",
        help: "Profiles by job id; they take precedence over those by manager.",
        allowed: PROFILES,
        effect: Effect::Reload,
        shape: Shape::Map("4242 = \"full\""),
    },
    value(
        "overhead.max_ratio",
        Effect::Reload,
        "0.0001 to 1",
        "Share of the node's CPU time that the probes may take. Above it the costliest family of \
         probes is detached, as the log and the data report, and attached again later.",
    ),
    value(
        "overhead.patience",
        Effect::Reload,
        "1 to 1000",
        "Consecutive intervals above `max_ratio` before probes are detached, and the same number \
         after that before others are detached or any are attached again.",
    ),
    value(
        "overhead.back_off",
        Effect::Reload,
        "\"1s\" to \"1h\"",
        "How long probes stay detached the first time; this doubles each time, up to an hour.",
    ),
    value(
        "overhead.statistics",
        Effect::Restart,
        "\"off\", \"windows\" or \"on\"",
        "When the kernel measures the probes' run time, which costs about 50 ns per run and needs \
         CAP_SYS_ADMIN: never (the run time is then estimated), for one interval in 30, or always.",
    ),
    value(
        "gpu.sample",
        Effect::Reload,
        YES_NO,
        "Whether GPUs are sampled. Without GPUs this costs nothing except a check every `retry`.",
    ),
    value(
        "gpu.period",
        Effect::Reload,
        "\"200ms\" to \"2s\"",
        "Time between two readings of the GPUs. Drivers average over the last 1/6 to 1 s, so less \
         than 1s gains little.",
    ),
    value(
        "gpu.retry",
        Effect::Reload,
        "\"10s\" to \"1d\"",
        "Time until a missing GPU driver is looked for again.",
    ),
    value(
        "gpu.held_dir",
        Effect::Reload,
        "an absolute path, or empty for none",
        "Folder of files that say which job each GPU is allocated to, as a site's prolog writes \
         them: the file's name is the GPU's UUID or number, its first word is the job id. It takes \
         precedence over the device cgroup and the job's environment.",
    ),
    value(
        "gpu.sysfs_root",
        Effect::Reload,
        "an absolute path",
        "Folder that contains the sys and proc in which AMD, Intel and other GPUs are looked for: \
         in a container, where the host's are mounted.",
    ),
    value(
        "jobs.ignore",
        Effect::Reload,
        "a list of managers, such as [\"session\"]",
        "Managers whose jobs are not treated as jobs: they count in `_system`.",
    ),
    Key {
        path: "rule",
        help: "Site rules, tried before the built-in ones: a regular expression that must match \
               from the start of a cgroup's path (which begins with `/`, without /sys/fs/cgroup); \
               anything may follow the match. The groups `job`, `step`, `task`, `user`, `uid` and \
               `manager` provide the answer; with `not_a_job = true`, whatever matches belongs to \
               no job.",
        allowed: "tables with `name`, `pattern` and, optionally, `manager` and `not_a_job`",
        effect: Effect::Reload,
        shape: Shape::Tables(
            "[[rule]]\nname = \"own batch system\"\npattern = '^/batch/(?<user>[^/]+)/(?<job>\\d+)'\nmanager = \"batch\"",
        ),
    },
];
