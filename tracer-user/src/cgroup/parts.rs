//! What the cgroup of a step or task counted: CPU time, the peak of its memory, bytes on local disks.

use super::{
    formats::{parse_io_bytes, parse_number, parse_stat},
    place::Places,
};
use crate::{base::kept::KeptFile, model::parts::PartCounts};

/// The files of a part's cgroups, v1's before v2's: a controller is in one of them.
pub struct PartFiles {
    usage_ns: Option<KeptFile>,
    /// Without any controller too: from 4.15 on.
    usage_us: Option<KeptFile>,
    memory_peak: [Option<KeptFile>; 2],
    disk_bytes: [Option<KeptFile>; 2],
}

impl PartFiles {
    /// Those of the part at `places`.
    pub fn of(places: &Places) -> Self {
        let v1 = |controller, name| places.v1_file(controller, name);
        let v2 = |name| places.v2_file(name);
        let throttled = "blkio.throttle.io_service_bytes_recursive";
        Self {
            usage_ns: v1("cpuacct", "cpuacct.usage"),
            usage_us: v2("cpu.stat"),
            memory_peak: [v1("memory", "memory.max_usage_in_bytes"), v2("memory.peak")],
            disk_bytes: [v1("blkio", throttled), v2("io.stat")],
        }
    }

    /// Its counts now, where `before` is what none of its tasks has run since: then bytes alone, which the kernel may still
    /// write. What its controllers do not count is unknown.
    pub fn read(&mut self, before: Option<PartCounts>) -> PartCounts {
        let disk_bytes = first(&mut self.disk_bytes, |text| Some(parse_io_bytes(text)));
        if let Some(before) = before {
            return PartCounts { disk_bytes, ..before };
        }
        let usage_ns = self.usage_ns.as_mut().and_then(|file| file.read(parse_number));
        let usage_us = |text: &str| parse_stat(text, "usage_usec")?.checked_mul(1000);
        PartCounts {
            on_cpu_ns: usage_ns.or_else(|| self.usage_us.as_mut()?.read(usage_us)),
            memory_peak_bytes: first(&mut self.memory_peak, parse_number),
            disk_bytes,
        }
    }
}

/// What the first of `files` tells that can be read.
fn first<T>(files: &mut [Option<KeptFile>], parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    files.iter_mut().flatten().find_map(|file| file.read(&parse))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cgroup::place::Place;

    #[test]
    fn both_versions() {
        let counts = |number, controllers: &[&str], files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in files {
                fs::write(folder.path().join(name), text).unwrap();
            }
            let place = Place::of_test(number, controllers, folder.path(), "");
            PartFiles::of(&Places(vec![place])).read(None)
        };
        let v2 = [
            ("cpu.stat", "usage_usec 1500\nuser_usec 9\n"),
            ("memory.peak", "4096\n"),
            (
                "io.stat",
                "8:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=5 dios=0\n8:16 rbytes=1 wbytes=2\n",
            ),
        ];
        let all = PartCounts {
            on_cpu_ns: Some(1_500_000),
            memory_peak_bytes: Some(4096),
            disk_bytes: Some((11, 22)),
        };
        assert_eq!(counts(0, &["cpu"], &v2), all);
        let v1 = [
            ("cpuacct.usage", "1500000\n"),
            ("memory.max_usage_in_bytes", "4096\n"),
            (
                "blkio.throttle.io_service_bytes_recursive",
                "8:0 Read 11\n8:0 Write 20\n8:0 Sync 9\n8:0 Total 31\n8:16 Write 2\nTotal 33\n",
            ),
        ];
        assert_eq!(counts(3, &["cpuacct", "memory", "blkio"], &v1), all);
        assert_eq!(counts(0, &[], &v2[..1]).disk_bytes, None, "unknown is not zero");
        assert_eq!(counts(0, &[], &[]), PartCounts::default(), "it is gone");
    }

    #[test]
    fn where_no_task_ran_bytes_alone_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().to_owned();
        let write = |us: u64, bytes: u64| {
            fs::write(directory.join("cpu.stat"), format!("usage_usec {us}\n")).unwrap();
            fs::write(directory.join("io.stat"), format!("8:0 rbytes=1 wbytes={bytes}\n")).unwrap();
        };
        let place = Place::of_test(0, &[], folder.path(), "");
        let mut part = PartFiles::of(&Places(vec![place]));
        write(5, 10);
        let first = part.read(None);
        write(6, 20);
        let written = PartCounts { disk_bytes: Some((1, 20)), ..first };
        assert_eq!(part.read(Some(first)), written);
        assert_eq!(part.read(None), PartCounts { on_cpu_ns: Some(6000), ..written });
    }
}
