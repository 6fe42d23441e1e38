//! Whether a process is inside a cgroup, by its /proc/PID/cgroup.

use std::{fs, path::Path};

/// The text of PID/cgroup below `proc`, whatever bytes a cgroup's name has; `None` where there is no such
/// process.
pub fn read_cgroups(proc: &Path, pid: u32) -> Option<String> {
    let bytes = fs::read(proc.join(pid.to_string()).join("cgroup")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether `cgroups`, the text of a /proc/PID/cgroup, names a cgroup called `directory` or one below it, in
/// any hierarchy. The whole name of a directory counts: `directory` must be unique on the node.
pub fn is_inside(cgroups: &str, directory: &str) -> bool {
    let path = |line: &str| line.splitn(3, ':').nth(2).map(str::to_owned);
    let mut paths = cgroups.lines().filter_map(path);
    paths.any(|path| path.split('/').any(|name| name == directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_and_those_below_it_are_inside() {
        let name = "jobtrace-run-7-0-x";
        for (text, inside) in [
            ("0::/user.slice/jobtrace-run-7-0-x\n", true),
            ("0::/a/jobtrace-run-7-0-x/step:1\n", true),
            ("4:memory:/jobtrace-run-7-0-x\n0::/\n", true),
            ("3:net_cls,net_prio:/a:b/jobtrace-run-7-0-x\n", true),
            ("0::/jobtrace-run-7-0-xy\n", false),
            ("jobtrace-run-7-0-x:memory:/\n0::/\n", false),
            ("", false),
        ] {
            assert_eq!(is_inside(text, name), inside, "{text}");
        }
        let own = read_cgroups(Path::new("/proc"), std::process::id()).unwrap();
        assert!(!own.is_empty() && read_cgroups(Path::new("/proc"), u32::MAX).is_none());
    }
}
