//! Processes like an earlier one, which are not looked through where the kernel lets nobody meet a mapping: what that may
//! not cost. The libraries lie on a tmpfs, whose reads nobody sees: there a look at what is mapped tells alone.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use jobtrace::{
    model::seen::{Means, Seen},
    probes::Room,
};
use jobtrace_tests::rig::mount::Tmpfs;

use crate::{
    made::python,
    maps::{TELL, small},
    watch::{Job, Watch, libraries, watched},
};

/// Has the same mappings at each execution, but for what its environment asks for.
const PROGRAM: &str = "/bin/true";
/// Executions alike: more than are looked through.
const ALIKE: u64 = 20;

/// Libraries in a folder, all alike but in their names.
fn alike<const N: usize>(folder: &Path) -> [PathBuf; N] {
    let python = python();
    let script = format!("import zlib{TELL}");
    let (_, text) = watched("census-which", &[python.to_str().unwrap(), "-S", "-E", "-c", &script]);
    let original = small(&text);
    std::array::from_fn(|at| {
        let copy = folder.join(format!("libalike{at}.so"));
        fs::copy(&original, &copy).unwrap();
        copy
    })
}

/// Executes the program once with `libraries` mapped.
fn execute(job: &Job, libraries: &[&PathBuf]) {
    let names: Vec<_> = libraries.iter().map(|path| path.to_str().unwrap()).collect();
    let status = job.command(&[PROGRAM]).env("LD_PRELOAD", names.join(" ")).status().unwrap();
    assert!(status.success(), "{status}");
}

/// Which of the libraries on `disk` are told.
fn told(seen: &Seen, disk: &Tmpfs) -> BTreeSet<PathBuf> {
    let program = fs::canonicalize(PROGRAM).unwrap();
    let all = libraries(seen, &program).into_iter().map(PathBuf::from);
    all.filter(|path| path.starts_with(disk.path())).collect()
}

fn executions(seen: &Seen) -> u64 {
    let program = fs::canonicalize(PROGRAM).unwrap();
    let of_it = seen.programs.iter().filter(|of| Path::new(&of.path) == program);
    of_it.map(|of| of.executions).sum()
}

#[test]
fn processes_alike_are_all_counted_and_one_with_a_library_more_is_looked_through() {
    let disk = Tmpfs::mount(16 << 20).unwrap();
    let [first, second, third] = alike(disk.path());
    let watch = Watch::begin("census-alike", Room::JOB);
    (0..ALIKE).for_each(|_| execute(&watch.job, &[&first]));
    execute(&watch.job, &[&first, &second]);
    (0..ALIKE).for_each(|_| execute(&watch.job, &[&first]));
    execute(&watch.job, &[&first, &second, &third]);
    let seen = watch.end();
    assert_eq!((executions(&seen), seen.lost), (2 * ALIKE + 2, 0), "{seen:?}");
    assert_eq!(told(&seen, &disk), [first, second, third].into());
}

/// What the first one maps is new, so the second is looked through as well; the third, which is not, shows that there is
/// something to this test: it has another library in place of one.
#[test]
fn one_that_has_mapped_as_much_is_not_looked_through_again() {
    let disk = Tmpfs::mount(16 << 20).unwrap();
    let [first, instead, more] = alike(disk.path());
    let mut watch = Watch::begin("census-instead", Room::JOB);
    [&first, &first, &instead].into_iter().for_each(|library| execute(&watch.job, &[library]));
    // Of another job nothing was looked through.
    let beside = watch.beside("census-beside");
    execute(&beside, &[&instead]);
    assert_eq!(told(&watch.seen(&beside), &disk), [instead.clone()].into());
    execute(&watch.job, &[&instead, &more]);
    let seen = watch.end();
    assert_eq!((executions(&seen), seen.lost), (4, 0), "{seen:?}");
    // The last one has more, and all that it has is told.
    assert_eq!(told(&seen, &disk), [first, instead, more].into());
}

#[test]
fn one_in_place_of_another_is_missing_only_where_nobody_meets_mappings() {
    let disk = Tmpfs::mount(16 << 20).unwrap();
    let [first, instead] = alike(disk.path());
    let watch = Watch::begin("census-skipped", Room::JOB);
    [&first, &first, &instead].into_iter().for_each(|library| execute(&watch.job, &[library]));
    let seen = watch.end();
    assert_eq!((executions(&seen), seen.lost), (3, 0), "{seen:?}");
    let expected: BTreeSet<_> = match seen.means {
        Means::Open => [first, instead].into(),
        _ => [first].into(),
    };
    assert_eq!(told(&seen, &disk), expected);
}

/// A library that one of several processes of Python, each forked, loads besides.
#[test]
fn what_one_of_many_forked_processes_loads_besides_is_told() {
    const PROCESSES: u64 = 12;
    let disk = Tmpfs::mount(16 << 20).unwrap();
    let [shared, besides] = alike(disk.path());
    let script = format!(
        "import os, ctypes\nkept = [ctypes.CDLL({shared:?})]\n\
         for at in range({PROCESSES}):\n    \
             process = os.fork()\n    \
             if not process:\n        \
                 if at == {PROCESSES} - 2: kept.append(ctypes.CDLL({besides:?}))\n        \
                 os._exit(0)\n    \
             assert os.waitpid(process, 0)[1] == 0"
    );
    let python = python();
    let command = [python.to_str().unwrap(), "-S", "-E", "-c", &script];
    let (seen, _) = watched("census-forked", &command);
    let all: BTreeSet<_> = libraries(&seen, &python).into_iter().map(PathBuf::from).collect();
    assert!(all.contains(&shared) && all.contains(&besides), "{all:?}");
    assert_eq!(seen.python_processes_most, Some(2));
}
