//! Live ring: what came from devices and into the page cache, against /proc/PID/io and the sizes of files; pauses of
//! a writer that is faster than its device.

use std::{fs, path::Path};

use jobtrace_tests::{
    agree::{Agreement, tried_again},
    operations::{groups, sum, text},
    rig::mount::{Ext4, Tmpfs},
    sibling::Sibling,
    traced::Traced,
};
use serde_json::Value;

const CACHED: &str = env!("CARGO_BIN_EXE_cached");
const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// Bytes of each of the workload's files, and how many of their pages it touches in one of them.
const BYTES: u64 = 8 * MIB;
const TOUCHED: u64 = BYTES / PAGE / 16;

/// The sum of `field` over the rows of `op` on `mount`.
fn of_op(job: &Traced, mount: &Path, op: &str, field: &str) -> u64 {
    let mount = mount.to_str().unwrap();
    let rows = groups(&job.json, "io").iter();
    sum(rows.filter(|row| text(row, "mount") == mount && text(row, "op") == op), field)
}

/// The row of the file at `path`.
fn file<'a>(job: &'a Traced, path: &str) -> &'a Value {
    let rows = groups(&job.json, "io_files");
    let found = rows.iter().find(|row| text(row, "path") == path);
    found.unwrap_or_else(|| panic!("no {path} in {rows:?}"))
}

/// Again where somebody else empties the page cache meanwhile.
#[test]
fn what_devices_read_is_what_the_kernel_says_and_what_was_not_cached_comes_into_the_cache_once() {
    tried_again(what_devices_read);
}

fn what_devices_read() {
    let disk = Ext4::mount(96 * MIB).unwrap();
    let folder = |name: &str| {
        let folder = disk.path().join(name);
        fs::create_dir(&folder).unwrap();
        folder.to_str().unwrap().to_owned()
    };
    let (own, beside) = (folder("own"), folder("beside"));
    let sibling = Sibling::start(&[CACHED, &beside]);
    let (job, report) = Traced::report(&["--io"], &[CACHED, &own]);
    sibling.end();
    let truth = |name: &str| report.facts[name];
    let mut agree = Agreement::new();
    let number = |op: &str, field: &str| of_op(&job, disk.path(), op, field);
    // Where blocks of a file lie is read besides, once.
    agree.between("cold, by the kernel", truth("device"), BYTES..=BYTES + MIB);
    agree.exact("warm, by the kernel", truth("device_warm"), 0);
    agree.exact(
        "reads: from the device",
        number("read", "device_read_bytes"),
        truth("device") + truth("device_direct"),
    );
    agree.between("reads: fetched", number("read", "fetched_bytes"), BYTES..=BYTES + MIB);
    agree.exact("writes: fetched", number("write", "fetched_bytes"), 0);
    // All of one file, and single pages of the other.
    let both = BYTES + TOUCHED * PAGE;
    agree.exact("mapped: fetched", number("mmap", "fetched_bytes"), both);
    agree.between("mapped, by the kernel", truth("mapped") + truth("touched"), both..=both + MIB);
    let [faults, more] = ["ops", "fetched_more"].map(|field| number("mmap", field));
    agree.exact("touched: major faults, by the kernel", truth("touched_major"), TOUCHED);
    agree.exact("touched: of one page", faults - more, TOUCHED);
    agree.between("mapped: with read-ahead", more, 1..=BYTES / PAGE);
    for (name, least, most) in [
        ("read", BYTES, BYTES),
        ("mapped", BYTES, BYTES),
        ("touched", TOUCHED * PAGE, TOUCHED * PAGE),
    ] {
        let fetched = file(&job, &format!("{own}/{name}"))["fetched_bytes"].as_u64().unwrap();
        agree.between(&format!("{name}: fetched"), fetched, least..=most);
    }
    let touched = file(&job, &format!("{own}/touched"))["faults"].as_u64().unwrap();
    agree.exact("touched: faults of the file", touched, TOUCHED);
    let notes = job.json["notes"].to_string();
    for words in ["page cache", "pauses", "io_uring", "devices read"] {
        assert!(!notes.contains(words), "{notes}");
    }
    agree.end();
}

