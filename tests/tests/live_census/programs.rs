//! Programs are counted, each one.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use jobtrace_tests::{
    rig::{
        images::Images,
        mount::{Ext4, Tmpfs},
        overlay::Overlay,
    },
    sibling::Sibling,
    traced::Traced,
};

use crate::{
    made::{executions, forget_files},
    watch::watched,
};

const PROGRAMS: u64 = 300;
const BESIDE: u64 = 40;
/// Programs of each of two jobs at once.
const OF_EACH: u64 = 500;

/// So many copies of a program that does nothing, in `folder`.
pub fn copies(folder: &Path, count: u64) -> PathBuf {
    fs::create_dir(folder).unwrap();
    for at in 0..count {
        let copy = folder.join(format!("copy{at}"));
        fs::copy("/bin/true", &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder.to_owned()
}

#[test]
fn every_program_of_a_job_is_counted_and_none_of_another() {
    let disk = Ext4::mount(128 << 20).unwrap();
    let own = copies(&disk.path().join("own"), PROGRAMS);
    let beside = copies(&disk.path().join("beside"), BESIDE);
    let each = |folder: &Path| format!("for f in {}/*; do $f || exit 1; done", folder.display());
    let (own, beside) = (each(&own), each(&beside));
    let sibling = Sibling::start(&["sh", "-c", &beside]);
    for is_cold in [false, true] {
        if is_cold {
            forget_files();
        }
        let twice = format!("{own}; env true; env true");
        let job = Traced::run(&["--software"], &["sh", "-c", &twice]);
        assert!(job.output.status.success(), "{:?}", job.output);
        let software = &job.json["software"];
        // Those of nobody's folder have no names.
        assert_eq!(software["other_programs"], PROGRAMS, "{software:#}");
        assert_eq!(["env", "true"].map(|name| executions(software, name)), [2; 2], "{software:#}");
        assert!(software["lost"].is_null() || software["lost"] == 0, "{software:#}");
        assert!(!software.to_string().contains("copy"), "{software:#}");
    }
    sibling.end();
}

/// Two jobs at once, each with programs of its own, as fast as they can be executed: some 200 a second.
#[test]
fn a_thousand_programs_of_two_jobs_are_counted_each_to_its_own() {
    let disk = Ext4::mount(256 << 20).unwrap();
    let folders = ["first", "second"].map(|name| copies(&disk.path().join(name), OF_EACH));
    let job = |folder: &Path, more: u64| {
        let each = format!("for f in {}/*; do $f || exit 1; done", folder.display());
        let script = format!("{each}; for n in $(seq {more}); do env true; done");
        Traced::run(&["--software"], &["sh", "-c", &script])
    };
    let [first, second] = &folders;
    let begun = Instant::now();
    let jobs = thread::scope(|scope| {
        let other = scope.spawn(|| job(second, 7));
        [(job(first, 3), 3), (other.join().unwrap(), 7)]
    });
    eprintln!("1000 programs in {:?}", begun.elapsed());
    for (job, more) in jobs {
        assert!(job.output.status.success(), "{:?}", job.output);
        let software = &job.json["software"];
        assert_eq!(software["other_programs"], OF_EACH, "{software:#}");
        let named = ["env", "true", "seq"].map(|name| executions(software, name));
        assert_eq!(named, [more, more, 1], "{software:#}");
        assert!(software["lost"].is_null() || software["lost"] == 0, "{software:#}");
    }
}

/// Images have no generations, and one that is mounted when another is gone has its device's number.
#[test]
fn programs_of_images_that_are_mounted_in_turn_are_told_apart() {
    const IMAGES: usize = 8;
    let images = Images::make(IMAGES, |number, folder| {
        let program = folder.join(format!("program{number}"));
        fs::copy("/bin/true", &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    });
    let images = images.unwrap();
    let place = images.place().display();
    let script = images.in_turn(|number| {
        let program = format!("{place}/program{number}");
        format!("stat -c %d:%i {program}; for n in $(seq {}); do {program}; done", number + 1)
    });
    let (seen, numbers) = watched("census-images", &["sh", "-c", &script]);
    let numbers: Vec<_> = numbers.lines().collect();
    assert_eq!(numbers.len(), IMAGES);
    let different = numbers.iter().collect::<std::collections::BTreeSet<_>>().len();
    assert!(different <= IMAGES / 2, "{numbers:?}");
    let executions = (0..IMAGES).map(|number| {
        let name = format!("program{number}");
        let is_it = |path: &str| path.rsplit('/').next() == Some(&name);
        let own = seen.programs.iter().filter(|program| is_it(&program.path));
        own.map(|program| program.executions).sum::<u64>()
    });
    assert_eq!(executions.collect::<Vec<_>>(), Vec::from_iter(1..=IMAGES as u64), "{seen:#?}");
}

/// Each namespace of mounts has a mount of the overlay for its own.
#[test]
fn a_program_of_an_overlay_is_one_in_each_namespace_of_mounts() {
    let disk = Tmpfs::mount(4 << 20).unwrap();
    let overlay = Overlay::writable(disk.path());
    let program = overlay.file("program");
    fs::copy("/bin/true", &program).unwrap();
    let script = format!("for n in $(seq 20); do unshare --mount {program} || exit 1; done");
    let job = Traced::run(&["--software"], &["sh", "-c", &script]);
    assert!(job.output.status.success(), "{:?}", job.output);
    assert_eq!(job.json["software"]["other_programs"], 1, "{:#}", job.json["software"]);
}
