//! Live ring: a command's own cgroups, made, used, read and removed. Needs root and writable cgroups.

mod values;

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use jobtrace::{
    base::open_files::OpenFiles,
    cgroup::{
        hierarchies::{Hierarchies, Hierarchy},
        job::JobCgroup,
        place::Place,
        remove::Removal,
    },
    launch::{
        command::{StartError, start},
        signals::Signals,
        wait::Ended,
    },
    model::info::Exit,
};

fn create(name: &str) -> JobCgroup {
    let hierarchies = Hierarchies::read().unwrap();
    JobCgroup::create(&hierarchies, name).expect("the live ring needs root and writable cgroups")
}

fn directories(cgroup: &JobCgroup) -> Vec<PathBuf> {
    cgroup.places().own().map(|place| place.directory.to_path_buf()).collect()
}

/// Runs a shell script inside `cgroup` to its end.
fn run(cgroup: &JobCgroup, script: &str) -> Result<Ended, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let signals = Signals::take().unwrap();
        let arguments = [OsString::from("-c"), OsString::from(script)];
        let open_files = OpenFiles::raise();
        let mut running =
            start(OsStr::new("sh"), &arguments, None, Some(cgroup), signals, open_files)?;
        Ok(running.wait().await.unwrap())
    })
}

/// Puts a process into every hierarchy of `cgroup`; it sleeps until killed.
fn leave_behind(cgroup: &JobCgroup) -> std::process::Child {
    let child = Command::new("sleep").arg("60").spawn().unwrap();
    for directory in directories(cgroup) {
        fs::write(directory.join("cgroup.procs"), child.id().to_string()).unwrap();
    }
    child
}

#[test]
fn ids_are_inodes_and_nothing_is_left() {
    let cgroup = create("a b");
    let made = directories(&cgroup);
    assert!(!made.is_empty());
    assert!(made.iter().all(|directory| directory.to_str().unwrap().ends_with("-a_b")), "{made:?}");
    let tasks = cgroup.tasks();
    let at = |place: &&Place| place.number == tasks.hierarchy;
    let place = cgroup.places().0.iter().find(at).unwrap();
    assert_eq!(tasks.id, fs::metadata(&place.directory).unwrap().ino());
    assert_eq!(tasks.controller.is_none(), tasks.hierarchy == 0);
    if let Some(blkio) = cgroup.places().v1("blkio") {
        let block = cgroup.block().unwrap();
        assert_eq!((block.hierarchy, block.controller), (blkio.number, Some("blkio")));
        assert_eq!(block.id, fs::metadata(&blkio.directory).unwrap().ino());
    }
    assert_eq!(cgroup.remove().unwrap(), Removal::Done);
    assert!(made.iter().all(|directory| !directory.exists()));
}

#[test]
fn an_error_path_leaves_nothing() {
    let cgroup = create("dropped");
    let made = directories(&cgroup);
    drop(cgroup);
    assert!(made.iter().all(|directory| !directory.exists()));
}

#[test]
fn the_jobs_own_children_go_too() {
    let cgroup = create("nested");
    let made = directories(&cgroup);
    for directory in &made {
        fs::create_dir_all(directory.join("a/b/c")).unwrap();
        fs::create_dir(directory.join("d")).unwrap();
    }
    assert_eq!(cgroup.remove().unwrap(), Removal::Done);
    assert!(made.iter().all(|directory| !directory.exists()));
}

#[test]
fn what_lives_on_is_named_and_left_alone() {
    let cgroup = create("left");
    let made = directories(&cgroup);
    let mut child = leave_behind(&cgroup);
    let pid = child.id();
    assert_eq!(cgroup.pids(), [pid]);
    assert_eq!(cgroup.remove().unwrap(), Removal::LeftBehind(vec![pid]));
    assert!(made.iter().all(|directory| directory.exists()), "{made:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    for directory in &made {
        // A run beside this test may have swept it away already.
        let _ = fs::remove_dir(directory);
        assert!(!directory.exists());
    }
}

#[test]
fn what_is_about_to_end_is_waited_for() {
    let cgroup = create("ending");
    let made = directories(&cgroup);
    let mut child = leave_behind(&cgroup);
    let late = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        child.kill().unwrap();
        child.wait().unwrap();
    });
    assert_eq!(cgroup.remove().unwrap(), Removal::Done);
    late.join().unwrap();
    assert!(made.iter().all(|directory| !directory.exists()));
}

#[test]
fn runs_at_the_same_time_are_told_apart() {
    let makers: Vec<_> = (0..8).map(|_| thread::spawn(|| create("same"))).collect();
    let cgroups: Vec<_> = makers.into_iter().map(|maker| maker.join().unwrap()).collect();
    let mut ids: Vec<u64> = cgroups.iter().map(|cgroup| cgroup.tasks().id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 8);
    for cgroup in cgroups {
        assert_eq!(cgroup.remove().unwrap(), Removal::Done);
    }
}

