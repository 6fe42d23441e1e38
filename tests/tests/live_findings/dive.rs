//! Operations on files, which a run has where it is asked for them (`run --io`): small ones, many files, missing
//! files, a full disk, files that are synced, opened or read again and again, reads in no order, tasks that wait for
//! each other. Each job has a file system of its own.

use std::{fs::File, io::Write, path::Path, process::Command, time::Duration};

use jobtrace_tests::{
    findings::{Case, Said, check, said_by},
    rig::{
        fuse::{FILE, Fuse, Request, SCRIPT},
        mount::{Ext4, Tmpfs},
    },
    traced::program,
};

pub const CASES: &[Case] = &[
    // As many bytes each, in pieces of other sizes.
    Case { rule: "small_accesses", speaks: || reads(4 << 10), silent: || reads(1 << 20) },
    Case { rule: "small_files", speaks: || files("100"), silent: || files("131072") },
    // More than a fifth, and less; both are more than a thousand.
    Case { rule: "missing_files", speaks: || looks_for("20000"), silent: || looks_for("6000") },
    Case { rule: "file_errors", speaks: || writes("4"), silent: || writes("3") },
    // As often, after other amounts.
    Case { rule: "sync_each_record", speaks: || syncs(4 << 10), silent: || syncs(1 << 20) },
    // As many opens, of one file and of 5,000.
    Case { rule: "opened_again", speaks: || opens("1"), silent: || opens("5000") },
    // As many reads, in another order.
    Case {
        rule: "random_reads",
        speaks: || reads_cold("shuffled"),
        silent: || reads_cold("sorted"),
    },
    // More than a thousand, and fewer.
    Case { rule: "many_names", speaks: || looks_up(1_200), silent: || looks_up(800) },
    // As many locks, of one file and of one each.
    Case { rule: "file_locks", speaks: || locks("1"), silent: || locks("2") },
    // As many bytes, of one file and of twelve.
    Case { rule: "read_again", speaks: || reads_files("1"), silent: || reads_files("12") },
    // As many reads, of a file that is not in memory and of one that is.
    Case { rule: "cold_cache", speaks: || reads_slow("cold", 2), silent: || reads_slow("warm", 2) },
    // Two pages of every 32, of which the second has the next three read ahead, and all.
    Case {
        rule: "readahead_wasted",
        speaks: || reads_slow("cold", 32),
        silent: || reads_slow("cold", 2),
    },
    // As many bytes past the page cache, in smaller pieces and in larger ones.
    Case {
        rule: "direct_reads",
        speaks: || reads_directly(16 << 10),
        silent: || reads_directly(1 << 20),
    },
    // As many bytes, of which the kernel keeps little and all unwritten.
    Case { rule: "throttled_writes", speaks: || writes_fast(true), silent: || writes_fast(false) },
    // As many pages of a mapped file, in another order.
    Case { rule: "mmap_random", speaks: || touches("shuffled"), silent: || touches("sorted") },
    // As many writes, by so many threads: each waits for all others, eight times and twice as long as one alone.
    Case { rule: "shared_writes", speaks: || writes_shared("8"), silent: || writes_shared("2") },
    // As many reads by one process, and by another three times as many or few more.
    Case { rule: "uneven_io", speaks: || reads_unevenly("300"), silent: || reads_unevenly("110") },
];

const MIB: u64 = 1 << 20;

/// What `script` with its words, the last of them a folder on a disk of `bytes`, is told.
fn on_a_disk(bytes: u64, script: &str, words: &[&str]) -> Said {
    told_of(Tmpfs::mount(bytes).unwrap().path(), script, words)
}

