//! Operations on files, which a run has where it is asked for them (`run --io`): small ones, many files, missing
//! files, a full disk. Each job has a file system of its own.

use std::process::Command;

use jobtrace_tests::{
    findings::{Case, Said, check, said_by},
    rig::mount::Tmpfs,
    traced::program,
};

pub const CASES: &[Case] = &[
    // As many bytes each, in pieces of other sizes.
    Case { rule: "small_accesses", speaks: || reads(4 << 10), silent: || reads(1 << 20) },
    Case { rule: "small_files", speaks: || files("100"), silent: || files("131072") },
    // More than a fifth, and less; both are more than a thousand.
    Case { rule: "missing_files", speaks: || looks_for("20000"), silent: || looks_for("6000") },
    Case { rule: "file_errors", speaks: || writes("4"), silent: || writes("3") },
];

const MIB: u64 = 1 << 20;

/// What `script` with its words, the last of them a folder on a disk of `bytes`, is told.
fn on_a_disk(bytes: u64, script: &str, words: &[&str]) -> Said {
    let disk = Tmpfs::mount(bytes).unwrap();
    let folder = disk.path().to_str().unwrap();
    let job = [&["python3", "-c", script], words, &[folder]].concat();
    said_by(Command::new(program().unwrap()), &["--io"], &job)
}

/// 1 GiB read in pieces of `bytes`, out of a file of 16 MiB.
fn reads(bytes: u64) -> Said {
    let script = "
import os, sys
piece = int(sys.argv[1])
with open(sys.argv[2] + '/data', 'wb') as file:
    for _ in range(16):
        file.write(b'x' * (1 << 20))
file = os.open(sys.argv[2] + '/data', os.O_RDONLY)
for at in range(0, 1 << 30, piece):
    os.pread(file, piece, at % (16 << 20))
";
    on_a_disk(32 * MIB, script, &[&bytes.to_string()])
}

/// 4,000 files of `bytes` each written, read and removed, one after the other.
fn files(bytes: &str) -> Said {
    let script = "
import os, sys
data = b'x' * int(sys.argv[1])
for number in range(4000):
    name = f'{sys.argv[2]}/{number}'
    with open(name, 'wb', buffering=0) as file:
        file.write(data)
    with open(name, 'rb', buffering=0) as file:
        file.read(len(data))
    os.unlink(name)
";
    on_a_disk(32 * MIB, script, &[bytes])
}

/// Looks for a file 40,000 times, and in vain for another `times` times.
fn looks_for(times: &str) -> Said {
    let script = "
import os, sys
open(sys.argv[2] + '/there', 'wb').close()
for _ in range(40000):
    os.path.exists(sys.argv[2] + '/there')
for _ in range(int(sys.argv[1])):
    os.path.exists(sys.argv[2] + '/missing')
";
    on_a_disk(MIB, script, &[times])
}

/// Writes so many pieces of 512 KiB to a disk that has room for three, and looks for a file that is not there.
fn writes(pieces: &str) -> Said {
    let script = "
import os, sys
file = os.open(sys.argv[2] + '/data', os.O_CREAT | os.O_WRONLY)
try:
    for _ in range(int(sys.argv[1])):
        os.write(file, b'x' * (1 << 19))
except OSError:
    pass
os.path.exists(sys.argv[2] + '/missing')
";
    on_a_disk(3 * MIB / 2, script, &[pieces])
}

#[test]
fn each_rule_speaks_of_its_job_and_not_of_the_other() {
    check(CASES);
}
