//! docs/consumers for InfluxDB 1.x, in a real one: the server starts with the configuration, lets in
//! whom it should, takes the statements, and what they gather over time is what was there.

use std::{fs, path::Path, process::Command};

use jobtrace_tests::{rig::influx::Influx, traced::program};
use toml::{Table, Value};

fn document(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/consumers").join(name)
}

/// The configuration with folders and ports of a test.
fn configuration(folder: &Path, port: u16, rpc: u16) -> String {
    let text = fs::read_to_string(document("influxdb-1.conf")).unwrap();
    let mut table: Table = text.parse().unwrap();
    let mut set = |part: &str, key: &str, value: String| {
        let part = table.get_mut(part).unwrap().as_table_mut().unwrap();
        assert!(part.insert(key.into(), Value::String(value)).is_some(), "{key}");
    };
    let within = |name: &str| folder.join(name).display().to_string();
    set("meta", "dir", within("meta"));
    set("data", "dir", within("data"));
    set("data", "wal-dir", within("wal"));
    set("http", "bind-address", format!("127.0.0.1:{port}"));
    table.insert("bind-address".into(), Value::String(format!("127.0.0.1:{rpc}")));
    assert_eq!(table["data"]["index-version"].as_str(), Some("tsi1"));
    toml::to_string(&table).unwrap()
}

#[test]
fn the_documented_server_takes_the_documented_statements_and_keeps_sums_for_years() {
    let mut influx = Influx::start_as(configuration).unwrap();
    influx.log_in("admin", "secret of a test").unwrap();
    let output = influx.run_file(&document("influxdb-1.influxql")).unwrap();
    let words = [&output.stdout[..], &output.stderr].concat();
    let words = String::from_utf8_lossy(&words);
    assert!(output.status.success() && !words.contains("ERR"), "{words}");
    let policies = influx.query("jobtrace", "SHOW RETENTION POLICIES ON jobtrace").unwrap();
    let shown = |name: &str| {
        let row = policies.iter().find(|row| row["name"] == name).unwrap();
        (row["duration"].as_str().unwrap().to_owned(), row["default"].as_bool().unwrap())
    };
    assert_eq!(shown("fine"), ("2160h0m0s".into(), true));
    assert_eq!(shown("years"), ("43800h0m0s".into(), false));

    // An hour of two jobs on two nodes, ending now; whole ten minutes.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let begin = (now / 600 - 7) * 600;
    let mut text = String::new();
    for second in (begin..begin + 3600).step_by(10) {
        for (host, job) in [("n1", 1), ("n1", 2), ("n2", 1)] {
            let largest = second % 1000;
            text += &format!(
                "job_sched,host={host},job={job} on_cpu_ns=5i,run_queue_wait_ns_count=2i,\
                 run_queue_wait_ns_max={largest}i {second}000000000\n"
            );
        }
        text += &format!(
            "job_block,device=vda,host=n1,job=1,op=read ops=3i,bytes=4096i {second}000000000\n"
        );
    }
    text += &format!("job_info,host=n1,job=1 name=\"a job\",uid=7i {begin}000000000\n");
    let spool = tempfile::tempdir().unwrap();
    let password = spool.path().join("password");
    fs::write(spool.path().join("a.lp"), &text).unwrap();
    fs::write(&password, "of the pusher\n").unwrap();
    let push = || {
        let mut command = Command::new(program().unwrap());
        command.arg("push").arg("--spool").arg(spool.path()).args(["--url", &influx.url()]);
        command.env_remove("http_proxy").env_remove("HTTP_PROXY").env_remove("ALL_PROXY");
        command.arg("--user").arg("pusher").arg("--password-file").arg(&password);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, words) = push();
    assert!(status == Some(2) && words.contains("401") && words.contains("--user"), "{words}");
    influx.query("", "CREATE USER \"pusher\" WITH PASSWORD 'of the pusher'").unwrap();
    let (status, words) = push();
    assert!(status == Some(2) && words.contains("403") && words.contains("GRANT WRITE"), "{words}");
    influx.query("", "GRANT WRITE ON \"jobtrace\" TO \"pusher\"").unwrap();
    let (status, words) = push();
    assert_eq!(status, Some(0), "{words}");

    // What the server will run by itself, run now over the hour.
    let queries = influx.query("", "SHOW CONTINUOUS QUERIES").unwrap();
    assert_eq!(queries.len(), 7, "{queries:?}");
    for row in &queries {
        let statement = row["query"].as_str().unwrap();
        let (_, inner) = statement.split_once("BEGIN").unwrap();
        let (inner, _) = inner.rsplit_once("END").unwrap();
        let (head, group) = inner.split_once(" GROUP BY ").unwrap();
        let hour = format!("time >= {begin}s AND time < {}s", begin + 3600);
        influx.query("jobtrace", &format!("{head} WHERE {hour} GROUP BY {group}")).unwrap();
    }
    let one = |query: &str, column: &str| {
        let rows = influx.query("jobtrace", query).unwrap();
        rows.first().map(|row| row[column].clone()).unwrap_or_default()
    };
    for field in ["on_cpu_ns", "run_queue_wait_ns_count"] {
        let both = ["fine", "years"].map(|policy| {
            one(&format!("SELECT sum({field}) FROM {policy}.job_sched"), "sum").as_u64()
        });
        assert_eq!(both[0], both[1], "{field}");
        assert!(both[0] > Some(0), "{field}");
    }
    let count = "SELECT count(on_cpu_ns) FROM years.job_sched WHERE host = 'n1' AND job = '2'";
    assert_eq!(one(count, "count").as_u64(), Some(6), "one for ten minutes");
    let largest = "SELECT max(run_queue_wait_ns_max) FROM years.job_sched";
    assert_eq!(one(largest, "max").as_u64(), Some(990));
    let bytes = "SELECT sum(bytes) FROM years.job_block WHERE device = 'vda' AND op = 'read'";
    assert_eq!(one(bytes, "sum").as_u64(), Some(360 * 4096));
    assert_eq!(one("SELECT \"name\" FROM years.job_info", "name").as_str(), Some("a job"));
}
