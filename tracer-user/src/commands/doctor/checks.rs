//! The checks, each by doing the thing itself where that is harmless.

use std::path::Path;

use crate::{
    base::{
        kernel_release::version_of,
        layout::Layout,
        open_files::{self, TooFew},
    },
    bpf::{
        btf::{Btf, VMLINUX},
        error::LoadError,
        hook::HookState,
        load::check_namespace,
        privileges::{cure_of, lacking_capabilities},
    },
    cgroup::{
        hierarchies::Hierarchies,
        job::{JobCgroup, NoCgroup},
    },
    commands::doctor::{Finding, Severity, gpu},
    probes::{self, FaultMode, Options, Room},
};

/// Runs all checks; GPUs are looked for in sys and proc below `root`.
pub fn all(root: &Path) -> Vec<Finding> {
    let mut findings = vec![kernel(), types(), capabilities(), open_files()];
    findings.extend(hierarchies());
    let (layout, cgroup) = cgroup();
    findings.push(cgroup);
    findings.extend(hooks(&layout));
    findings.push(pressure());
    findings.push(memlock());
    findings.extend(gpu::checks(root));
    findings
}

fn kernel() -> Finding {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    if version_of(&release) < (5, 10) {
        return Finding::new(
            "kernel",
            Severity::Missing,
            format!("{release} is older than 5.10: not tested"),
            "boot a newer kernel",
        );
    }
    Finding::ok("kernel", format!("{release} {}", uname.machine().to_string_lossy()))
}

fn types() -> Finding {
    match Btf::read() {
        Ok(_) => Finding::ok("kernel types (BTF)", VMLINUX),
        Err(error) => Finding::new(
            "kernel types (BTF)",
            Severity::Fatal,
            format!("{error:#}"),
            "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' are",
        ),
    }
}

fn capabilities() -> Finding {
    let subject = "privileges";
    if let Err(error) = check_namespace() {
        let cure = "leave the user namespace, or start the container without one";
        return Finding::new(subject, Severity::Fatal, error.to_string(), cure);
    }
    let Some(lacks) = lacking_capabilities() else {
        return Finding::new(
            subject,
            Severity::Missing,
            "cannot read /proc/self/status",
            "mount /proc",
        );
    };
    if lacks.is_empty() {
        return Finding::ok(subject, "may load and attach BPF programs");
    }
    Finding::new(
        subject,
        Severity::Fatal,
        format!("without {}", lacks.join(" and ")),
        cure_of(&lacks),
    )
}

fn hierarchies() -> Vec<Finding> {
    match Hierarchies::read() {
        Err(error) => vec![Finding::new(
            "cgroups",
            Severity::Fatal,
            format!("{error:#}"),
            "mount cgroup2 on /sys/fs/cgroup",
        )],
        Ok(found) => {
            let v1: Vec<_> = found.v1.iter().map(|v1| v1.controllers.join(",")).collect();
            let detail = match (&found.v2, v1.is_empty()) {
                (Some(v2), true) => format!("version 2 at {}", v2.mount.display()),
                (Some(v2), false) => format!(
                    "hybrid: version 2 at {}, version 1 with {}",
                    v2.mount.display(),
                    v1.join(" ")
                ),
                (None, false) => format!("version 1 with {}", v1.join(" ")),
                (None, true) => {
                    return vec![Finding::new(
                        "cgroups",
                        Severity::Fatal,
                        "no hierarchy is mounted",
                        "mount cgroup2 on /sys/fs/cgroup",
                    )];
                }
            };
            vec![Finding::ok("cgroups", detail)]
        }
    }
}

