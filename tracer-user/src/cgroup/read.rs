//! Reads `job_memory` and `job_cpu` of one job from its cgroup files, v2 or v1, and `oom_kills` where the
//! probes cannot.
//!
//! A file that is missing, refused or garbage costs its own field, which is then unknown.

use std::path::Path;

use super::{
    formats::{parse_hierarchical_limit, parse_limit, parse_number, parse_stall_ns, parse_stat},
    held::{
        Throttle, V1_LIMIT, V2_LIMIT, read_cores_held, read_cores_of, read_file, read_memory_limit,
        read_memory_limit_above,
    },
    place::{Place, Places},
    tree::children,
};
use crate::model::{
    group::Group,
    tables::{CPU, Cpu, FAULT, Fault, MEMORY, Memory},
};

/// The names of one version's memory files.
struct MemoryFiles {
    current: &'static str,
    peak: &'static str,
    limit: &'static str,
    /// Keys of `memory.stat`.
    anon: &'static str,
    file: &'static str,
    shmem: &'static str,
    /// The file with the key `oom_kill`.
    events: &'static str,
    /// Whether that counts what cgroups below did, those removed included.
    events_of_all: bool,
}

const V2: MemoryFiles = MemoryFiles {
    current: "memory.current",
    peak: "memory.peak",
    limit: V2_LIMIT,
    anon: "anon",
    file: "file",
    shmem: "shmem",
    events: "memory.events",
    events_of_all: true,
};

const V1: MemoryFiles = MemoryFiles {
    current: "memory.usage_in_bytes",
    peak: "memory.max_usage_in_bytes",
    limit: V1_LIMIT,
    anon: "total_rss",
    file: "total_cache",
    shmem: "total_shmem",
    events: "memory.oom_control",
    events_of_all: false,
};

/// Reads one job's values, again and again: counters from when its cgroups were made on, or the one whose quota
/// throttles it.
pub struct CgroupReader {
    places: Places,
    /// Largest `current` seen, for kernels without a peak (v2 before 5.19).
    largest_seen: Option<u64>,
    /// Largest anonymous and shared memory seen.
    most_used: Option<u64>,
    /// Largest page cache seen, without shared memory.
    most_cached: Option<u64>,
    /// Most out-of-memory kills counted: under v1 a cgroup's are lost with it.
    oom_kills: Option<u64>,
    cores_held: Option<u64>,
    /// Smallest limit of the ancestors: they hold many jobs, and theirs is not changed for one.
    limit_above: Option<u64>,
    throttle: Option<Throttle>,
}

impl CgroupReader {
    /// A reader of the job at `places`. `pid` is one of its processes, or 0 for the caller where the
    /// command is yet to be started.
    pub fn new(places: &Places, pid: u32) -> Self {
        Self::holding(places, read_cores_held(places, pid))
    }

    /// A reader of another's job at `places`, whose cores its cgroups tell.
    pub fn of_job(places: &Places) -> Self {
        Self::holding(places, read_cores_of(places))
    }

    fn holding(places: &Places, cores_held: Option<u64>) -> Self {
        Self {
            places: places.clone(),
            largest_seen: None,
            most_used: None,
            most_cached: None,
            oom_kills: None,
            cores_held,
            limit_above: read_memory_limit_above(places),
            throttle: Throttle::find(places),
        }
    }

    /// Whether the quota that throttles is the job's alone: all time that it took was the job's.
    pub fn throttles_alone(&self) -> bool {
        let own = |throttle: &Throttle| {
            self.places.own().any(|place| throttle.directory.starts_with(&place.directory))
        };
        self.throttle.as_ref().is_none_or(own)
    }

    /// Whether `other` counts the throttling of the same quota.
    pub fn throttles_as(&self, other: &Self) -> bool {
        let directory = |reader: &Self| Some(reader.throttle.as_ref()?.directory.clone());
        directory(self) == directory(other)
    }

