//! The examples in docs/consumers: they are of their format, name databases, measurements and fields that
//! there are, and say where our files lie.

use std::{collections::BTreeSet, fs, path::Path};

use jobtrace::commands::push::options::Options;
use toml::{Table, Value};

fn document(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/consumers");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn only(table: &Value) -> &Value {
    let list = table.as_array().unwrap();
    assert_eq!(list.len(), 1);
    &list[0]
}

#[test]
fn telegraf_looks_where_the_agent_writes() {
    let table: Table = document("telegraf.conf").parse().unwrap();
    let monitor = only(&table["inputs"]["directory_monitor"]);
    let spool = Options::defaults().spool.unwrap();
    assert_eq!(monitor["directory"].as_str(), spool.join("outbox").to_str());
    assert_eq!(monitor["data_format"].as_str(), Some("influx"));
    let folders: BTreeSet<_> = ["directory", "finished_directory", "error_directory"]
        .map(|key| monitor[key].as_str().unwrap())
        .into();
    assert_eq!(folders.len(), 3, "what is done must not be looked at again");
}

#[test]
fn telegraf_hands_on_what_we_write_and_nothing_else() {
    let metrics = jobtrace::docs::metrics();
    let written: Vec<_> = metrics.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let ours = |name: &str| {
        name.starts_with("job_") || ["jobtrace_self", "node_mount", "node_net"].contains(&name)
    };
    for (version, plugin, place) in [
        ("v1", "influxdb", "database"),
        ("v2", "influxdb_v2", "bucket"),
        ("v3", "influxdb_v2", "bucket"),
    ] {
        let table: Table = document(&format!("telegraf-output-{version}.conf")).parse().unwrap();
        let output = only(&table["outputs"][plugin]);
        assert_eq!(output[place].as_str(), Some("jobtrace"));
        let passed: Vec<_> =
            output["namepass"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
        assert_eq!(passed, ["job_*", "jobtrace_self", "node_mount", "node_net"]);
        for secret in ["password", "token"].iter().filter_map(|key| output.get(key)) {
            assert!(
                secret.as_str().unwrap().starts_with("${"),
                "secrets come from the environment"
            );
        }
    }
    let of_job = written.iter().filter(|name| ours(name)).count();
    assert!(of_job >= 8, "{written:?}");
    let others: Vec<_> = written.iter().filter(|name| !ours(name)).collect();
    // Chapters, and the style that goes into ClusterCockpit's own store.
    let chapters = [&"Histograms", &"Hooks and families", &"ClusterCockpit"];
    assert_eq!(others, chapters, "a measurement that the outputs leave out");
}

/// The names in quotes after `FROM` and in the selections of a statement.
fn selected(statement: &str) -> (String, Vec<String>) {
    let (head, rest) = statement.split_once(" FROM ").unwrap();
    let source = rest.split('"').nth(5).unwrap().to_owned();
    let (_, selection) = head.split_once("SELECT ").unwrap();
    let (selection, _) = selection.split_once(" INTO ").unwrap();
    let mut fields = Vec::new();
    for part in selection.split(',') {
        let quoted: Vec<_> = part.split('"').collect();
        assert_eq!(quoted.len(), 5, "{part}");
        assert_eq!(quoted[1], quoted[3], "a field keeps its name");
        fields.push(quoted[1].to_owned());
    }
    (source, fields)
}

#[test]
fn what_influxdb_gathers_for_years_is_what_there_is() {
    let text: String = document("influxdb-1.influxql")
        .lines()
        .filter(|line| !line.starts_with("--"))
        .map(|line| format!("{} ", line.trim()))
        .collect();
    let metrics = jobtrace::docs::metrics();
    let section = |name: &str| {
        let (_, after) = metrics.split_once(&format!("## {name}\n")).unwrap();
        after.split("\n## ").next().unwrap().to_owned()
    };
    let mut seen = 0;
    for statement in text.split(';').filter(|statement| statement.contains("SELECT")) {
        let (measurement, fields) = selected(statement);
        assert!(statement.contains(&format!("\"years\".\"{measurement}\"")), "{statement}");
        let known = section(&measurement);
        for field in fields {
            let plain = ["_count", "_sum", "_max"].iter().find_map(|end| {
                let name = field.strip_suffix(end)?;
                known.contains(&format!("| `{name}` | histogram |")).then_some(())
            });
            let is_known = plain.is_some()
                || known.contains(&format!("| `{field}` |"))
                || field == "interval_ns" && metrics.contains("`interval_ns`");
            assert!(is_known, "{measurement} has no {field}");
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
}
