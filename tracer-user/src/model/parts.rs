//! The steps and tasks of a job, each by its own cgroup: so that the slow one has a name.

use serde::{Deserialize, Serialize};

use crate::base::few::push_few;

/// Parts that are listed of a job on a node; the others are added up.
pub const MOST_PARTS: usize = 256;

/// A step, a task of one, or a container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// The node; empty in a record of one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The step, or the container.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// The task; empty: the whole step.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// When its cgroup was made or found, nanoseconds since the Unix epoch.
    pub begin: u64,
    /// When its cgroup was read last: what it did after that is not in its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
    /// When its cgroup was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    /// Time on CPU, all of its tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_cpu_ns: Option<u64>,
    /// Largest memory charged, page cache included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
    /// Read from local disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_read_bytes: Option<u64>,
    /// Written to local disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_written_bytes: Option<u64>,
}

/// What a part's cgroup counted up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartCounts {
    /// As [`Part::on_cpu_ns`].
    pub on_cpu_ns: Option<u64>,
    /// As [`Part::memory_peak_bytes`].
    pub memory_peak_bytes: Option<u64>,
    /// As [`Part::disk_read_bytes`] and [`Part::disk_written_bytes`].
    pub disk_bytes: Option<(u64, u64)>,
}

/// Those that are not listed, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherParts {
    /// How many.
    pub count: u64,
    /// Time on CPU, as far as it is known.
    pub on_cpu_ns: u64,
}

impl Part {
    /// Whether it is a user's: in `extern` is what holds a job's place, and Slurm on cgroup v2 has a `task_special` in
    /// each step for what it runs itself.
    pub fn is_work(&self) -> bool {
        self.step != "extern" && self.task != "special"
    }

    /// Whether it is a user's task, not a whole step.
    pub fn is_task(&self) -> bool {
        !self.task.is_empty() && self.is_work()
    }

    /// Takes over what its cgroup counted up to `wall_ns`.
    pub fn read(&mut self, counts: PartCounts, wall_ns: u64) {
        let (read, written) = counts.disk_bytes.unzip();
        let known = counts.on_cpu_ns.or(counts.memory_peak_bytes).or(read).is_some();
        if known {
            self.seen = Some(wall_ns);
        }
        for (value, now) in [
            (&mut self.on_cpu_ns, counts.on_cpu_ns),
            (&mut self.memory_peak_bytes, counts.memory_peak_bytes),
            (&mut self.disk_read_bytes, read),
            (&mut self.disk_written_bytes, written),
        ] {
            *value = (*value).max(now);
        }
    }

    /// Whether both are the same step or task of the same node.
    pub fn is_same(&self, other: &Self) -> bool {
        self.begin == other.begin
            && (&self.host, &self.step, &self.task) == (&other.host, &other.step, &other.task)
    }
}

/// All of a job's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Listed, in the order of their begin.
    pub listed: Vec<Part>,
    /// The others.
    #[serde(default)]
    pub others: OtherParts,
}

impl Parts {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.others.count == 0
    }

    /// Those that have not ended end at `wall_ns`.
    pub fn end_all(&mut self, wall_ns: u64) {
        self.listed.iter_mut().for_each(|part| part.end = part.end.or(Some(wall_ns)));
    }

    /// Adds one that begins. Where the list is full, the one that ended and ran least makes room; where none has
    /// ended, it is not listed itself.
    pub fn begin(&mut self, part: Part) {
        if self.listed.len() >= MOST_PARTS {
            let ended = self.listed.iter().enumerate().filter(|(_, part)| part.end.is_some());
            match ended.min_by_key(|(_, part)| part.on_cpu_ns).map(|(at, _)| at) {
                Some(at) => {
                    let least = self.listed.remove(at);
                    self.count(&least);
                }
                None => return self.count(&part),
            }
        }
        push_few(&mut self.listed, part);
    }

    fn count(&mut self, part: &Part) {
        self.others.count += 1;
        self.others.on_cpu_ns = self.others.on_cpu_ns.saturating_add(part.on_cpu_ns.unwrap_or(0));
    }

    /// The one of that name that has not ended.
    pub fn live(&mut self, step: &str, task: &str) -> Option<&mut Part> {
        let is_it = |part: &&mut Part| part.end.is_none() && part.step == step && part.task == task;
        self.listed.iter_mut().find(is_it)
    }

    /// The last one of that name, ended or not.
    pub fn last(&mut self, step: &str, task: &str) -> Option<&mut Part> {
        self.listed.iter_mut().rfind(|part| part.step == step && part.task == task)
    }

    /// Takes the one that has not ended out: it is another job's.
    pub fn take_live(&mut self, step: &str, task: &str) -> Option<Part> {
        let is_it = |part: &Part| part.end.is_none() && part.step == step && part.task == task;
        let at = self.listed.iter().position(is_it)?;
        Some(self.listed.remove(at))
    }

    /// Adds another node's, or those of a later time; of one that both list the later state counts.
    pub fn merge(&mut self, other: &Self) {
        for part in &other.listed {
            match self.listed.iter_mut().find(|known| known.is_same(part)) {
                Some(known) if (known.end, known.seen) < (part.end, part.seen) => {
                    known.clone_from(part);
                }
                Some(_) => {}
                None => self.listed.push(part.clone()),
            }
        }
        self.others.count = self.others.count.saturating_add(other.others.count);
        self.others.on_cpu_ns = self.others.on_cpu_ns.saturating_add(other.others.on_cpu_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(task: usize) -> Part {
        Part { step: "0".into(), task: task.to_string(), begin: task as u64, ..Part::default() }
    }

    #[test]
    fn the_list_is_bounded_and_nothing_is_lost() {
        let mut parts = Parts::default();
        for task in 0..MOST_PARTS {
            parts.begin(part(task));
            let counts =
                PartCounts { on_cpu_ns: Some(1000 - task as u64), ..PartCounts::default() };
            parts.live("0", &task.to_string()).unwrap().read(counts, 5);
        }
        parts.begin(part(900));
        assert_eq!(parts.others, OtherParts { count: 1, on_cpu_ns: 0 }, "all of them run");
        for task in [3, 7] {
            parts.live("0", &task.to_string()).unwrap().end = Some(9);
        }
        parts.begin(part(901));
        assert_eq!(parts.listed.len(), MOST_PARTS);
        assert_eq!(parts.others, OtherParts { count: 2, on_cpu_ns: 993 }, "that which ran less");
        assert!(parts.live("0", "901").is_some() && parts.live("0", "7").is_none());
    }

    #[test]
    fn what_was_read_stays_when_the_cgroup_is_gone() {
        let mut one = part(1);
        one.read(
            PartCounts { on_cpu_ns: Some(7), disk_bytes: Some((1, 2)), ..PartCounts::default() },
            50,
        );
        one.read(PartCounts::default(), 60);
        assert_eq!((one.on_cpu_ns, one.seen, one.disk_written_bytes), (Some(7), Some(50), Some(2)));
        assert_eq!(one.memory_peak_bytes, None, "unknown is not zero");
        let mut all = Parts { listed: vec![part(1), part(2)], ..Parts::default() };
        all.merge(&Parts { listed: vec![one.clone(), part(3)], ..Parts::default() });
        assert_eq!(all.listed, [one, part(2), part(3)]);
    }
}
