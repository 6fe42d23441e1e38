//! What a job may use at most: CPUs, CPU quota and memory, by its own cgroup and every ancestor of it.

use std::{fs::File, path::Path};

use super::{
    formats::{parse_cfs, parse_cpu_count, parse_cpu_max, parse_hierarchical_limit, parse_limit},
    place::Places,
    throttle::Throttle,
};
use crate::base::kept::KeptFile;

/// The files of a memory limit.
pub(super) const V1_LIMIT: &str = "memory.limit_in_bytes";
pub(super) const V2_LIMIT: &str = "memory.max";

/// More than `memory.stat` has, the longest.
const ROOM_BYTES: usize = 8 << 10;

/// A file of a cgroup; `None` where it is missing or refused (pressure files answer EOPNOTSUPP where
/// PSI is off).
pub(crate) fn read_file(directory: &Path, name: &str) -> Option<String> {
    let file = File::open(directory.join(name)).ok()?;
    // Most of them are whole in the first read. Their size, which the standard library would ask for
    // first, is always zero.
    let mut text = Vec::with_capacity(ROOM_BYTES);
    loop {
        text.reserve(1);
        if rustix::io::read(&file, rustix::buffer::spare_capacity(&mut text)).ok()? == 0 {
            return String::from_utf8(text).ok();
        }
    }
}

/// Thousandths of a core that the caller may use at once, whose affinity its command inherits: the smaller of its CPUs
/// and the tightest quota. `None` where neither can be read.
pub fn read_cores_held(places: &Places) -> Option<u64> {
    tightest(read_affinity().or_else(|| read_cpuset(places)), places)
}

/// Thousandths of a core that the cgroups of a job at `places` let it use, whatever its processes are
/// bound to. `None` where neither cpuset nor quota can be read.
pub fn read_cores_of(places: &Places) -> Option<u64> {
    tightest(read_cpuset(places), places)
}

fn tightest(cpus: Option<u64>, places: &Places) -> Option<u64> {
    let quota = Quota::find(places).map(|quota| quota.millicores);
    cpus.map(|cpus| cpus * 1000).into_iter().chain(quota).min()
}

/// What a file says that sets no quota, in thousandths of a core.
const NO_QUOTA: u64 = u64::MAX;

/// The cores of one of many jobs, read again and again: anybody may change them while it runs. Only the job's own files
/// are, for those above hold many jobs and are not changed for one; CPUs that go there go from the job's own set as well.
/// What cannot be read stays as it was: the job may have ended. In thousandths of a core.
pub(super) struct Cores {
    /// Of its set of CPUs.
    set: Option<u64>,
    quota: Option<u64>,
    /// The tightest quota of its ancestors.
    above: Option<u64>,
    files: Vec<CoresFile>,
}

/// A file of the job's own that decides its cores.
enum CoresFile {
    Set(KeptFile),
    /// v2's `cpu.max`.
    Max(KeptFile),
    /// v1's quota and its period.
    Cfs(KeptFile, KeptFile),
}

impl Cores {
    /// Of the job at `places`, read.
    pub fn of(places: &Places) -> Self {
        let v2 = |name| places.v2_file(name);
        let v1 = |controller, name| places.v1_file(controller, name);
        let v1_set = v1("cpuset", "cpuset.effective_cpus");
        let set = v1_set.or_else(|| v2("cpuset.cpus.effective")).map(CoresFile::Set);
        let cfs = v1("cpu", "cpu.cfs_quota_us").zip(v1("cpu", "cpu.cfs_period_us"));
        let cfs = cfs.map(|(quota, period)| CoresFile::Cfs(quota, period));
        let quota = cfs.or_else(|| v2("cpu.max").map(CoresFile::Max));
        let mut cores = Self {
            // Where the job has no set of its own, the nearest one's.
            set: read_cpuset(places).map(|cpus| cpus * 1000),
            quota: None,
            above: Quota::smallest(places, 1).map(|quota| quota.millicores),
            files: set.into_iter().chain(quota).collect(),
        };
        cores.read_again();
        cores
    }

    /// What they are now, as far as it is known.
    pub fn millicores(&self) -> Option<u64> {
        let quotas = [self.quota, self.above].into_iter().flatten();
        self.set.into_iter().chain(quotas).filter(|millicores| *millicores != NO_QUOTA).min()
    }

