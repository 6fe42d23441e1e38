//! A folder of modules on a file system that stops answering.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use jobtrace_tests::{
    rig::{
        fuse::{Fuse, HANG, SITE},
        wait_for,
    },
    traced::program,
};
use serde_json::Value;

use crate::made::{executions, python};

/// What the run's end may take, however busy the machine is: the file system would hang for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// Its server has taken the request and never answers it: not even a signal ends who waits for that.
#[test]
fn a_folder_that_never_answers_holds_up_neither_the_end_nor_the_numbers() {
    let disk = Fuse::mount(&[]).unwrap();
    let site = disk.file(SITE);
    let script = format!(
        "import sys, os\nsys.dont_write_bytecode = True\nsys.path.insert(0, {site:?})\nimport lone\n\
         os.path.exists({:?})",
        format!("{site}/{HANG}")
    );
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("json");
    let mut run = Command::new(program().unwrap());
    run.args(["run", "--quiet", "--software", "--json"]).arg(&json).arg("--").arg(python());
    let begun = Instant::now();
    let mut run = run.args(["-S", "-E", "-c", &script]).spawn().unwrap();
    let status = wait_for("the end of the run", PATIENCE, || run.try_wait().unwrap());
    let took = begun.elapsed();
    // From here on who waits has an error.
    drop(disk);
    let status = status.unwrap_or_else(|error| {
        run.wait().unwrap();
        panic!("{error}");
    });
    assert!(status.success(), "{status}");
    let json: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let software = &json["software"];
    assert_eq!(executions(software, "python"), 1, "{json:#}");
    let count = software["unknown_packages"].as_u64().unwrap_or(0);
    assert_eq!(count, 1, "the module, of which nobody can tell whose it is: {json:#}");
    eprintln!("the run ended after {took:?}");
}
