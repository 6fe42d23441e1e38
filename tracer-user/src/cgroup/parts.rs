//! What the cgroup of a step or task counted: CPU time, the peak of its memory, bytes on local disks.

use super::{
    formats::{parse_io_bytes, parse_number, parse_stat},
    held::read_file,
    place::Places,
};
use crate::model::parts::PartCounts;

/// The counts of the cgroup at `places` now; what its controllers do not count is unknown.
pub fn read_counts(places: &Places) -> PartCounts {
    let v1 = |controller: &str, name: &str| read_file(&places.v1(controller)?.directory, name);
    let v2 = |name: &str| read_file(&places.v2()?.directory, name);
    let usage_ns = v1("cpuacct", "cpuacct.usage").and_then(|text| parse_number(&text));
    // Without any controller too: from 4.15 on.
    let usage_us = || parse_stat(&v2("cpu.stat")?, "usage_usec");
    let peak = v1("memory", "memory.max_usage_in_bytes").or_else(|| v2("memory.peak"));
    let throttled = v1("blkio", "blkio.throttle.io_service_bytes_recursive");
    PartCounts {
        on_cpu_ns: usage_ns.or_else(|| usage_us()?.checked_mul(1000)),
        memory_peak_bytes: peak.and_then(|text| parse_number(&text)),
        disk_bytes: throttled.or_else(|| v2("io.stat")).map(|text| parse_io_bytes(&text)),
    }
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
            let controllers = controllers.iter().map(|name| (*name).to_owned()).collect();
            let directory = folder.path().to_owned();
            let place =
                Place { number, controllers, mount: directory.clone(), directory, own: true };
            read_counts(&Places(vec![place]))
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
}
