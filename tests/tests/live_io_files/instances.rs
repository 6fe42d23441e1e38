//! Files that share a number with others: of overlays, which number no generations of it, and of file systems that
//! are mounted one after the other.

use std::{fs, path::Path, thread};

use jobtrace_tests::{
    account::Report,
    agree::Agreement,
    operations,
    rig::{
        PATIENCE, folder as scratch,
        fuse::{FILE, Fuse},
        images::Images,
        mount::{Ext4, Tmpfs},
        overlay::Overlay,
        wait_for,
    },
    sibling::Sibling,
    traced::Traced,
};
use serde_json::Value;

use crate::{MIB, folder, row, rows};

const OVERLAYS: &str = env!("CARGO_BIN_EXE_overlays");

/// An overlay numbers no generations, and the file system below it gives the number of a file that is gone to the next.
#[test]
fn on_an_overlay_files_that_have_had_the_same_number_are_told_apart() {
    const FILES: u64 = 20;
    let disk = Ext4::mount(64 * MIB).unwrap();
    let overlay = Overlay::writable(disk.path());
    let own = folder(Path::new(overlay.path()), "own");
    let numbers = tempfile::NamedTempFile::new().unwrap();
    let numbers = numbers.path().to_str().unwrap();
    let each = format!(
        "i=0; while [ $i -lt {FILES} ]; do printf %0100d 0 > {own}/$i; cat {own}/$i > /dev/null; \
         stat -c %i {own}/$i >> {numbers}; rm {own}/$i; i=$((i + 1)); done"
    );
    let job = Traced::run(&["--io"], &["sh", "-c", &each]);
    let mut agree = Agreement::new();
    for name in (0..FILES).map(|number| format!("{own}/{number}")) {
        let row = row(&job, "io_files", &name);
        for (field, truth) in [("opens", 2), ("written_bytes", 100), ("read_bytes", 100)] {
            agree.exact(&format!("{name}: {field}"), row[field].as_u64().unwrap(), truth);
        }
    }
    let numbers = fs::read_to_string(numbers).unwrap();
    let different = numbers.lines().collect::<std::collections::BTreeSet<_>>().len() as u64;
    agree.between("numbers of these files", different, 1..=FILES / 2);
    agree.end();
}

/// As Python's `tempfile` makes them.
#[test]
fn on_an_overlay_a_file_without_a_name_is_not_the_one_that_had_its_number() {
    const NAMED_AND_NAMELESS: &str = "\
import os, sys
numbers = []
for number in range(10):
    name = '%s/%d' % (sys.argv[1], number)
    named = os.open(name, os.O_CREAT | os.O_RDWR)
    # More than Python does to any file of its own: it is listed.
    for byte in range(200): os.write(named, b'x')
    numbers += [os.fstat(named).st_ino]
    os.close(named)
    os.unlink(name)
    nameless = os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR)
    os.write(nameless, b'x' * 100)
    numbers += [os.fstat(nameless).st_ino]
    os.close(nameless)
assert len(set(numbers)) < len(numbers), 'each has a number of its own'
";
    let disk = Ext4::mount(64 * MIB).unwrap();
    let overlay = Overlay::writable(disk.path());
    let own = folder(Path::new(overlay.path()), "own");
    let job = Traced::run(&["--io"], &["python3", "-c", NAMED_AND_NAMELESS, &own]);
    let mut agree = Agreement::new();
    for name in (0..10).map(|number| format!("{own}/{number}")) {
        let row = row(&job, "io_files", &name);
        for (field, truth) in [("opens", 1), ("written_bytes", 200)] {
            agree.exact(&format!("{name}: {field}"), row[field].as_u64().unwrap(), truth);
        }
    }
    agree.end();
}

