//! The configuration: every key, once. A row is a key's meaning (its comment is the file's too), name, type,
//! default, when a change counts, what it may be and, where it has one, its option of the command line.
//! `keys!` makes of each list a struct, its defaults and its [`Key`]s; the default file, --print-config,
//! complaints, suggestions, SIGHUP and the options read [`KEYS`].

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use clap::value_parser;
use serde::{Deserialize, Serialize};
use tracer_ebpf::ids::MOST_SLOTS;

use super::{
    BucketStyle, CensusMode, JobHierarchy, LineStyle, Profile, SoftwareUser, Statistics,
    allowed::{
        Shape, any, at_least, each, folder, folder_or_none, one_of, only, site_rules,
        whole_seconds, within, yes_or_no,
    },
    key::{Effect, Key},
};
use crate::{
    base::values::{Size, Time},
    probes::{FaultMode, WaitMode},
    record::{running::STATE_DIR, store::DEFAULT_DIR},
    resolve::{SiteRule, unknown_manager},
};

/// A table of the file: what its keys' paths begin with, where it is in a [`Config`], the tables in it, and
/// its keys. A row with a part left out is no row, and does not build.
macro_rules! keys {
    (
        $(#[$about:meta])*
        $Table:ident: $prefix:literal, |$config:ident| $place:expr;
        $(tables { $($(#[$inner_about:meta])* $inner:ident: $Inner:ty,)* })?
        $(
            $(#[doc = $help:literal])+
            $name:ident: $Type:ty = $default:expr, $Effect:ident, $allowed:expr
            $(, flag($long:literal, $value:literal, $flag_help:literal))?
            $(, switch($on:expr, $off:expr))?;
        )*
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Table {
            $($($(#[$inner_about])* pub $inner: $Inner,)*)?
            $($(#[doc = $help])+ pub $name: $Type,)*
        }

        impl Default for $Table {
            fn default() -> Self {
                Self { $($($inner: Default::default(),)*)? $($name: $default,)* }
            }
        }

        impl $Table {
            fn keys() -> Vec<Key<Config>> {
                let own = [$(
                    Key::<Config>::new(
                        concat!($prefix, stringify!($name)),
                        concat!($($help),+),
                        Effect::$Effect,
                        $allowed,
                        |$config| &$place.$name,
                        |$config| &mut $place.$name,
                    )
                    $(.flag($long, $value, $flag_help, value_parser!($Type)))?
                    $(.switch($on, $off))?,
                )*];
                own.into_iter()$($(.chain(<$Inner>::keys()))*)?.collect()
            }
        }
    };
}

/// All keys, in the order in which they are printed: those at the top first, then table by table, lists of
/// tables last.
pub static KEYS: LazyLock<Vec<Key<Config>>> = LazyLock::new(|| {
    let mut keys = Config::keys();
    keys.sort_by_key(|key| matches!(key.shape, Shape::Tables(..)));
    keys
});

/// What is wrong with `path` for records where the spool's folder is `spool`: what a collector takes away are no records,
/// and the one's clearing up must not meet the other's files.
fn spools_folder(path: &Path, spool: &Path) -> Option<String> {
    let is_its = path == spool
        || path.starts_with(spool.join("outbox"))
        || path.starts_with(spool.join("tmp"));
    is_its.then(|| format!("{} is the spool's folder", path.display()))
}

keys! {
    /// The whole configuration.
    Config: "", |config| config;
    tables {
        /// Where lines go until somebody fetches them.
        spool: SpoolKeys,
        /// The agent's own files.
        state: StateKeys,
        /// The records of jobs.
        records: RecordsKeys,
        /// What is written of each job.
        export: ExportKeys,
        /// What the probes may cost.
        overhead: OverheadKeys,
        /// How GPUs are sampled.
        gpu: GpuKeys,
        /// What is told of the software that jobs run.
        software: SoftwareKeys,
        /// What is a job.
        jobs: JobsKeys,
    }

    /// Tag `cluster` of every line. If empty, the tag is omitted.
    cluster: String = String::new(), Restart, any("a string"),
        flag("cluster", "CLUSTER", "Name of the cluster, written as a tag of every line");

    /// Tag `host` of every line. If empty, the node's name is used.
    host: String = String::new(), Restart, any("a string");

    /// Time between two readings. All nodes take their readings at the same seconds.
    interval: Time = Time::seconds(10), Reload,
        whole_seconds(Time::seconds(1), Time::seconds(3600)),
        flag("interval", "TIME", "Time between two readings, whole seconds");

    /// Which page faults are timed: only major ones taken in user mode, which adds no cost to minor ones,
    /// or all, including those taken inside system calls.
    faults: FaultMode = FaultMode::Major, Restart, one_of(),
        flag("faults", "FAULTS", "Which page faults to time");

    /// What is recorded about waits. "off": only how long tasks sleep and are blocked; "calls": also the
    /// causes, by system call; "files": also the file systems that they wait for (`job_wait`).
    waits: WaitMode = WaitMode::Files, Restart, one_of(),
        flag("waits", "WAITS", "What to record about waits");

    /// Whether it is recorded which programs, libraries and Python packages each job runs. "off": nothing is loaded
    /// that could see them; "counts": numbers alone; "names": names and versions of what is not a user's own; "full":
    /// also the C library's parts, and packages that only their lists of files tell. See docs/PRIVACY.md.
    census: CensusMode = CensusMode::Off, Restart, one_of(),
        flag("census", "CENSUS", "What to record about the software that jobs run");

    /// The cgroup hierarchy in which jobs are identified. "auto": v2 if it has the memory or cpu
    /// controller, else the first v1 controller present of freezer, memory, cpuset, pids, cpuacct, devices.
    hierarchy: JobHierarchy = JobHierarchy::Auto, Restart, any("\"auto\", \"v2\" or a v1 controller"),
        flag("hierarchy", "HIERARCHY", "The cgroup hierarchy in which jobs are identified: auto, v2 or a v1 controller");

    /// Maximum number of jobs (with `steps`: steps) traced at once. A slot takes memory only while it is in
    /// use: about 3.2 KB for each CPU in the kernel, and 8 KB in the agent (4.3 and 11 with faults =
    /// "full"). Jobs without a slot count in `_system`; `jobtrace_self` reports how often that happened.
    slots: u32 = 256, Restart, within(1, MOST_SLOTS.into()),
        flag("slots", "N", "Maximum number of jobs traced at once");

    /// Slots kept ready for cgroups that the agent has not seen yet, so that a job is counted from its
    /// first moment.
    spare_slots: u32 = 64, Restart, only("0 to less than `slots`", |spare, config: &Config| {
        let slots = config.slots;
        (*spare >= slots).then(|| format!("{spare} is not less than `slots`, which is {slots}"))
    });

    /// Whether the probes keep counting while the agent is restarted or upgraded. They stay in
    /// /sys/fs/bpf/jobtrace until `jobtrace agent --unpin`.
    pin: bool = false, Restart, yes_or_no(),
        switch(
            ("pin", "Keep the probes counting while the agent is restarted"),
            ("no-pin", "Remove the probes when the agent ends, even if the file says `pin = true`")
        );

    /// Whether each step of a job is a series of its own, with the tag `step`.
    steps: bool = false, Restart, yes_or_no();

    /// Site rules, tried before the built-in ones: a regular expression that must match from the start of a
    /// cgroup's path (which begins with `/`, without /sys/fs/cgroup); anything may follow the match. The
    /// groups `job`, `step`, `task`, `user`, `uid` and `manager` provide the answer; with `not_a_job =
    /// true`, whatever matches belongs to no job.
    rule: Vec<SiteRule> = Vec::new(), Reload,
        site_rules(
            "tables with `name`, `pattern` and, optionally, `manager` and `not_a_job`",
            "[[rule]]\nname = \"own batch system\"\npattern = '^/batch/(?<user>[^/]+)/(?<job>\\d+)'\nmanager = \"batch\""
        );
}

keys! {
    /// `[spool]`: bounds of the folder that collectors read.
    SpoolKeys: "spool.", |config| config.spool;

    /// Folder for the finished files; a collector takes them from its subfolder `outbox`. The unit file
    /// names this folder too: a different one needs a drop-in with ReadWritePaths=.
    dir: PathBuf = "/var/spool/jobtrace".into(), Restart, folder(),
        flag("spool", "DIR", "Folder for the finished files");

    /// Above this limit the oldest files are removed and counted.
    max_bytes: Size = Size(1 << 30), Reload, at_least(Size(1 << 20));

    /// Above this limit the oldest files are removed and counted.
    max_files: u64 = 10_000, Reload, at_least(1);

    /// Files older than this are removed and counted.
    max_age: Time = Time::seconds(7 * 24 * 60 * 60), Reload, at_least(Time::seconds(60));
}

keys! {
    /// `[state]`.
    StateKeys: "state.", |config| config.state;

    /// Folder for the lock that prevents a second agent on this node, the last time stamps and, with `pin`,
    /// the state that the next agent needs.
    dir: PathBuf = STATE_DIR.into(), Restart, folder();
}

keys! {
    /// `[records]`: what is kept of each job on this node (docs/RECORD.md), for reports.
    RecordsKeys: "records.", |config| config.records;

    /// Whether a record of each job is saved: at its end, and while it runs.
    save: bool = true, Restart, yes_or_no();

    /// Folder for the records, on a disk: they are to outlive a reboot. The unit creates the default; a different
    /// one needs a drop-in with ReadWritePaths=.
    dir: PathBuf = DEFAULT_DIR.into(), Restart,
        only("an absolute path, neither `spool.dir` nor a folder that the spool keeps there", |path: &PathBuf, config: &Config| {
            let relative = (folder().problems)(path, config).pop();
            relative.or_else(|| spools_folder(path, &config.spool.dir))
        });

    /// Time between two records of a running job: what is lost if the node dies.
    every: Time = Time::seconds(900), Restart, within(Time::seconds(1), Time::seconds(86_400));

    /// Records older than this are removed, by whole days.
    max_age: Time = Time::seconds(90 * 24 * 60 * 60), Restart, at_least(Time::seconds(24 * 60 * 60));

    /// Above this limit the oldest records are removed.
    max_bytes: Size = Size(1 << 30), Restart, at_least(Size(1 << 20));
}

keys! {
    /// `[export]`: how much is written of each job.
    ExportKeys: "export.", |config| config.export;

    /// Format of the lines: jobtrace's own, or that of ClusterCockpit's metric store, which takes metrics
    /// of nodes, one per line, with time stamps in seconds. Profiles and buckets apply to the first only.
    style: LineStyle = LineStyle::Jobtrace, Restart, one_of();

    /// What is written for each job: scalars and percentiles, or also the histograms' buckets, coarse or
    /// all.
    profile: Profile = Profile::Summary, Reload, one_of(),
        flag("profile", "PROFILE", "What is written for each job");

    /// How buckets are written: "le", each interval's own counts, for InfluxDB and Grafana's heatmap;
    /// "prom", cumulative, for Prometheus; "vmrange" for VictoriaMetrics. The wrong one gives wrong
    /// percentiles without any error.
    bucket_style: BucketStyle = BucketStyle::Le, Restart, one_of();

    /// Whether HdrHistogram logs are written as well.
    hlog: bool = false, Reload, yes_or_no();

    /// Profiles by manager; they take precedence over `export.profile`.
    by_manager: BTreeMap<String, Profile> = BTreeMap::new(), Reload,
        each(one_of(), "slurm = \"histogram\"");

    /// Profiles by job id; they take precedence over those by manager.
    by_job: BTreeMap<String, Profile> = BTreeMap::new(), Reload, each(one_of(), "4242 = \"full\"");
}

keys! {
    /// `[overhead]`.
    OverheadKeys: "overhead.", |config| config.overhead;

    /// Share of the node's CPU time that the probes may take. Above it the costliest family of probes is
    /// detached, as the log and the data report, and attached again later.
    max_ratio: f64 = 0.01, Reload, within(0.0001, 1.0);

    /// Consecutive intervals above `max_ratio` before probes are detached, and the same number after that
    /// before others are detached or any are attached again.
    patience: u32 = 3, Reload, within(1, 1000);

    /// How long probes stay detached the first time; this doubles each time, up to an hour.
    back_off: Time = Time::seconds(60), Reload, within(Time::seconds(1), Time::seconds(3600));

    /// When the kernel measures the probes' run time, which costs about 50 ns per run and needs
    /// CAP_SYS_ADMIN: never (the run time is then estimated), for one interval in 30, or always.
    statistics: Statistics = Statistics::Off, Restart, one_of();
}

keys! {
    /// `[gpu]`.
    GpuKeys: "gpu.", |config| config.gpu;

    /// Whether GPUs are sampled. Without GPUs this costs nothing except a check every `retry`.
    sample: bool = true, Reload, yes_or_no();

    /// Time between two readings of the GPUs. NVIDIA's driver keeps samples in between, of which the mean
    /// is taken, so less than 1s gains little.
    period: Time = Time::seconds(1), Reload, within(Time::millis(200), Time::seconds(2));

    /// Time until a missing GPU driver is looked for again.
    retry: Time = Time::seconds(300), Reload, within(Time::seconds(10), Time::seconds(86_400));

    /// Folder of files that say which job each GPU is allocated to, as a site's prolog writes them: the
    /// file's name is the GPU's UUID or number, its first word is the job id. It takes precedence over the
    /// device cgroup and the job's environment.
    held_dir: PathBuf = "/run/gpustat".into(), Reload, folder_or_none();

    /// Folder that contains the sys and proc in which AMD, Intel and other GPUs are looked for: in a
    /// container, where the host's are mounted.
    sysfs_root: PathBuf = "/".into(), Reload, folder();
}

keys! {
    /// `[software]`: what is told of the software that jobs run, with `census`.
    SoftwareKeys: "software.", |config| config.software;

    /// What `job_software` tells of a job's owner: the user's name as the other lines; nothing; or a hash that is the
    /// same for the same user, made with the secret in `secret_file`.
    user: SoftwareUser = SoftwareUser::On, Restart, one_of();

    /// File with the secret for `user = "hashed"`: 16 bytes or more, that only root can read. The same secret on all
    /// nodes gives the same hashes.
    secret_file: PathBuf = "/etc/jobtrace/software.secret".into(), Restart, folder();
}

keys! {
    /// `[jobs]`.
    JobsKeys: "jobs.", |config| config.jobs;

    /// Managers whose jobs are not treated as jobs: they count in `_system`.
    ignore: Vec<String> = Vec::new(), Reload,
        only("a list of managers, such as [\"session\"]", |names: &Vec<String>, config: &Config| {
            unknown_manager(names, &config.rule)
        });

    /// Whether the owner of a job may have its file operations counted (`jobtrace io`), as root may: each system
    /// call of the node takes about 0.15 µs longer meanwhile.
    io_by_owner: bool = true, Reload, yes_or_no();
}

/// The key at `path`.
pub fn find(path: &str) -> Option<&'static Key<Config>> {
    KEYS.iter().find(|key| key.path == path)
}

/// The names that the table at `path` knows; `None` where names are the site's own.
pub fn names(path: &str) -> Option<Vec<&'static str>> {
    match find(path).map(|key| key.shape) {
        Some(Shape::Tables(_, names)) => return Some(names.to_vec()),
        Some(_) => return None,
        None => {}
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
