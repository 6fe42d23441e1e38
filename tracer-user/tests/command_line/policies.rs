//! `jobtrace usage --policies`.

use std::fs;

use jobtrace::record::head::Head;
use serde_json::Value;

use super::{
    lists::{BEGIN, HOUR, job, list, write},
    program::{Ended, end, jobtrace},
};

/// docs/OPERATING.md, whose example this is.
const OPERATING: &str = include_str!("../../../docs/OPERATING.md");

/// ada has used a tenth of her GPUs; half of bob's work is beside hers, without one; eve is well.
fn filled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let hours = |hours: u64| Some(hours * HOUR);
    let gpu = job(dir.path(), 1, "ada", "n1", BEGIN, 10);
    write(dir.path(), &Head { gpu_held_ns: hours(40), gpu_busy_ns: hours(4), ..gpu });
    job(dir.path(), 2, "bob", "n1", BEGIN + 5 * HOUR, 10);
    for id in 3..8 {
        let well = job(dir.path(), id, "eve", "n2", BEGIN + id * 6 * HOUR, 6);
        let well = Head { core_held_ns: hours(384), on_cpu_ns: hours(371), ..well };
        let (limit, used) = (Some(256 << 30), Some(190 << 30));
        let well = Head { memory_limit_bytes: limit, memory_used_peak_bytes: used, ..well };
        write(dir.path(), &well);
    }
    dir
}

const POLICY: &str = "\
[idle_gpus]
says = \"leaves GPUs idle\"
above = { idle_gpu_hours = 10 }
below = { gpus_used_percent = 15 }
";

fn usage(dir: &tempfile::TempDir, policy: &str, arguments: &[&str]) -> Ended {
    fs::write(dir.path().join("policies.toml"), policy).unwrap();
    let mut command = jobtrace();
    command.current_dir(dir).args(["usage", "--from", ".", "--policies", "policies.toml"]);
    end(command.args(arguments))
}

/// `text` as a block of a document.
fn block(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[test]
fn who_is_over_a_policy_is_told_with_the_numbers() {
    let dir = filled();
    let text = usage(&dir, POLICY, &[]);
    assert_eq!((text.status, text.stderr.as_str()), (0, ""));
    let over = "\nover a policy of policies.toml:\n  ada leaves GPUs idle: 36.0 idle GPU hours (above 10), 10.0 % \
                of the GPUs used (below 15)\n";
    assert!(text.stdout.ends_with(over), "{}", text.stdout);
    // CPU ONLY and ALONE.
    let bob = text.stdout.lines().find(|line| line.starts_with("bob")).unwrap();
    assert!(bob.ends_with("40.0   50 %"), "{}", text.stdout);
    assert!(OPERATING.contains(&block(&text.stdout)), "{}", block(&text.stdout));
    assert!(OPERATING.contains(&block(POLICY)));
    let json = usage(&dir, POLICY, &["--json"]);
    let rows: Vec<Value> =
        json.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |user: &str| rows.iter().find(|row| row["key"] == user).unwrap()["policies"].clone();
    assert_eq!((of("ada"), of("bob")), (serde_json::json!(["idle_gpus"]), serde_json::json!([])));
    let all = "[most]\nsays = 'has most'\nabove = { core_hours_of_all_percent = 50 }\n";
    let csv = usage(&dir, all, &["--csv", "--by", "account"]);
    assert!(csv.stdout.lines().any(|line| line.ends_with(",most,")), "{}", csv.stdout);
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
