//! Nodes that lack something: the command is not run, and the message says what to do.

use std::{fs, path::Path, process::Command};

use crate::program::{Ended, cgroups_of, end, jobtrace, program};

/// Runs jobtrace in a mount namespace of its own that `prepare`, a script, has changed.
fn in_namespace(prepare: &str, marker: &Path) -> Ended {
    // Private first, so that nothing leaks out; the file systems go with the last process.
    let script = format!("set -e; {prepare}; exec \"$0\" run -- touch \"$1\"");
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    unshare.arg(program()).arg(marker).env("RUST_BACKTRACE", "0");
    unshare.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    end(unshare.spawn().unwrap())
}

fn assert_refused(ended: &Ended, marker: &Path, words: &[&str]) {
    assert_eq!(ended.status, 2, "{}", ended.stderr);
    assert!(!marker.exists(), "the command ran");
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.starts_with("jobtrace: "), "{}", ended.stderr);
    for word in words {
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
}

#[test]
fn without_kernel_types() {
    let tmp = tempfile::tempdir().unwrap();
    let marker = tmp.path().join("ran");
    let btf = "/sys/kernel/btf/vmlinux";
    let ended = in_namespace(&format!("mount --bind /dev/null {btf}"), &marker);
    assert_refused(&ended, &marker, &[btf, "jobtrace doctor"]);
    let ended = in_namespace("mount -t tmpfs none /sys/kernel/btf", &marker);
    assert_refused(&ended, &marker, &[btf, "CONFIG_DEBUG_INFO_BTF=y"]);
}

#[test]
fn without_cgroups() {
    let tmp = tempfile::tempdir().unwrap();
    let marker = tmp.path().join("ran");
    let ended = in_namespace("umount -R /sys/fs/cgroup", &marker);
    assert_refused(&ended, &marker, &["mount cgroup2 on /sys/fs/cgroup"]);
    let covered = in_namespace("mount -t tmpfs none /sys/fs/cgroup", &marker);
    assert_refused(&covered, &marker, &["mount cgroup2 on /sys/fs/cgroup"]);
}

#[test]
fn with_cgroups_that_are_read_only() {
    let tmp = tempfile::tempdir().unwrap();
    let marker = tmp.path().join("ran");
    let prepare = "for m in $(awk '$9 ~ /^cgroup/ || $8 ~ /^cgroup/ || $10 ~ /^cgroup/ \
                   {print $5}' /proc/self/mountinfo); do mount -o remount,bind,ro $m; done";
    let ended = in_namespace(prepare, &marker);
    let words = ["run as root or in a delegated cgroup", "Read-only file system"];
    assert_refused(&ended, &marker, &words);
}

#[test]
fn with_a_bpf_object_that_is_none() {
    let tmp = tempfile::tempdir().unwrap();
    let (marker, object) = (tmp.path().join("ran"), tmp.path().join("object"));
    fs::write(&object, "garbage").unwrap();
    for path in [&object, &tmp.path().join("absent")] {
        let mut jobtrace = jobtrace();
        jobtrace.arg("--").arg("touch").arg(&marker).env("JOBTRACE_BPF_OBJECT", path);
        let ended = end(jobtrace.spawn().unwrap());
        assert_refused(&ended, &marker, &[path.to_str().unwrap(), "cargo xtask ebpf"]);
    }
}

/// As in a container started from a shell: the session's leader and the sender of signals are outside.
#[test]
fn in_a_namespace_of_pids_below_somebody_elses_session() {
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--mount-proc"]).arg(program());
    unshare.args(["run", "--", "sh", "-c", "exit 3"]).env("RUST_BACKTRACE", "0");
    unshare.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ended = end(unshare.spawn().unwrap());
    assert_eq!(ended.status, 3, "{}", ended.stderr);
    // There it is process 1.
    assert!(cgroups_of(1).is_empty());
}

#[test]
fn doctor_tells_of_each() {
    let doctor = |prepare: &str| {
        let script = format!("set -e; {prepare}; exec \"$0\" doctor");
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
        let output = unshare.arg(program()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (status, text) = doctor("true");
    assert_eq!(status, Some(0), "{text}");
    for (prepare, word) in [
        ("mount --bind /dev/null /sys/kernel/btf/vmlinux", "FATAL    kernel types (BTF)"),
        ("umount -R /sys/fs/cgroup", "FATAL    cgroups"),
    ] {
        let (status, text) = doctor(prepare);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains(word), "{text}");
    }
}
