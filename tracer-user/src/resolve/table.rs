//! The rules, all of them, in one table. To teach the resolver a scheduler, add a row.
//!
//! A pattern is a regular expression over whole components of a plain path (`path.rs`), matched at its
//! leftmost place whatever comes before it; with `^` at its begin nothing does. What follows the match is
//! below it. Named groups give the answer: `job`, `step`, `task`, `array`, `user`, `uid`, `sluid`,
//! `container`, `qos`, `runtime`, `node`, `cluster`. The component in which `job` (or `sluid`) ends is the
//! job's topmost directory. Words in braces stand for [`FRAGMENTS`].

use super::answer::Role;

/// Which rules come first. Of one tier the outermost match decides, of two matches at one place the
/// earlier row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The site's own.
    Site,
    /// Schedulers. Before what may contain their daemons, or be started by their jobs.
    Scheduler,
    /// Kubernetes, whose node may itself be a container and whose pods may start some.
    Pod,
    /// Containers, virtual machines, notebooks.
    Runtime,
    /// What `jobtrace run` started, in a session or a service.
    Run,
    /// Login sessions and what a user's own systemd runs.
    Session,
    /// Schedulers' daemons: nobody's job.
    Daemon,
    /// The rest.
    Rest,
}

/// One rule.
pub struct Rule {
    /// Its name in answers.
    pub name: &'static str,
    /// The manager that it tells of.
    pub manager: &'static str,
    /// What a match is.
    pub role: Role,
    /// When it is tried.
    pub tier: Tier,
    /// Every match holds one of these, so that a path without any is not tried: looking for all needles
    /// at once costs less than one pattern.
    pub needles: &'static [&'static str],
    /// See the file's head.
    pub pattern: &'static str,
}

impl Rule {
    /// Whether root alone makes the directories of these jobs. A Flux may be a user's own, and so may
    /// containers and machines.
    pub fn needs_root(&self) -> bool {
        let is_node_wide = matches!(self.tier, Tier::Scheduler | Tier::Pod);
        (is_node_wide && self.manager != "flux") || self.manager == "jupyterhub"
    }
}

/// Parts that several patterns share.
pub const FRAGMENTS: &[(&str, &str)] = &[
    ("{step}", r"step_(?<step>\d+(?:\+\d+)?|batch|extern|interactive)"),
    ("{task}", r"task_(?<task>\d+|special)"),
    // A u64 in 13 characters of Crockford's base 32: the first has four bits.
    ("{sluid}", r"(?<sluid>s[0-9A-F][0-9A-HJKMNP-TV-Z]{12})"),
    ("{pbs}", r"\d+(?:\[(?<array>\d*)\]|-\d+)?(?:\.{name})?"),
    ("{name}", r"[^/\x00-\x1f\x7f]+"),
    ("{pod}", r"pod(?<job>[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})"),
    ("{container}", r"(?<container>[0-9a-f]{12})[0-9a-f]{52}"),
    ("{id}", r"(?<job>(?<container>[0-9a-f]{12}))[0-9a-f]{52}"),
    ("{hex64}", r"[0-9a-f]{64}"),
    // Bitcoin's base 58 after f or ƒ.
    ("{f58}", r"(?<job>(?:f|\xC6\x92)[1-9A-HJ-NP-Za-km-z]+)"),
    ("{slot}", r"(?<job>slot\d+(?:_\d+)*(?:@[^/\x00-\x1f\x7f]+?)?)(?:\.slice|\.scope|\.service)?"),
];

const fn row(
    tier: Tier,
    name: &'static str,
    manager: &'static str,
    role: Role,
    needles: &'static [&'static str],
    pattern: &'static str,
) -> Rule {
    Rule { name, manager, role, tier, needles, pattern }
}

use Role::{Helper, Job, NotAJob, StepDaemon};
use Tier::{Daemon, Pod, Rest, Run, Runtime, Scheduler, Session};

