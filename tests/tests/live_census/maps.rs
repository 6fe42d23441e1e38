//! Libraries, by the probes themselves: the paths that they tell against a process's own list of what it has mapped.

use std::{collections::BTreeSet, fs, path::Path};

use jobtrace::model::seen::Means;
use jobtrace_tests::rig::mount::{Ext4, Tmpfs};

use crate::{
    made::{Made, forget_files},
    watch::{libraries, watched},
};

/// Modules of Python's own that bring libraries along, where they are installed.
const MODULES: [&str; 8] =
    ["ssl", "ctypes", "decimal", "lzma", "sqlite3", "hashlib", "uuid", "readline"];
/// Prints what is mapped to be executed.
pub const TELL: &str = "
for line in sorted(open('/proc/self/maps')):
    fields = line.split(None, 5)
    if 'x' in fields[1] and len(fields) > 5 and fields[5].startswith('/'):
        print(fields[5].strip())
";

/// The paths in `text`, a line each, but for that of the program.
pub fn lines(text: &str, program: &Path) -> BTreeSet<String> {
    let all = text.lines().filter(|line| Path::new(line) != program);
    all.map(str::to_owned).collect()
}

/// A library to copy: one that needs no other but the C library.
pub fn small(text: &str) -> String {
    let find = |name: &str| text.lines().find(|line| line.contains(name));
    let found = ["/libz.so", "/libm.so", "/libm-"].into_iter().find_map(find);
    found.unwrap_or_else(|| panic!("no small library in {text}")).to_owned()
}

#[test]
fn each_library_that_a_process_has_mapped_is_told_warm_and_cold() {
    let made = Made::new();
    let tries: String = MODULES
        .iter()
        .map(|name| format!("try: import {name}\nexcept ImportError: pass\n"))
        .collect();
    let script = format!("{tries}{TELL}");
    for is_cold in [false, true] {
        if is_cold {
            forget_files();
        }
        let (seen, text) = watched("census-maps", &made.command(&script));
        let own = lines(&text, &made.python);
        assert!(own.len() > 3, "{own:?}");
        assert_eq!(libraries(&seen, &made.python), own);
    }
}

/// What was opened and closed again is in no list at the end; what has two names is one of them.
#[test]
fn a_library_that_was_closed_again_is_told_and_so_is_one_with_two_names() {
    let made = Made::new();
    let (_, text) = watched("census-which", &made.command(&format!("import zlib{TELL}")));
    let folder = made.site().join("linked");
    let (closed, linked) = (folder.join("libclosed.so.1"), folder.join("liblinked.so"));
    fs::copy(small(&text), &closed).unwrap();
    fs::copy(&closed, &linked).unwrap();
    fs::hard_link(&linked, made.home().join("cache/archive/0badcafe")).unwrap();
    // A name as long as build systems make them.
    let long = folder.join(format!("_{}.so", "long".repeat(20)));
    fs::copy(&closed, &long).unwrap();
    let (closed, linked) = (closed.to_str().unwrap(), linked.to_str().unwrap());
    let script = format!(
        "import ctypes, _ctypes\n_ctypes.dlclose(ctypes.CDLL({closed:?})._handle)\n\
         kept = [ctypes.CDLL({linked:?}), ctypes.CDLL({long:?})]{TELL}"
    );
    let (seen, text) = watched("census-close", &made.command(&script));
    let mut own = lines(&text, &made.python);
    assert!(own.contains(linked), "{own:?}");
    assert!(own.insert(closed.to_owned()), "it was closed");
    assert_eq!(libraries(&seen, &made.python), own);
    assert!(!seen.is_partial);
}

/// A tmpfs reads past what shows reads. Where that is all there is, compiled modules are told, and that others may be
/// missing.
#[test]
fn what_lies_on_a_tmpfs_is_told_or_said_to_be_missing() {
    let (made, disk) = (Made::new(), Tmpfs::mount(64 << 20).unwrap());
    let site = disk.path().join("lib/site-packages");
    fs::create_dir_all(site.join("fast")).unwrap();
    fs::write(site.join("fast/__init__.py"), "").unwrap();
    let (_, text) = watched("census-which", &made.command(&format!("import zlib{TELL}")));
    let core = site.join("fast/_core.so");
    fs::copy(small(&text), &core).unwrap();
    let script = format!(
        "import sys, ctypes\nsys.path.insert(0, {site:?})\nimport fast\n\
         kept = ctypes.CDLL({core:?}){TELL}"
    );
    let ends = "import os; sys.stdout.flush(); os.execv('/bin/true', ['true'])";
    let exec = format!("{script}{ends}");
    // The second gives its memory up to execute another program.
    for command in [made.command(&script), made.command(&exec)] {
        let (seen, text) = watched("census-tmpfs", &command);
        let own = lines(&text, &made.python);
        assert!(own.contains(core.to_str().unwrap()), "{own:?}");
        let is_pure_told = seen.packages.iter().any(|package| package.name == "fast");
        match seen.means {
            Means::Open => assert!(is_pure_told && !seen.is_partial),
            _ => assert!(seen.is_partial && !is_pure_told),
        }
        assert_eq!(libraries(&seen, &made.python), own);
    }
}

/// A program of no known name is told by its path, with its libraries, and brings no package.
#[test]
fn a_copied_program_is_told_with_its_libraries() {
    let disk = Ext4::mount(64 << 20).unwrap();
    let program = disk.path().join("alone");
    fs::copy("/bin/true", &program).unwrap();
    let (seen, _) = watched("census-copy", &[program.to_str().unwrap()]);
    let executed: Vec<_> =
        seen.programs.iter().map(|program| (program.path.as_str(), program.executions)).collect();
    assert_eq!(executed, [(program.to_str().unwrap(), 1)]);
    let libraries = libraries(&seen, &program);
    assert!(libraries.iter().any(|path| path.contains("/libc")), "{libraries:?}");
    assert!(seen.packages.is_empty());
}
