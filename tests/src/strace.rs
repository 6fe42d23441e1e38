//! What `strace` tells of a command, against what was counted of it.

use std::{collections::BTreeMap, fs, process::Command};

use serde_json::Value;

use crate::{
    agree::Agreement,
    operations::{groups, sum, text},
};

/// Calls and errors by a call's name.
pub type Counted = BTreeMap<String, [u64; 2]>;

/// Calls by the names that strace has, and the operation that each is.
pub const CALLS: &[(&str, &[&str])] = &[
    ("open", &["open", "openat", "openat2", "creat"]),
    ("close", &["close", "close_range"]),
    ("read", &["read", "readv", "pread64", "preadv", "preadv2"]),
    ("write", &["write", "writev", "pwrite64", "pwritev", "pwritev2"]),
    ("copy_file_range", &["copy_file_range"]),
    ("sendfile", &["sendfile"]),
    ("splice", &["splice", "tee", "vmsplice"]),
    ("fsync", &["fsync", "fdatasync", "syncfs", "sync", "sync_file_range", "msync"]),
    ("getdents", &["getdents", "getdents64"]),
    ("unlink", &["unlink", "unlinkat", "rmdir"]),
    ("rename", &["rename", "renameat", "renameat2"]),
    ("link", &["link", "linkat", "symlink", "symlinkat"]),
    ("mkdir", &["mkdir", "mkdirat", "mknod", "mknodat"]),
    (
        "setattr",
        &["chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "utimensat"],
    ),
    ("truncate", &["truncate", "ftruncate"]),
    ("fallocate", &["fallocate"]),
    ("seek", &["lseek"]),
    ("ioctl", &["ioctl"]),
    (
        "stat",
        &[
            "stat",
            "lstat",
            "fstat",
            "newfstatat",
            "statx",
            "access",
            "faccessat",
            "faccessat2",
            "fstatfs",
            "statfs",
            "readlink",
            "readlinkat",
            "fgetxattr",
            "getxattr",
            "lgetxattr",
            "listxattr",
            "llistxattr",
            "flistxattr",
            "chdir",
            "fchdir",
        ],
    ),
];

/// Calls of each name in a table of `strace -c` of `words`, and how many of them failed.
///
/// # Panics
/// When strace is missing or the command fails.
pub fn counted(words: &[&str], environment: &[(&str, &str)]) -> Counted {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-U", "calls,errors,name", "-o"]).arg(&table).args(words);
    strace.envs(environment.iter().copied());
    let output = strace.output().expect("strace is installed: `cargo xtask test --live` does that");
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(&table).unwrap();
    let row = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let calls = words.first()?.parse().ok()?;
        let errors = if words.len() == 3 { words[1].parse().ok()? } else { 0 };
        Some(((*words.last()?).to_owned(), [calls, errors]))
    };
    text.lines().filter_map(row).filter(|(name, _)| name != "total").collect()
}

/// Calls and errors of each operation of `json` but those of `left_out` are what strace `counted`.
pub fn agree(
    agree: &mut Agreement,
    name: &str,
    json: &Value,
    counted: &Counted,
    left_out: &[&str],
) {
    for (op, names) in CALLS.iter().filter(|(op, _)| !left_out.contains(op)) {
        let truth = |at: usize| {
            names.iter().filter_map(|name| counted.get(*name)).map(|row| row[at]).sum::<u64>()
        };
        let of_op = || groups(json, "io").iter().filter(|group| text(group, "op") == *op);
        agree.exact(&format!("{name}, {op}: calls"), sum(of_op(), "ops"), truth(0));
        agree.exact(&format!("{name}, {op}: errors"), sum(of_op(), "errors"), truth(1));
    }
}

/// Calls on the file at `path` that `words` make, and the bytes of their answers, by the names that strace has.
///
/// # Panics
/// When strace is missing or the command fails.
pub fn of_file(
    words: &[&str],
    environment: &[(&str, &str)],
    path: &str,
) -> BTreeMap<String, [u64; 2]> {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let mut strace = Command::new("strace");
    // Strings are left out: what a program writes may look like a call.
    strace.args(["-f", "-y", "-s", "0", "-e", "trace=%desc", "-o"]).arg(&trace).args(words);
    let output = strace.envs(environment.iter().copied()).output().expect("strace is installed");
    assert!(output.status.success(), "{output:?}");
    let mut calls = BTreeMap::<_, [u64; 2]>::new();
    for line in fs::read_to_string(&trace).unwrap().lines() {
        // `1234  pread64(3</path>, ""..., 8, 0) = 8`
        let Some((name, rest)) = line.split_once('(') else { continue };
        if !rest.split_once('>').is_some_and(|(file, _)| file.ends_with(&format!("<{path}"))) {
            continue;
        }
        let name = name.split_whitespace().last().unwrap_or_default().to_owned();
        let answer = line.rsplit_once(" = ").map_or("", |(_, answer)| answer);
        let [count, bytes] = calls.entry(name).or_default();
        *count += 1;
        *bytes += answer.trim().parse::<u64>().unwrap_or(0);
    }
    calls
}
