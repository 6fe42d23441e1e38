//! Reads `job_memory` and `job_cpu` of one job from its cgroup files, v2 or v1, and `oom_kills` where the
//! probes cannot.
//!
//! A file that is missing, refused or garbage costs its own field, which is then unknown.

use super::{
    above,
    formats::parse_stall_ns,
    held::{Cores, read_cores_held, read_memory_limit},
    memory_files::{MemoryFiles, MemoryStat},
    place::Places,
    seldom::{Listing, Moves, Seldom},
    still::Limits,
    tasks::Tasks,
    throttle::Throttle,
};
use tracer_ebpf::handle::{Handle, Number};

use crate::{
    base::kept::{self, KeptFile},
    model::{
        group::Group,
        tables::{CPU, Cpu, FAULT, Fault, MEMORY, Memory},
    },
};

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
    /// Where they are read again: of one of many jobs. The only one's are the caller's, whose affinity its command
    /// inherits.
    cores: Option<Cores>,
    memory: Option<MemoryFiles>,
    stalls: Vec<Stalls>,
    throttle: Option<Throttle>,
    tasks: Tasks,
    /// Of one of many jobs; the only one is read as a whole each time.
    seldom: Option<Seldom>,
}

impl CgroupReader {
    /// A reader of the caller's own job, at `places`.
    pub fn new(places: &Places) -> Self {
        Self::holding(places, read_cores_held(places))
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
        let tasks = if counts { self.count_tasks() } else { self.tasks.known() };
        if let Some(groups) = self.still(compares, cores_held, tasks) {
            return groups;
        }
        // Before all else: one that is set meanwhile is seen when they are compared.
        let wants_all = self.seldom.as_ref().is_some_and(|seldom| seldom.still.wants_all());
        let files = self.memory.as_mut().filter(|_| wants_all);
        let limits = files.map(MemoryFiles::read_limit).map(|own| [own, self.above()]);
        let groups = [self.read_memory(), self.cpu(cores_held, tasks)];
        if let (Some(seldom), Some(files)) = (&mut self.seldom, &mut self.memory) {
            seldom.still.note(&groups, limits.unwrap_or_default(), seldom.now_ns());
            // What is not read for a while is not kept open where others would be.
            if seldom.still.told().is_some() && kept::are_all_kept() {
                files.close_seldom();
                self.stalls.iter_mut().for_each(|(file, ..)| file.close());
                self.throttle.iter_mut().for_each(Throttle::close);
            }
        }
        groups
    }

    /// What is told of a job that does nothing, which has so many cores and tasks. `compares`: charge and limits are read.
    fn still(
        &mut self,
        compares: bool,
        cores_held: Option<u64>,
        tasks: Option<u64>,
    ) -> Option<[Group; 2]> {
        let told = self.seldom.as_ref()?.still.told()?;
        let ([memory, mut cpu], limits) = (told.groups.clone(), told.limits);
        // Where nothing tells them they are not compared.
        let now_and_told = tasks.zip(cpu.number(Cpu::tasks));
        let is_same = now_and_told.is_none_or(|(now, told)| now == told)
            && (!compares || self.is_as_told(&memory, limits));
        if !is_same {
            self.seldom.as_mut()?.still.is_over();
            return None;
        }
        cpu.set(Cpu::cores_held, cores_held);
        cpu.set(Cpu::tasks, tasks);
        Some([memory, cpu])
    }

    /// Whether charge and limits are those of `memory` and `limits`.
    fn is_as_told(&mut self, memory: &Group, limits: Limits) -> bool {
        let above = self.above();
        self.memory.as_mut().is_some_and(|files| {
            let current = files.read_current();
            current.is_some()
                && current == memory.number(Memory::current_bytes)
                && [files.read_limit(), above] == limits
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
        self.memory.iter_mut().for_each(MemoryFiles::close);
        self.stalls.iter_mut().for_each(|(file, ..)| file.close());
        self.throttle.iter_mut().for_each(Throttle::close);
        self.tasks.close();
        self.places.0.iter().for_each(|place| place.directory.close());
    }

    /// `job_memory` now.
    pub fn read_memory(&mut self) -> Group {
        let mut group = Group::unknown(&MEMORY, Vec::new());
        if let Some(files) = &mut self.memory {
            let (current, peak) = (files.read_current(), files.read_peak());
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
            let now = files.and_then(MemoryFiles::oom_kills);
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
        // With what else is told of quotas.
        let is_due = self.seldom.as_ref().is_none_or(Seldom::has_read_cores);
        let throttled_ns = self.throttle.as_mut().and_then(|throttle| throttle.read_ns(is_due));
        group.set(Cpu::throttled_ns, throttled_ns);
        group
    }

    /// The job's cores, thousandths of one.
    fn read_cores(&mut self) -> Option<u64> {
        if self.seldom.as_mut().is_none_or(Seldom::reads_cores) {
            self.cores_held = match &mut self.cores {
                Some(cores) => {
                    cores.read_again();
                    cores.millicores()
                }
                None => read_cores_held(&self.places).or(self.cores_held),
            };
        }
        self.cores_held
    }

    /// The job's tasks; `None` also where they are only listed, and nothing tells whether they are the same.
    fn count_tasks(&mut self) -> Option<u64> {
        let listing = self.seldom.as_mut().map_or(Listing::Now, Seldom::listing);
        self.tasks.count(listing)
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

#[cfg(test)]
mod tests;
