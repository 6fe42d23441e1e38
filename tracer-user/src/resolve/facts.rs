//! What a job's environment tells of it, for `job_info`. Pure: bytes in, facts out.
//!
//! The environment is the user's to write. It is looked at only for a process whose cgroup is that
//! scheduler's, only for the names in `variables.rs`, and refused whole where it names another job.

mod lsf;

use serde::Serialize;

use super::{
    answer::{Answer, Role},
    variables::{Fact, VARIABLES},
};

/// Longest text that is kept.
pub const LONGEST_BYTES: usize = 256;

/// Facts of a job; each where known.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct JobFacts {
    /// The job as its scheduler names it: more than the path tells where that lacks the number (Slurm's
    /// SLUID), the array's index or the server (PBS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Its name, given by the user; a pod's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its owner's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Its owner's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Account or project; a pod's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Partition or queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Its nodes, as its scheduler writes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// How many they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_count: Option<u64>,
    /// Tasks, of the whole job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// Cores held on this node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u64>,
    /// The array that it is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array_job: Option<String>,
    /// Its index there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array_task: Option<String>,
    /// GPUs held on this node, as written: numbers, ranges, UUIDs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<String>,
    /// The variable that tells them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_by: Option<String>,
    /// Memory asked for on each node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_per_node_bytes: Option<u64>,
    /// Memory asked for for each core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_per_core_bytes: Option<u64>,
    /// Memory asked for for each GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_per_gpu_bytes: Option<u64>,
    /// Quality of service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos: Option<String>,
    /// How often it began anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// Its cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// When it was submitted, seconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_s: Option<u64>,
    /// When it began, seconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_s: Option<u64>,
    /// When it must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_s: Option<u64>,
    /// Run time asked for, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u64>,
}

impl JobFacts {
    /// The facts in `environ` (a /proc/PID/environ) of a process of `host` that `answer` is about. None of them
    /// where the process is in no job of a scheduler, or the environment is another job's.
    pub fn parse(answer: &Answer, environ: &[u8], host: &str) -> Self {
        let known = VARIABLES.iter().find(|(manager, _)| *manager == answer.manager);
        // A broker's own cgroup is a Flux's too, and holds all its jobs where it uses no systemd.
        let is_inside = answer.role == Role::Job || answer.rule == "flux-broker";
        let Some((_, variables)) = known.filter(|_| is_inside) else {
            return Self::default();
        };
        // As a program would read it, the first of equal names counts.
        let mut values: Vec<Option<&[u8]>> = vec![None; variables.len()];
        for entry in environ.split(|byte| *byte == 0) {
            let Some(equals) = entry.iter().position(|byte| *byte == b'=') else { continue };
            let (name, value) = (&entry[..equals], &entry[equals + 1..]);
            let of_name = variables.iter().zip(&mut values);
            of_name
                .filter(|((known, _), _)| known.as_bytes() == name)
                .for_each(|(_, known)| *known = known.or(Some(value)));
        }
        let of_fact = |fact: Fact| {
            let of_fact =
                variables.iter().zip(&values).filter(move |((_, known), _)| *known == fact);
            of_fact.filter_map(|(_, value)| *value)
        };
        let get = |fact| of_fact(fact).map(text).find(|value| !value.is_empty());
        let number = |fact| get(fact).and_then(|text| text.parse::<u64>().ok());
        // Zero is Slurm's word for all there is.
        let mib = |fact| number(fact).filter(|mib| *mib > 0)?.checked_mul(1 << 20);
        let of_gpus: Vec<(&str, String)> = (variables.iter().zip(&values))
            .filter(|((_, fact), _)| *fact == Fact::Gpus)
            .filter_map(|((name, _), value)| Some((*name, text((*value)?))))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        // Numbers count in whoever's order, UUIDs mean one device each; but those of a task may be some only.
        let first = of_gpus.first();
        let names_all = |(_, value): &&(&str, String)| {
            is_uuid(value) && count(value) >= first.and_then(|(_, first)| count(first))
        };
        let gpus = of_gpus.iter().find(names_all).or(first);
        let host_cores = of_fact(Fact::HostCores).find_map(lsf::host_cores);
        let of_host = || lsf::cores_on(host, host_cores.as_ref()?);
        let submitted_s = || lsf::submitted_s(of_fact(Fact::JobFile).next()?, &get(Fact::Job)?);
        let is_other = get(Fact::Job).is_some_and(|job| !is_same_job(answer, &job))
            || get(Fact::Sluid)
                .is_some_and(|sluid| answer.sluid.as_ref().is_some_and(|own| *own != sluid));
        if is_other {
            return Self::default();
        }
        Self {
            job: get(Fact::Job).map(|job| job.replace('ƒ', "f")),
            name: get(Fact::Name),
            user: get(Fact::User),
            uid: get(Fact::Uid).and_then(|text| text.parse().ok()),
            account: get(Fact::Account),
            queue: get(Fact::Queue),
            nodes: get(Fact::Nodes),
            node_count: number(Fact::NodeCount).or(host_cores.as_deref().map(lsf::count)),
            tasks: number(Fact::Tasks),
            cores: number(Fact::Cores).or_else(of_host),
            array_job: get(Fact::ArrayJob),
            // LSF's zero and Grid Engine's word for a job of no array.
            array_task: get(Fact::ArrayTask)
                .filter(|index| index != "undefined" && !(answer.manager == "lsf" && index == "0")),
            gpus: gpus.map(|(_, value)| value.clone()),
            gpus_by: gpus.map(|(name, _)| (*name).to_owned()),
            memory_per_node_bytes: mib(Fact::MemoryMib),
            memory_per_core_bytes: mib(Fact::MemoryPerCoreMib),
            memory_per_gpu_bytes: mib(Fact::MemoryPerGpuMib),
            qos: get(Fact::Qos),
            restarts: number(Fact::Restarts),
            cluster: get(Fact::Cluster),
            submitted_s: submitted_s(),
            start_s: number(Fact::Start).filter(|seconds| *seconds > 0),
            end_s: number(Fact::End).filter(|seconds| *seconds > 0),
            limit_s: number(Fact::LimitSeconds).filter(|seconds| *seconds > 0),
        }
    }

