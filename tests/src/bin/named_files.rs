//! Known operations on files by name: the truth that a record's files are held against. `named_files FOLDER [SHORT]`:
//! `SHORT` files that live for a moment.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::unix::{ffi::OsStringExt, fs::FileExt},
    path::{Path, PathBuf},
    thread,
};

use jobtrace_tests::account::Report;

const THREADS: u64 = 8;
const BY_THREAD: u64 = 2_000;
const PIECE: u64 = 512;
/// What of the file is one thread's: more than it reads.
const PART: u64 = 1 << 20;
const TIMES: u64 = 1_000;
const SYNCS: u64 = 20;
const BY_CHILD: u64 = 100;

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder"));
    let short = std::env::args().nth(2).map_or(300, |number| number.parse().expect("a number"));
    let mut report = Report::default();
    let mut tell = |name: &str, facts: &[(&str, u64)]| {
        let facts = facts.iter().map(|(field, value)| (format!("{name}.{field}"), *value));
        report.facts.extend(facts);
    };
    let heavy = make(&folder.join("heavy"), (THREADS * PART) as usize);
    short_lived(&folder.join("short"), short);
    let read = THREADS * BY_THREAD;
    shared(&heavy);
    drop(heavy);
    // Each thread but the first begins in the middle; the one write is the first in its file.
    tell("heavy", &[("opens", 1), ("writes", 1), ("reads", read), ("ops", read + 3), ("syncs", 0)]);
    tell(
        "heavy",
        &[("read_bytes", read * PIECE), ("written_bytes", THREADS * PART), ("random", 0)],
    );
    tell("heavy", &[("consecutive", read - THREADS + 2), ("sequential", THREADS - 1)]);
    patterns(&folder.join("patterns"));
    let accesses = 3 * TIMES;
    tell("patterns", &[("opens", 2), ("reads", accesses), ("writes", 1), ("ops", accesses + 5)]);
    // With the write.
    tell("patterns", &[("consecutive", 1 + TIMES), ("sequential", TIMES), ("random", TIMES)]);
    tell("patterns", &[("read_bytes", accesses * PIECE), ("written_bytes", 4 * TIMES * PIECE)]);
    renamed(&folder);
    tell("was", &[("opens", 2), ("writes", 1), ("reads", 1), ("ops", 6), ("read_bytes", 5)]);
    removed(&folder.join("gone"));
    tell("gone", &[("opens", 1), ("writes", TIMES), ("ops", TIMES + 2), ("syncs", 0)]);
    synced(&folder.join("synced"));
    tell("synced", &[("opens", 1), ("writes", SYNCS), ("syncs", SYNCS), ("ops", 2 * SYNCS + 2)]);
    by_child(&folder.join("inherited"));
    let reads = 2 * BY_CHILD;
    // The child's own descriptor is closed by its end, which is no call.
    tell("inherited", &[("opens", 1), ("writes", 1), ("reads", reads), ("ops", reads + 3)]);
    tell("inherited", &[("read_bytes", reads * PIECE)]);
    let hostile = OsString::from_vec(b"a\x1b[31m<script>alert(1)<br>\n\xff\"".to_vec());
    let mut hostile = make(&folder.join(hostile), 100);
    for _ in 0..BY_CHILD {
        hostile.write_all(&[7; PIECE as usize]).expect("room for it");
    }
    println!("{}", serde_json::to_string(&report).expect("a report is JSON"));
}

/// A new file of so many bytes, open for both: an open and a write.
fn make(path: &Path, bytes: usize) -> File {
    let open = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let mut file = open.expect("a new file");
    assert_eq!(file.write(&vec![7; bytes]).expect("room for it"), bytes);
    file
}

/// Files written, read and removed: two opens and six operations by descriptor each.
fn short_lived(folder: &Path, number: u64) {
    fs::create_dir(folder).expect("a new folder");
    for at in 0..number {
        let path = folder.join(at.to_string());
        drop(make(&path, 100));
        let mut piece = [0; 200];
        assert_eq!(File::open(&path).expect("it is there").read(&mut piece).expect("it"), 100);
        fs::remove_file(&path).expect("it is ours");
    }
}

/// Threads that read a part each, one piece after the other, by one descriptor.
fn shared(file: &File) {
    thread::scope(|scope| {
        for part in 0..THREADS {
            scope.spawn(move || {
                let mut piece = [0; PIECE as usize];
                for at in 0..BY_THREAD {
                    file.read_exact_at(&mut piece, part * PART + at * PIECE).expect("it");
                }
            });
        }
    });
}

/// Reads in order, with gaps, and backwards.
fn patterns(path: &Path) {
    let size = 4 * TIMES * PIECE;
    drop(make(path, size as usize));
    let mut file = File::open(path).expect("it is there");
    let mut piece = [0; PIECE as usize];
    for _ in 0..TIMES {
        file.read_exact(&mut piece).expect("it");
    }
    for at in 0..TIMES {
        file.read_exact_at(&mut piece, (TIMES + 1 + 2 * at) * PIECE).expect("it");
    }
    for at in (0..TIMES).rev() {
        file.read_exact_at(&mut piece, at * PIECE).expect("it");
    }
}

/// A file that has another name when it is read, of which the first is told.
fn renamed(folder: &Path) {
    let (was, is) = (folder.join("was"), folder.join("is"));
    drop(make(&was, 5));
    fs::rename(&was, &is).expect("both are ours");
    assert_eq!(File::open(&is).expect("it is there").read(&mut [0; 9]).expect("it"), 5);
}

/// A file that has no name any more when most is done to it.
fn removed(path: &Path) {
    let mut file = make(path, 1);
    fs::remove_file(path).expect("it is ours");
    for _ in 1..TIMES {
        file.write_all(b"x").expect("room for it");
    }
}

/// A file that is synced after each piece.
fn synced(path: &Path) {
    let mut file = make(path, 4096);
    file.sync_data().expect("it");
    for _ in 1..SYNCS {
        file.write_all(&[7; 4096]).expect("room for it");
        file.sync_data().expect("it");
    }
}

/// A file that a child goes on to read by the descriptor that it inherits.
fn by_child(path: &Path) {
    let file = make(path, PIECE as usize);
    let read = || {
        let mut piece = [0; PIECE as usize];
        for _ in 0..BY_CHILD {
            file.read_exact_at(&mut piece, 0).expect("it");
        }
    };
    // SAFETY: one thread; the child reads and ends.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child");
    read();
    if child == 0 {
        // SAFETY: ends at once.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: room for the status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child read");
}
