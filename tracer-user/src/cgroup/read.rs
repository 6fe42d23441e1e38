//! Reads `job_memory` and `job_cpu` of one job from its cgroup files, v2 or v1, and `oom_kills` where the
//! probes cannot.
//!
//! A file that is missing, refused or garbage costs its own field, which is then unknown.

use std::{path::Path, sync::Arc};

use super::{
    above,
    formats::{
        HIERARCHICAL_LIMIT, limited, parse_limit, parse_number, parse_stall_ns, parse_stat,
        parse_stats,
    },
    held::{Cores, Throttle, V1_LIMIT, V2_LIMIT, read_cores_held, read_file, read_memory_limit},
    place::{Place, Places},
    seldom::{Moves, Seldom},
    still::Limits,
    tasks::Tasks,
    tree::children,
};
use tracer_ebpf::handle::{Handle, Number};

use crate::{
    base::kept::{self, KeptFile},
    model::{
        group::Group,
        tables::{CPU, Cpu, FAULT, Fault, MEMORY, Memory},
    },
};

/// The names of one version's memory files.
struct MemoryNames {
    current: &'static str,
    peak: &'static str,
    limit: &'static str,
    /// Where `stat` does not tell.
    swap: Option<&'static str>,
    /// Keys of `memory.stat`.
    anon: &'static str,
    file: &'static str,
    shmem: &'static str,
    /// The file with the key `oom_kill`.
    events: &'static str,
    /// Whether that counts what cgroups below did, those removed included.
    events_of_all: bool,
}

const V2: MemoryNames = MemoryNames {
    current: "memory.current",
    peak: "memory.peak",
    limit: V2_LIMIT,
    swap: Some("memory.swap.current"),
    anon: "anon",
    file: "file",
    shmem: "shmem",
    events: "memory.events",
    events_of_all: true,
};

const V1: MemoryNames = MemoryNames {
    current: "memory.usage_in_bytes",
    peak: "memory.max_usage_in_bytes",
    limit: V1_LIMIT,
    swap: None,
    anon: "total_rss",
    file: "total_cache",
    shmem: "total_shmem",
    events: "memory.oom_control",
    events_of_all: false,
};

/// The files of the directory whose memory is the job's alone.
struct MemoryFiles {
    directory: Arc<Path>,
    names: &'static MemoryNames,
    current: KeptFile,
    peak: KeptFile,
    limit: KeptFile,
    stat: KeptFile,
    swap: Option<KeptFile>,
}

/// What `memory.stat` tells, bytes.
#[derive(Default)]
struct MemoryStat {
    anon: Option<u64>,
    file: Option<u64>,
    shmem: Option<u64>,
    swap: Option<u64>,
    limit: Option<u64>,
}

impl MemoryFiles {
    fn of(places: &Places) -> Option<Self> {
        let own = |place: &&Place| place.own;
        // v1 first: a controller that v1 holds is not in v2, and then v2's directory lacks the files.
        let (place, names) = match places.v1("memory") {
            Some(v1) => (v1, &V1),
            None => (places.v2()?, &V2),
        };
        let directory = &Some(place).filter(own)?.directory;
        let file = |name| KeptFile::new(directory.clone(), name);
        Some(Self {
            directory: directory.clone(),
            names,
            current: file(names.current),
            peak: file(names.peak),
            limit: file(names.limit),
            stat: file("memory.stat"),
            swap: names.swap.map(file),
        })
    }

    /// What is charged, swap and limits.
    fn read_stat(&mut self) -> MemoryStat {
        let names = self.names;
        // v1's `memory.stat` names the smallest of all, its own too. v2's own is read before: where the cgroup goes between
        // the two, the amounts are unknown too, and no one takes the limit for removed.
        let own = |own: &mut KeptFile| own.read(parse_limit);
        let of_v2 = names.swap.and_then(|_| own(&mut self.limit));
        let keys = [names.anon, names.file, names.shmem, "total_swap", HIERARCHICAL_LIMIT];
        let parsed = |text: &str| Some(parse_stats(text, keys));
        let [anon, file, shmem, swap, limit] = self.stat.read(parsed).unwrap_or_default();
        let swap = self.swap.as_mut().map_or(swap, |file| file.read(parse_number));
        let limit = match (limit, names.swap) {
            (Some(smallest), _) => limited(smallest),
            (None, Some(_)) => of_v2,
            (None, None) => own(&mut self.limit),
        };
        MemoryStat { anon, file, shmem, swap, limit }
    }
}