    /// How many GPUs are held on this node; `None` where the environment does not say.
    pub fn gpu_count(&self) -> Option<u64> {
        count(self.gpus.as_deref()?)
    }
}

/// How many GPUs a list names; `None` of a word for all there are.
fn count(list: &str) -> Option<u64> {
    let of = |part: &str| match part.split_once('-') {
        // Ranges are of numbers; UUIDs have dashes too.
        Some((first, last)) => match (first.parse::<u64>(), last.parse::<u64>()) {
            (Ok(first), Ok(last)) => last.checked_sub(first)?.checked_add(1),
            _ => Some(1),
        },
        None => Some(1),
    };
    match list.trim() {
        "all" => None,
        "none" | "void" | "NoDevFiles" | "-1" => Some(0),
        list => {
            let parts = list.split([',', ' ']).filter(|part| !part.is_empty());
            parts.map(of).try_fold(0u64, |sum, count| sum.checked_add(count?))
        }
    }
}

/// Whether the environment's name for the job can be that of the path's job.
fn is_same_job(answer: &Answer, job: &str) -> bool {
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().map(str::to_owned);
    match answer.manager.as_str() {
        // The directory's name has no number to compare.
        "slurm" if answer.sluid.as_deref() == Some(&answer.job) => {
            !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit())
        }
        // The path may lack the server and the index.
        "pbs" | "torque" => number(job) == number(&answer.job),
        "flux" if answer.job.is_empty() => true,
        "flux" => job.replace('ƒ', "f") == answer.job,
        _ => job == answer.job,
    }
}

/// A value made harmless: valid, without control characters, cut.
fn text(value: &[u8]) -> String {
    // A character that the cut leaves half is as invalid as any other.
    let kept = &value[..value.len().min(LONGEST_BYTES)];
    let mut text: String = String::from_utf8_lossy(kept)
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    // What stands for a bad byte is longer than it.
    while text.len() > LONGEST_BYTES {
        text.pop();
    }
    text
}

/// Whether GPUs are named by UUIDs.
fn is_uuid(list: &str) -> bool {
    ["GPU-", "MIG-"].iter().any(|prefix| list.starts_with(prefix))
}

#[cfg(test)]
mod tests;
