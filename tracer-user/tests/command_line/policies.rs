//! `jobtrace usage --policies`.

use std::fs;

use jobtrace::record::head::Head;
use serde_json::Value;

use super::{
    lists::{BEGIN, HOUR, job, list, write},
    program::Ended,
};

/// ada has used a tenth of her GPUs, bob has none; the rest of his node is idle for half the time.
fn filled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let gpu = job(dir.path(), 1, "ada", "n1", BEGIN, 10);
    let gpu = Head { gpu_held_ns: Some(40 * HOUR), gpu_busy_ns: Some(4 * HOUR), ..gpu };
    write(dir.path(), &gpu);
    job(dir.path(), 2, "bob", "n1", BEGIN + 5 * HOUR, 10);
    dir
}

const POLICY: &str = "[gpus]\nsays = 'leaves GPUs idle'\nabove.idle_gpu_hours = 30\n";

fn usage(dir: &tempfile::TempDir, policy: &str, arguments: &[&str]) -> Ended {
    let file = dir.path().join("policies.toml");
    fs::write(&file, policy).unwrap();
    list("usage", dir.path(), &[&["--policies", file.to_str().unwrap()], arguments].concat())
}

#[test]
fn who_is_over_a_policy_is_told_with_the_numbers() {
    let dir = filled();
    let text = usage(&dir, POLICY, &[]);
    assert_eq!((text.status, text.stderr.as_str()), (0, ""));
    let over = "policies.toml:\n  ada leaves GPUs idle: 36.0 idle GPU hours (above 30)\n";
    assert!(
        text.stdout.contains("\nover a policy of /") && text.stdout.ends_with(over),
        "{}",
        text.stdout
    );
    // CPU ONLY and ALONE: bob's 40 core hours, half of them beside ada.
    let bob = text.stdout.lines().find(|line| line.starts_with("bob")).unwrap();
    assert!(bob.ends_with("40.0   50 %"), "{}", text.stdout);
    let json = usage(&dir, POLICY, &["--json"]);
    let rows: Vec<Value> =
        json.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |user: &str| rows.iter().find(|row| row["key"] == user).unwrap()["policies"].clone();
    assert_eq!((of("ada"), of("bob")), (serde_json::json!(["gpus"]), serde_json::json!([])));
    let csv = usage(&dir, POLICY, &["--csv", "--by", "account"]);
    assert!(csv.stdout.lines().any(|line| line.ends_with(",gpus")), "{}", csv.stdout);
    let none = usage(&dir, "", &[]);
    assert!(!none.stdout.contains("policy"), "{}", none.stdout);
}

#[test]
fn a_file_that_is_wrong_or_out_of_place_is_refused() {
    let dir = filled();
    for (policy, arguments, expected) in [
        ("[a]\nsays = 'x'\nabove = { jobs = 'many' }\n", &[][..], "policies.toml:3:18: "),
        ("[a]\nsays = 'x'\nabove = { gpu = 1 }\n", &[], "unknown measure `gpu`"),
        (POLICY, &["--by", "node"], "policies are about users and accounts"),
    ] {
        let ended = usage(&dir, policy, arguments);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{policy}");
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    let absent = list("usage", dir.path(), &["--policies", "/nowhere/policies.toml"]);
    assert_eq!(absent.status, 2);
    assert!(absent.stderr.contains("cannot read /nowhere/policies.toml"), "{}", absent.stderr);
}