    /// Reads them. The files do not stay open: what is read at each tick needs the descriptors more.
    pub fn read_again(&mut self) {
        // What is there and sets no quota is none.
        let quota_of = |quota: Option<u64>| Some(quota.unwrap_or(NO_QUOTA));
        for file in &mut self.files {
            match file {
                CoresFile::Set(set) => {
                    let cpus = set.read(parse_cpu_count);
                    self.set = cpus.map(|cpus| cpus * 1000).or(self.set);
                    set.close();
                }
                CoresFile::Max(max) => {
                    let quota = max.read(|text| quota_of(parse_cpu_max(text)));
                    self.quota = quota.or(self.quota);
                    max.close();
                }
                CoresFile::Cfs(quota, period) => {
                    let text = quota.read(|text| Some(text.to_owned()));
                    let both = text.and_then(|quota| {
                        period.read(|period| quota_of(parse_cfs(&quota, period)))
                    });
                    self.quota = both.or(self.quota);
                    quota.close();
                    period.close();
                }
            }
        }
    }
}

/// CPUs that the caller may run on, cpusets included.
fn read_affinity() -> Option<u64> {
    // Fails beyond 1024 CPUs: the cpuset's files answer then.
    let cpus = rustix::thread::sched_getaffinity(None).ok()?.count();
    Some(u64::from(cpus)).filter(|cpus| *cpus > 0)
}

fn read_cpuset(places: &Places) -> Option<u64> {
    let v2 = places.v2().into_iter().flat_map(|place| place.upwards());
    let v2 = v2.map(|directory| (directory, "cpuset.cpus.effective"));
    let v1 = places.v1("cpuset").into_iter().flat_map(|place| place.upwards());
    let v1 = v1.map(|directory| (directory, "cpuset.effective_cpus"));
    v1.chain(v2).find_map(|(directory, name)| parse_cpu_count(&read_file(directory, name)?))
}

/// The tightest CPU quota over a job, and its throttling.
pub(super) struct Quota {
    /// Thousandths of a core.
    pub millicores: u64,
    /// Where its throttling is counted.
    pub throttle: Throttle,
}

impl Quota {
    /// The smallest quota among the job's cgroup and its ancestors; `None` without any.
    pub fn find(places: &Places) -> Option<Self> {
        Self::smallest(places, 0)
    }

    /// The same, without the lowest `levels`.
    fn smallest(places: &Places, levels: usize) -> Option<Self> {
        let v2 = places.v2().into_iter().flat_map(|place| place.upwards().skip(levels));
        let v2 = v2.filter_map(|dir| {
            let millicores = parse_cpu_max(&read_file(dir, "cpu.max")?)?;
            Some(Self::at(dir, true, millicores))
        });
        let v1 = places.v1("cpu").into_iter().flat_map(|place| place.upwards().skip(levels));
        let v1 = v1.filter_map(|dir| {
            let quota = read_file(dir, "cpu.cfs_quota_us")?;
            let millicores = parse_cfs(&quota, &read_file(dir, "cpu.cfs_period_us")?)?;
            Some(Self::at(dir, false, millicores))
        });
        v1.chain(v2).min_by_key(|quota| quota.millicores)
    }

    fn at(directory: &Path, is_v2: bool, millicores: u64) -> Self {
        let throttle = if is_v2 { Throttle::of_v2(directory) } else { Throttle::of_v1(directory) };
        Self { millicores, throttle }
    }
}

/// The smallest memory limit over a job, in bytes; `None` without any.
pub fn read_memory_limit(places: &Places) -> Option<u64> {
    let v2 = places.v2().into_iter().flat_map(|place| place.upwards());
    let v2 = v2.filter_map(|directory| parse_limit(&read_file(directory, V2_LIMIT)?));
    let v1 = places.v1("memory").into_iter().flat_map(|place| place.upwards());
    let v1 = v1.filter_map(|dir| parse_limit(&read_file(dir, V1_LIMIT)?));
    // Also holds the ancestors that a container's mount does not show.
    let hidden = places
        .v1("memory")
        .and_then(|place| parse_hierarchical_limit(&read_file(&place.directory, "memory.stat")?));
    v1.chain(v2).chain(hidden).min()
}