/// A file system in memory has no device and brings nothing into a cache.
#[test]
fn a_file_system_in_memory_reads_no_device() {
    let disk = Tmpfs::mount(32 * MIB).unwrap();
    let path = disk.path().to_str().unwrap();
    let script = "head -c 8M /dev/zero > $0/data; cat $0/data > /dev/null";
    let job = Traced::run(&["--io"], &["sh", "-c", script, path]);
    let mut agree = Agreement::new();
    agree.exact("read", of_op(&job, disk.path(), "read", "bytes"), 8 * MIB);
    for field in ["device_read_bytes", "fetched_bytes"] {
        agree.exact(field, of_op(&job, disk.path(), "read", field), 0);
    }
    agree.end();
}

/// Copies within the kernel: of a cached file, of one that is not, and from a pipe. Says nothing; fails where one is short.
const COPIES: &str = "
import os, sys
own = sys.argv[1]
def copy(source, target):
    with open(own + '/' + source, 'rb') as read, open(own + '/' + target, 'wb') as write:
        assert os.sendfile(write.fileno(), read.fileno(), 0, 4 << 20) == 4 << 20
def drop(name):
    with open(own + '/' + name, 'rb') as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
for name in ['warm', 'cold']:
    with open(own + '/' + name, 'wb') as file:
        file.write(b'x' * (4 << 20))
drop('cold')
copy('warm', 'of_warm')
copy('cold', 'of_cold')
read, write = os.pipe()
with open(own + '/piped', 'wb') as file:
    for _ in range(64):
        os.write(write, b'y' * 65536)
        assert os.splice(read, file.fileno(), 65536) == 65536
";

/// As above.
#[test]
fn what_a_copy_writes_is_not_fetched() {
    tried_again(what_a_copy_writes);
}

fn what_a_copy_writes() {
    let disk = Ext4::mount(96 * MIB).unwrap();
    let own = disk.path().to_str().unwrap();
    let job = Traced::run(&["--io"], &["python3", "-c", COPIES, own]);
    assert!(job.output.status.success(), "{:?}", job.output);
    let mut agree = Agreement::new();
    agree.exact("bytes", of_op(&job, disk.path(), "sendfile", "bytes"), 8 * MIB);
    agree.exact("fetched", of_op(&job, disk.path(), "sendfile", "fetched_bytes"), 4 * MIB);
    // A splice out of a pipe is one of the file that it writes.
    agree.exact("spliced", of_op(&job, disk.path(), "splice", "bytes"), 4 * MIB);
    agree.exact("spliced: fetched", of_op(&job, disk.path(), "splice", "fetched_bytes"), 0);
    let piped = file(&job, &format!("{own}/piped"));
    for (field, amount) in [("writes", 64), ("written_bytes", 4 * MIB), ("read_bytes", 0)] {
        agree.exact(&format!("piped: {field}"), piped[field].as_u64().unwrap_or(0), amount);
    }
    // The pipe was never empty: all of them have their time, a microsecond or more for 64 KiB.
    agree.between("piped: time", piped["write_ns"].as_u64().unwrap_or(0), 64_000..=u64::MAX);
    // To open a file may read the file system's own tables.
    for (name, amounts) in [("warm", 0..=64 * PAGE), ("cold", 4 * MIB..=4 * MIB + 64 * PAGE)] {
        let found = file(&job, &format!("{own}/{name}"))["fetched_bytes"].as_u64().unwrap();
        agree.between(&format!("{name}: fetched"), found, amounts);
    }
    agree.end();
}

/// Splices out of a pipe that is empty for 0.3 s each time, and copies to a file system that is full.
const OF_OTHERS: &str = "
import errno, os, sys, time
own, full = sys.argv[1:]
read, write = os.pipe()
parent = os.getpid()

def sleeps():
    return open(f'/proc/{parent}/stat').read().rsplit(')', 1)[1].split()[0] == 'S'

with open(own + '/piped', 'wb') as file:
    asked, ask = os.pipe()
    if os.fork() == 0:
        for _ in range(5):
            assert os.read(asked, 1) == b'?'
            while not sleeps():
                time.sleep(0.01)
            time.sleep(0.3)
            os.write(write, b'y' * 4096)
        os._exit(0)
    for _ in range(5):
        os.write(ask, b'?')
        assert os.splice(read, file.fileno(), 4096) == 4096
    try:
        os.splice(read, file.fileno(), 4096, flags=os.SPLICE_F_NONBLOCK)
        assert False, 'the pipe had something'
    except BlockingIOError:
        pass
