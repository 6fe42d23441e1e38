//! Every hook by name, from `jobtrace doctor`.

use std::process::Command;

use jobtrace::probes::HOOKS;
use jobtrace_tests::traced::program;
use serde_json::Value;
use xtask::guest::{Line, Outcome};

use crate::tell;

/// Tells each hook's state, and whatever else is fatal. Whether jobtrace works here at all.
pub fn tell() -> bool {
    let check = "jobtrace doctor".to_owned();
    tell::say(&Line::Start { check: check.clone() });
    let output = Command::new(program().unwrap()).args(["doctor", "--json"]).output().unwrap();
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
    for row in HOOKS {
        let found = findings.iter().find(|finding| finding["subject"] == row.hook.program);
        let (outcome, why) = match found {
            None => (Outcome::Unneeded, String::new()),
            Some(finding) if finding["state"] == "ok" => (Outcome::Ok, String::new()),
            Some(finding) => (Outcome::Absent, text(&finding["detail"])),
        };
        tell::say(&Line::Hook { program: row.hook.program.into(), outcome, why });
    }
    let shown = |finding: &&Value| finding["state"] != "ok";
    let lines: Vec<String> = findings
        .iter()
        .filter(shown)
        .map(|finding| format!("{}: {}", text(&finding["subject"]), text(&finding["detail"])))
        .collect();
    let well = output.status.success();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let outcome = if well { Outcome::Ok } else { Outcome::Failed };
    let lines = if well { lines } else { [lines, vec![said]].concat() };
    tell::say(&Line::Check { check, outcome, lines });
    well
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
