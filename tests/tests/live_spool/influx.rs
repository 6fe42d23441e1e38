//! The files in a real InfluxDB, by each way into it: every value of every point comes back.

use std::{collections::BTreeMap, fs, path::Path};

use hdrhistogram::serialization::{
    Deserializer,
    interval_log::{IntervalLogIterator, LogEntry},
};
use jobtrace::{
    lines::{
        spool::{Limits, Resume, Spool},
        writer::Writer,
    },
    model::point::{FieldValue, Point},
};
use jobtrace_tests::{
    daemon::{
        PATIENCE, Setup,
        files::{self, Points, Value},
        site::Site,
    },
    rig::{
        influx::{Influx, Row},
        wait_for,
    },
};

const DB: &str = "jobtrace";

/// All that the data base has, in the form of [`files::points`].
fn stored(influx: &Influx, db: &str, points: &Points) -> Points {
    let mut found = Points::new();
    let names: std::collections::BTreeSet<&String> = points.keys().map(|(name, ..)| name).collect();
    for name in names {
        let keys = influx.query(db, &format!("SHOW TAG KEYS FROM \"{name}\"")).unwrap();
        let keys: Vec<String> =
            keys.iter().map(|row| row["tagKey"].as_str().unwrap().to_owned()).collect();
        for row in influx.query(db, &format!("SELECT * FROM \"{name}\" GROUP BY *")).unwrap() {
            let (series, fields) = of_row(name, &keys, row);
            assert!(found.insert(series, fields).is_none());
        }
    }
    found
}

fn of_row(name: &str, keys: &[String], row: Row) -> (files::Series, BTreeMap<String, Value>) {
    let stamp = row["time"].as_i64().unwrap();
    let (mut tags, mut fields) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in row {
        if keys.contains(&key) {
            let value = value.as_str().unwrap();
            if !value.is_empty() {
                tags.insert(key, value.to_owned());
            }
            continue;
        }
        let value = match value {
            serde_json::Value::Number(number) => match number.as_u64() {
                Some(number) => Value::Integer(number),
                None => Value::Float(number.as_f64().unwrap()),
            },
            serde_json::Value::String(text) if key != "measurement" => Value::Text(text),
            _ => continue,
        };
        if key != "time" {
            fields.insert(key, value);
        }
    }
    ((name.to_owned(), tags, stamp), fields)
}

/// Whole floats come back without their dot.
fn whole_floats_as_integers(points: &Points) -> Points {
    let mut points = points.clone();
    for value in points.values_mut().flat_map(BTreeMap::values_mut) {
        if let Value::Float(number) = value
            && number.fract() == 0.0
        {
            *value = Value::Integer(*number as u64);
        }
    }
    points
}

pub fn assert_stored(influx: &Influx, db: &str, points: &Points, way: &str) {
    let (expected, found) = (whole_floats_as_integers(points), stored(influx, db, points));
    for (series, fields) in &expected {
        assert_eq!(found.get(series), Some(fields), "{series:?} {way}");
    }
    assert_eq!(found.len(), expected.len(), "{way}");
}

/// By all five ways, each twice: what is sent again changes nothing.
fn all_ways(influx: &Influx, outbox: &Path, points: &Points) {
    for compressed in [false, true] {
        influx.create_db(DB).unwrap();
        for _ in 0..2 {
            for file in files::list(outbox).unwrap() {
                let plain = outbox.with_file_name("plain");
                fs::write(&plain, files::text(&file).unwrap()).unwrap();
                let output =
                    influx.import(if compressed { &file } else { &plain }, compressed).unwrap();
                assert!(output.status.success(), "{output:?}");
                let said = [&output.stdout[..], &output.stderr].concat();
                let said = String::from_utf8_lossy(&said);
                assert!(said.contains("Failed 0 inserts"), "{said}");
            }
            assert_stored(influx, DB, points, &format!("by import, compressed: {compressed}"));
        }
        influx.query(DB, &format!("DROP DATABASE \"{DB}\"")).unwrap();
    }
    for (db, gzip) in [("http", false), ("gzip", true)] {
        influx.create_db(db).unwrap();
        for _ in 0..2 {
            for file in files::list(outbox).unwrap() {
                let text = files::text(&file).unwrap();
                let answer = influx.write_lp(db, text.as_bytes(), gzip).unwrap();
                assert_eq!(answer.status, 204, "{answer:?}");
            }
            assert_stored(influx, db, points, db);
        }
        influx.query(db, &format!("DROP DATABASE \"{db}\"")).unwrap();
    }
    influx.create_db("push").unwrap();
    for _ in 0..2 {
        super::pushed::push_copy(outbox, &["--url", &influx.url(), "--database", "push"]);
        assert_stored(influx, "push", points, "by jobtrace push");
    }
    influx.query("push", "DROP DATABASE \"push\"").unwrap();
}

