//! The time that a CPU quota took from a job.

use std::path::Path;

use super::{formats::parse_stat, held::Quota, place::Places};
use crate::base::{directory::Directory, kept::KeptFile};

/// Where the kernel counts the time that a quota took.
pub(super) struct Throttle {
    pub directory: Directory,
    stat: KeptFile,
    of: Version,
}

enum Version {
    V1,
    V2 {
        /// `cpu.max`, which the root does not have.
        max: Option<KeptFile>,
        /// Nanoseconds that were counted when the last look found no quota.
        at_rest: Option<u64>,
    },
}

impl Throttle {
    /// Of the tightest quota, for only the cgroup that has a quota counts its throttling. Without a
    /// quota, the job's own place, where the count stays zero; `None` without a CPU controller.
    pub fn find(places: &Places) -> Option<Self> {
        let quota = Quota::find(places).map(|quota| quota.throttle);
        quota.or_else(|| {
            let v1 = places.v1("cpu").map(|place| Self::of_v1(place.directory.clone()));
            let v2 = places.v2().into_iter().flat_map(|place| {
                place.upwards().map(|directory| (directory, *directory != *place.mount))
            });
            let of_v2 = |(directory, may_limit)| Self::v2(directory, may_limit).counted();
            v1.or_else(|| v2.into_iter().find_map(of_v2))
        })
    }

    /// In `directory`, of version 1.
    pub fn of_v1(directory: impl Into<Directory>) -> Self {
        let directory = directory.into();
        Self { stat: KeptFile::new(directory.clone(), "cpu.stat"), directory, of: Version::V1 }
    }

    /// In `directory`, of version 2 and not the root.
    pub fn of_v2(directory: &Path) -> Self {
        Self::v2(directory, true)
    }

    fn v2(directory: &Path, may_limit: bool) -> Self {
        let max = may_limit.then(|| KeptFile::new(directory, "cpu.max"));
        Self { of: Version::V2 { max, at_rest: None }, ..Self::of_v1(directory) }
    }

    fn counted(mut self) -> Option<Self> {
        self.read_ns(true).is_some().then_some(self)
    }

    /// Closes its files until they are read again.
    pub fn close(&mut self) {
        self.stat.close();
        if let Version::V2 { max: Some(max), .. } = &mut self.of {
            max.close();
        }
        self.directory.close();
    }

    /// Nanoseconds throttled since the cgroup with the quota was made.
    ///
    /// Who reads `cpu.stat` of version 2 has the kernel add up the cgroup's counters of all CPUs, under a lock of the whole
    /// node's; `cpu.max` is two numbers. So unless it `is_due`, the count is read where a quota may have it grow. One that
    /// comes and goes between two looks at `cpu.max` is counted by the next reading that is due.
    pub fn read_ns(&mut self, is_due: bool) -> Option<u64> {
        let Version::V2 { max, at_rest } = &mut self.of else {
            return self.stat.read(|text| parse_stat(text, "throttled_time"));
        };
        let is_unlimited = |max: &mut KeptFile| max.read(|text| Some(text.starts_with("max ")));
        let looks = is_due || at_rest.is_some();
        let has_none = looks && max.as_mut().is_none_or(|max| is_unlimited(max) == Some(true));
        if has_none && !is_due {
            return *at_rest;
        }
        let us = self.stat.read(|text| parse_stat(text, "throttled_usec"));
        let throttled_ns = us.and_then(|us| us.checked_mul(1000));
        *at_rest = throttled_ns.filter(|_| has_none);
        if has_none {
            // Of a job's files that stay open it would be one more.
            self.stat.close();
        }
        throttled_ns
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cgroup::place::Place;

    const FREE: &str = "max 100000\n";

    /// A cgroup of version 2 in which so many microseconds were counted, under such a `cpu.max`.
    fn write(directory: &Path, us: u64, max: &str) {
        fs::write(directory.join("cpu.stat"), format!("usage_usec 9\nthrottled_usec {us}\n"))
            .unwrap();
        fs::write(directory.join("cpu.max"), max).unwrap();
    }

    #[test]
    fn without_a_quota_the_count_is_read_when_it_is_due() {
        let folder = tempfile::tempdir().unwrap();
        let mut throttle = Throttle::of_v2(folder.path());
        for (us, max, is_due, told_us) in [
            (1, FREE, true, 1),
            // As if a quota had come and gone.
            (2, FREE, false, 1),
            (2, FREE, true, 2),
            (3, "50000 100000\n", false, 3),
            (4, "50000 100000\n", false, 4),
            // What it took before it was removed, and a little more while it was.
            (5, FREE, false, 5),
            (6, FREE, true, 6),
            (7, FREE, false, 6),
        ] {
            write(folder.path(), us, max);
            assert_eq!(throttle.read_ns(is_due), Some(told_us * 1000), "{us}");
        }
    }

    #[test]
    fn of_a_cgroup_that_is_gone_nothing_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let mut throttle = Throttle::of_v2(folder.path());
        write(folder.path(), 1, FREE);
        assert_eq!(throttle.read_ns(true), Some(1000));
        for name in ["cpu.stat", "cpu.max"] {
            fs::remove_file(folder.path().join(name)).unwrap();
        }
        throttle.close();
        assert_eq!(throttle.read_ns(false), None);
    }

    /// Where no cgroup of the job's has the controller: nothing takes time from it.
    #[test]
    fn the_roots_count_is_read_when_it_is_due() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("job")).unwrap();
        let place = Place::of_test(0, &[], folder.path(), "job");
        let count = |us: u64| {
            fs::write(folder.path().join("cpu.stat"), format!("throttled_usec {us}\n")).unwrap();
        };
        count(0);
        let mut throttle = Throttle::find(&Places(vec![place])).unwrap();
        assert_eq!(*throttle.directory, *folder.path());
        count(1);
        assert_eq!((throttle.read_ns(false), throttle.read_ns(true)), (Some(0), Some(1000)));
    }
}
