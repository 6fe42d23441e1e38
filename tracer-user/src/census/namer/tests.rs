use std::fs;

use super::*;
use crate::model::seen::{Means, SeenPackage};

fn package(site: &str, name: &str) -> SeenPackage {
    let interpreter = "/usr/bin/python3.11".to_owned();
    SeenPackage { site: site.into(), site_inode: None, name: name.into(), interpreter }
}

const LONG: Duration = Duration::from_secs(60);

fn program(path: &str, executions: u64) -> SeenProgram {
    SeenProgram { path: path.into(), executions }
}

#[test]
fn what_is_told_in_parts_is_named_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("lib/python3.11/site-packages");
    fs::create_dir_all(site.join("numpy-2.4.6.dist-info")).unwrap();
    let site = site.to_str().unwrap();
    let namer = Namer::new(Options::default()).unwrap();
    assert_eq!(namer.take(7), None, "nothing was told");
    let first = Seen {
        programs: vec![program("/usr/bin/bash", 2)],
        packages: vec![package(site, "numpy")],
        since_begin: true,
        ..Seen::default()
    };
    namer.tell(7, first.clone());
    let more = Seen {
        programs: vec![program("/usr/bin/bash", 5), program("/home/ada/thesis", 1)],
        python_processes_most: Some(3),
        ..first.clone()
    };
    namer.tell(7, Seen { is_partial: true, ..more });
    namer.tell(7, first);
    assert!(namer.settle(LONG));
    let software = namer.take(7).unwrap();
    assert_eq!((&*software.programs[0].name, software.programs[0].executions), ("bash", 5));
    assert_eq!((software.programs.len(), software.other_programs), (1, 1));
    let numpy = &software.packages[0];
    assert_eq!((&*numpy.name, numpy.version.as_deref()), ("numpy", Some("2.4.6")));
    assert_eq!((numpy.python.as_deref(), software.python_processes_most), (Some("3.11"), Some(3)));
    assert_eq!(Vec::from_iter(&software.by), [&Means::Open, &Means::Extensions]);
    namer.forget(7);
    assert_eq!(namer.take(7), None);
}

#[test]
fn what_is_too_much_is_counted() {
    let namer = Namer::new(Options::default()).unwrap();
    let programs = (0..MOST_SIGHTINGS + 5).map(|n| program(&format!("/usr/bin/p{n}"), 1)).collect();
    namer.tell(7, Seen { programs, lost: 10, ..Seen::default() });
    assert!(namer.settle(LONG));
    let software = namer.take(7).unwrap();
    assert_eq!(software.lost, 15);
    let told = crate::model::software::MOST_NAMES;
    assert_eq!(software.programs.len(), told);
    assert_eq!(software.other_programs as usize, MOST_SIGHTINGS - told);
}

#[test]
fn who_opted_out_is_told_as_that_alone() {
    let namer = Namer::new(Options::default()).unwrap();
    let programs = vec![program("/usr/bin/bash", 1)];
    namer.tell(7, Seen { programs, opted_out: true, ..Seen::default() });
    assert!(namer.settle(LONG));
    assert_eq!(namer.take(7), Some(Software::opted_out(Level::Names)));
}

#[test]
fn a_rule_that_is_none_is_refused_at_the_start() {
    let site = Site { deny: vec!["(".into()], ..Site::default() };
    assert!(Namer::new(Options { site, ..Options::default() }).is_err());
}