/// The table, by tier.
#[rustfmt::skip]
pub static RULES: &[Rule] = &[
    // Slurm. A slurmd may share the node with others (its name comes before), or be anywhere in a container.
    row(Scheduler, "slurm-v2-stepd", "slurm", StepDaemon, &["slurmstepd.scope/job_"], r"(?:(?<node>{name})_)?slurmstepd\.scope/job_(?<job>\d+)/{step}/slurm"),
    row(Scheduler, "slurm-v2", "slurm", Job, &["slurmstepd.scope/job_"], r"(?:(?<node>{name})_)?slurmstepd\.scope/job_(?<job>\d+)(?:/{step}(?:/user/{task})?)?"),
    row(Scheduler, "slurm-v2-sluid-stepd", "slurm", StepDaemon, &["slurmstepd.scope/s"], r"(?:(?<node>{name})_)?slurmstepd\.scope/{sluid}/{step}/slurm"),
    row(Scheduler, "slurm-v2-sluid", "slurm", Job, &["slurmstepd.scope/s"], r"(?:(?<node>{name})_)?slurmstepd\.scope/{sluid}(?:/{step}(?:/user/{task})?)?"),
    row(Scheduler, "slurm-v1", "slurm", Job, &["/slurm"], r"slurm(?:_(?<node>{name}))?/uid_(?<uid>\d+)/job_(?<job>\d+)(?:/{step}(?:/{task})?)?"),
    row(Scheduler, "slurm-v1-sluid", "slurm", Job, &["/slurm"], r"slurm(?:_(?<node>{name}))?/uid_(?<uid>\d+)/{sluid}(?:/{step}(?:/{task})?)?"),
    // PBS: 2020 and later in a service whose name the site chooses, 19.1 in slices, 18.1 in a plain directory.
    row(Scheduler, "pbs-v2", "pbs", Job, &[".service/jobs/"], r"[^/]*pbs[^/]*\.service/jobs/(?<job>\d+)(?:\.(?<array>\d+))?"),
    row(Scheduler, "pbs-v2-prefix", "pbs", Job, &[".service/jobs/"], r"^[^/]+\.service/jobs/(?<job>\d+)(?:\.(?<array>\d+))?"),
    row(Scheduler, "pbs-v1", "pbs", Job, &[".service/jobid/"], r"[^/]+\.service/jobid/(?<job>{pbs})"),
    row(Scheduler, "pbs-slice", "pbs", Job, &["pbs"], r"[^/]*pbs[^/]*\.slice/[^/]*?pbs[^/]*?-(?<job>{pbs})\.slice"),
    row(Scheduler, "pbs-plain", "pbs", Job, &["/pbspro/"], r"pbspro/(?<job>{pbs})"),
    row(Scheduler, "torque", "torque", Job, &["/torque/"], r"torque/(?<job>{pbs})"),
    row(Scheduler, "lsf", "lsf", Job, &["/lsf/"], r"lsf/(?<cluster>{name})/job\.(?<job>\d+)(?:\[(?<array>\d+)\])?(?:\.[^/]*)?"),
    row(Scheduler, "grid-engine", "uge", Job, &["/UGE/", "/AGE/", "/SGE/", "/sge/"], r"(?:UGE|AGE|SGE|sge)/(?<job>\d+)\.(?<task>\d+)"),
    row(Scheduler, "oar2", "oar", Job, &["/oar/"], r"oar/(?<user>{name})_(?<job>\d+)"),
    row(Scheduler, "oar3", "oar", Job, &["/oar-u"], r"oar-u(?<uid>\d+)-j(?<job>\d+)\.slice"),
    // A slot, not a job; its name follows the execute directory, whose slashes are underscores.
    row(Scheduler, "htcondor", "htcondor", Job, &["condor"], r"(?:ht)?condor(?:\.slice|\.service)?/(?:[^/]*?_)?{slot}"),
    row(Scheduler, "htcondor-slot", "htcondor", Job, &["condor"], r"[^/]*?condor[^/]*?_(?<job>slot\d+(?:_\d+)*@{name}?)(?:\.slice|\.scope|\.service)?"),
    row(Scheduler, "flux", "flux", Job, &["shell-"], r"user-\d+\.slice/(?:[^/]+/)*?(?:imp-)?shell-\d+-{f58}\.service"),

    row(Pod, "k8s-conmon", "k8s", Helper, &["crio-conmon-"], r"(?:[^/]*-)?kubepods(?:-(?:burstable|besteffort))?-pod[0-9a-f_-]+\.slice/crio-conmon-{hex64}\.scope"),
    row(Pod, "k8s-slice", "k8s", Job, &["kubepods"], r"(?:[^/]*-)?kubepods(?:-(?<qos>burstable|besteffort))?-{pod}\.slice(?:[/:](?<runtime>[a-z-]+)[-:]{container}(?:\.scope)?)?"),
    row(Pod, "k8s-conmon-plain", "k8s", Helper, &["crio-conmon-"], r"kubepods(?:/(?:burstable|besteffort))?/pod[0-9a-f-]+/crio-conmon-{hex64}"),
    row(Pod, "k8s-plain", "k8s", Job, &["/kubepods/"], r"kubepods(?:/(?<qos>burstable|besteffort))?/{pod}(?:/(?:(?<runtime>[a-z-]+)-)?{container})?"),

    row(Runtime, "conmon", "podman", Helper, &["/libpod-conmon-"], r"libpod-conmon-{hex64}(?:\.scope)?"),
    row(Runtime, "crio-conmon", "k8s", Helper, &["/crio-conmon-"], r"crio-conmon-{hex64}(?:\.scope)?"),
    row(Runtime, "docker", "docker", Job, &["/docker/", "/docker-", ":docker:"], r"(?:docker[/-]|[^/]*:docker:){id}(?:\.scope)?"),
    row(Runtime, "podman", "podman", Job, &["/libpod-"], r"libpod-(?:payload-)?{id}(?:\.scope)?"),
    row(Runtime, "containerd", "containerd", Job, &["nerdctl", "cri-containerd"], r"(?:nerdctl-|cri-containerd-|[^/]*:(?:nerdctl|cri-containerd):){id}(?:\.scope)?"),
    row(Runtime, "crio", "crio", Job, &["/crio-"], r"crio-{id}(?:\.scope)?"),
    row(Runtime, "apptainer", "apptainer", Job, &["/apptainer", "/singularity"], r"(?:apptainer|singularity)[-/](?<job>\d+)(?:\.scope)?"),
    row(Runtime, "libvirt-scope", "libvirt", Job, &["/machine-"], r"machine-(?:qemu|lxc|xen|ch)-\d+-(?<job>{name})\.scope"),
    row(Runtime, "libvirt-plain", "libvirt", Job, &[".libvirt-"], r"machine/(?:(?:qemu|lxc)-\d+-)?(?<job>{name}?)\.libvirt-(?:qemu|lxc)"),
    row(Runtime, "libvirt-old", "libvirt", Job, &["/libvirt/"], r"libvirt/(?:qemu|lxc)/(?<job>{name})"),
    row(Runtime, "nspawn-supervisor", "nspawn", Helper, &["/supervisor"], r"(?:machine-{name}\.scope|systemd-nspawn@{name}\.service)/supervisor"),
    row(Runtime, "nspawn", "nspawn", Job, &["/machine-"], r"machine-(?<job>{name})\.scope"),
    row(Runtime, "nspawn-service", "nspawn", Job, &["/systemd-nspawn@"], r"systemd-nspawn@(?<job>{name})\.service"),
    row(Runtime, "lxc-monitor", "lxc", Helper, &[".monitor"], r"(?:lxc|incus)\.monitor[./]{name}"),
    row(Runtime, "lxc", "lxc", Job, &["/lxc", "/incus"], r"(?:(?:lxc|incus)\.payload[./]|(?:lxc|incus)/)(?<job>{name})"),
    row(Runtime, "jupyterhub", "jupyterhub", Job, &["/jupyter-"], r"jupyter-(?<job>(?<user>{name}))-singleuser\.service"),

    row(Run, "jobtrace-run", "run", Job, &["/jobtrace-run-"], r"jobtrace-run-(?<job>\d+-\d+)-[^/]*"),

    row(Session, "session", "session", Job, &["/session-"], r"user\.slice/user-(?<uid>\d+)\.slice/session-(?<job>c?\d+)\.scope"),
    row(Session, "user-service", "session", Job, &["/user@"], r"user\.slice/user-(?<uid>\d+)\.slice/(?<job>user@\d+)\.service"),

    row(Daemon, "slurm-daemons", "slurm", NotAJob, &["slurm"], r"(?:{name}_)?slurmstepd\.scope|slurm(?:d|ctld|dbd|restd)(?:@{name})?\.service"),
    row(Daemon, "slurm-v1-daemons", "slurm", NotAJob, &["/slurm"], r"^slurm(?:_{name})?"),
    row(Daemon, "pbs-daemons", "pbs", NotAJob, &["pbs"], r"[^/]*pbs[^/]*\.(?:service|slice)"),
    row(Daemon, "pbs-plain-daemons", "pbs", NotAJob, &["/pbspro"], r"^pbspro"),
    row(Daemon, "torque-daemons", "torque", NotAJob, &["/torque"], r"^torque"),
    row(Daemon, "lsf-daemons", "lsf", NotAJob, &["/lsf"], r"^lsf"),
    row(Daemon, "grid-engine-daemons", "uge", NotAJob, &["/UGE", "/AGE", "/SGE", "/sge"], r"^(?:UGE|AGE|SGE|sge)"),
    row(Daemon, "oar-daemons", "oar", NotAJob, &["/oar"], r"^oar(?:\.slice)?"),
    row(Daemon, "htcondor-daemons", "htcondor", NotAJob, &["condor"], r"(?:ht)?condor(?:\.slice|\.service)?"),
    // Jobs of a Flux without units of systemd are in here, told apart by their environment alone.
    row(Daemon, "flux-broker", "flux", NotAJob, &["/flux.service"], r"flux\.service"),
    row(Daemon, "k8s-daemons", "k8s", NotAJob, &["kube"], r"(?:[^/]*-)?kubepods(?:-(?:burstable|besteffort))?(?:\.slice)?|kubelet\.(?:service|slice)"),

    row(Rest, "unit", "none", NotAJob, &[".service", ".scope", ".slice", ".socket", ".mount", ".swap"], r"[^/]+\.(?:service|scope|slice|socket|mount|swap)"),
];

/// The rule of the root of the hierarchy.
pub const ROOT: &str = "root";
/// The rule of what no other rule knows.
pub const UNKNOWN: &str = "unknown";
