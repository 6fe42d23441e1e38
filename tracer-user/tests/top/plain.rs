//! Without a terminal: the table once, from an agent and from folders, and what is said where there is none.

use std::process::{Command, Output};

use jobtrace::record::store::Store;

use crate::agent::{Agent, job};

fn top(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jobtrace"));
    command.arg("top").args(arguments).env("LANG", "C.UTF-8").env_remove("LC_ALL");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn once_prints_the_table_in_the_order_asked_for() {
    let agent = Agent::start(vec![job("4711", 90, 3, 1), job("4712", 60, 1, 3)]);
    let socket = agent.socket();
    let socket = ["--once", "--socket", socket.to_str().unwrap()];
    let expected = "\
JOB   USER  CORES  ON CPU  WAITING  BLOCKED  MEMORY      TIME  NAME
4711  ada     3/4    75 %      0 %     25 %   1 GiB  1.50 min  name4711
4712  ada     1/4    25 %      0 %     75 %   1 GiB  1.00 min  name4712
";
    assert_eq!(top(&socket), (0, expected.into(), String::new()));
    let (_, blocked, _) = top(&[&socket[..], &["--sort", "blocked"]].concat());
    assert!(blocked.lines().nth(1).unwrap().starts_with("4712 "), "{blocked}");
    agent.jobs.lock().unwrap().clear();
    let (status, none, _) = top(&socket);
    assert!(status == 0 && none.lines().count() == 1 && none.starts_with("JOB "), "{none}");
}

#[test]
fn folders_tell_of_jobs_that_run_and_were_seen_within_the_hour() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), "n1").unwrap();
    let mut ended = job("4712", 60, 1, 3);
    ended.facts.set(const { jobtrace::model::tables::fact("end") }, ended.timeline.end_ns());
    let lost = {
        let mut record = job("4713", 20_000, 1, 0);
        record.timeline = jobtrace::record::timeline::Timeline::new(record.timeline.begin_ns());
        record
    };
    for record in [job("4711", 90, 3, 1), ended, lost] {
        store.save(&record).unwrap();
    }
    let (status, shown, said) = top(&["--once", "--from", dir.path().to_str().unwrap()]);
    assert_eq!((status, said.as_str()), (0, ""));
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.lines().nth(1).unwrap().starts_with("4711  ada     3/4    75 %"), "{shown}");
}

#[test]
fn what_is_missing_is_said_with_the_cure() {
    let (status, shown, said) = top(&[]);
    assert_eq!((status, shown.as_str()), (2, ""));
    let expected = "jobtrace: the live view needs a terminal: --once prints the table and ends: standard output is no \
                    terminal\n";
    assert_eq!(said, expected);
    let (status, _, said) = top(&["--once", "--socket", "/nowhere/query.sock"]);
    assert_eq!(status, 2);
    assert!(
        said.contains("is the agent running (`systemctl status jobtrace`)? --from DIR reads"),
        "{said}"
    );
    assert!(said.contains("cannot ask the agent at /nowhere/query.sock"), "{said}");
    let (status, _, said) = top(&["--once", "--from", "/nowhere"]);
    assert_eq!(status, 2);
    assert!(said.contains("name their folder with --from"), "{said}");
}
