//! `jobtrace findings` on records that runs saved.

use std::{fs, path::Path};

use serde_json::Value;

use super::{
    program::{Ended, end, jobtrace},
    report::{files, saved},
};

/// All that there is, of jobs of any length.
fn findings(dir: &Path, arguments: &[&str]) -> (i32, Vec<Value>, String) {
    let ended =
        end(jobtrace().args(["findings", "--since", "36500d", "--from"]).arg(dir).args(arguments));
    let Ended { status, stdout, stderr } = ended;
    (status, stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), stderr)
}

fn rules(found: &[Value]) -> Vec<&str> {
    found.iter().map(|one| one["rule"].as_str().unwrap()).collect()
}

#[test]
fn each_finding_of_each_job_is_a_line() {
    let dir = saved();
    let (status, found, stderr) = findings(dir.path(), &["--least", "0s"]);
    assert_eq!((status, stderr.as_str()), (1, ""));
    for one in &found {
        assert!(
            ["job", "user", "manager", "state", "text", "advice"]
                .iter()
                .all(|key| { one[key].as_str().is_some_and(|text| !text.is_empty()) }),
            "{one}"
        );
    }
    // The same that the report says.
    let report =
        end(jobtrace().args(["report", "6142-1795250571", "--json", "--from"]).arg(dir.path()));
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let of_report: Vec<_> = report["advice"].as_array().unwrap().iter().collect();
    let of_job: Vec<_> = found.iter().filter(|one| one["job"] == "6142-1795250571").collect();
    assert!(!of_job.is_empty() && of_job.len() == of_report.len(), "{of_job:?}");
    for (one, other) in of_job.iter().zip(of_report) {
        assert_eq!((&one["rule"], &one["text"]), (&other["rule"], &other["text"]));
    }
    let one = ["--least", "0s", "--rule", "node_busy"];
    let (status, one_rule, _) = findings(dir.path(), &one);
    assert_eq!((status, rules(&one_rule)), (1, vec!["node_busy"]), "{found:?}");
}

/// The script of docs/OPERATING.md, with `jq` as the only program from elsewhere.
#[test]
fn the_guides_script_mails_to_users_that_are_known() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/OPERATING.md");
    let guide = fs::read_to_string(guide).unwrap();
    let line = guide.lines().find(|line| line.ends_with("| sort -u | while read -r user; do"));
    let (users, _) = line.unwrap().split_once(" \"$found\"").unwrap();
    assert_eq!(users.trim(), r#"jq -r '.user | select(. != "")'"#);
}

#[test]
fn nothing_to_act_on_is_status_0() {
    let dir = saved();
    let nothing = (0, vec![], String::new());
    assert_eq!(findings(dir.path(), &[]), nothing, "they took less than ten minutes");
    assert_eq!(findings(dir.path(), &["--least", "0s", "--user", "nobody"]), nothing);
    let lately = end(jobtrace()
        .args(["findings", "--since", "1ms", "--least", "0s", "--from"])
        .arg(dir.path()));
    assert_eq!((lately.status, lately.stdout.as_str()), (0, ""));
    let other = end(jobtrace().args(["findings", "--rule", "gpu"]));
    assert_eq!(other.status, 2);
    assert!(other.stderr.contains("gpu_unused"), "{}", other.stderr);
}

#[test]
fn each_user_is_told_of_each_finding_once() {
    let dir = saved();
    let file = dir.path().join("told.json");
    let state = ["--least", "0s", "--state", file.to_str().unwrap()];
    let (_, all, _) = findings(dir.path(), &["--least", "0s"]);
    let (status, first, stderr) = findings(dir.path(), &state);
    assert_eq!((status, stderr.as_str()), (1, ""));
    let others: u64 = first.iter().map(|one| one["other_jobs"].as_u64().unwrap()).sum();
    assert_eq!(first.len() as u64 + others, all.len() as u64, "none is lost: {all:?}");
    let mut unique = rules(&first);
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), first.len(), "all jobs are of one user");
    assert_eq!(findings(dir.path(), &state), (0, vec![], String::new()), "told already");
    let (_, again, _) = findings(dir.path(), &[&state[..], &["--again", "0s"]].concat());
    assert_eq!(rules(&again), rules(&first));
    // One that was told a day and a second ago.
    let now = jobtrace::base::clock::wall_ns();
    let then = now - 86_401_000_000_000;
    let old = format!(r#"{{"root":{{"{}":{then}}}}}"#, rules(&first)[0]);
    fs::write(&file, old).unwrap();
    assert_eq!(findings(dir.path(), &state).1.len(), first.len());
    fs::write(&file, "no json").unwrap();
    let (status, none, stderr) = findings(dir.path(), &state);
    assert_eq!((status, none.len()), (2, 0));
    assert!(stderr.contains("remove it, and everybody is told again"), "{stderr}");
}

#[test]
fn what_cannot_be_read_is_status_2_and_the_rest_is_told() {
    let dir = saved();
    let (_, all, _) = findings(dir.path(), &["--least", "0s"]);
    let files = files(dir.path());
    let record = files.iter().find(|file| file.to_str().unwrap().contains("run-6142-")).unwrap();
    fs::write(record, &fs::read(record).unwrap()[..100]).unwrap();
    let (status, found, stderr) = findings(dir.path(), &["--least", "0s"]);
    assert_eq!(status, 2);
    assert!(found.len() < all.len() && !found.is_empty(), "{found:?}");
    assert!(stderr.contains("the record is damaged"), "{stderr}");
    let (status, none, stderr) = findings(&dir.path().join("nowhere"), &[]);
    assert_eq!((status, none.len()), (2, 0));
    assert!(stderr.contains("name their folder with --from"), "{stderr}");
}