/// Pressure files: what they tell of, and the fields of its stalls.
type Stalls = (KeptFile, Handle<Number>, Handle<Number>);

/// Reads one job's values, again and again: counters from when its cgroups were made on, or the one whose quota
/// throttles it.
pub struct CgroupReader {
    places: Places,
    /// Largest charge seen: for kernels without a peak (v2 before 5.19), and when the file is gone that told it.
    largest_seen: Option<u64>,
    /// Largest anonymous and shared memory seen.
    most_used: Option<u64>,
    /// Largest page cache seen, without shared memory.
    most_cached: Option<u64>,
    /// Most out-of-memory kills counted: under v1 a cgroup's are lost with it.
    oom_kills: Option<u64>,
    cores_held: Option<u64>,
    /// Where they are read again: of one of many jobs. The only one's are those that its command inherited.
    cores: Option<Cores>,
    memory: Option<MemoryFiles>,
    stalls: Vec<Stalls>,
    throttle: Option<Throttle>,
    tasks: Tasks,
    /// Of one of many jobs; the only one is read as a whole each time.
    seldom: Option<Seldom>,
}

impl CgroupReader {
    /// A reader of the job at `places`. `pid` is one of its processes, or 0 for the caller where the
    /// command is yet to be started.
    pub fn new(places: &Places, pid: u32) -> Self {
        Self::holding(places, read_cores_held(places, pid))
    }

    /// A reader of another's job at `places`, one of many, whose cores its cgroups tell. What costs much to read and did
    /// not change much is read seldom, as [`Pace`](super::pace::Pace) says, from `now_ns` (CLOCK_MONOTONIC) on.
    pub fn of_job(places: &Places, now_ns: u64) -> Self {
        let seldom = Some(Seldom::from(now_ns));
        let cores = Cores::of(places);
        let cores_held = cores.millicores();
        Self { seldom, cores: Some(cores), ..Self::holding(places, cores_held) }
    }

    /// The readings to come are of `now_ns` (CLOCK_MONOTONIC), when its tasks had done as `moves` says.
    pub fn set_now(&mut self, now_ns: u64, moves: Moves) {
        if let Some(seldom) = &mut self.seldom {
            seldom.set_now(now_ns, moves);
        }
    }

    /// `job_memory` and `job_cpu` now: what they were where nothing can have changed.
    pub fn read(&mut self) -> [Group; 2] {
        let cores_held = self.read_cores();
        let compares = match &mut self.seldom {
            Some(seldom) => seldom.still.compares(seldom.now_ns()),
            None => true,
        };
        let counts = compares || self.tasks.are_listed();
        let tasks = counts.then(|| self.count_tasks());
        if let Some(groups) = self.still(compares, cores_held, tasks) {
            return groups;
        }
        let tasks = tasks.flatten();
        // Before all else: one that is set meanwhile is seen when they are compared.
        let wants_all = self.seldom.as_ref().is_some_and(|seldom| seldom.still.wants_all());
        let files = self.memory.as_mut().filter(|_| wants_all);
        let limits =
            files.map(|files| files.limit.read(parse_limit)).map(|own| [own, self.above()]);
        let groups = [self.read_memory(), self.cpu(cores_held, tasks)];
        if let (Some(seldom), Some(files)) = (&mut self.seldom, &mut self.memory) {
            seldom.still.note(&groups, limits.unwrap_or_default(), seldom.now_ns());
            // What is not read for a while is not kept open where others would be.
            if seldom.still.told().is_some() && kept::are_all_kept() {
                let MemoryFiles { peak, stat, swap, .. } = files;
                [peak, stat].into_iter().chain(swap).for_each(KeptFile::close);
                self.stalls.iter_mut().for_each(|(file, ..)| file.close());
                self.throttle.iter_mut().for_each(Throttle::close);
            }
        }
        groups
    }

