//! Live ring: operations on files against a program that counts its own, and compares that with /proc/PID/io. All are
//! exact.

use std::{path::Path, process::Command};

use jobtrace_tests::{
    agree::Agreement,
    operations,
    rig::{
        mount::{Ext4, Tmpfs, Xfs},
        overlay::Overlay,
        share::Share,
    },
    sibling::Sibling,
    traced::Traced,
};

const FILE_OPS: &str = env!("CARGO_BIN_EXE_file_ops");
const MIB: u64 = 1 << 20;

/// The workload in a folder of `mount`, which is to be told as `fs` and `told`, beside the same in another of its
/// folders that is not the job's. `copies` is how often the kernel counts what a copy moves.
fn known_amounts(mount: &Path, fs: &str, told: &str, copies: &str) {
    let folder = |name: &str| {
        let folder = mount.join(name);
        std::fs::create_dir(&folder).unwrap();
        folder.to_str().unwrap().to_owned()
    };
    let (own, beside) = (folder("own"), folder("beside"));
    let sibling = Sibling::start(&[FILE_OPS, &beside, copies]);
    let (job, report) = Traced::report(&["--io"], &[FILE_OPS, &own, copies]);
    sibling.end();
    let mut agree = Agreement::new();
    operations::agree(&mut agree, &job.json, [fs, told], &report);
    let notes = job.json["notes"].to_string();
    assert!(!notes.contains("operations on files"), "{notes}");
    agree.end();
}

#[test]
fn on_ext4_every_operation_error_and_byte_is_told() {
    let disk = Ext4::mount(64 * MIB).unwrap();
    known_amounts(disk.path(), "ext4", disk.path().to_str().unwrap(), "1");
}

#[test]
fn on_xfs_every_operation_error_and_byte_is_told() {
    let disk = Xfs::mount().unwrap();
    known_amounts(disk.path(), "xfs", disk.path().to_str().unwrap(), "1");
}

/// Of a FUSE file system the kernel knows nothing but its requests; here a process hands them on to a folder.
#[test]
fn on_fuse_every_operation_error_and_byte_is_told() {
    let share = Share::mount().unwrap();
    known_amounts(share.path(), "fuse", share.path().to_str().unwrap(), "1");
}

#[test]
fn on_tmpfs_every_operation_error_and_byte_is_told() {
    let disk = Tmpfs::mount(64 * MIB).unwrap();
    known_amounts(disk.path(), "tmpfs", disk.path().to_str().unwrap(), "1");
}

#[test]
fn on_an_overlay_every_operation_error_and_byte_is_told() {
    let disk = Tmpfs::mount(64 * MIB).unwrap();
    let overlay = Overlay::writable(disk.path());
    known_amounts(Path::new(overlay.path()), "tmpfs", overlay.path(), "2");
}

/// Mounts come between one reading and the next, and while one is made.
#[test]
fn what_is_mounted_meanwhile_has_its_name() {
    const MOUNTS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let script = format!(
        "for at in $(seq {MOUNTS}); do mkdir {folder}/$at; mount -t tmpfs known {folder}/$at; \
         echo data > {folder}/$at/file; sleep 0.02; done; sleep 3; umount {folder}/*"
    );
    let job = Traced::run(&["--io", "--interval", "100ms"], &["sh", "-c", &script]);
    let all = job.json["io"].as_array().unwrap();
    let writes = all.iter().filter(|group| group["fs"] == "tmpfs" && group["op"] == "write");
    let of_each: Vec<_> = writes
        .map(|group| (group["mount"].as_str().unwrap_or(""), group["ops"].as_u64().unwrap()))
        .collect();
    assert_eq!(of_each.len(), MOUNTS, "{of_each:?}");
    let is_known = |(mount, ops): &(&str, u64)| *ops == 1 && Path::new(mount).starts_with(folder);
    assert!(of_each.iter().all(is_known), "{of_each:?}");
}

/// The kernel gives the number of a file system that is unmounted to the next one, and jobtrace tells systems by that.
#[test]
fn a_number_that_another_file_system_has_by_now_is_in_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let [first, then, numbers] = ["first", "then", "numbers"].map(|name| folder.path().join(name));
    [&first, &then].into_iter().for_each(|path| std::fs::create_dir(path).unwrap());
    let [first, then, numbers] = [first, then, numbers].map(|path| path.display().to_string());
    // Long enough for two readings, before which the mounts are read again.
    let each = format!(
        "for at in {first} {then}; do mount -t tmpfs known $at; echo data > $at/file; stat -c %d $at >> {numbers}; \
         sleep 4; umount $at; done"
    );
    let is_same = || {
        let both = std::fs::read_to_string(&numbers).unwrap();
        let lines: Vec<_> = both.lines().collect();
        lines[lines.len() - 2] == lines[lines.len() - 1]
    };
    // Something else may be mounted in between.
    for _ in 0..5 {
        let job = Traced::run(&["--io", "--interval", "1s"], &["sh", "-c", &each]);
        if is_same() {
            let notes = job.json["notes"].to_string();
            let told = format!("what was done below {then} (tmpfs) may be told of {first} (tmpfs)");
            assert!(notes.contains(&told), "{notes}");
            return;
        }
    }
    panic!("the two never had the same number");
}

/// As a tag it has no line feed and no control character.
#[test]
fn a_mount_with_a_hostile_name_is_told_of_too() {
    let disk = Tmpfs::named(64 * MIB, "a b,c=\"\n\\040\u{1b}[31m").unwrap();
    let told = jobtrace::base::tag::clean(disk.path().to_str().unwrap(), 256).unwrap();
    assert!(!told.contains(['\n', '\u{1b}']));
    known_amounts(disk.path(), "tmpfs", &told, "1");
}

/// Nothing is loaded unless asked for, and the summary and a report say what was found.
#[test]
fn the_summary_and_the_report_name_the_mount() {
    let disk = Tmpfs::mount(64 * MIB).unwrap();
    let path = disk.path().to_str().unwrap();
    let program = jobtrace_tests::traced::program().unwrap();
    let records = tempfile::tempdir().unwrap();
    let records = records.path().to_str().unwrap();
    let jobtrace = |arguments: &[&str]| {
        let output = Command::new(&program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [_, without] = jobtrace(&["run", "--save", records, "--", FILE_OPS, path]);
    let of_it = ["I/O by mount and operation", "unlink", "(tmpfs)", "failed with ENOENT"];
    assert!(!without.contains(of_it[0]), "{without}");
    let [_, with] =
        jobtrace(&["run", "--io", "--name", "dive", "--save", records, "--", FILE_OPS, path]);
    let page = tempfile::NamedTempFile::new().unwrap();
    let html = page.path().to_str().unwrap();
    let [report, _] = jobtrace(&["report", "dive", "--from", records]);
    jobtrace(&["report", "dive", "--from", records, "--html", html]);
    let html = std::fs::read_to_string(html).unwrap();
    for text in [with, report, html] {
        for words in of_it {
            assert!(text.contains(words), "no {words} in {text}");
        }
    }
}
