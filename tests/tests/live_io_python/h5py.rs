//! h5py writes a dataset of known size in chunks, and reads it.

use std::{fs, process::Command};

use jobtrace_tests::{agree::Agreement, rig::mount::Tmpfs, sibling::Sibling, strace};

use crate::{MIB, of_op, of_path, rows_below, traced};

/// The system's interpreter: Debian's h5py is for no other one.
const SYSTEM: &str = "/usr/bin/python3";
/// One thread, no module written, and each table of Python's in the same order at each run.
const ENVIRONMENT: [(&str, &str); 3] =
    [("PYTHONHASHSEED", "0"), ("PYTHONDONTWRITEBYTECODE", "1"), ("OPENBLAS_NUM_THREADS", "1")];

/// 8 MiB in eight chunks, written by one and read by another.
const CHUNKS: &str = "
import sys, h5py, numpy
data = numpy.arange(1 << 20, dtype='f8').reshape(1024, 1024)
with h5py.File(sys.argv[1], 'w') as file:
    dataset = file.create_dataset('x', data.shape, 'f8', chunks=(128, 1024))
    for row in range(0, 1024, 128):
        dataset[row:row + 128] = data[row:row + 128]
with h5py.File(sys.argv[1], 'r') as file:
    read = sum(float(file['x'][row:row + 128].sum()) for row in range(0, 1024, 128))
assert read == data.sum()
";

#[test]
fn a_chunked_file_of_h5py_is_read_and_written_as_strace_counts() {
    let has = Command::new(SYSTEM).args(["-c", "import h5py"]).output().expect(SYSTEM);
    assert!(has.status.success(), "`cargo xtask test --live` installs python3-h5py: {has:?}");
    let disk = Tmpfs::mount(32 * MIB).unwrap();
    let [path, beside] = ["data.h5", "beside.h5"].map(|name| disk.path().join(name));
    let [path, beside] = [&path, &beside].map(|path| path.to_str().unwrap());
    let words = [SYSTEM, "-E", "-c", CHUNKS, path];
    let begin = || drop(fs::remove_file(path));

    begin();
    let truth = strace::of_file(&words, &ENVIRONMENT, path);
    begin();
    let counted = strace::counted(&words, &ENVIRONMENT);
    begin();
    let sibling = Sibling::start(&[SYSTEM, "-E", "-c", CHUNKS, beside]);
    let job = traced(&ENVIRONMENT, &words);
    sibling.end();

    let mut agree = Agreement::new();
    agree.exact("files of others", rows_below(&job, "io_files", beside), 0);
    // What numpy asks another program for comes through a pipe, in as many reads as it happens to take.
    strace::agree(&mut agree, "h5py", &job.json, &counted, &["read", "write", "close"]);
    let of_calls = |names: &[&str], at: usize| {
        names.iter().filter_map(|name| truth.get(*name)).map(|row| row[at]).sum::<u64>()
    };
    let (reads, writes) = (["read", "pread64", "readv"], ["write", "pwrite64", "writev"]);
    for (calls, op, ops, bytes) in
        [(&reads, "read", "reads", "read_bytes"), (&writes, "write", "writes", "written_bytes")]
    {
        let [count, amount] = [0, 1].map(|at| of_calls(calls, at));
        // Each chunk once, in one piece, and what describes them.
        agree.between(&format!("{op}: bytes, by strace"), amount, 8 * MIB..=8 * MIB + (64 << 10));
        agree.between(&format!("{op}: calls, by strace"), count, 8..=64);
        agree.exact(&format!("{op}: of the file"), of_path(&job, "io_files", path, ops), count);
        agree.exact(&format!("{op}: its bytes"), of_path(&job, "io_files", path, bytes), amount);
        agree.exact(&format!("{op}: on the mount"), of_op(&job, disk.path(), op, "ops"), count);
        agree.exact(&format!("{op}: bytes there"), of_op(&job, disk.path(), op, "bytes"), amount);
        // Darshan's class ends with a MiB.
        let chunks = of_op(&job, disk.path(), op, "size_100k_1m");
        agree.exact(&format!("{op}: of a chunk"), chunks, 8);
    }
    agree.exact("locks", of_op(&job, disk.path(), "lock", "ops"), of_calls(&["flock"], 0));
    agree.exact(
        "size",
        of_path(&job, "io_files", path, "size_bytes"),
        fs::metadata(path).unwrap().len(),
    );
    agree.end();
}
