//! /etc/jobtrace/jobtrace.toml: what may be set, its defaults and its limits. Reading, printing and
//! comparing lie beside; nothing here touches a file.

mod keys;
mod load;
mod print;
mod reload;
pub mod values;

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

pub use keys::{Effect, KEYS, Key};
pub use load::{DEFAULT_FILE, Flags, load, parse};
pub use reload::{Difference, reload_difference};
use values::{Size, Time};

use super::suggest;
use crate::{probes::FaultMode, resolve::SiteRule};

/// The whole configuration. The defaults are [`Config::default`]'s and nobody else's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Tag `cluster` of every line; empty: no such tag.
    pub cluster: String,
    /// Tag `host`; empty: the node's name.
    pub host: String,
    /// Time between two readings, whole seconds.
    pub interval: Time,
    /// Which page faults are timed.
    pub faults: FaultMode,
    /// The hierarchy whose cgroups are jobs.
    pub hierarchy: Hierarchy,
    /// Jobs traced at once.
    pub slots: u32,
    /// Slots kept ready for cgroups that nobody has noticed yet.
    pub spare_slots: u32,
    /// Whether programs and maps outlive the agent, in bpffs.
    pub pin: bool,
    /// Whether each step of a job is a series.
    pub steps: bool,
    /// Where lines go until somebody fetches them.
    pub spool: Spool,
    /// The agent's own files.
    pub state: State,
    /// What is written of each job.
    pub export: Export,
    /// What the probes may cost.
    pub overhead: Overhead,
    /// What is a job.
    pub jobs: Jobs,
    /// Rules of the site, tried before the built-in ones.
    #[serde(rename = "rule")]
    pub rules: Vec<SiteRule>,
}

/// `[spool]`: bounds of the folder that collectors read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spool {
    /// The folder.
    pub dir: PathBuf,
    /// All its files together.
    pub max_bytes: Size,
    /// Number of its files.
    pub max_files: u64,
    /// Age of its oldest file.
    pub max_age: Time,
}

/// `[state]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// Folder of the lock and the socket.
    pub dir: PathBuf,
}

/// `[export]`: how much is written of each job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Export {
    /// Where neither of the tables below says otherwise.
    pub profile: Profile,
    /// How histogram buckets are written.
    pub bucket_style: BucketStyle,
    /// Whether HdrHistogram logs are written beside the lines.
    pub hlog: bool,
    /// Profiles by manager.
    pub by_manager: BTreeMap<String, Profile>,
    /// Profiles by job id; before those by manager.
    pub by_job: BTreeMap<String, Profile>,
}

/// `[overhead]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overhead {
    /// Share of the node's CPU time that probes may take.
    pub max_ratio: f64,
    /// Whether the kernel measures the probes' run time.
    pub statistics: Statistics,
}

/// `[jobs]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Jobs {
    /// Managers whose jobs are counted in `_system`.
    pub ignore: Vec<String>,
}

/// How much is written of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Scalars and percentiles.
    #[default]
    Summary,
    /// Sparse buckets too.
    Histogram,
    /// All buckets.
    Full,
}

/// How the buckets of a histogram are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BucketStyle {
    /// Each interval's own count by upper bound, for Grafana's heatmap.
    #[default]
    Le,
    /// Cumulative over buckets, for Prometheus.
    Prom,
    /// Ranges, for VictoriaMetrics.
    VmRange,
}

/// When the kernel measures the run time of BPF programs, about 50 ns a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistics {
    /// Never: the cost is estimated from counts of events.
    #[default]
    Off,
    /// For one interval in many.
    Windows,
    /// Always.
    On,
}

/// The hierarchy whose cgroups are told apart.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Hierarchy {
    /// What this host's schedulers use.
    #[default]
    Auto,
    /// The unified one.
    V2,
    /// The v1 one of this controller.
    V1(String),
}

/// v1 controllers, `include/linux/cgroup_subsys.h`.
const CONTROLLERS: &[&str] = &[
    "cpuset",
    "cpu",
    "cpuacct",
    "blkio",
    "memory",
    "devices",
    "freezer",
    "net_cls",
    "perf_event",
    "net_prio",
    "hugetlb",
    "pids",
    "rdma",
    "misc",
];

impl std::str::FromStr for Hierarchy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "v2" => Ok(Self::V2),
            name if CONTROLLERS.contains(&name) => Ok(Self::V1(name.to_owned())),
            other => {
                let known = ["auto", "v2"].into_iter().chain(CONTROLLERS.iter().copied());
                Err(format!("unknown hierarchy `{other}`{}", suggest::cure(other, known)))
            }
        }
    }
}

