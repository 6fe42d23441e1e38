//! Files that no program wrote, and those of other versions: the message says what is wrong.

use jobtrace::record::{file, parse};
use serde_json::{Value as Json, json};

use super::*;

fn whole() -> Json {
    serde_json::from_str(&document(&full()).unwrap()).unwrap()
}

/// What is said of `json`.
fn refused(json: &Json) -> String {
    format!("{:#}", parse(json.to_string().as_bytes()).unwrap_err())
}

#[test]
fn every_damage_is_named() {
    let damage = |path: &str, value: Json| {
        let mut json = whole();
        *json.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value;
        refused(&json)
    };
    for (path, value, says) in [
        ("/job", json!(7), "`job` is no object"),
        ("/job/job", json!(7), "`job` is no text"),
        ("/job/start", json!("x"), "start is of another kind"),
        ("/elapsed_ns", json!(-1), "`elapsed_ns`: is no whole number"),
        ("/exit", json!([1]), "`exit`"),
        ("/hosts", json!("n1"), "`hosts`"),
        ("/peaks/cores", json!("x"), "`cores`: is no number"),
        ("/sched", json!([]), "`sched`: `it` is no object"),
        ("/sched/on_cpu_ns", json!(1.5), "`sched`: on_cpu_ns: is no whole number"),
        ("/sched/sleep_ns", json!(1), "`sched`: `sleep_ns` is no object"),
        ("/sched/sleep_ns/buckets", json!([[1]]), "a bucket is no pair"),
        ("/sched/sleep_ns/buckets", json!([[1, 1u64 << 60]]), "values are too many"),
        ("/block", json!({}), "`block`: is no list"),
        ("/block", json!([whole()["block"][0], whole()["block"][0]]), "`block` is there twice"),
        ("/cpu/cores_held", json!(-1), "cores_held: is no number"),
        ("/timeline", json!(null), "`timeline` is no object"),
        ("/timeline/columns", json!(1u64 << 40), "there are too many columns"),
        ("/timeline/columns", json!(2), "`on_cpu_ns` has not all columns"),
        ("/timeline/width_ns", json!(7), "its columns do not fit its times"),
        ("/timeline/on_cpu_ns/0", json!("x"), "on_cpu_ns: is no whole number"),
    ] {
        let said = damage(path, value);
        assert!(
            said.starts_with("the record is damaged: ") && said.contains(says),
            "{path}: {said}"
        );
    }
    let mut later = whole();
    later["schema"] = json!(2);
    assert_eq!(
        refused(&later),
        "the record has version 2, this program reads up to 1: read it with a newer jobtrace"
    );
    assert_eq!(refused(&json!({})), "the record is damaged: `schema` is missing");
    for missing in ["job", "elapsed_ns", "timeline"] {
        let mut json = whole();
        json.as_object_mut().unwrap().remove(missing);
        assert!(refused(&json).contains(missing), "{missing}");
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let bytes = file::encode(&full()).unwrap();
    for length in 0..bytes.len() {
        let error = format!("{:#}", file::decode(&bytes[..length]).unwrap_err());
        assert!(error.starts_with("the record is damaged: it is no whole gzip file"), "{error}");
    }
    // A bit that flipped is a wrong checksum, if not worse.
    for at in [20, bytes.len() / 2, bytes.len() - 5] {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        assert!(file::decode(&flipped).is_err(), "byte {at}");
    }
}

#[test]
fn a_small_file_of_a_large_document_is_refused() {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut bomb, &vec![b' '; 17 << 20]).unwrap();
    let error = file::decode(&bomb.finish().unwrap()).unwrap_err();
    assert_eq!(format!("{error:#}"), "the record is damaged: it is too long");
}

#[test]
fn the_first_version_stays_readable() {
    let text = include_bytes!("version_1.json");
    let record = parse(text).unwrap();
    assert_eq!(record.hosts, ["n1"]);
    assert_eq!(record.job(), &job());
    assert_eq!(number(&record, const { fact("account") }), None);
    assert_eq!(record.facts.text(const { fact("account") }), "physics");
    let sched = record.totals.stats.group(&SCHED).unwrap();
    assert_eq!(sched.number(Sched::on_cpu_ns), Some(7_000_000_000));
    let wait = sched.hist(Sched::run_queue_wait_ns).unwrap();
    assert_eq!((wait.count(), wait.sum, wait.max, wait.bucket(1)), (3, 226, 100, 1));
    assert_eq!(record.timeline.columns().next().unwrap()[0], Some(3_000_000_000));
    assert_eq!(record.totals.exit, Some(Exit { code: Some(0), signal: None }));
}
