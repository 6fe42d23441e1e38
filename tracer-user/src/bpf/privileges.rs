//! Whether this process may load and attach BPF programs, told before the kernel refuses without a reason.

use std::fs;

/// The kernel's number for the first user namespace (PROC_USER_INIT_INO), the same on every one.
const FIRST: &str = "user:[4026531837]";
/// What the programs need, and the numbers of it.
const NEEDED: [(&str, u32); 2] = [("CAP_BPF", 39), ("CAP_PERFMON", 38)];
/// Stands for both.
const CAP_SYS_ADMIN: u32 = 21;

/// Whether this is a user namespace, whose root only looks like root; not where /proc does not tell.
pub fn is_in_namespace() -> bool {
    fs::read_link("/proc/self/ns/user").is_ok_and(|namespace| namespace.as_os_str() != FIRST)
}

/// The capabilities that this process needs and has not; `None` where /proc does not tell. A container's
/// root lacks them by default.
pub fn lacking_capabilities() -> Option<Vec<&'static str>> {
    let status = procfs::process::Process::myself().and_then(|process| process.status());
    Some(lacking(status.ok()?.capeff))
}

fn lacking(held: u64) -> Vec<&'static str> {
    let holds = |number: u32| held & (1 << number) != 0;
    let lacks = NEEDED.iter().filter(|(_, number)| !holds(*number) && !holds(CAP_SYS_ADMIN));
    lacks.map(|(name, _)| *name).collect()
}

/// How a process gets the capabilities that it lacks.
pub fn cure_of(lacking: &[&str]) -> String {
    cure(lacking, rustix::process::geteuid().is_root())
}

fn cure(lacking: &[&str], is_root: bool) -> String {
    if !is_root {
        return "run as root, for example with sudo".into();
    }
    let add = |name: &&str| format!(" --cap-add {}", name.trim_start_matches("CAP_"));
    format!("start this root's container with{}", lacking.iter().map(add).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capabilities_decide() {
        // Docker's default for root.
        const CONTAINER: u64 = 0xa804_25fb;
        for (held, lacks) in [
            (0, &["CAP_BPF", "CAP_PERFMON"][..]),
            (CONTAINER, &["CAP_BPF", "CAP_PERFMON"]),
            (CONTAINER | 1 << 39, &["CAP_PERFMON"]),
            (CONTAINER | 1 << 38, &["CAP_BPF"]),
            (1 << 38 | 1 << 39, &[]),
            (1 << 21, &[]),
            (0x1ff_ffff_ffff, &[]),
        ] {
            assert_eq!(lacking(held), lacks, "{held:x}");
        }
    }

    #[test]
    fn root_is_not_told_to_become_root() {
        let lacks = ["CAP_BPF", "CAP_PERFMON"];
        assert!(cure(&lacks, true).ends_with("with --cap-add BPF --cap-add PERFMON"));
        assert!(cure(&lacks[1..], true).ends_with("with --cap-add PERFMON"));
        assert!(cure(&lacks, false).starts_with("run as root"));
    }
}