impl TryFrom<String> for Hierarchy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Hierarchy> for String {
    fn from(hierarchy: Hierarchy) -> Self {
        match hierarchy {
            Hierarchy::Auto => "auto".into(),
            Hierarchy::V2 => "v2".into(),
            Hierarchy::V1(controller) => controller,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cluster: String::new(),
            host: String::new(),
            interval: Time::seconds(10),
            faults: FaultMode::Major,
            hierarchy: Hierarchy::Auto,
            slots: 256,
            spare_slots: 32,
            pin: false,
            steps: false,
            spool: Spool::default(),
            state: State::default(),
            export: Export::default(),
            overhead: Overhead::default(),
            jobs: Jobs::default(),
            rules: Vec::new(),
        }
    }
}

impl Default for Spool {
    fn default() -> Self {
        Self {
            dir: "/var/spool/jobtrace".into(),
            max_bytes: Size(1 << 30),
            max_files: 10_000,
            max_age: Time::seconds(7 * 24 * 60 * 60),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self { dir: "/run/jobtrace".into() }
    }
}

impl Default for Export {
    fn default() -> Self {
        Self {
            profile: Profile::Summary,
            bucket_style: BucketStyle::Le,
            hlog: false,
            by_manager: BTreeMap::new(),
            by_job: BTreeMap::new(),
        }
    }
}

impl Default for Overhead {
    fn default() -> Self {
        Self { max_ratio: 0.01, statistics: Statistics::Off }
    }
}

/// The most slots that the kernel side has room for, that of the rest of the node apart.
const MOST_SLOTS: u32 = 1023;

impl Config {
    /// What is out of its limits: the key's path and why. Empty where all is well.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut check = |is_well: bool, path, reason: &dyn Fn() -> String| {
            if !is_well {
                found.push((path, reason()));
            }
        };
        let seconds = self.interval.0.as_secs();
        check(
            self.interval.0.subsec_nanos() == 0 && (1..=3600).contains(&seconds),
            "interval",
            &|| format!("{} is no whole number of seconds from 1s to 1h", self.interval),
        );
        check((1..=MOST_SLOTS).contains(&self.slots), "slots", &|| {
            format!("{} is not from 1 to {MOST_SLOTS}", self.slots)
        });
        check(self.spare_slots < self.slots, "spare_slots", &|| {
            format!("{} is not less than `slots`, which is {}", self.spare_slots, self.slots)
        });
        for (path, dir) in [("spool.dir", &self.spool.dir), ("state.dir", &self.state.dir)] {
            check(dir.is_absolute(), path, &|| {
                format!("{:?} does not begin with /", dir.display().to_string())
            });
        }
        check(self.spool.max_bytes.0 >= 1 << 20, "spool.max_bytes", &|| {
            format!("{} is less than 1 MiB", self.spool.max_bytes)
        });
        check(self.spool.max_files >= 1, "spool.max_files", &|| "0 holds no file".to_owned());
        check(self.spool.max_age.0.as_secs() >= 60, "spool.max_age", &|| {
            format!("{} is less than 1m", self.spool.max_age)
        });
        let ratio = self.overhead.max_ratio;
        check((0.0001..=1.0).contains(&ratio), "overhead.max_ratio", &|| {
            format!("{ratio} is not from 0.0001 to 1")
        });
        let distinct: std::collections::BTreeSet<_> = self.rules.iter().map(|r| &r.name).collect();
        check(distinct.len() == self.rules.len(), "rule", &|| "two have one name".to_owned());
        for rule in &self.rules {
            if let Err(reason) = check_rule(rule) {
                check(false, "rule", &|| reason.clone());
            }
        }
        found
    }
}

/// Whether the rule's pattern is one and can give an answer.
fn check_rule(rule: &SiteRule) -> Result<(), String> {
    let pattern = regex::Regex::new(&rule.pattern).map_err(|error| {
        let text = error.to_string();
        // The crate draws a picture of several lines; its last one is the reason.
        let reason = text.lines().next_back().unwrap_or_default();
        format!("pattern of `{}`: {}", rule.name, reason.trim_start_matches("error: "))
    })?;
    const GROUPS: [&str; 6] = ["job", "step", "task", "user", "uid", "manager"];
    for group in pattern.capture_names().flatten() {
        if !GROUPS.contains(&group) {
            let cure = suggest::cure(group, GROUPS);
            return Err(format!("pattern of `{}`: unknown group `{group}`{cure}", rule.name));
        }
    }
    if !rule.not_a_job && !pattern.capture_names().flatten().any(|group| group == "job") {
        return Err(format!(
            "pattern of `{}` has no group `(?<job>...)`, add one or `not_a_job = true`",
            rule.name
        ));
    }
    Ok(())
}
