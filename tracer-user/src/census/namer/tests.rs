use std::fs;

use super::*;
use crate::model::seen::{SeenPackage, SeenProgram};

fn package(site: &str, name: &str) -> SeenPackage {
    let interpreter = "/usr/bin/python3.11".to_owned();
    SeenPackage { site: site.into(), site_inode: None, name: name.into(), interpreter }
}

/// What is named of the one that is told of.
fn take(namer: &Namer) -> Option<Software> {
    namer.take().remove(&7)
}

const LONG: Duration = Duration::from_secs(60);

fn program(path: &str, executions: u64) -> SeenProgram {
    SeenProgram { path: path.into(), executions }
}

#[test]
fn what_is_told_is_named_and_taken_once() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("lib/python3.11/site-packages");
    fs::create_dir_all(site.join("numpy-2.4.6.dist-info")).unwrap();
    let site = site.to_str().unwrap();
    let namer = Namer::new(Options::default()).unwrap();
    assert_eq!(take(&namer), None, "nothing was told");
    let first = Seen {
        programs: vec![program("/usr/bin/bash", 2)],
        packages: vec![package(site, "numpy")],
        since_begin: true,
        ..Seen::default()
    };
    namer.tell(7, first.clone());
    let programs = vec![program("/usr/bin/bash", 5), program("/home/ada/thesis", 1)];
    namer.tell(7, Seen { programs, python_processes_most: Some(3), ..first });
    assert!(namer.settle(LONG) && namer.has_settled(7));
    let software = take(&namer).unwrap();
    assert_eq!((&*software.programs[0].name, software.programs[0].executions), ("bash", 5));
    assert_eq!((software.programs.len(), software.other_programs), (1, 1));
    let numpy = &software.packages[0];
    assert_eq!((&*numpy.name, numpy.version.as_deref()), ("numpy", Some("2.4.6")));
    assert_eq!((numpy.python.as_deref(), software.python_processes_most), (Some("3.11"), Some(3)));
    assert_eq!(take(&namer), None, "it was taken");
    namer.tell(7, Seen::default());
    namer.forget(7);
    assert!(namer.has_settled(7) || namer.settle(LONG));
    assert_eq!(take(&namer), None);
}

#[test]
fn names_beyond_the_bound_are_counted() {
    let namer = Namer::new(Options::default()).unwrap();
    let told = crate::model::software::MOST_NAMES;
    let programs = (0..told + 9).map(|n| program(&format!("/usr/bin/p{n}"), 1)).collect();
    namer.tell(7, Seen { programs, ..Seen::default() });
    assert!(namer.settle(LONG));
    let software = take(&namer).unwrap();
    assert_eq!((software.programs.len(), software.other_programs), (told, 9));
}

#[test]
fn who_opted_out_is_told_as_that_alone() {
    let namer = Namer::new(Options::default()).unwrap();
    let programs = vec![program("/usr/bin/bash", 1)];
    namer.tell(7, Seen { programs, consent: Consent::Refused, ..Seen::default() });
    assert!(namer.settle(LONG));
    assert_eq!(take(&namer), Some(Software::opted_out(Level::Names)));
}

#[test]
fn a_rule_that_is_none_is_refused_at_the_start() {
    let site = Site { deny: vec!["(".into()], ..Site::default() };
    assert!(Namer::new(Options { site, ..Options::default() }).is_err());
}

#[test]
fn who_could_not_be_asked_is_told_in_numbers() {
    let namer = Namer::new(Options::default()).unwrap();
    let seen = Seen { programs: vec![program("/usr/bin/bash", 1)], ..Seen::default() };
    namer.tell(7, Seen { consent: Consent::Unknown, ..seen.clone() });
    assert!(namer.settle(LONG));
    let software = take(&namer).unwrap();
    assert_eq!((software.level, software.programs.len()), (Level::Counts, 0));
    assert_eq!(software.other_programs, 1);
    namer.tell(7, seen);
    assert!(namer.settle(LONG));
    let software = take(&namer).unwrap();
    assert_eq!((software.level, &*software.programs[0].name), (Level::Names, "bash"));
}
