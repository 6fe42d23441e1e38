//! Live ring: each rule of docs/FINDINGS.md with a really traced job that it speaks of, and one that it is silent
//! about. A file for each kind of trouble, as the rules' `shown` names it.

use std::{collections::BTreeMap, process::Command};

use jobtrace::view::rules::RULES;
use jobtrace_tests::{
    findings::{Case, Said, said_by, said_of},
    traced::program,
};

mod asked;
mod at_limit;
mod cpu;
mod dive;
mod files;
mod gpu;
mod hangs;
mod memory;
mod waits;

/// The files and their cases.
const FILES: [(&str, &[Case]); 6] = [
    ("cpu", cpu::CASES),
    ("dive", dive::CASES),
    ("files", files::CASES),
    ("gpu", gpu::CASES),
    ("memory", memory::CASES),
    ("waits", waits::CASES),
];

#[test]
fn no_rule_lacks_a_live_test() {
    let mut found = BTreeMap::new();
    for (file, cases) in FILES {
        found.extend(cases.iter().map(|case| (case.rule, file)));
    }
    found.extend(hangs::CASES.iter().map(|case| (case.rule, "dive")));
    found.extend(asked::RULES.map(|rule| (rule, "asked")));
    let stated: BTreeMap<_, _> = RULES.iter().map(|rule| (rule.id, rule.shown)).collect();
    assert_eq!(found, stated, "docs/FINDINGS.md states where each rule is shown");
}

/// A job that computes on one core for half a second, and nothing else.
fn computes() -> Said {
    said_of(&[env!("CARGO_BIN_EXE_spin"), "alone", "500"])
}

/// A script of docs/teaching in a folder of its own on a disk.
fn teaching(script: &str, words: &[&str]) -> Said {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let script = format!("{}/../docs/teaching/{script}.py", env!("CARGO_MANIFEST_DIR"));
    let mut start = Command::new(program().unwrap());
    start.current_dir(folder.path());
    said_by(start, &["--interval", "200ms"], &[&["python3", &script], words].concat())
}