/// Images have no generations, and one that is mounted when another is gone has its device's number. So it is with a job
/// that runs one container after the other.
#[test]
fn files_of_images_that_are_mounted_in_turn_are_told_apart() {
    const IMAGES: usize = 8;
    const BLOCK: u64 = 100;
    let mut truth = Report::default();
    for number in 0..IMAGES {
        truth.facts.insert(format!("image{number}"), BLOCK * (100 + number as u64));
    }
    let images = Images::make(IMAGES, |number, folder| {
        let (name, bytes) = truth.facts.iter().nth(number).unwrap();
        fs::write(folder.join(name), vec![b'x'; *bytes as usize]).unwrap();
    });
    let images = images.unwrap();
    let place = images.place().to_str().unwrap();
    let script = images.in_turn(|number| {
        let file = format!("{place}/image{number}");
        format!("stat -c %d:%i {file}; dd bs={BLOCK} status=none of=/dev/null if={file}")
    });
    let job = Traced::run(&["--io"], &["sh", "-c", &script]);
    assert!(job.output.status.success(), "{:?}", job.output);
    let mut agree = Agreement::new();
    let numbers = String::from_utf8_lossy(&job.output.stdout);
    let numbers = numbers.lines().collect::<std::collections::BTreeSet<_>>();
    // Whatever looks at a device that was just attached may hold it a little longer.
    agree.between("numbers of these files", numbers.len() as u64, 1..=IMAGES as u64 / 2);
    operations::agree_by_name(&mut agree, &job.json, &truth);
    agree.end();
}

/// The same of what lies over them. They have no device of their own.
#[test]
fn files_of_overlays_that_are_mounted_in_turn_are_told_apart() {
    let disk = Tmpfs::mount(MIB).unwrap();
    let (job, report) = Traced::report(&["--io"], &[OVERLAYS, disk.path().to_str().unwrap()]);
    let mut agree = Agreement::new();
    operations::agree_by_name(&mut agree, &job.json, &report);
    agree.end();
}

/// Their device number goes to the next one, too; no disk tells them apart.
#[test]
fn files_of_fuse_that_are_mounted_in_turn_are_told_apart() {
    const MOUNTS: u64 = 6;
    const BLOCK: u64 = 4096;
    let turns = scratch("turns").unwrap();
    let turns = turns.path();
    let script = format!(
        "cd {} && for turn in $(seq {MOUNTS}); do \
         looks=0; until [ -e ready$turn ] || [ $((looks += 1)) -gt 3000 ]; do sleep 0.02; done; \
         read -r file < ready$turn && stat -c %d:%i $file && \
         dd bs={BLOCK} count=$turn status=none of=/dev/null if=$file && : > done$turn || exit 1; done",
        turns.display()
    );
    let job = thread::scope(|scope| {
        let job = scope.spawn(|| Traced::run(&["--io"], &["sh", "-c", &script]));
        for turn in 1..=MOUNTS {
            let disk = Fuse::mount(&[]).unwrap();
            let file = disk.file(FILE);
            fs::write(turns.join("made"), format!("{file}\n")).unwrap();
            fs::rename(turns.join("made"), turns.join(format!("ready{turn}"))).unwrap();
            let done = turns.join(format!("done{turn}"));
            wait_for("the job reads", PATIENCE, || done.exists().then_some(())).unwrap();
        }
        job.join().unwrap()
    });
    assert!(job.output.status.success(), "{:?}", job.output);
    let mut agree = Agreement::new();
    let numbers = String::from_utf8_lossy(&job.output.stdout);
    let numbers = numbers.lines().collect::<std::collections::BTreeSet<_>>();
    agree.between("numbers of these files", numbers.len() as u64, 1..=MOUNTS / 2);
    // Mounts of less than a reading are told by the place of one of them.
    let is_it = |row: &&Value| row["path"].as_str().unwrap().ends_with(&format!("/{FILE}"));
    let own: Vec<_> = rows(&job, "io_files").iter().filter(is_it).collect();
    let bytes = BLOCK * MOUNTS * (MOUNTS + 1) / 2;
    for (field, truth) in [("files", MOUNTS), ("opens", MOUNTS), ("read_bytes", bytes)] {
        agree.exact(field, own.iter().filter_map(|row| row[field].as_u64()).sum(), truth);
    }
    agree.end();
}

