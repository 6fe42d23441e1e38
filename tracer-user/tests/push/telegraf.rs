//! Telegraf's directory_monitor: what it takes from a folder by docs/consumers/telegraf.conf, and that
//! each of our files is to its liking. It reads lines of up to 64 KiB, and one bad line costs it the
//! rest of a file.

use std::{fs, io::Read};

use flate2::read::MultiGzDecoder;
use influxdb_line_protocol::parse_lines;
use jobtrace::{
    lines::{
        spool::{Limits, Resume, Spool},
        writer::Writer,
    },
    model::point::{FieldValue, Point},
};
use regex::Regex;

/// Bytes of a line that Telegraf's reader takes.
const LINE: usize = 64 << 10;

fn configuration() -> toml::Table {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/consumers/telegraf.conf");
    fs::read_to_string(path).unwrap().parse().unwrap()
}

/// What the configuration looks for, as Telegraf does: somewhere in the path below the folder, which
/// begins with a slash.
fn is_taken(name: &str) -> bool {
    let monitor = configuration()["inputs"]["directory_monitor"][0].clone();
    let wanted = monitor["files_to_monitor"].as_array().unwrap();
    let wanted = wanted.iter().map(|pattern| Regex::new(pattern.as_str().unwrap()).unwrap());
    wanted.into_iter().any(|pattern| pattern.is_match(&format!("/{name}")))
}

#[test]
fn our_finished_files_are_taken_and_nothing_else() {
    for (name, taken) in [
        ("cn-1-3fd2a9b1-000000000123456789-1700000000.lp.gz", true),
        ("cn-1-3fd2a9b1-000000000123456789-1700000000.12.lp.gz", true),
        ("n1-3fd2a9b1-4711.0-1700000000.lp.gz", true),
        ("by-hand.lp", true),
        ("cn-1-3fd2a9b1-000000000123456789-1700000000.hlog", false),
        ("cn-1-3fd2a9b1-000000000123456789-1700000000.lp.gz.reason", false),
        ("notes.txt", false),
        ("lp.gz.tmp", false),
        ("help", false),
    ] {
        assert_eq!(is_taken(name), taken, "{name}");
    }
}

/// Points as bad as names of jobs, users and commands get.
fn hostile() -> Vec<Point> {
    let long = "x".repeat(200_000);
    let texts = [
        "",
        " ",
        ",",
        "=",
        "\"",
        "\\",
        "a\\",
        "\n",
        "a\nb 1 1",
        "\r",
        "\0",
        "#",
        "é\u{1f600}",
        &long,
    ];
    let mut points = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        points.push(Point {
            measurement: "job_info".into(),
            tags: Vec::from([
                ("job".into(), format!("{at}{text}")),
                ("user".into(), (*text).to_owned()),
            ]),
            fields: vec![
                ("command".into(), FieldValue::Text((*text).to_owned())),
                ("name".into(), FieldValue::Text(long.clone())),
                ("n".into(), FieldValue::Integer(at as u64)),
            ],
            time_ns: 1_700_000_000_000_000_000,
        });
    }
    points
}

#[test]
fn each_line_of_our_files_is_short_enough_and_good() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer { host: "a b/c".into(), boot_id: "12345678".into(), pid: 1 };
    let mut spool = Spool::open(dir.path(), Limits::default(), &writer).unwrap();
    spool.recover(Resume::Anew).unwrap();
    let points = hostile();
    let prepared = spool.prepare(&points, None, 1, 1).unwrap();
    spool.publish(prepared).unwrap();
    let (mut lines, mut parsed) = (0, 0);
    for entry in fs::read_dir(dir.path().join("outbox")).unwrap() {
        let path = entry.unwrap().path();
        assert!(is_taken(path.file_name().unwrap().to_str().unwrap()), "{path:?}");
        let mut text = String::new();
        MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
        assert!(text.ends_with('\n') && !text.contains('\r'));
        for line in text.lines() {
            assert!(line.len() < LINE, "{} bytes", line.len());
            lines += usize::from(!line.starts_with('#'));
        }
        parsed += parse_lines(&text).inspect(|line| assert!(line.is_ok(), "{line:?}")).count();
    }
    assert_eq!(
        (lines, parsed),
        (points.len(), points.len()),
        "a line for each point, and each is read"
    );
}

#[test]
fn a_half_written_file_is_never_where_telegraf_looks() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer { host: "n1".into(), boot_id: "12345678".into(), pid: 1 };
    let mut spool = Spool::open(dir.path(), Limits::default(), &writer).unwrap();
    spool.recover(Resume::Anew).unwrap();
    let prepared = spool.prepare(&hostile(), None, 1, 1).unwrap();
    let seen = || fs::read_dir(dir.path().join("outbox")).unwrap().count();
    assert_eq!(seen(), 0);
    spool.publish(prepared).unwrap();
    assert_eq!(seen(), 1);
    let monitor = configuration()["inputs"]["directory_monitor"][0].clone();
    assert!(monitor["directory"].as_str().unwrap().ends_with("/outbox"), "{monitor}");
}