/// The same, where the folder is there already.
fn told_of(folder: &Path, script: &str, words: &[&str]) -> Said {
    let folder = folder.to_str().unwrap();
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

/// 200 pieces of `bytes` written to one file, each one synced, which takes a server 2 ms.
fn syncs(bytes: u64) -> Said {
    let script = "
import os, sys
piece = b'x' * int(sys.argv[1])
file = os.open(sys.argv[3] + '/' + sys.argv[2], os.O_WRONLY)
for number in range(200):
    os.pwrite(file, piece, number * len(piece) % (16 << 20))
    os.fsync(file)
";
    let disk = Fuse::mount(&[(Request::Sync, Duration::from_millis(2))]).unwrap();
    told_of(disk.path(), script, &[&bytes.to_string(), FILE])
}

/// 20,000 opens, as many of each of so many files.
fn opens(files: &str) -> Said {
    let script = "
import os, sys
files = int(sys.argv[1])
for number in range(20000):
    file = os.open(f'{sys.argv[2]}/{number % files}', os.O_CREAT | os.O_RDONLY)
    os.read(file, 100)
    os.close(file)
";
    on_a_disk(32 * MIB, script, &[files])
}

/// 3,000 pages of a file that is not in memory, in this order.
fn reads_cold(order: &str) -> Said {
    let disk = Ext4::mount(64 * MIB).unwrap();
    let mut file = File::create(disk.path().join("data")).unwrap();
    file.write_all(&vec![7; 32 << 20]).unwrap();
    file.sync_all().unwrap();
    let script = "
import os, random, sys
file = os.open(sys.argv[2] + '/data', os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
pages = list(range(3000))
if sys.argv[1] == 'shuffled':
    random.shuffle(pages)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
for page in pages:
    os.pread(file, 4096, page * 4096)
";
    told_of(disk.path(), script, &[order])
}

/// So many looks at a file, each of a millisecond.
fn looks_up(times: u32) -> Said {
    let fuse = Fuse::mount(&[(Request::Lookup, Duration::from_millis(1))]).unwrap();
    let script = "
import os, sys
for _ in range(int(sys.argv[1])):
    os.access(sys.argv[2] + '/file', os.R_OK)
";
    told_of(fuse.path(), script, &[&times.to_string()])
}

/// Two processes that hold a lock for some time, again and again, of so many files.
fn locks(files: &str) -> Said {
    let script = "
import fcntl, os, sys, time
child = os.fork()
name = sys.argv[2] + '/lock' + ('' if child or sys.argv[1] == '1' else '2')
with open(name, 'w') as file:
    for _ in range(30):
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(0.01)
        fcntl.flock(file, fcntl.LOCK_UN)
        time.sleep(0.001)
if child:
    os.waitpid(child, 0)
else:
    os._exit(0)
";
    on_a_disk(MIB, script, &[files])
}

/// An ext4 with a file `data` of 32 MiB.
fn disk_with_data() -> Ext4 {
    let disk = Ext4::mount(96 * MIB).unwrap();
    let mut file = File::create(disk.path().join("data")).unwrap();
    file.write_all(&vec![7; 32 << 20]).unwrap();
    file.sync_all().unwrap();
    disk
}

/// Two pages of every so many in 8 MiB, ten times, in no memory or in it from the second time on, of a server that takes
/// 2 ms for each read: what a disk in memory takes is little beside the calls on a slow machine.
fn reads_slow(cache: &str, every: u32) -> Said {
    let disk = Fuse::mount(&[(Request::Read, Duration::from_millis(2))]).unwrap();
    disk.read_ahead(128).unwrap();
    let script = "
import os, sys
file = os.open(sys.argv[3], os.O_RDONLY)
for time in range(10):
    if sys.argv[1] == 'cold':
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    for page in range(2048):
        if page % int(sys.argv[2]) < 2:
            os.pread(file, 4096, page * 4096)
";
    let job = ["python3", "-c", script, cache, &every.to_string(), &disk.file(FILE)];
    said_by(Command::new(program().unwrap()), &["--io"], &job)
}

/// 64 MiB of a file read past the page cache, one after the other, in pieces of `bytes`.
fn reads_directly(bytes: u64) -> Said {
    let disk = disk_with_data();
    let script = "
import mmap, os, sys
file = os.open(sys.argv[2] + '/data', os.O_RDONLY | os.O_DIRECT)
piece = mmap.mmap(-1, int(sys.argv[1]))
for time in range(2):
    for at in range(0, 32 << 20, len(piece)):
        os.preadv(file, [piece], at)
";
    told_of(disk.path(), script, &[&bytes.to_string()])
}

/// 32 MiB written to a disk of which the kernel keeps 1 MiB unwritten, or all.
fn writes_fast(is_bound: bool) -> Said {
    let disk = Ext4::mount(96 * MIB).unwrap();
    let _bound = is_bound.then(|| disk.bound_unwritten(MIB).unwrap());
    let script = "
import os, sys, time
file = os.open(sys.argv[1] + '/data', os.O_CREAT | os.O_WRONLY)
for at in range(512):
    os.pwrite(file, b'x' * 65536, at * 65536)
time.sleep(0.1)
";
    told_of(disk.path(), script, &[])
}

/// All 8,192 pages of a mapped file that is not in memory, in this order.
fn touches(order: &str) -> Said {
    let disk = disk_with_data();
    let script = "
import mmap, os, random, sys
file = os.open(sys.argv[2] + '/data', os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
pages = list(range(8192))
mapped = mmap.mmap(file, 0, prot=mmap.PROT_READ)
if sys.argv[1] == 'shuffled':
    random.shuffle(pages)
    mapped.madvise(mmap.MADV_RANDOM)
for page in pages:
    mapped[page * 4096]
";
    told_of(disk.path(), script, &[order])
}

/// 384 MiB out of so many files of 16 MiB.
fn reads_files(files: &str) -> Said {
    let disk = Tmpfs::mount(256 * MIB).unwrap();
    let number: u32 = files.parse().unwrap();
    for at in 0..number {
        std::fs::write(disk.path().join(at.to_string()), vec![7; 16 << 20]).unwrap();
    }
    let script = "
import os, sys, time
files = int(sys.argv[1])
time.sleep(0.1)
for time in range(24):
    file = os.open(f'{sys.argv[2]}/{time % files}', os.O_RDONLY)
    while os.read(file, 1 << 16):
        pass
    os.close(file)
";
    told_of(disk.path(), script, &[files])
}

/// 150 writes to one file by one thread, and 400 to another by so many, all of one size. Of a file the server gets one
/// after the other, and it takes 2 ms for each.
fn writes_shared(threads: &str) -> Said {
    let script = "
import os, sys, threading
threads, alone, shared, folder = sys.argv[1:]
page = b'x' * 4096
file = os.open(f'{folder}/{alone}', os.O_WRONLY)
for at in range(150):
    os.pwrite(file, page, at * len(page))
file = os.open(f'{folder}/{shared}', os.O_WRONLY)
def write(part):
    pages = 400 // int(threads)
    for at in range(part * pages, (part + 1) * pages):
        os.pwrite(file, page, at * len(page))
all = [threading.Thread(target=write, args=[part]) for part in range(int(threads))]
for one in all:
    one.start()
for one in all:
    one.join()
";
    let disk = Fuse::mount(&[(Request::Write, Duration::from_millis(2))]).unwrap();
    told_of(disk.path(), script, &[threads, SCRIPT, FILE])
}

/// So many pages read by one process and 100 others by another at the same time, of a server that takes 2 ms for each.
fn reads_unevenly(pages: &str) -> Said {
    let disk = Fuse::mount(&[(Request::Read, Duration::from_millis(2))]).unwrap();
    let script = "
dd if=$2 of=/dev/null bs=4096 count=$1 status=none &
dd if=$2 of=/dev/null bs=4096 count=100 skip=4096 status=none &
wait
";
    let job = ["sh", "-c", script, "sh", pages, &disk.file(FILE)];
    said_by(Command::new(program().unwrap()), &["--io"], &job)
}

#[test]
fn each_rule_speaks_of_its_job_and_not_of_the_other() {
    check(CASES);
}
