//! What nobody asks for is not there.

use std::process::{Command, Stdio};

use aya::programs::loaded_programs;
use jobtrace_tests::{
    daemon::kernel::Held,
    rig::{PATIENCE, wait_for},
    traced::program,
};

/// Names of the census's programs that `jobtrace run` with `options` has loaded while its command runs.
fn loaded(options: &[&str]) -> Vec<String> {
    let ready = tempfile::tempdir().unwrap();
    let file = ready.path().join("ready");
    let script = format!("touch {} && read line", file.display());
    let mut run = Command::new(program().unwrap());
    run.args(["run", "--quiet"]).args(options).args(["--", "sh", "-c", &script]);
    let mut run = run.stdin(Stdio::piped()).spawn().unwrap();
    let begun = wait_for("the command runs", PATIENCE, || file.exists().then_some(()));
    let held = Held::by(run.id() as i32);
    let all: Vec<_> = loaded_programs().flatten().collect();
    drop(run.stdin.take());
    run.wait().unwrap();
    begun.unwrap();
    let held = held.unwrap();
    assert!(!held.programs.is_empty());
    let own = all.iter().filter(|program| held.programs.contains(&program.id()));
    let names = own.filter_map(|program| program.name_as_str().map(str::to_owned));
    names.filter(|name| name.starts_with("census")).collect()
}

#[test]
fn without_asking_none_of_its_programs_is_loaded() {
    assert_eq!(loaded(&[]), Vec::<String>::new());
    let asked = loaded(&["--software"]);
    assert!(asked.iter().any(|name| name == "census_exec"), "{asked:?}");
}