    /// What is told of a job that does nothing, which has so many cores, and tasks if they were asked for, which the kernel
    /// may only list. `compares`: charge and limits are read.
    fn still(
        &mut self,
        compares: bool,
        cores_held: Option<u64>,
        tasks: Option<Option<u64>>,
    ) -> Option<[Group; 2]> {
        let told = self.seldom.as_ref()?.still.told()?;
        let ([memory, mut cpu], limits) = (told.groups.clone(), told.limits);
        // Tasks that are only listed are not counted each time.
        let now_and_told = tasks.flatten().zip(cpu.number(Cpu::tasks));
        let is_same = now_and_told.is_none_or(|(now, told)| now == told)
            && (!compares || self.is_as_told(&memory, limits));
        if !is_same {
            self.seldom.as_mut()?.still.is_over();
            return None;
        }
        cpu.set(Cpu::cores_held, cores_held);
        if let Some(tasks) = tasks {
            cpu.set(Cpu::tasks, tasks);
        }
        Some([memory, cpu])
    }

    /// Whether charge and limits are those of `memory` and `limits`.
    fn is_as_told(&mut self, memory: &Group, limits: Limits) -> bool {
        let above = self.above();
        self.memory.as_mut().is_some_and(|files| {
            let current = files.current.read(parse_number);
            current.is_some()
                && current == memory.number(Memory::current_bytes)
                && [files.limit.read(parse_limit), above] == limits
        })
    }

    fn holding(places: &Places, cores_held: Option<u64>) -> Self {
        Self {
            places: places.clone(),
            largest_seen: None,
            most_used: None,
            most_cached: None,
            oom_kills: None,
            cores_held,
            cores: None,
            memory: MemoryFiles::of(places),
            stalls: stalls(places),
            throttle: Throttle::find(places),
            tasks: Tasks::of(places),
            seldom: None,
        }
    }