/// Counts of the interval logs beside the files, by the log's tag.
fn logged(outbox: &Path) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for entry in fs::read_dir(outbox).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "hlog") {
            continue;
        }
        let text = fs::read(&path).unwrap();
        for entry in IntervalLogIterator::new(&text) {
            let LogEntry::Interval(line) = entry.unwrap_or_else(|e| panic!("{path:?}: {e:?}"))
            else {
                continue;
            };
            let text = line.encoded_histogram();
            let bytes = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, text).unwrap();
            let hist: hdrhistogram::Histogram<u64> =
                Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
            *counts.entry(line.tag().unwrap().as_str().to_owned()).or_insert(0) += hist.len();
        }
    }
    counts
}

/// The buckets' counts in the files by the same tag.
fn counted(points: &Points) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for ((name, tags, _), fields) in points {
        if name != "job_hist" {
            continue;
        }
        let Value::Integer(count) = fields["n"] else { panic!("{fields:?}") };
        let mut tag = format!("{}/{}/{}", tags["manager"], tags["job"], tags["metric"]);
        // A mount that is unknown is no tag in a line, and an empty one in the log.
        let own: &[&str] =
            if tags.contains_key("call") { &["call", "fs", "mount"] } else { &["device", "op"] };
        let is_wait = tags.contains_key("call");
        for own in own.iter().filter(|key| is_wait || tags.contains_key(**key)) {
            tag.push('/');
            tag.push_str(tags.get(*own).map_or("", String::as_str));
        }
        *counts.entry(tag.replace([',', ' '], "_")).or_insert(0) += count;
    }
    counts
}

#[test]
fn every_value_of_a_run_comes_back_from_influxdb() {
    let influx = Influx::start().unwrap();
    for profile in ["histogram", "full"] {
        let cluster = r#"c l,u=s"t\er é"#;
        let more = format!(
            "cluster = '{cluster}'\n[export]\nprofile = {profile:?}\nhlog = true\n\
             [[rule]]\nname = \"batch\"\npattern = '.*/batch[^/]*/(?<job>[^/]+)$'\nmanager = \"batch\"\n"
        );
        let setup = Setup::new(&more).unwrap();
        let site = Site::new().unwrap();
        let mut agent = setup.start().unwrap();
        // Its name is learnt from the programs executed once the agent knows the job.
        site.task(3).unwrap();
        wait_for("the agent to know the job", PATIENCE, || {
            let points = files::points(&setup.outbox()).unwrap();
            files::jobs(&points, "job_info").contains(&site.job(3)).then_some(())
        })
        .unwrap();
        let jobs: Vec<_> = (0..3)
            .map(|number| site.spawn(number, "spin", &["crowd", "2", "700"]).unwrap())
            .collect();
        // A name that a user chose.
        let hostile = "a b,c=d\"e\\f\ng\u{e9}\u{1f600}\\";
        let mut named = site.command(3, "spin", &["crowd", "1", "300"]).unwrap();
        let mut named = named.env("SLURM_JOB_NAME", hostile).spawn().unwrap();
        // A job of the site's own, whose directory nobody has chosen well.
        let directory = "7 a,b=c\"d\\e\u{e9}\u{1f600}";
        let odd = site.odd("batch", directory).unwrap();
        site.run_in(&odd, "test_job", &["forks", "40"]).unwrap();
        for job in jobs {
            jobtrace_tests::daemon::site::report(job).unwrap();
        }
        assert!(named.wait().unwrap().success());
        site.fork(0, 50).unwrap();
        agent.end_well().unwrap();

        let points = files::points(&setup.outbox()).unwrap();
        all_ways(&influx, &setup.outbox(), &points);
        let jobs = files::jobs(&points, "job_sched");
        assert_eq!(files::sum(&points, "job_sched", directory, "forks"), 40, "{jobs:?}");
        assert_eq!(files::sum(&points, "job_sched", &site.job(0), "forks"), 52);
        let name = |((measurement, tags, _), fields): (&files::Series, &BTreeMap<_, Value>)| {
            let is_it = measurement == "job_info" && tags["job"] == site.job(3);
            is_it.then(|| fields.get("name").cloned()).flatten()
        };
        let shown = Value::Text(hostile.replace('\n', "\u{fffd}"));
        assert!(points.iter().filter_map(name).all(|name| name == shown), "{shown:?}");
        assert!(points.iter().filter_map(name).count() > 0);
        assert!(points.keys().all(|(_, tags, _)| tags["cluster"] == cluster));
        let (logged, counted) = (logged(&setup.outbox()), counted(&points));
        assert!(logged.len() > 20, "{logged:?}");
        assert_eq!(logged, counted);
        eprintln!(
            "{profile}: {} points in {} files, {} histograms in the logs",
            points.len(),
            files::list(&setup.outbox()).unwrap().len(),
            logged.len()
        );
    }
}

