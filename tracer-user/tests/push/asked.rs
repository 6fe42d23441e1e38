//! What asks a database for jobs, against a server that answers as told: InfluxDB 2's form, answers that do not come, and
//! what is none.

use std::process::{Command, Output};

use super::server::{Act, Server};

fn jobs(server: &Server, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jobtrace"));
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"] {
        command.env_remove(name);
    }
    command.env("JOBTRACE_INFLUX_TOKEN", "abc");
    command.args(["jobs", "--csv", "--influx", &server.url()]).args(more).output().unwrap()
}

fn refused(server: &Server, more: &[&str], part: &str) {
    let output = jobs(server, more);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(part), "{part}: {said}");
}

#[test]
fn a_bucket_is_asked_with_a_token_and_its_rows_are_jobs() {
    let server = Server::start(|_, request| {
        let rows = |name: &str, columns: &str, values: &str| {
            format!(
                r#"{{"results":[{{"statement_id":0,"series":[{{"name":"{name}","tags":{{"host":"n1","job":"7","manager":"slurm","cluster":"","step":""}},"columns":["time",{columns}],"values":[{values}]}}]}}]}}"#
            )
        };
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let (begin, end) = (now - 20_000_000_000, now - 5_000_000_000);
        Act::Say(
            200,
            "content-type: application/json\r\n",
            match &*request.text {
                text if text.contains("first") => {
                    rows("job_info", "\"first\"", &format!("[{begin},1]"))
                }
                text if text.contains("ORDER") => rows(
                    "job_info",
                    r#""start","end","elapsed_ns","user","sched_on_cpu_ns","cpu_held_ns""#,
                    &format!(r#"[{end},{begin},{end},15000000000,"ada",3000000000,60000000000]"#),
                ),
                _ => r#"{"results":[{"statement_id":0}]}"#.to_owned(),
            },
        )
    });
    let output = jobs(&server, &["--influx-org", "hpc site", "--influx-bucket", "jobs"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let row: Vec<_> = text.lines().nth(1).unwrap().split(',').collect();
    assert_eq!((row[0], row[2], row[6]), ("7", "ada", "ended"), "{text}");
    let header: Vec<_> = text.lines().next().unwrap().split(',').collect();
    let told = ["elapsed_ns", "on_cpu_ns", "core_held_ns"]
        .map(|name| row[header.iter().position(|column| *column == name).unwrap()]);
    assert_eq!(told, ["15000000000", "3000000000", "60000000000"], "{text}");
    assert_eq!(text.lines().count(), 2, "told once, whatever the days: {text}");
    for request in server.requests() {
        let head = "POST /query?db=jobs&org=hpc%20site&epoch=ns&chunked=true";
        assert!(request.head.starts_with(head), "{}", request.head);
        assert_eq!(request.headers["authorization"], "Token abc");
    }
}

#[test]
fn what_does_not_answer_well_is_told() {
    let hangs = Server::start(|_, _| Act::Hang);
    refused(&hangs, &["--influx-timeout", "1s"], "no complete answer within 1 s");
    let say = |status, body: &str| {
        let body = body.to_owned();
        Server::start(move |_, _| Act::Say(status, "", body.clone()))
    };
    refused(&say(200, "<html>"), &[], "the answer is not InfluxDB's");
    refused(
        &say(404, r#"{"code":"not found","message":"no dbrp mapping found"}"#),
        &[],
        "influx v1 dbrp create",
    );
    refused(&say(403, r#"{"error":"ada not authorized"}"#), &[], "ada not authorized");
    refused(&say(302, ""), &[], "the address that the server names");
    refused(&say(503, ""), &[], "try again later");
    refused(
        &say(200, r#"{"results":[{"statement_id":0,"error":"database not found: jobtrace"}]}"#),
        &[],
        "--influx-database",
    );
    // Cut off in the middle.
    refused(&say(200, r#"{"results":["#), &[], "the answer broke off: try again");
}