os.wait()
with open(own + '/data', 'wb') as file:
    file.write(b'x' * (4 << 20))
with open(own + '/data', 'rb') as read, open(full + '/data', 'wb') as target:
    for copy in [os.copy_file_range, lambda a, b, n: os.sendfile(b, a, 0, n)]:
        try:
            while copy(read.fileno(), target.fileno(), 1 << 20):
                pass
            assert False, 'there was room'
        except OSError as error:
            assert error.errno in (errno.ENOSPC, errno.EXDEV), error
";

/// A wait for who writes to a pipe is none for the file that it goes to; a copy that fails for its target is told of that.
#[test]
fn what_others_do_is_not_told_of_the_file() {
    let (disk, full) = (Ext4::mount(96 * MIB).unwrap(), Tmpfs::mount(MIB).unwrap());
    let [own, target] = [disk.path(), full.path()].map(|path| path.to_str().unwrap());
    let job = Traced::run(&["--io"], &["python3", "-c", OF_OTHERS, own, target]);
    assert!(job.output.status.success(), "{:?}", job.output);
    let mut agree = Agreement::new();
    agree.exact("splices", of_op(&job, disk.path(), "splice", "ops"), 5);
    agree.exact("spliced", of_op(&job, disk.path(), "splice", "bytes"), 5 * PAGE);
    let piped = file(&job, &format!("{own}/piped"));
    agree.between("piped: time", piped["time_ns"].as_u64().unwrap(), 0..=1_200_000_000);
    for row in groups(&job.json, "io_slowest") {
        assert_ne!(row["op"], "splice", "{row:?}");
    }
    agree.exact("failed, of the target", of_op(&job, full.path(), "sendfile", "errors"), 1);
    let errors = groups(&job.json, "io_error").iter().filter(|row| row["error"] == "ENOSPC");
    let mounts: Vec<_> = errors.map(|row| row["mount"].as_str().unwrap().to_owned()).collect();
    assert!(!mounts.is_empty() && mounts.iter().all(|mount| mount == target), "{mounts:?}");
    let notes = job.json["notes"].to_string();
    assert!(!notes.contains("no latency"), "{notes}");
    agree.end();
}

/// Writes 48 MiB to a disk.
fn writes(disk: &Ext4) -> Traced {
    let script = "
import os, sys
file = os.open(sys.argv[1] + '/data', os.O_CREAT | os.O_WRONLY)
for at in range(48 * 16):
    os.pwrite(file, b'x' * 65536, at * 65536)
";
    let job = Traced::run(&["--io"], &["python3", "-c", script, disk.path().to_str().unwrap()]);
    assert!(job.output.status.success(), "{:?}", job.output);
    job
}

#[test]
fn pauses_of_a_writer_are_told_and_none_where_there_are_none() {
    let disk = Ext4::mount(96 * MIB).unwrap();
    let mut agree = Agreement::new();
    for is_throttled in [true, false] {
        let bound = is_throttled.then(|| disk.bound_unwritten(MIB).unwrap());
        let mut job = writes(&disk);
        // On a busy machine the disk may be faster than who writes, or others write so much that all are held up.
        for _ in 0..9 {
            if (of_op(&job, disk.path(), "write", "throttled") > 0) == is_throttled {
                break;
            }
            job = writes(&disk);
        }
        drop(bound);
        let number = |field: &str| of_op(&job, disk.path(), "write", field);
        let (pauses, paused_ns) = (number("throttled"), number("throttled_ns"));
        let writes = groups(&job.json, "io").iter();
        let of_disk = |row: &&Value| text(row, "mount") == disk.path().to_str().unwrap();
        let took = writes.filter(of_disk).find(|row| text(row, "op") == "write").unwrap();
        let took_ns = took["latency_ns"]["sum"].as_u64().unwrap();
        if is_throttled {
            agree.between("pauses", pauses, 1..=48 * 256);
            // A tick of the clock to a fifth of a second each.
            agree.between("paused", paused_ns, pauses * 1_000_000..=pauses * 200_000_000);
            // A pause ends with a tick, and so may be shorter by one.
            agree.between("of the writes", paused_ns / 2, 1..=took_ns);
        } else {
            agree.exact("pauses without a bound", pauses, 0);
            agree.exact("paused without a bound", paused_ns, 0);
        }
    }
    agree.end();
}
