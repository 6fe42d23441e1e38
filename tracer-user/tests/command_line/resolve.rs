//! `jobtrace resolve`, of paths, processes and files.

use std::{
    fs,
    io::Write,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::program::{Ended, end, jobtrace};

fn resolve(arguments: &[&str]) -> Ended {
    end(jobtrace().arg("resolve").args(arguments))
}

fn json_of(arguments: &[&str]) -> (i32, Value) {
    let ended = resolve(&[arguments, &["--json"]].concat());
    assert_eq!(ended.stderr, "", "{arguments:?}");
    (ended.status, serde_json::from_str(&ended.stdout).unwrap())
}

#[test]
fn a_path_of_a_job() {
    let path = "/slurm_n7/uid_4242/job_12/step_5+1/task_3";
    let ended = resolve(&[path]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let expected = [
        "job        12",
        "manager    slurm",
        "role       the job's own work",
        "step       5+1",
        "task       3",
        "user       4242",
        "slurmd     n7",
        "rule       slurm-v1",
        &format!("path       {path}"),
        "",
    ];
    assert_eq!(ended.stdout, expected.join("\n"));
    let (status, answer) = json_of(&[path]);
    assert_eq!(status, 0);
    let expected = json!({
        "path": path, "role": "job", "manager": "slurm", "job": "12", "step": "5+1", "task": "3",
        "uid": 4242, "node": "n7", "rule": "slurm-v1", "root": 3,
    });
    assert_eq!(answer, expected);
}

#[test]
fn a_path_of_no_job_is_status_1() {
    for (path, manager, role) in [
        ("/system.slice/sshd.service", "none", "not_a_job"),
        ("/system.slice/slurmd.service", "slurm", "not_a_job"),
        ("/lxc.monitor/box", "lxc", "helper"),
        ("/", "none", "not_a_job"),
        ("", "none", "not_a_job"),
        ("12x", "none", "not_a_job"),
    ] {
        let (status, answer) = json_of(&[path]);
        let seen = (status, answer["manager"].as_str(), answer["role"].as_str());
        assert_eq!(seen, (1, Some(manager), Some(role)), "{path}");
        assert_eq!(answer["root"], 0);
    }
}

#[test]
fn a_name_from_outside_cannot_drive_a_terminal() {
    let ended = resolve(&["/lxc.payload/a\u{9b}31m\u{202e}b"]);
    assert_eq!(ended.status, 0);
    assert!(!ended.stdout.contains(['\u{9b}', '\u{202e}', '\x1b']), "{:?}", ended.stdout);
    assert!(ended.stdout.starts_with("job        a\u{fffd}31m\u{fffd}b\n"), "{}", ended.stdout);
}

#[test]
fn a_process_is_told_with_the_line_that_decides() {
    let pid = std::process::id().to_string();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let (status, answer) = json_of(&[&pid]);
    let line = answer["line"].as_str().unwrap();
    assert!(own.lines().any(|own| own == line), "{line} of {own}");
    assert_eq!(answer["pid"], std::process::id());
    assert_eq!(status, i32::from(answer["job"] == ""));
    let ended = resolve(&[&pid]);
    assert!(ended.stdout.contains(&format!("\nline       {line}\n")), "{}", ended.stdout);
}

#[test]
fn an_environment_alone_makes_no_job() {
    let mut sleep = Command::new("sleep");
    sleep.arg0("slurmstepd: [3385.0]").arg("60").env("SLURM_JOB_ID", "3385");
    let mut sleep = sleep.env("SLURM_JOB_NAME", "forged").spawn().unwrap();
    let ended = resolve(&[&sleep.id().to_string(), "--json"]);
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    // Unless this test itself runs in a job of Slurm, which would be another one.
    assert!(!ended.stdout.contains("3385") && !ended.stdout.contains("forged"), "{}", ended.stdout);
}

#[test]
fn no_such_process_and_no_such_file_are_status_2() {
    for (arguments, words) in [
        (&["4294967295"][..], "no process 4294967295"),
        (&["99999999999999999999"], "no process 99999999999999999999"),
        (&["--tsv", "/no/such/file"], "cannot read /no/such/file"),
    ] {
        let ended = resolve(arguments);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

const PATHS: &str = "\
/slurm/uid_1000/job_211/step_0\tand what follows
/system.slice/sshd.service

/lxc/a\u{9b}b
";

#[test]
fn a_file_of_paths_has_an_answer_for_each_line() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("paths.tsv");
    fs::write(&file, PATHS).unwrap();
    let ended = resolve(&["--tsv", file.to_str().unwrap()]);
    let expected = "\
path\tmanager\tjob\tstep\ttask\tuser\tuid\trole\trule
/slurm/uid_1000/job_211/step_0\tslurm\t211\t0\t\t\t1000\tjob\tslurm-v1
/system.slice/sshd.service\tnone\t\t\t\t\t\tnot_a_job\tunit
\tnone\t\t\t\t\t\tnot_a_job\troot
/lxc/a\\u{9b}b\tlxc\ta\\u{9b}b\t\t\t\t\tjob\tlxc
";
    assert_eq!((ended.status, ended.stdout.as_str()), (0, expected));
    fs::write(&file, "/a\n").unwrap();
    assert_eq!(resolve(&["--tsv", file.to_str().unwrap()]).status, 1);
}

#[test]
fn standard_input_and_json_lines() {
    let mut command = jobtrace();
    command.args(["resolve", "--json", "--tsv", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(PATHS.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 4);
    assert_eq!((&answers[0]["job"], &answers[3]["job"]), (&json!("211"), &json!("a\u{9b}b")));
}

/// The corpus is its own input: the first column is the path.
#[test]
fn the_table_of_real_paths_goes_through() {
    let corpus = include_str!("../resolve/cgroup_paths.tsv");
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("corpus.tsv");
    fs::write(&file, corpus).unwrap();
    let ended = resolve(&["--tsv", file.to_str().unwrap()]);
    assert_eq!((ended.status, ended.stdout.lines().count()), (0, corpus.lines().count() + 1));
    let job = |row: &str| row.split('\t').nth(2).unwrap_or_default().replace("sluid:", "");
    let answers = ended.stdout.lines().skip(2);
    for (row, answer) in corpus.lines().skip(1).zip(answers) {
        assert_eq!(job(answer), job(row), "{answer}");
    }
}