    /// Whether one of `places` has files that it does not read.
    pub fn lacks_one_of(&self, places: &Places) -> bool {
        places.0.iter().any(|place| !self.places.0.contains(place))
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

    /// Closes all files until they are read again: the job has ended.
    pub fn close(&mut self) {
        if let Some(MemoryFiles { current, peak, limit, stat, swap, .. }) = &mut self.memory {
            [current, peak, limit, stat].into_iter().chain(swap).for_each(KeptFile::close);
        }
        self.stalls.iter_mut().for_each(|(file, ..)| file.close());
        self.throttle.iter_mut().for_each(Throttle::close);
        self.tasks.close();
    }

    /// `job_memory` now.
    pub fn read_memory(&mut self) -> Group {
        let mut group = Group::unknown(&MEMORY, Vec::new());
        if let Some(files) = &mut self.memory {
            let current = files.current.read(parse_number);
            let peak = files.peak.read(parse_number);
            let reads_stat = self.seldom.as_mut().is_none_or(|seldom| seldom.reads_memory(current));
            let stat = if reads_stat { files.read_stat() } else { MemoryStat::default() };
            // Of a cgroup that is gone no limit is known any more.
            let now_ns = self.seldom.as_ref().map(Seldom::now_ns);
            let above = stat.anon.and_then(|_| above::memory_limit(&self.places, now_ns));
            let limit = [above, stat.limit].into_iter().flatten().min();
            if let Some(seldom) = self.seldom.as_mut().filter(|_| reads_stat) {
                seldom.note_limit(limit);
            }
            group.set(Memory::limit_bytes, limit);
            group.set(Memory::current_bytes, current);
            let MemoryStat { anon, file, shmem, swap, .. } = stat;
            group.set(Memory::anon_bytes, anon);
            group.set(Memory::file_bytes, file);
            group.set(Memory::shmem_bytes, shmem);
            let used = anon.zip(shmem).map(|(anon, shmem)| anon.saturating_add(shmem));
            self.most_used = self.most_used.max(used);
            group.set(Memory::used_peak_bytes, self.most_used);
            let cached = file.zip(shmem).map(|(file, shmem)| file.saturating_sub(shmem));
            self.most_cached = self.most_cached.max(cached);
            group.set(Memory::cache_peak_bytes, self.most_cached);
            group.set(Memory::swap_bytes, swap);
            self.largest_seen = self.largest_seen.max(current).max(peak);
            group.set(Memory::peak_bytes, self.largest_seen);
        } else {
            group.set(Memory::limit_bytes, read_memory_limit(&self.places));
        }
        for (file, some, full) in &mut self.stalls {
            let of =
                |text: &str| Some((parse_stall_ns(text, "some"), parse_stall_ns(text, "full")));
            let (some_ns, full_ns) = file.read(of).unwrap_or_default();
            group.set(*some, some_ns);
            group.set(*full, full_ns);
        }
        group
    }

    /// The smallest limit of the cgroups above it, in bytes.
    fn above(&self) -> Option<u64> {
        above::memory_limit(&self.places, self.seldom.as_ref().map(Seldom::now_ns))
    }

    /// Sets `oom_kills` of `job_fault` among `groups` where the probes do not know it, by the count that
    /// the kernel keeps of the job's cgroup. Gives whether it did.
    pub fn add_oom_kills(&mut self, groups: &mut [Group]) -> bool {
        let of_faults = |group: &&mut Group| group.is(&FAULT);
        let Some(fault) = groups.iter_mut().find(of_faults) else { return false };
        let is_lacking = fault.number(Fault::oom_kills).is_none();
        if is_lacking {
            let files = self.memory.as_ref();
            let now = files.and_then(|files| oom_kills(&files.directory, files.names));
            // Of a cgroup that is gone nobody knows how its last tasks ended.
            if now.is_some() {
                self.oom_kills = self.oom_kills.max(now);
                fault.set(Fault::oom_kills, self.oom_kills);
            }
        }
        is_lacking
    }

    /// `job_cpu` now.
    pub fn read_cpu(&mut self) -> Group {
        let (cores_held, tasks) = (self.read_cores(), self.count_tasks());
        self.cpu(cores_held, tasks)
    }

    /// `job_cpu` of a job that has so many cores and tasks now.
    fn cpu(&mut self, cores_held: Option<u64>, tasks: Option<u64>) -> Group {
        let mut group = Group::unknown(&CPU, Vec::new());
        group.set(Cpu::cores_held, cores_held);
        group.set(Cpu::tasks, tasks);
        group.set(Cpu::throttled_ns, self.throttle.as_mut().and_then(Throttle::read_ns));
        group
    }

    /// The job's cores, thousandths of one.
    fn read_cores(&mut self) -> Option<u64> {
        if let Some(cores) = &mut self.cores
            && self.seldom.as_mut().is_none_or(Seldom::reads_cores)
        {
            cores.read_again();
            self.cores_held = cores.millicores();
        }
        self.cores_held
    }

    /// The job's tasks; `None` also where they are only listed, and not now.
    fn count_tasks(&mut self) -> Option<u64> {
        let lists = self.seldom.as_mut().is_none_or(Seldom::lists_tasks);
        self.tasks.count(lists)
    }
}

/// The pressure files of the job at `places`.
fn stalls(places: &Places) -> Vec<Stalls> {
    let Some(v2) = places.v2().filter(|place| place.own) else { return Vec::new() };
    let of = |name, some, full| (KeptFile::new(v2.directory.clone(), name), some, full);
    vec![
        of("cpu.pressure", Memory::cpu_some_stall_ns, Memory::cpu_full_stall_ns),
        of("memory.pressure", Memory::memory_some_stall_ns, Memory::memory_full_stall_ns),
        of("io.pressure", Memory::io_some_stall_ns, Memory::io_full_stall_ns),
    ]
}

/// Tasks of the cgroup at `directory`, and below, that the out-of-memory killer chose.
fn oom_kills(directory: &Path, files: &MemoryNames) -> Option<u64> {
    let own = parse_stat(&read_file(directory, files.events)?, "oom_kill")?;
    if files.events_of_all {
        return Some(own);
    }
    let below = children(directory).into_iter().filter_map(|child| oom_kills(&child, files));
    Some(own + below.sum::<u64>())
}

#[cfg(test)]
mod tests;
