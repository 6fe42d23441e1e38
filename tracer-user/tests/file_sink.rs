//! Files of `run --out DIR`: what appears, under which name, when.

use std::{
    collections::BTreeSet,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use jobtrace::{
    lines::file_sink::{FileSink, Rotation, Writer},
    model::point::{FieldValue, Point},
};

const SECOND: u64 = 1_000_000_000;

fn writer() -> Writer {
    let boot_id = "3fd2a9b1-77aa-4cde-9000-000000000000".to_owned();
    Writer { host: "cn-1".into(), boot_id, pid: 42 }
}

fn point(n: u64) -> Point {
    let fields = vec![("n".into(), FieldValue::Integer(n))];
    Point { measurement: "m".into(), tags: vec![], fields, time_ns: n }
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn text(path: &Path) -> String {
    let mut text = String::new();
    MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// Lines of points in all files of `dir`, in the order of the points.
fn lines(dir: &Path) -> Vec<String> {
    let gz = names(dir).into_iter().filter(|name| name.ends_with(".lp.gz"));
    let mut lines: Vec<String> = gz
        .flat_map(|name| {
            let text = text(&dir.join(name));
            let rest = text.strip_prefix("# DML\n# CONTEXT-DATABASE: jobtrace\n").unwrap();
            rest.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    lines.sort_by_key(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    lines
}

#[test]
fn a_file_appears_whole_and_only_when_due() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("a/b");
    let rotation = Rotation { bytes: 1 << 20, span_ns: 60 * SECOND };
    let mut sink = FileSink::create(&dir, &writer(), rotation).unwrap();
    sink.write(&[point(1)], 1000 * SECOND, 5 * SECOND).unwrap();
    sink.write(&[point(2)], 1059 * SECOND, 64 * SECOND).unwrap();
    assert_eq!(names(&dir), BTreeSet::from(["tmp".to_owned()]));
    // Due by time, without any point.
    sink.write(&[], 1060 * SECOND, 65 * SECOND).unwrap();
    let name = "cn-1-3fd2a9b1-42.0-1000000000000.lp.gz";
    assert_eq!(names(&dir), BTreeSet::from([name.to_owned(), "tmp".to_owned()]));
    assert_eq!(text(&dir.join(name)), "# DML\n# CONTEXT-DATABASE: jobtrace\nm n=1i 1\nm n=2i 2\n");
    sink.write(&[point(3)], 1061 * SECOND, 66 * SECOND).unwrap();
    sink.finish().unwrap();
    let last = "cn-1-3fd2a9b1-42.1-1061000000000.lp.gz";
    assert_eq!(names(&dir), BTreeSet::from([name.to_owned(), last.to_owned()]));
    assert_eq!(sink.lost_bytes(), 0);
}

#[test]
fn a_run_without_points_leaves_no_file() {
    let tmp = tempfile::tempdir().unwrap();
    let mut sink = FileSink::create(tmp.path(), &writer(), Rotation::default()).unwrap();
    let empty = Point { fields: vec![], ..point(1) };
    sink.write(&[empty], 0, 0).unwrap();
    sink.write(&[], 100 * SECOND, 100 * SECOND).unwrap();
    sink.finish().unwrap();
    assert_eq!(names(tmp.path()), BTreeSet::new());
}

#[test]
fn files_rotate_by_size_also_within_one_call() {
    let tmp = tempfile::tempdir().unwrap();
    let rotation = Rotation { bytes: 100, span_ns: u64::MAX };
    let mut sink = FileSink::create(tmp.path(), &writer(), rotation).unwrap();
    let points: Vec<_> = (1000..1100).map(point).collect();
    sink.write(&points, 1, 1).unwrap();
    sink.finish().unwrap();
    let expected: Vec<_> = (1000..1100).map(|n| format!("m n={n}i {n}")).collect();
    assert_eq!(lines(tmp.path()), expected);
    let names = names(tmp.path());
    // Lines of 15 bytes: the seventh makes a file 105 bytes long.
    assert_eq!(names.len(), 100_usize.div_ceil(7), "{names:?}");
}

#[test]
fn two_runs_of_one_name_never_collide() {
    let tmp = tempfile::tempdir().unwrap();
    let rotation = Rotation { bytes: 1, span_ns: 0 };
    // Same host, boot, pid and start: containers with pid namespaces of their own.
    let run = |first: u64| {
        let dir: PathBuf = tmp.path().to_owned();
        std::thread::spawn(move || {
            for n in first..first + 20 {
                let mut sink = FileSink::create(&dir, &writer(), rotation).unwrap();
                sink.write(&[point(n)], 7, 7).unwrap();
                sink.write(&[point(n + 1000)], 7, 7).unwrap();
                // Removes tmp, which the others must survive.
                sink.finish().unwrap();
                assert_eq!(sink.lost_bytes(), 0);
            }
        })
    };
    let runs = [run(0), run(20), run(40)];
    runs.into_iter().for_each(|run| run.join().unwrap());
    let expected: Vec<_> = (0..60).chain(1000..1060).map(|n| format!("m n={n}i {n}")).collect();
    assert_eq!(lines(tmp.path()), expected);
    assert_eq!(names(tmp.path()).len(), 120, "nothing left but the files");
}

#[test]
fn tmp_stays_while_another_run_has_files_there() {
    let tmp = tempfile::tempdir().unwrap();
    let mut sink = FileSink::create(tmp.path(), &writer(), Rotation::default()).unwrap();
    fs::write(tmp.path().join("tmp/other"), "x").unwrap();
    sink.finish().unwrap();
    assert_eq!(names(tmp.path()), BTreeSet::from(["tmp".to_owned()]));
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_at_once() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("file");
    fs::write(&file, "x").unwrap();
    for dir in [file.clone(), file.join("sub"), PathBuf::from("/proc/self")] {
        let error = FileSink::create(&dir, &writer(), Rotation::default()).err().expect("an error");
        let shown = format!("{error:#}");
        let expected = format!("cannot write to {}: name a folder you may write to", dir.display());
        assert!(shown.starts_with(&expected), "{shown}");
    }
}

#[test]
fn a_folder_lost_during_the_run_costs_its_points_and_is_told_once() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("out");
    let rotation = Rotation { bytes: 1, span_ns: u64::MAX };
    let mut sink = FileSink::create(&dir, &writer(), rotation).unwrap();
    sink.write(&[point(1)], 1, 1).unwrap();
    fs::rename(&dir, tmp.path().join("away")).unwrap();
    fs::write(&dir, "a file in its place").unwrap();
    let error = sink.write(&[point(2), point(3)], 2, 2).unwrap_err();
    assert!(format!("{error:#}").starts_with(&format!("cannot write to {}", dir.display())));
    sink.write(&[point(4)], 3, 3).unwrap();
    assert_eq!(sink.lost_bytes(), 3 * "m n=1i 1\n".len() as u64);
    fs::remove_file(&dir).unwrap();
    sink.write(&[point(5)], 4, 4).unwrap();
    assert_eq!(lines(&dir), ["m n=5i 5"]);
    // A new trouble is told again.
    fs::remove_dir_all(&dir).unwrap();
    fs::write(&dir, "").unwrap();
    assert!(sink.write(&[point(6)], 5, 5).is_err());
}