/// Makes a cgroup as `run` does and removes it.
fn cgroup() -> (Layout, Finding) {
    let subject = "a cgroup of its own";
    let none = Layout { tasks_hierarchy: 0, tasks_controller: None, block_hierarchy: None };
    let made = Hierarchies::read().and_then(|found| JobCgroup::create(&found, "doctor"));
    match made {
        Err(error) => (
            none,
            Finding::new(
                subject,
                Severity::Fatal,
                match error.downcast_ref::<NoCgroup>() {
                    Some(refused) => refused.refusals.join("\n"),
                    None => format!("{error:#}"),
                },
                "run as root, or in a delegated cgroup (systemd: Delegate=yes)",
            ),
        ),
        Ok(job) => {
            let layout = job.layout();
            let finding = match job.block() {
                Some(_) => Finding::ok(subject, "block I/O is charged to it"),
                None => Finding::new(
                    subject,
                    Severity::Missing,
                    "block I/O is charged to a cgroup above it, so job_block is unknown",
                    job.notes().first().map_or("see docs/OPERATING.md, Cgroups", String::as_str),
                ),
            };
            (layout, finding)
        }
    }
}

fn hooks(layout: &Layout) -> Vec<Finding> {
    let options = Options::new(FaultMode::Full);
    match probes::load(layout, &options) {
        Err(error) => {
            let detail = match error {
                // In words of its own it sends to `jobtrace doctor`.
                LoadError::Unsupported(error) => format!("{error:#}"),
                error => error.to_string(),
            };
            vec![Finding::new("probes", Severity::Fatal, detail, "see the findings above")]
        }
        Ok(mut probes) => {
            let census = probes.load_census(layout, Room::JOB).err();
            let lost = |subject, gives: &str, why: &str| {
                let cure = "nothing to do: all other values are complete";
                Finding::new(subject, Severity::Missing, format!("no {gives}: {why}"), cure)
            };
            let hooks = probes.hooks().filter_map(|(row, state)| match state {
                HookState::Attached => Some(Finding::ok(row.hook.program, row.gives)),
                HookState::NotNeeded => None,
                HookState::Missing(why) => Some(lost(row.hook.program, row.gives, why)),
            });
            let subject = "causes of waits";
            let waits = match probes.missing_waits(options.waits) {
                Some((gives, why)) => lost(subject, gives, why),
                None => Finding::ok(subject, "by call and file system"),
            };
            let census =
                census.map(|error| lost("software", "job_software", &format!("{error:#}")));
            hooks.chain([waits]).chain(census).collect()
        }
    }
}

fn pressure() -> Finding {
    let subject = "pressure stall times";
    match std::fs::read_to_string("/proc/pressure/cpu") {
        Ok(_) => Finding::ok(subject, "/proc/pressure"),
        Err(error) => Finding::new(
            subject,
            Severity::Missing,
            format!(
                "/proc/pressure cannot be read ({error}), so *_stall_ns of job_memory are unknown"
            ),
            "boot with psi=1",
        ),
    }
}

/// Kernels before 5.11 charge maps to the limit of locked memory.
fn memlock() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    let text = limit.map_or("unlimited".to_owned(), |bytes| format!("{} KiB", bytes / 1024));
    Finding::ok("locked memory", format!("{text} (matters only on kernels before 5.11)"))
}

/// Raised to the hard limit by itself, no further.
fn open_files() -> Finding {
    let subject = "open files";
    let cpus = match aya::util::online_cpus() {
        Ok(cpus) => cpus.len() as u64,
        Err((file, error)) => {
            let detail =
                format!("{file} cannot be read ({error}), so the number needed is unknown");
            return Finding::new(subject, Severity::Missing, detail, "mount /sys");
        }
    };
    if let Err(too_few) = open_files::check() {
        let TooFew { most, needed, .. } = too_few;
        let detail = format!("the limit is {most}, and this node's CPUs need {needed}");
        return Finding::new(subject, Severity::Fatal, detail, too_few.cure());
    }
    let (needed, with_gpus) = (open_files::needed(cpus), open_files::needed_with_gpus(cpus));
    match open_files::most() {
        Some(most) if most < with_gpus => Finding::new(
            subject,
            Severity::Missing,
            format!("the limit is {most}; {needed} are needed, or {with_gpus} to sample GPUs"),
            TooFew { most, needed: with_gpus, slots_fit: None }.cure(),
        ),
        Some(most) => Finding::ok(subject, format!("the limit is {most}, {with_gpus} are needed")),
        None => Finding::ok(subject, format!("unlimited, {with_gpus} are needed")),
    }
}
