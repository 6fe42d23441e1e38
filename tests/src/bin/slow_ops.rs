//! Operations of which some take long, and threads that do different amounts: the truth that a record's slowest
//! operations and its threads are held against. `slow_ops FILE FOLDER`: `FILE` is on a file system that answers late
//! (`rig::fuse`), `FOLDER` on one that does not. Reports of each slow operation its thread, when it was called and
//! returned (nanoseconds since the Unix epoch), and of each thread what it did.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{Read, Write, pipe},
    os::unix::{ffi::OsStringExt, fs::FileExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use jobtrace_tests::account::Report;

/// Where the slow read begins, and how much it reads.
const OFFSET: u64 = 20_480;
const PIECE: usize = 4_096;
/// Threads, of which each writes and reads so many pieces more than the one before.
const THREADS: u64 = 4;
const BY_THREAD: u64 = 100;
const SMALL: u64 = 512;
/// For how long a pipe has nothing to read.
const PAUSE: Duration = Duration::from_millis(500);

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (late, folder) = (arguments.next().expect("a file"), arguments.next().expect("a folder"));
    let mut report = Report::default();
    let mut tell = |facts: Vec<(String, u64)>| report.facts.extend(facts);
    let reader = {
        let late = late.clone();
        named("slow reader", move || read(&late))
    };
    tell(reader);
    let file = File::options().read(true).write(true).open(&late).expect("it is there");
    tell(timed("fsync", || file.sync_all().expect("it")));
    drop(file);
    let missing = late.with_file_name(OsString::from_vec(b"no\x1b[31m<script>\n".to_vec()));
    tell(timed("missing", || assert!(File::open(&missing).is_err())));
    tell(waited_for(&folder));
    let amounts = (1..=THREADS).map(|number| {
        let path = folder.join(number.to_string());
        thread::Builder::new()
            .name(format!("w\x1b[2J<b>{number}"))
            .spawn(move || amount(&path, number))
            .expect("room for a thread")
    });
    for thread in amounts.collect::<Vec<_>>() {
        tell(thread.join().expect("it ends well"));
    }
    println!("{}", serde_json::to_string(&report).expect("a report is JSON"));
}

fn named<T: Send + 'static>(name: &str, what: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = thread::Builder::new().name(name.into()).spawn(what);
    thread.expect("room for a thread").join().expect("it ends well")
}

fn wall_ns() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().expect("a clock that is right").as_nanos() as u64
}

fn tid() -> u64 {
    // SAFETY: has no preconditions.
    u64::from(unsafe { libc::gettid() }.cast_unsigned())
}

fn timed(name: &str, what: impl FnOnce()) -> Vec<(String, u64)> {
    let from = wall_ns();
    what();
    let until = wall_ns();
    let facts = [("from", from), ("until", until), ("thread", tid())];
    facts.map(|(fact, value)| (format!("{name}.{fact}"), value)).into()
}

/// A read in the middle of a file.
fn read(late: &Path) -> Vec<(String, u64)> {
    let file = File::open(late).expect("it is there");
    let mut piece = [0; PIECE];
    timed("read", || file.read_exact_at(&mut piece, OFFSET).expect("it"))
}

/// Reads of a pipe without a name and of one that has one, which have nothing to read for a while.
fn waited_for(folder: &Path) -> Vec<(String, u64)> {
    let fifo = folder.join("fifo");
    let name = std::ffi::CString::new(fifo.as_os_str().as_encoded_bytes()).expect("no zero");
    // SAFETY: a string that ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0, "a new pipe");
    let (mut out, mut into) = pipe().expect("a pipe");
    let writer = {
        let fifo = fifo.clone();
        thread::spawn(move || {
            let mut other = File::options().write(true).open(fifo).expect("a reader is there");
            thread::sleep(PAUSE);
            other.write_all(b"x").expect("a reader is there");
            thread::sleep(PAUSE);
            into.write_all(b"x").expect("a reader is there");
        })
    };
    let mut other = File::open(&fifo).expect("a writer is there");
    let from = wall_ns();
    other.read_exact(&mut [0]).expect("it");
    out.read_exact(&mut [0]).expect("it");
    let took_ns = wall_ns() - from;
    writer.join().expect("it ends well");
    fs::remove_file(fifo).expect("it is ours");
    vec![("pipes.took_ns".into(), took_ns)]
}

/// Writes and reads pieces of a new file of its own: an open, a close and `2 * pieces` operations in between.
fn amount(path: &Path, number: u64) -> Vec<(String, u64)> {
    let pieces = number * BY_THREAD;
    let mut open = File::options();
    let file = open.read(true).write(true).create(true).truncate(true).open(path).expect("a file");
    let mut piece = [7; SMALL as usize];
    for at in 0..pieces {
        assert_eq!(file.write_at(&piece, at * SMALL).expect("room for it"), piece.len());
    }
    for at in 0..pieces {
        assert_eq!(file.read_at(&mut piece, at * SMALL).expect("it"), piece.len());
    }
    drop(file);
    let facts = [
        ("thread", tid()),
        ("ops", 2 * pieces + 2),
        ("read_bytes", pieces * SMALL),
        ("written_bytes", pieces * SMALL),
    ];
    facts.map(|(fact, value)| (format!("{number}.{fact}"), value)).into()
}
