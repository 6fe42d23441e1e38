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
    value("cluster", Effect::Restart, "a text", "Tag `cluster` of every line. Empty: no such tag."),
    value("host", Effect::Restart, "a text", "Tag `host` of every line. Empty: the node's name."),
    value(
        "interval",
        Effect::Reload,
        "whole seconds, \"1s\" to \"1h\"",
        "Time between two readings. All nodes read on the same grid of seconds.",
    ),
    value(
        "faults",
        Effect::Restart,
        "\"major\" or \"full\"",
        "Which page faults are timed: major ones taken in user mode only, which costs nothing on the path \
         of minor ones, or all, those taken inside system calls too.",
    ),
    value(
        "hierarchy",
        Effect::Restart,
        "\"auto\", \"v2\" or a v1 controller",
        "The cgroup hierarchy whose cgroups are jobs. \"auto\": v2 where it has the memory or cpu controller, \
         else the first of v1's that is there: freezer, memory, cpuset, pids, cpuacct, devices.",
    ),
    value(
        "slots",
        Effect::Restart,
        "1 to 1023",
        "Jobs (with `steps`: steps) traced at once. A slot takes memory only while it is used: about \
         2.7 KB for each CPU in the kernel, and 8 KB in the agent (3.8 and 11 with faults = \"full\"). \
         What finds no slot counts in `_system`, and how often that was is in `jobtrace_self`.",
    ),
    value(
        "spare_slots",
        Effect::Restart,
        "0 to less than `slots`",
        "Slots kept ready for cgroups that the agent has not seen yet, so that a job counts from its \
         first moment.",
    ),
    value(
        "pin",
        Effect::Restart,
        YES_NO,
        "Whether the probes go on counting while the agent is restarted or upgraded. They stay in \
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
        "a path from / on",
        "Folder of the finished files; a collector takes them from `outbox` in it. The unit file names \
         it too: another one needs a drop-in with ReadWritePaths=.",
    ),
    value(
        "spool.max_bytes",
        Effect::Reload,
        "1 MiB or more",
        "Above it the oldest files are removed, and counted.",
    ),
    value(
        "spool.max_files",
        Effect::Reload,
        "1 or more",
        "Above it the oldest files are removed, and counted.",
    ),
    value(
        "spool.max_age",
        Effect::Reload,
        "\"1m\" or more",
        "Files older than this are removed, and counted.",
    ),
    value(
        "state.dir",
        Effect::Restart,
        "a path from / on",
        "Folder of the lock that keeps a second agent off this node, of the last time stamps, and with `pin` \
         of what the next agent must know.",
    ),
    value(
        "export.style",
        Effect::Restart,
        "\"jobtrace\" or \"clustercockpit\"",
        "Whose names the lines have: jobtrace's own, or those of ClusterCockpit's metric store, which keeps \
         metrics of nodes, one a line, in seconds. Profiles and buckets are of the first alone.",
    ),
    value(
        "export.profile",
        Effect::Reload,
        PROFILES,
        "What is written of each job: scalars and percentiles, or buckets of the histograms too, \
         coarse or all.",
    ),
    value(
        "export.bucket_style",
        Effect::Restart,
        "\"le\", \"prom\" or \"vmrange\"",
        "How buckets are written: \"le\", each interval's own counts, for InfluxDB and Grafana's \
         heatmap; \"prom\", cumulative, for Prometheus; \"vmrange\" for VictoriaMetrics. The wrong one \
         gives wrong percentiles in silence.",
    ),
    value(
        "export.hlog",
        Effect::Reload,
        YES_NO,
        "Whether HdrHistogram logs are written beside the lines.",
    ),
    Key {
        path: "export.by_manager",
        help: "Profiles by manager, before `export.profile`.",
        allowed: PROFILES,
        effect: Effect::Reload,
        shape: Shape::Map("slurm = \"histogram\""),
    },
    Key {
        path: "export.by_job",
        help: "Profiles by job id, before those by manager.",
        allowed: PROFILES,
        effect: Effect::Reload,
        shape: Shape::Map("4242 = \"full\""),
    },
    value(
        "overhead.max_ratio",
        Effect::Reload,
        "0.0001 to 1",
        "Share of the node's CPU time that the probes may take. Above it the costliest family of \
         probes is detached, which the log and the data tell, and tried again later.",
    ),
    value(
        "overhead.patience",
        Effect::Reload,
        "1 to 1000",
        "Intervals in a row above `max_ratio` before probes are detached, and as many after that before \
         others are or any is tried again.",
    ),
    value(
        "overhead.back_off",
        Effect::Reload,
        "\"1s\" to \"1h\"",
        "How long they stay detached the first time; each time after that twice as long, up to an hour.",
    ),
    value(
        "overhead.statistics",
        Effect::Restart,
        "\"off\", \"windows\" or \"on\"",
        "Whether the kernel measures the probes' run time, which costs about 50 ns a run and needs \
         CAP_SYS_ADMIN: never (then it is estimated), for one interval in 30, or always.",
    ),
    value(
        "gpu.sample",
        Effect::Reload,
        YES_NO,
        "Whether GPUs are sampled. Where there are none this costs nothing but a look each `retry`.",
    ),
    value(
        "gpu.period",
        Effect::Reload,
        "\"200ms\" to \"2s\"",
        "Time between two readings of the GPUs. Drivers average over the last 1/6 to 1 s, so that less \
         than 1s gains little.",
    ),
    value(
        "gpu.retry",
        Effect::Reload,
        "\"10s\" to \"1d\"",
        "Time until a GPU driver that was not there is looked for again.",
    ),
    value(
        "gpu.held_dir",
        Effect::Reload,
        "a path from / on, or empty for none",
        "Folder of files that say whose each GPU is, as a site's prolog writes them: a file is called by \
         the GPU's UUID or number, its first word is the job's id. It is believed before the device cgroup \
         and the job's environment.",
    ),
    value(
        "gpu.sysfs_root",
        Effect::Reload,
        "a path from / on",
        "Folder with the sys and proc in which AMD's, Intel's and others' GPUs are looked for: in a \
         container, where the host's are.",
    ),
    value(
        "jobs.ignore",
        Effect::Reload,
        "a list of managers, such as [\"session\"]",
        "Managers whose jobs are none: their values count in `_system`.",
    ),
    Key {
        path: "rule",
        help: "Rules of the site, tried before the built-in ones: a regular expression that a cgroup's path \
               must match from its begin (`/`, without /sys/fs/cgroup); what follows the match may be \
               anything. The groups `job`, `step`, `task`, `user`, `uid` and `manager` give the \
               answer; `not_a_job = true`: what matches belongs to no job.",
        allowed: "tables with `name`, `pattern` and, at will, `manager` and `not_a_job`",
        effect: Effect::Reload,
        shape: Shape::Tables(
            "[[rule]]\nname = \"own batch system\"\npattern = '^/batch/(?<user>[^/]+)/(?<job>\\d+)'\nmanager = \"batch\"",
        ),
    },
];
