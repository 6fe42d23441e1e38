//! Nodes that lack something: the command is not run, and the message says what to do.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::program::{Ended, end, jobtrace, program};

/// Runs jobtrace in a mount namespace of its own that `prepare`, a script, has changed.
fn in_namespace(prepare: &str, marker: &Path) -> Ended {
    // Private first, so that nothing leaks out; the file systems go with the last process.
    let script = format!("set -e; {prepare}; exec \"$0\" run -- touch \"$1\"");
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    unshare.arg(program()).arg(marker).env("RUST_BACKTRACE", "0");
    unshare.stdout(Stdio::piped()).stderr(Stdio::piped());
    end(unshare.spawn().unwrap())
}

fn assert_refused(ended: &Ended, marker: &Path, words: &[&str]) {
    assert_eq!(ended.status, 2, "{}", ended.stderr);
    assert!(!marker.exists(), "the command ran");
    // The reasons, if there are several, on lines of their own.
    let is_reason = |line: &str| line.starts_with("  /");
    assert!(ended.stderr.lines().skip(1).all(is_reason), "{}", ended.stderr);
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
    let words = [
        "mount the cgroup file system writable, or run in a delegated cgroup\n",
        "Read-only file system",
    ];
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

/// A container's root: it may make cgroups, and load nothing.
#[test]
fn as_root_without_capabilities() {
    let lacking = |bounds: &str, arguments: &[&str]| {
        let mut setpriv = Command::new("setpriv");
        setpriv.args([bounds, "--inh-caps=-all"]).arg(program()).args(arguments);
        setpriv.env("RUST_BACKTRACE", "0").stdout(Stdio::piped()).stderr(Stdio::piped());
        end(setpriv.spawn().unwrap())
    };
    let tmp = tempfile::tempdir().unwrap();
    let marker = tmp.path().join("ran");
    let run = ["run", "--", "touch", marker.to_str().unwrap()];
    for (bounds, capabilities, cure) in [
        ("--bounding-set=-all", "CAP_BPF and CAP_PERFMON", "--cap-add BPF --cap-add PERFMON"),
        ("--bounding-set=-all,+bpf", "CAP_PERFMON", "container with --cap-add PERFMON"),
    ] {
        let ended = lacking(bounds, &run);
        let told = format!("not permitted to trace without {capabilities}: ");
        assert_refused(&ended, &marker, &[&told, cure]);
        let doctor = lacking(bounds, &["doctor"]);
        let text = String::from_utf8(doctor.stdout).unwrap();
        assert_eq!(doctor.status, 1, "{text}");
        assert!(
            text.contains(&format!("FATAL    privileges            without {capabilities}\n")),
            "{text}"
        );
        assert!(text.contains(cure), "{text}");
        for wrong in ["run as root", "`jobtrace doctor`", "this kernel"] {
            assert!(!text.contains(wrong), "{text}");
        }
    }
}

/// jobtrace holds more files than a shell's soft limit allows on a node of many CPUs; its command does not
/// find another limit for that. What `doctor` says is needed is enough, and with less neither works.
#[test]
fn with_few_open_files_allowed() {
    let cpus = aya::util::online_cpus().unwrap().len() as u64;
    let needed = jobtrace::base::open_files::needed(cpus);
    let script = format!(
        "ulimit -Sn 20; ulimit -Hn {needed}; exec \"$0\" run --quiet -- sh -c \
         'ulimit -Sn; ulimit -Hn; ls /proc/$PPID/fd | wc -l'"
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).arg(program()).env("RUST_BACKTRACE", "0");
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = end(shell.spawn().unwrap());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{ended:?}");
    let text = String::from_utf8(ended.stdout).unwrap();
    let numbers: Vec<u64> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
    let [soft, hard, held] = numbers[..] else { panic!("{text}") };
    assert_eq!((soft, hard), (20, needed));
    // Not so much more than there are that nodes are called unfit which are not.
    assert!((needed - 50..=needed).contains(&held), "{held} of {needed}");
    for (limit, run, doctor) in [(needed, 0, 0), (needed - 1, 2, 1)] {
        for (arguments, status) in [("run --quiet -- true", run), ("doctor", doctor)] {
            let mut shell = Command::new("sh");
            let script = format!("ulimit -n {limit}; exec \"$0\" {arguments}");
            let ended = shell.args(["-c", &script]).arg(program()).output().unwrap();
            assert_eq!(ended.status.code(), Some(status), "{limit} {arguments}: {ended:?}");
        }
    }
}