#[test]
fn the_command_is_inside_from_its_exec_on() {
    let cgroup = create("inside");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cgroup");
    let script = format!("exec cat /proc/self/cgroup > {}", file.display());
    let ended = run(&cgroup, &script).unwrap();
    assert_eq!(ended.exit, Exit { code: Some(0), signal: None });
    let text = fs::read_to_string(file).unwrap();
    for place in cgroup.places().own() {
        let prefix = format!("{}:", place.number);
        let line = text.lines().find(|line| line.starts_with(&prefix)).unwrap();
        assert!(line.ends_with(leaf(&place.directory)), "{line} is not in {place:?}");
    }
    assert_eq!(cgroup.remove().unwrap(), Removal::Done);
}

/// The v2 hierarchy alone, as a caller in `own` would see it; none where the host has no v2.
fn v2_seen_from(own: &Path) -> Hierarchies {
    let v2 = Hierarchies::read().unwrap().v2.map(|v2| Hierarchy { own: own.to_owned(), ..v2 });
    Hierarchies { v2, v1: Vec::new() }
}

/// A directory in v2 for a caller to be in, removed when dropped.
struct Own(PathBuf);

impl Own {
    fn make(name: &str) -> Self {
        let v2 = Hierarchies::read().unwrap().v2.expect("the live ring needs cgroup v2 mounted");
        let directory = v2.own.join(format!("jobtrace-test-{}-{name}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        Self(directory)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn where_the_own_cgroup_refuses_the_next_above_is_taken() {
    let own = Own::make("full");
    fs::write(own.0.join("cgroup.max.descendants"), "0").unwrap();
    let cgroup = JobCgroup::create(&v2_seen_from(&own.0), "x").unwrap();
    assert_eq!(directories(&cgroup)[0].parent(), own.0.parent());
    assert!(cgroup.notes()[0].contains("its limits do not apply"), "{:?}", cgroup.notes());
    assert_eq!(cgroup.remove().unwrap(), Removal::Done);
}

#[test]
fn below_a_threaded_cgroup_a_command_still_starts() {
    let own = Own::make("threaded");
    fs::write(own.0.join("cgroup.type"), "threaded").unwrap();
    let cgroup = JobCgroup::create(&v2_seen_from(&own.0), "x").unwrap();
    let kind = fs::read_to_string(directories(&cgroup)[0].join("cgroup.type")).unwrap();
    assert_eq!(kind, "threaded\n");
    assert_eq!(run(&cgroup, "exit 6").unwrap().exit, Exit { code: Some(6), signal: None });
    assert_eq!(cgroup.remove().unwrap(), Removal::Done);
}

#[test]
fn a_session_is_left_for_controllers_and_nothing_else() {
    let v2 = Hierarchies::read().unwrap().v2.expect("the live ring needs cgroup v2 mounted");
    let read = |at: &Path, name: &str| fs::read_to_string(at.join(name)).unwrap();
    let is_to_be_had = ["memory", "io", "pids"]
        .iter()
        .any(|name| read(&v2.mount, "cgroup.controllers").contains(name));
    let before = read(&v2.mount, "cgroup.subtree_control");
    let slice = Own(v2.mount.join(format!("jobtrace-test-{}.slice", std::process::id())));
    fs::create_dir(&slice.0).unwrap();
    let scope = Own(slice.0.join("session-1.scope"));
    fs::create_dir(&scope.0).unwrap();
    let mut shell = Command::new("sleep").arg("60").spawn().unwrap();
    fs::write(scope.0.join("cgroup.procs"), shell.id().to_string()).unwrap();

    let cgroup = JobCgroup::create(&v2_seen_from(&scope.0), "x").unwrap();
    let parent = directories(&cgroup)[0].parent().unwrap().to_owned();
    assert_eq!(parent, if is_to_be_had { &slice } else { &scope }.0);
    assert_eq!(cgroup.notes(), [""; 0]);
    assert_eq!(run(&cgroup, "exit 6").unwrap().exit, Exit { code: Some(6), signal: None });
    assert_eq!((cgroup.lost(), cgroup.remove().unwrap()), (None, Removal::Done));
    assert_eq!(read(&slice.0, "cgroup.subtree_control").trim(), "");
    // Runs beside this test may have theirs in the root still.
    let after = read(&v2.mount, "cgroup.subtree_control");
    assert!(before.split_whitespace().all(|name| after.contains(name)), "{before} {after}");
    shell.kill().unwrap();
    shell.wait().unwrap();
    drop((scope, slice));
}

#[test]
fn where_nothing_takes_a_cgroup_the_error_says_what_to_do() {
    let error = JobCgroup::create(&v2_seen_from(Path::new("/proc/self")), "x").unwrap_err();
    assert!(error.to_string().contains("run in a delegated cgroup\n  /"), "{error:#}");
}

fn leaf(directory: &Path) -> &str {
    directory.file_name().unwrap().to_str().unwrap()
}

#[test]
fn a_cgroup_that_refuses_is_named() {
    let cgroup = create("gone");
    for directory in directories(&cgroup) {
        fs::remove_dir(&directory).unwrap();
    }
    let error = run(&cgroup, "true").unwrap_err();
    assert!(matches!(error, StartError::Cgroup(..)), "{error}");
    assert_eq!(error.status(), 2);
}
