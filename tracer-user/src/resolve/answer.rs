//! What the resolver says of a cgroup.

use serde::Serialize;

/// Behind the path of a cgroup that was removed, in /proc/PID/cgroup.
pub(super) const DELETED: &str = " (deleted)";

/// What a cgroup is to its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The job's own work.
    Job,
    /// The scheduler's daemon for a step: it belongs to the job and is not the user's work.
    StepDaemon,
    /// A runtime's process beside a job (conmon); no job.
    Helper,
    /// No job: a scheduler's daemons, a system service, the root.
    NotAJob,
}

impl Role {
    /// What the role is called on a terminal.
    pub fn words(self) -> &'static str {
        match self {
            Self::Job => "the job's own work",
            Self::StepDaemon => "step daemon: belongs to the job, but is not the user's work",
            Self::Helper => "helper of a runtime, not a job",
            Self::NotAJob => "not a job",
        }
    }
}

/// Whose a cgroup is, and which rule says so. A text is never longer than [`Answer::LONGEST_BYTES`] and
/// holds no ASCII control character.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What the cgroup is to its job.
    pub role: Role,
    /// `slurm`, `pbs`, …; with [`Role::NotAJob`] the scheduler whose daemons these are, or `none`.
    pub manager: String,
    /// The job's name at its manager; empty without a job. For a Slurm directory that is named by SLUID
    /// the SLUID, until the number is known.
    pub job: String,
    /// Slurm's step: a number, `5+1`, `batch`, `extern` or `interactive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Slurm's task (a number or `special`), Grid Engine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Index in a job array (PBS, LSF), where the path tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// The owner's name, where the path tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The owner's number, where the path tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Slurm's SLUID, with its leading `s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sluid: Option<String>,
    /// First 12 digits of the container's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Kubernetes: `guaranteed`, `burstable` or `besteffort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<String>,
    /// Kubernetes: what runs the container, `containerd`, `crio`, `docker`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// Slurm: name of the slurmd, where several share the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// LSF: name of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Name of the rule.
    pub rule: String,
    /// How many leading components of the path are the job's topmost directory: all below it is the
    /// job's. Zero without a job.
    pub root: usize,
    /// Whether root alone makes such directories: in one of a user's it is that user's invention.
    #[serde(skip)]
    pub needs_root: bool,
}

impl Answer {
    /// Longest text; a cgroup's own name is no longer.
    pub const LONGEST_BYTES: usize = 255;

    /// All that it says in words.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let optional = [
            &self.step,
            &self.task,
            &self.array,
            &self.user,
            &self.sluid,
            &self.container,
            &self.qos,
            &self.runtime,
            &self.node,
            &self.cluster,
        ];
        let given = optional.into_iter().flatten();
        given.chain([&self.manager, &self.job, &self.rule]).map(String::as_str)
    }

    /// An answer that knows no more than this.
    pub(super) fn new(role: Role, manager: &str, rule: &str) -> Self {
        Self {
            role,
            manager: manager.to_owned(),
            job: String::new(),
            step: None,
            task: None,
            array: None,
            user: None,
            uid: None,
            sluid: None,
            container: None,
            qos: None,
            runtime: None,
            node: None,
            cluster: None,
            rule: rule.to_owned(),
            root: 0,
            needs_root: false,
        }
    }

    /// Whether it names a job.
    pub fn is_job(&self) -> bool {
        matches!(self.role, Role::Job | Role::StepDaemon)
    }

    /// The job's topmost directory in `path`, the path that was resolved; `None` without a job.
    pub fn root_of<'a>(&self, path: &'a str) -> Option<&'a str> {
        if !self.is_job() {
            return None;
        }
        // What the kernel adds to the path of a cgroup that is gone is no part of its name.
        let path = path.strip_suffix(DELETED).unwrap_or(path);
        let (mut seen, mut inside) = (0, false);
        for (at, byte) in path.bytes().enumerate() {
            let is_slash = byte == b'/';
            seen += usize::from(inside && is_slash);
            if seen == self.root {
                return Some(&path[..at]);
            }
            inside = !is_slash;
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use crate::resolve::Resolver;

    #[test]
    fn the_root_of_a_removed_cgroup_is_its_name_alone() {
        let resolver = Resolver::new(&[]).unwrap();
        for (path, root) in [
            ("/slurm/uid_1/job_2 (deleted)", "/slurm/uid_1/job_2"),
            ("/slurm/uid_1/job_2/step_0 (deleted)", "/slurm/uid_1/job_2"),
            ("//lxc/a//b (deleted)", "//lxc/a"),
        ] {
            assert_eq!(resolver.path(path).root_of(path), Some(root), "{path}");
        }
    }
}
