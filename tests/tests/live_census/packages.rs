//! Python packages, as `jobtrace run --software` tells them.

use std::{fs, os::unix::process::ExitStatusExt};

use jobtrace_tests::{sibling::Sibling, traced::Traced};
use serde_json::Value;

use crate::made::{Made, SECRET, executions, forget_files, packages};

/// All of `made`'s, and nothing else.
fn agree(made: &Made, software: &Value) {
    assert_eq!(packages(software), made.expected, "{software:#}");
    assert_eq!(software["own_modules"], 1, "the solver: {software:#}");
    for none in ["lost", "unknown_packages"] {
        assert!(software[none].is_null() || software[none] == 0, "{none}: {software:#}");
    }
    assert_eq!(executions(software, "python"), 1, "{software:#}");
    assert_eq!(software["python_processes_most"], 1);
    assert_eq!(software["since_begin"], true);
    for other in ["spin", "true", "cat", "idle"] {
        assert_eq!(executions(software, other), 0, "{other}");
    }
    // Its folders, its argument, its module and its name.
    let text = software.to_string();
    assert!(!text.contains(SECRET), "{text}");
    assert!(!text.contains("token") && !text.contains('/'), "{text}");
}

/// What a sibling runs: the package that the job leaves alone.
fn beside(made: &Made) -> Sibling {
    let script = format!("import sys\nsys.path.insert(0, {:?})\nimport idle", made.site());
    Sibling::start(&made.command(&script))
}

#[test]
fn each_imported_package_is_told_with_its_version_warm_and_cold() {
    let made = Made::new();
    let sibling = beside(&made);
    // The first run writes the bytecode that the later ones read.
    for is_cold in [false, false, true] {
        if is_cold {
            forget_files();
        }
        let script = made.imports("");
        let job = Traced::run(&["--software"], &made.command(&script));
        assert!(job.output.status.success(), "{:?}", job.output);
        agree(&made, &job.json["software"]);
    }
    sibling.end();
}

/// Where no exit hook runs.
#[test]
fn a_killed_script_is_told_all_the_same() {
    let made = Made::new();
    let script = made.imports("import os; os.kill(os.getpid(), 9)");
    let job = Traced::run(&["--software"], &made.command(&script));
    let status = job.output.status;
    assert!(status.code() == Some(128 + 9) || status.signal() == Some(9), "{status}");
    agree(&made, &job.json["software"]);
}

/// To move packages about is no import.
#[test]
fn who_copies_or_reads_packages_runs_none() {
    let made = Made::new();
    let (site, copy) = (made.site(), made.home().join("copy/site-packages"));
    fs::create_dir(made.home().join("copy")).unwrap();
    let text = format!(
        "cp -r {0} {1} && cat {0}/*/*.py {0}/*.py && tar cf /dev/null {1}",
        site.display(),
        copy.display()
    );
    for is_cold in [false, true] {
        let _ = fs::remove_dir_all(&copy);
        if is_cold {
            forget_files();
        }
        let job = Traced::run(&["--software"], &["sh", "-c", &text]);
        assert!(job.output.status.success(), "{:?}", job.output);
        assert!(copy.join("lone.py").exists());
        let software = &job.json["software"];
        assert_eq!(packages(software), [].into(), "{software:#}");
        for none in ["own_modules", "unknown_packages", "lost"] {
            assert!(software[none].is_null() || software[none] == 0, "{none}: {software:#}");
        }
        assert_eq!(["cp", "cat", "tar"].map(|name| executions(software, name)), [1; 3]);
    }
}
