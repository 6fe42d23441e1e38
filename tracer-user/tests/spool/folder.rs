//! A spool in a folder of its own, and what lies in it.

use std::{
    collections::BTreeSet,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use jobtrace::{
    lines::{
        spool::{Limits, Prepared, Spool},
        writer::Writer,
    },
    model::point::{FieldValue, Point},
};

pub const SECOND: u64 = 1_000_000_000;

/// A folder and the boot of the agents in it.
pub struct Folder {
    tmp: tempfile::TempDir,
    pub boot: u32,
}

impl Folder {
    pub fn new() -> Self {
        Self { tmp: tempfile::tempdir().unwrap(), boot: 0x3fd2_a9b1 }
    }

    pub fn dir(&self) -> &Path {
        self.tmp.path()
    }

    pub fn outbox(&self) -> PathBuf {
        self.dir().join("outbox")
    }

    pub fn tmp(&self) -> PathBuf {
        self.dir().join("tmp")
    }

    pub fn open_with(&self, limits: Limits) -> Spool {
        let boot_id = format!("{:08x}-77aa-4cde-9000-000000000000", self.boot);
        let writer = Writer { host: "cn-1".into(), boot_id, pid: 42 };
        Spool::open(self.dir(), limits, &writer).unwrap()
    }

    pub fn open(&self) -> Spool {
        self.open_with(Limits::default())
    }

    /// Numbers of all points in the outbox, sorted, each file checked to be whole.
    pub fn numbers(&self) -> Vec<u64> {
        let names = names(&self.outbox()).into_iter().filter(|name| name.ends_with(".lp.gz"));
        let mut numbers: Vec<_> = names.flat_map(|name| read(&self.outbox().join(name))).collect();
        numbers.sort_unstable();
        numbers
    }
}

pub fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Numbers of the points in the file.
pub fn read(path: &Path) -> Vec<u64> {
    let mut text = String::new();
    MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    let lines = text.strip_prefix("# DML\n# CONTEXT-DATABASE: jobtrace\n").unwrap();
    assert!(lines.ends_with('\n'), "{path:?}");
    lines.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect()
}

pub fn point(n: u64) -> Point {
    let fields = vec![("n".into(), FieldValue::Integer(n))];
    Point { measurement: "m".into(), tags: vec![], fields, time_ns: n }
}

/// A set of one point, written at second `n`.
pub fn prepare(spool: &mut Spool, n: u64) -> Prepared {
    spool.prepare(&[point(n)], None, n * SECOND, n * SECOND).unwrap()
}

/// The same, published.
pub fn write(spool: &mut Spool, n: u64) {
    let prepared = prepare(spool, n);
    spool.publish(prepared).unwrap();
}
