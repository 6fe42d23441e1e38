//! A disk that fills up in the middle of a file. The limit on file sizes stands in for it: it holds
//! for the whole process, so this test has a process, and this file, of its own.

use std::fs;

use jobtrace::{
    lines::file_sink::{FileSink, Rotation, Writer},
    model::point::{FieldValue, Point},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A point that hardly compresses.
fn noise(seed: u64) -> Point {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 1
    };
    let fields = (0..50).map(|n| (format!("f{n}").into(), FieldValue::Integer(next()))).collect();
    Point { measurement: "m".into(), tags: vec![], fields, time_ns: seed }
}

fn limit_file_size(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

#[test]
fn a_full_disk_costs_counted_points_and_leaves_no_half_file() {
    // SAFETY: ignoring a signal runs no handler; no other thread relies on this one.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    let writer = Writer { host: "n1".into(), boot_id: "00000000".into(), pid: 1 };
    let rotation = Rotation { bytes: 4000, span_ns: u64::MAX };
    let mut sink = FileSink::create(dir, &writer, rotation).unwrap();
    let files = || fs::read_dir(dir).unwrap().count() - usize::from(dir.join("tmp").exists());
    let points = |from: u64| (from..from + 20).map(noise).collect::<Vec<_>>();

    sink.write(&points(1), 1, 1).unwrap();
    let before = files();
    assert!(before > 2 && sink.lost_bytes() == 0);

    limit_file_size(Some(512));
    let error = sink.write(&points(100), 2, 2).unwrap_err();
    let lost = sink.lost_bytes();
    assert!(format!("{error:#}").contains("raise the limit on the size of a file"), "{error:#}");
    assert!(lost > 4000);
    sink.write(&points(200), 3, 3).unwrap();
    assert!(sink.lost_bytes() > lost);
    assert_eq!(files(), before, "no half file under a final name");
    assert_eq!(fs::read_dir(dir.join("tmp")).unwrap().count(), 0, "nor in tmp");

    limit_file_size(None);
    let lost = sink.lost_bytes();
    sink.write(&points(300), 4, 4).unwrap();
    sink.finish().unwrap();
    assert_eq!(sink.lost_bytes(), lost);
    assert!(files() > before);
    assert!(!dir.join("tmp").exists());
}