/// Whose overlay has other mounts meanwhile: each namespace of mounts has one of its own.
#[test]
fn a_file_of_an_overlay_is_one_whatever_else_is_mounted() {
    const TIMES: u64 = 30;
    const BYTES: u64 = 4_000;
    let disk = Tmpfs::mount(MIB).unwrap();
    let overlay = Overlay::writable(disk.path());
    let (file, bound) = (overlay.file("file"), disk.path().join("bound"));
    fs::write(&file, vec![b'x'; BYTES as usize]).unwrap();
    fs::create_dir(&bound).unwrap();
    let (above, bound) = (overlay.path(), bound.display());
    let read = |file: &str| format!("dd bs=100 status=none of=/dev/null if={file}");
    let script = format!(
        "i=0; while [ $i -lt {TIMES} ]; do unshare --mount {}; mount --bind {above} {bound}; {}; \
         umount {bound}; {}; i=$((i + 1)); done",
        read(&file),
        read(&format!("{bound}/file")),
        read(&file)
    );
    let other = Sibling::start(&["unshare", "--mount", "sleep", "0.01"]);
    let job = Traced::run(&["--io"], &["sh", "-c", &script]);
    other.end();
    assert!(job.output.status.success(), "{:?}", job.output);
    let is_it = |row: &&Value| row["path"].as_str().unwrap().ends_with("/file");
    let own: Vec<_> = rows(&job, "io_files").iter().filter(is_it).collect();
    let mut agree = Agreement::new();
    agree.exact("rows", own.len() as u64, 1);
    for (field, truth) in [("files", 1), ("opens", 3 * TIMES), ("read_bytes", 3 * TIMES * BYTES)] {
        let all = own.iter().filter_map(|row| row[field].as_u64()).sum();
        agree.exact(field, all, truth);
    }
    agree.end();
}

/// Its layers are two file systems, which both number their files from the beginning.
#[test]
fn on_an_overlay_files_that_are_made_are_not_those_of_the_lower_layer() {
    const BELOW: u64 = 30;
    const MADE: u64 = 8;
    let bytes_of = |name: &str, number: u64| 100 * (100 + number + name.len() as u64 * 50);
    let [below, above] = [(); 2].map(|()| Tmpfs::mount(4 * MIB).unwrap());
    let mut truth = Report::default();
    for (name, count) in [("below", BELOW), ("made", MADE)] {
        for number in 0..count {
            truth.facts.insert(format!("{name}{number}"), bytes_of(name, number));
        }
    }
    for number in 0..BELOW {
        let bytes = vec![b'x'; bytes_of("below", number) as usize];
        fs::write(below.path().join(format!("below{number}")), bytes).unwrap();
    }
    let overlay = Overlay::over(below.path(), above.path());
    let place = overlay.path();
    let read = |name: &str| format!("dd bs=100 status=none of=/dev/null if={place}/{name}");
    let make = |number: u64| {
        let name = format!("made{number}");
        let bytes = bytes_of("made", number);
        format!(
            "head -c {bytes} /dev/zero > {place}/{name}; {}; stat -c %i {place}/{name}",
            read(&name)
        )
    };
    let look = |number: u64| {
        format!("{}; stat -c %i {place}/below{number}", read(&format!("below{number}")))
    };
    let words = (0..MADE).map(make).chain((0..BELOW).map(look));
    let script = words.collect::<Vec<_>>().join("; ");
    let job = Traced::run(&["--io"], &["sh", "-c", &script]);
    assert!(job.output.status.success(), "{:?}", job.output);
    let all = String::from_utf8_lossy(&job.output.stdout);
    let numbers: Vec<_> = all.lines().collect();
    let (made, below) = numbers.split_at(MADE as usize);
    assert_eq!(below.len() as u64, BELOW);
    let mut agree = Agreement::new();
    let same = made.iter().filter(|number| below.contains(number)).count() as u64;
    agree.between("files with one number", same, 1..=MADE);
    operations::agree_by_name(&mut agree, &job.json, &truth);
    agree.end();
}
