//! What somebody set on a v2 cgroup: limits, weights, protections. A cgroup whose settings hold for its
//! processes must not be left by a command that is only to be counted.

use std::{fs, path::Path};

/// Names of the files in `directory` that begin with `prefix` and whose value is not the kernel's
/// default; unreadable ones and those that only count are passed over.
pub(super) fn read_settings(directory: &Path, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix) && is_setting(name))
        .filter(|name| {
            let text = fs::read_to_string(directory.join(name));
            text.is_ok_and(|text| !is_default(name, text.trim()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Whether the file `name` holds a setting of which `is_default` knows the default.
fn is_setting(name: &str) -> bool {
    let is_of_tree = name.starts_with("cgroup.");
    let ends = [".max", ".high", ".low", ".min", ".weight", ".latency"];
    let names =
        ["cpuset.cpus", "cpuset.mems", "cpuset.cpus.exclusive", "cpu.idle", "io.prio.class"];
    !is_of_tree && (ends.iter().any(|end| name.ends_with(end)) || names.contains(&name))
}

/// Whether the trimmed `text` of the file `name` is what the kernel puts there itself.
pub(crate) fn is_default(name: &str, text: &str) -> bool {
    // `8:0 rbps=max wbps=1048576`, `mlx5_0 hca_handle=2`, `0.00`: the numbers among the words.
    let is_number = |word: &&str| word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let mut numbers =
        text.split([' ', '=', '\n']).filter(|word| !word.is_empty()).filter(is_number);
    match name {
        // The second word is the period, which alone limits nothing.
        "cpu.max" => text.starts_with("max"),
        "io.prio.class" => text == "no-change",
        _ if name.ends_with(".weight") => matches!(text, "100" | "default 100"),
        _ if name.ends_with(".max") || name.ends_with(".high") => numbers.next().is_none(),
        _ if name.ends_with(".min") || name.ends_with(".low") || name == "cpu.idle" => {
            numbers.all(|word| word.trim_matches(['0', '.']).is_empty())
        }
        _ => text.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_and_settings() {
        let rows = [
            ("memory.max", "max", true),
            ("memory.max", "1073741824", false),
            ("memory.swap.max", "0", false),
            ("memory.high", "4096", false),
            ("memory.low", "0", true),
            ("memory.min", "4096", false),
            ("pids.max", "max", true),
            ("pids.max", "4915", false),
            ("cpu.max", "max 100000", true),
            ("cpu.max", "150000 100000", false),
            ("cpu.weight", "100", true),
            ("cpu.weight", "1", false),
            ("cpu.idle", "0", true),
            ("cpu.idle", "1", false),
            ("cpu.uclamp.min", "0.00", true),
            ("cpu.uclamp.max", "max", true),
            ("cpu.uclamp.max", "50.00", false),
            ("cpuset.cpus", "", true),
            ("cpuset.cpus", "0-3", false),
            ("io.max", "", true),
            ("io.max", "8:0 rbps=max wbps=1048576 riops=max wiops=max", false),
            ("io.weight", "default 100", true),
            ("io.weight", "default 100\n8:0 50", false),
            ("io.latency", "8:0 target=75000", false),
            ("io.prio.class", "no-change", true),
            ("io.prio.class", "idle", false),
            ("hugetlb.2MB.max", "max", true),
            ("hugetlb.2MB.max", "2097152", false),
            ("rdma.max", "mlx5_0 hca_handle=max hca_object=max", true),
            ("rdma.max", "mlx5_0 hca_handle=2 hca_object=max", false),
            ("misc.max", "sev max", true),
            ("dmem.low", "drm/0000:03:00.0/vram0 0", true),
        ];
        for (name, text, default) in rows {
            assert!(is_setting(name), "{name}");
            assert_eq!(is_default(name, text), default, "{name} {text:?}");
        }
        for name in ["memory.current", "cgroup.max.depth", "pids.peak", "io.stat", "cpu.max.burst"]
        {
            assert!(!is_setting(name), "{name}");
        }
    }

    #[test]
    fn only_what_was_set_is_read() {
        let cgroup = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("memory.max", "max\n"),
            ("pids.max", "99\n"),
            ("io.max", "\n"),
            ("cpu.weight", "50\n"),
        ] {
            fs::write(cgroup.path().join(name), text).unwrap();
        }
        assert_eq!(read_settings(cgroup.path(), ""), ["cpu.weight", "pids.max"]);
        assert_eq!(read_settings(cgroup.path(), "cpu."), ["cpu.weight"]);
    }
}
