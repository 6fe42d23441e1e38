//! What a foreign cgroup lets its job use: the directories of one path in every hierarchy, and their
//! limits. Reads; changes nothing.

use std::fs;

use serde::Serialize;

use crate::cgroup::{
    held::{read_cores_of, read_memory_limit},
    hierarchies::Hierarchies,
    place::{Place, Places},
};

/// A job's limits, by its own cgroup and every ancestor of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
pub struct Held {
    /// Thousandths of a core: the smaller of the cpuset's CPUs and the tightest quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millicores: Option<u64>,
    /// The smallest limit on memory; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
}

impl Held {
    /// The limits of the job at `places`.
    pub fn read(places: &Places) -> Self {
        Self { millicores: read_cores_of(places), memory_limit_bytes: read_memory_limit(places) }
    }
}

/// The directories of the cgroup `path` (a job's topmost one) in all hierarchies of this host that have
/// it. Empty where /proc or the cgroup file systems cannot be read.
pub fn read_places(path: &str) -> Places {
    let text = |name: &str| {
        fs::read(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    };
    let mut places = places(&text("/proc/self/mountinfo"), &text("/proc/self/cgroup"), path);
    places.0.retain(|place| place.directory.is_dir());
    places
}

/// The same from the text of /proc/self/mountinfo and /proc/self/cgroup, whether it exists or not.
pub(crate) fn places(mountinfo: &str, own_cgroups: &str, path: &str) -> Places {
    let here = |line: &str| {
        let mut parts = line.splitn(3, ':');
        Some(format!("{}:{}:{path}\n", parts.next()?, parts.next()?))
    };
    let cgroups: String = own_cgroups.lines().filter_map(here).collect();
    let Hierarchies { v2, v1 } = Hierarchies::parse(mountinfo, &cgroups);
    let place = |hierarchy: crate::cgroup::hierarchies::Hierarchy| Place {
        // What v2's cgroup may hand on is no controller of v1.
        controllers: if hierarchy.number == 0 { [].into() } else { hierarchy.controllers },
        number: hierarchy.number,
        mount: hierarchy.mount,
        directory: hierarchy.own.into(),
        own: true,
    };
    Places(v2.into_iter().chain(v1).map(place).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn write(directory: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(directory).unwrap();
        for (name, text) in files {
            fs::write(directory.join(name), text).unwrap();
        }
    }

    #[test]
    fn limits_of_a_job_and_what_is_above_it() {
        let tmp = tempfile::tempdir().unwrap();
        let root = tmp.path().to_str().unwrap();
        let mountinfo = format!(
            "30 1 0:26 / {root}/v2 rw - cgroup2 cgroup2 rw\n31 1 0:27 / {root}/m rw - cgroup cgroup rw,memory\n"
        );
        let own = "4:memory:/somewhere\n1:name=systemd:/x\n0::/else:where\n";
        let path = "/system.slice/slurmstepd.scope/job_5";
        let job = tmp.path().join("v2/system.slice/slurmstepd.scope/job_5");
        write(&job, &[("cpuset.cpus.effective", "0-3,8\n"), ("cpu.max", "max 100000\n")]);
        write(job.parent().unwrap(), &[("cpu.max", "250000 100000\n")]);
        write(&tmp.path().join("m").join(&path[1..]), &[("memory.limit_in_bytes", "1048576\n")]);
        let places = places(&mountinfo, own, path);
        let seen: Vec<_> =
            places.own().map(|place| (place.number, place.directory.is_dir())).collect();
        assert_eq!(seen, [(0, true), (4, true)]);
        let held = Held::read(&places);
        assert_eq!(held, Held { millicores: Some(2500), memory_limit_bytes: Some(1 << 20) });
        fs::remove_file(job.parent().unwrap().join("cpu.max")).unwrap();
        assert_eq!(Held::read(&places).millicores, Some(5000));
    }

    #[test]
    fn a_path_out_of_reach_has_no_place() {
        let mountinfo = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(places(mountinfo, "0::/\n", "/../job_5"), Places::default());
        assert_eq!(places("", "0::/\n", "/job_5"), Places::default());
        assert_eq!(read_places("/no/such/cgroup/of/jobtrace"), Places::default());
    }
}
