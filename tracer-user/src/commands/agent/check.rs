//! `agent --check`: whether the agent could work with this configuration, and what it would do.

use std::{
    fmt::Write,
    fs::{self, OpenOptions},
    io,
    path::Path,
};

use anyhow::{Context, Result, bail};
use rustix::fs::{Access, access};

use super::{
    config::{Config, JobHierarchy, Statistics},
    software::SoftwareSettings,
};
use crate::{
    base::{clock, identity::host, text::clean},
    lines::{form::LineStyle, profile::Profile},
    probes::{FaultMode, WaitMode},
};

/// What the agent would do with `config`, in lines.
///
/// # Errors
/// When it could not write where it has to.
pub fn check(config: &Config) -> Result<String> {
    let mut problems = Vec::new();
    let (spool, state, records) = (&config.spool, &config.state, &config.records);
    let records = records.save.then_some(("records.dir", &records.dir));
    let folders = [("spool.dir", &spool.dir), ("state.dir", &state.dir)];
    for (key, dir) in folders.into_iter().chain(records) {
        problems.extend(is_writable(dir).err().map(|error| problem(key, &error)));
    }
    problems.extend(SoftwareSettings::of(config).err().map(|error| problem("census", &error)));
    if !problems.is_empty() {
        bail!(problems.join("\n"));
    }
    Ok(intentions(config))
}

/// What is wrong with `key`. What the system refuses it may refuse to this user alone.
fn problem(key: &str, error: &anyhow::Error) -> String {
    let is_of_user = error.chain().any(|cause| cause.is::<io::Error>());
    let cure = if is_of_user { "; run the check as the user that the agent runs as" } else { "" };
    format!("`{key}`: {error:#}{cure}")
}

/// What `config` means, a line each.
fn intentions(config: &Config) -> String {
    let mut text = String::new();
    let mut line = |subject: &str, what: String| {
        let _ = writeln!(text, "{subject:<10}{}", clean(&what, true));
    };
    let name = if config.host.is_empty() { host() } else { config.host.clone() };
    let cluster = match config.cluster.as_str() {
        "" => "no cluster".to_owned(),
        cluster => format!("cluster {cluster}"),
    };
    line("node", format!("{name}, {cluster}"));
    let hierarchy = match &config.hierarchy {
        JobHierarchy::Auto => "the cgroup hierarchy that this node's schedulers use".to_owned(),
        JobHierarchy::V2 => "cgroup v2".to_owned(),
        JobHierarchy::V1(controller) => format!("the v1 hierarchy of {controller}"),
    };
    let series = if config.steps { "steps" } else { "jobs" };
    let (slots, spare) = (config.slots, config.spare_slots);
    line(
        "traces",
        format!("up to {slots} {series} at once, {spare} slots kept ready, in {hierarchy}"),
    );
    for rule in &config.rule {
        line("rule", format!("{}: {}", rule.name, rule.pattern));
    }
    if !config.jobs.ignore.is_empty() {
        line(
            "ignores",
            format!("jobs of {}: they count in _system", config.jobs.ignore.join(", ")),
        );
    }
    let faults = match config.faults {
        FaultMode::Major => "major faults timed",
        FaultMode::Full => "major and minor faults timed",
    };
    let waits = match config.waits {
        WaitMode::Off => "waits without causes",
        WaitMode::Calls => "waits by cause",
        WaitMode::Files => "waits by cause and file system",
    };
    line("reads", format!("every {}, {faults}, {waits}", config.interval));
    let spool = &config.spool;
    line(
        "writes",
        format!(
            "to {}, at most {} in {} files of the last {}",
            spool.dir.display(),
            spool.max_bytes,
            spool.max_files,
            spool.max_age
        ),
    );
    line("content", content(config));
    let records = &config.records;
    line(
        "records",
        match records.save {
            true => format!(
                "in {}, at a job's end and every {}, at most {} of the last {}",
                records.dir.display(),
                records.every,
                records.max_bytes,
                records.max_age
            ),
            false => "none".to_owned(),
        },
    );
    line(
        "software",
        match config.census.level() {
            Some(level) => format!("{} of what each job runs", level.name()),
            None => "not watched".to_owned(),
        },
    );
    let gpu = &config.gpu;
    let gpus = match gpu.sample {
        true => {
            format!("read every {}; without a driver, looked for every {}", gpu.period, gpu.retry)
        }
        false => "not read".to_owned(),
    };
    line("GPUs", gpus);
    let statistics = match config.overhead.statistics {
        Statistics::Off => "estimated from counts of events",
        Statistics::Windows => "measured from time to time",
        Statistics::On => "measured",
    };
    let percent = config.overhead.max_ratio * 100.0;
    line("costs", format!("at most {percent:.2} % of the node's CPU time, {statistics}"));
    let end = if config.pin { "keep running without the agent" } else { "end with the agent" };
    line("probes", end.to_owned());
    text
}

/// How much is written of each job, and in which form.
fn content(config: &Config) -> String {
    let export = &config.export;
    if export.style == LineStyle::Clustercockpit {
        return "metrics for ClusterCockpit".to_owned();
    }
    let mut text = format!("the {} of each job", of_profile(export.profile));
    let by_manager =
        export.by_manager.iter().map(|(name, profile)| (format!("jobs of {name}"), profile));
    let by_job = export.by_job.iter().map(|(job, profile)| (format!("job {job}"), profile));
    for (whose, profile) in by_manager.chain(by_job) {
        let _ = write!(text, ", {whose}: {}", of_profile(*profile));
    }
    if export.hlog {
        text += ", HdrHistogram logs";
    }
    text
}

const fn of_profile(profile: Profile) -> &'static str {
    match profile {
        Profile::Summary => "numbers and percentiles",
        Profile::Histogram => "numbers, percentiles and coarse histograms",
        Profile::Full => "numbers, percentiles and full histograms",
    }
}

/// Whether files can be made in `dir`, or, where it is absent, `dir` itself.
fn is_writable(dir: &Path) -> Result<()> {
    if !dir.exists() {
        let parent = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
        return access(parent, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(io::Error::from)
            .with_context(|| format!("{} does not exist and cannot be created", dir.display()));
    }
    // Trying is the only test that knows quotas, read-only mounts and capabilities.
    let file = dir.join(format!(".check-{}-{}", std::process::id(), clock::monotonic_ns()));
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&file)
        .and_then(|_| fs::remove_file(&file))
        .with_context(|| format!("cannot write in {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writable_spool_passes_and_nothing_is_left_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.spool.dir = dir.path().to_owned();
        config.state.dir = dir.path().join("not/yet");
        config.records.dir = dir.path().join("records");
        let text = check(&config).unwrap();
        assert!(
            text.contains("every 10s, major faults timed, waits by cause and file system")
                && text.contains("the numbers and percentiles of each job")
                && text.contains("read every 1s")
                && text.contains("of the last 90 days")
                && text.contains("1.00 %"),
            "{text}"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_spool_that_is_no_folder_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut config = Config::default();
        config.spool.dir = file.path().to_owned();
        config.records.save = false;
        let error = check(&config).unwrap_err().to_string();
        assert!(error.contains("`spool.dir`: cannot write in"), "{error}");
    }
}
