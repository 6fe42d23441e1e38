//! Live ring: operations of a program of 32 bits, whose calls have other numbers and their arguments in other registers.
//! All numbers are exact.
#![cfg(target_arch = "x86_64")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use jobtrace_tests::{
    agree::Agreement,
    operations::{groups, text},
    rig::mount::Ext4,
    sibling::Sibling,
    traced::Traced,
};

const SOURCE: &str = include_str!("../narrow/file_ops_32.c");
/// It has no C library, of which machines have none of 32 bits.
const OPTIONS: [&str; 12] = [
    "-m32",
    "-O1",
    "-Wall",
    "-Werror",
    "-nostdlib",
    "-static",
    "-ffreestanding",
    "-fno-pie",
    "-no-pie",
    "-fno-stack-protector",
    // Debian has the numbers of 32-bit calls with the headers of 64 bits alone.
    "-idirafter",
    "/usr/include/x86_64-linux-gnu",
];

/// What the program does, by operation: calls, errors, bytes.
const TRUTH: [(&str, [u64; 3]); 16] = [
    ("open", [72, 70, 0]),
    ("write", [12, 0, 12_000]),
    ("read", [22, 0, 2_010]),
    ("sendfile", [1, 0, 5_000]),
    ("splice", [1, 0, 100]),
    ("seek", [1, 0, 0]),
    ("stat", [14, 1, 0]),
    ("lock", [4, 0, 0]),
    ("fsync", [2, 0, 0]),
    ("truncate", [2, 0, 0]),
    ("aio_write", [2, 0, 1_024]),
    ("mkdir", [1, 0, 0]),
    ("rename", [1, 0, 0]),
    ("link", [2, 0, 0]),
    ("unlink", [5, 0, 0]),
    ("close", [2, 0, 0]),
];

/// The program, compiled in `folder`.
fn compiled(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("file_ops_32.c"), folder.join("file_ops_32"));
    fs::write(&source, SOURCE).unwrap();
    let done = Command::new("gcc").args(OPTIONS).arg(&source).arg("-o").arg(&program).status();
    assert!(done.expect("gcc").success(), "gcc cannot compile {}", source.display());
    program
}

#[test]
fn a_32_bit_programs_operations_are_told_by_mount_and_file() {
    let [built, beside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let program = compiled(built.path());
    let program = program.to_str().unwrap();
    let disk = Ext4::mount(64 << 20).unwrap();
    let folder = disk.path().to_str().unwrap();
    let sibling = Sibling::start(&[program, beside.path().to_str().unwrap()]);
    let job = Traced::run(&["--io"], &[program, folder]);
    sibling.end();
    assert!(job.output.status.success(), "{:?}", job.output);
    let mut agree = Agreement::new();
    let on_mount: Vec<_> =
        groups(&job.json, "io").iter().filter(|group| text(group, "mount") == folder).collect();
    for (op, truth) in TRUTH {
        let group = on_mount.iter().find(|group| text(group, "op") == op);
        let group = group.unwrap_or_else(|| panic!("no {op} in {on_mount:?}"));
        for (field, truth) in ["ops", "errors", "bytes"].into_iter().zip(truth) {
            agree.exact(&format!("{op}: {field}"), group[field].as_u64().unwrap(), truth);
        }
    }
    agree.exact("kinds of operations", on_mount.len() as u64, TRUTH.len() as u64);
    let path = format!("{folder}/file");
    let files = groups(&job.json, "io_files");
    let file = files.iter().find(|file| text(file, "path") == path).expect("the file");
    // The offsets of its reads are above 4 GiB: all but three begin where the one before ended.
    for (field, truth) in [("ops", 46), ("read_bytes", 7_010), ("consecutive", 30), ("random", 2)] {
        agree.exact(&format!("file: {field}"), file[field].as_u64().unwrap(), truth);
    }
    agree.end();
    let notes = job.json["notes"].to_string();
    assert!(!notes.contains("32-bit"), "{notes}");
}