    /// `job_memory` now.
    pub fn read_memory(&mut self) -> Group {
        let mut group = Group::unknown(&MEMORY, Vec::new());
        if let Some((directory, files)) = self.memory_place() {
            let number = |name| parse_number(&read_file(directory, name)?);
            let stat = read_file(directory, "memory.stat").unwrap_or_default();
            let current = number(files.current);
            let peak = number(files.peak);
            let swap = if files.current == V2.current {
                number("memory.swap.current")
            } else {
                parse_stat(&stat, "total_swap")
            };
            let own = read_file(directory, files.limit).and_then(|text| parse_limit(&text));
            let known = [self.limit_above, own, parse_hierarchical_limit(&stat)];
            group.set(Memory::limit_bytes, known.into_iter().flatten().min());
            group.set(Memory::current_bytes, current);
            let (anon, shmem) = (parse_stat(&stat, files.anon), parse_stat(&stat, files.shmem));
            group.set(Memory::anon_bytes, anon);
            let file = parse_stat(&stat, files.file);
            group.set(Memory::file_bytes, file);
            group.set(Memory::shmem_bytes, shmem);
            let used = anon.zip(shmem).map(|(anon, shmem)| anon.saturating_add(shmem));
            self.most_used = self.most_used.max(used);
            group.set(Memory::used_peak_bytes, self.most_used);
            let cached = file.zip(shmem).map(|(file, shmem)| file.saturating_sub(shmem));
            self.most_cached = self.most_cached.max(cached);
            group.set(Memory::cache_peak_bytes, self.most_cached);
            group.set(Memory::swap_bytes, swap);
            self.largest_seen = self.largest_seen.max(current);
            group.set(Memory::peak_bytes, peak.or(self.largest_seen));
        } else {
            group.set(Memory::limit_bytes, read_memory_limit(&self.places));
        }
        if let Some(v2) = self.places.v2().filter(|place| place.own) {
            set_stalls(&mut group, &v2.directory);
        }
        group
    }

    /// Sets `oom_kills` of `job_fault` among `groups` where the probes do not know it, by the count that
    /// the kernel keeps of the job's cgroup. Gives whether it did.
    pub fn add_oom_kills(&mut self, groups: &mut [Group]) -> bool {
        let of_faults = |group: &&mut Group| group.is(&FAULT);
        let Some(fault) = groups.iter_mut().find(of_faults) else { return false };
        let is_lacking = fault.number(Fault::oom_kills).is_none();
        if is_lacking {
            let now =
                self.memory_place().and_then(|(directory, files)| oom_kills(directory, files));
            // Of a cgroup that is gone nobody knows how its last tasks ended.
            if now.is_some() {
                self.oom_kills = self.oom_kills.max(now);
                fault.set(Fault::oom_kills, self.oom_kills);
            }
        }
        is_lacking
    }

    /// `job_cpu` now.
    pub fn read_cpu(&self) -> Group {
        let mut group = Group::unknown(&CPU, Vec::new());
        group.set(Cpu::cores_held, self.cores_held);
        group.set(Cpu::throttled_ns, self.throttle.as_ref().and_then(Throttle::read_ns));
        group.set(Cpu::tasks, self.read_tasks());
        group
    }

    /// The directory whose memory is the job's alone, with its version's names.
    fn memory_place(&self) -> Option<(&Path, &'static MemoryFiles)> {
        let own = |place: &&Place| place.own;
        // v1 first: a controller that v1 holds is not in v2, and then v2's directory lacks the files.
        if let Some(v1) = self.places.v1("memory") {
            return own(&v1).then_some((&v1.directory, &V1));
        }
        self.places.v2().filter(own).map(|place| (place.directory.as_path(), &V2))
    }

    fn read_tasks(&self) -> Option<u64> {
        let counted = self.places.own().find_map(|place| {
            let is_of_pids = place.number == 0 || place.controllers.iter().any(|c| c == "pids");
            parse_number(&is_of_pids.then(|| read_file(&place.directory, "pids.current"))??)
        });
        counted.or_else(|| {
            let place = self.places.own().next()?;
            let name = if place.number == 0 { "cgroup.threads" } else { "tasks" };
            count_lines(&place.directory, name)
        })
    }
}

/// Stall times from the pressure files of `directory`.
fn set_stalls(group: &mut Group, directory: &Path) {
    let mut set = |file, some, full| {
        let text = read_file(directory, file).unwrap_or_default();
        group.set(some, parse_stall_ns(&text, "some"));
        group.set(full, parse_stall_ns(&text, "full"));
    };
    set("cpu.pressure", Memory::cpu_some_stall_ns, Memory::cpu_full_stall_ns);
    set("memory.pressure", Memory::memory_some_stall_ns, Memory::memory_full_stall_ns);
    set("io.pressure", Memory::io_some_stall_ns, Memory::io_full_stall_ns);
}

/// Tasks of the cgroup at `directory`, and below, that the out-of-memory killer chose.
fn oom_kills(directory: &Path, files: &MemoryFiles) -> Option<u64> {
    let own = parse_stat(&read_file(directory, files.events)?, "oom_kill")?;
    if files.events_of_all {
        return Some(own);
    }
    let below = children(directory).into_iter().filter_map(|child| oom_kills(&child, files));
    Some(own + below.sum::<u64>())
}

/// Lines of `name` in `directory` and all below it; a child that goes away meanwhile counts nothing.
fn count_lines(directory: &Path, name: &str) -> Option<u64> {
    let own = read_file(directory, name)?.lines().count() as u64;
    let below = children(directory).into_iter().filter_map(|child| count_lines(&child, name));
    Some(own + below.sum::<u64>())
}

#[cfg(test)]
mod tests;