#[test]
fn hostile_names_come_back_as_documented() {
    // As they are given, and as they come back: what no escape exists for is `_`, in a text a space.
    let tags = [
        ("sd a", "sd a"),
        ("a,b=c d", "a,b=c d"),
        ("\"quoted\"", "\"quoted\""),
        ("back\\slash", "back\\slash"),
        ("ends\\", "ends_"),
        ("a\\,b\\ c\\=d\\\\e", "a_,b_ c_=d_\\e"),
        ("line\nfeed\r\t\0", "line_feed___"),
        ("\u{e9}\u{1f600}\u{85}", "\u{e9}\u{1f600}_"),
        ("'; DROP DATABASE http", "'; DROP DATABASE http"),
        ("# comment", "# comment"),
    ];
    let texts = [
        ("a b,c=d", "a b,c=d"),
        ("q\"u\\o\\\\t\"", "q\"u\\o\\\\t\""),
        ("line\nfeed\r\0", "line feed  "),
        ("\u{e9}\u{1f600}\\", "\u{e9}\u{1f600}\\"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer { host: "a b/c".into(), boot_id: "12345678".into(), pid: 1 };
    let mut spool = Spool::open(folder.path(), Limits::default(), &writer).unwrap();
    spool.recover(Resume::Anew).unwrap();
    let mut points = Vec::new();
    for (at, (tag, _)) in tags.iter().enumerate() {
        let tags = ["device", "job", "user"].map(|key| (key.into(), (*tag).to_owned()));
        let (text, _) = texts[at % texts.len()];
        let fields = vec![
            ("n".into(), FieldValue::Integer(at as u64)),
            ("name".into(), FieldValue::Text(text.to_owned())),
        ];
        let (measurement, time_ns) = ("hostile".into(), 1_700_000_000_000_000_000);
        points.push(Point { measurement, tags: tags.into(), fields, time_ns });
    }
    let prepared = spool.prepare(&points, None, 1, 1).unwrap();
    spool.publish(prepared).unwrap();
    let outbox = folder.path().join("outbox");
    let found = files::points(&outbox).unwrap();
    assert_eq!(found.len(), tags.len());
    for ((_, own, _), fields) in &found {
        let Value::Integer(at) = fields["n"] else { panic!("{fields:?}") };
        let (at, expected) = (at as usize, tags[at as usize].1);
        assert!(own.values().all(|value| value == expected), "{own:?} is not {expected:?}");
        assert_eq!(fields["name"], Value::Text(texts[at % texts.len()].1.to_owned()));
    }
    let influx = Influx::start().unwrap();
    all_ways(&influx, &outbox, &found);
}
