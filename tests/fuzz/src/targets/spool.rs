//! A file found in the spool: first line its name, then its bytes. Only our own names are ours, and a
//! file is whole only with all that we put into it.

use std::{
    fs::File,
    io::{Seek, Write},
    os::fd::AsRawFd,
    path::PathBuf,
};

use jobtrace::lines::{
    batch::{Batch, PREAMBLE},
    spool::{
        name::{Part, SetName},
        whole::is_whole,
    },
};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::split::{first_line, text};

const NODE: &str = "cn-1";

pub fn run(data: &[u8]) {
    let (name, content) = first_line(data);
    let name = text(name);
    if let Some((set, part)) = SetName::parse(NODE, &name) {
        assert_eq!(set.file(NODE, part), name);
        let next = SetName { sequence: set.sequence.saturating_add(1), ..set };
        assert!(next.sequence == set.sequence || next.show(NODE) > set.show(NODE) || wide(set));
    }
    whole(content, content.ends_with(b"#[End]\n"), Part::Hlog);
    let mut packed = Batch::default();
    packed.push(content);
    let packed = packed.finish().expect("memory");
    let is_lines = content.is_empty() || content.ends_with(b"\n");
    whole(&packed, is_lines, Part::Lines(0));
    whole(&packed[..packed.len() - 1], false, Part::Lines(0));
    let begins = content.starts_with(&[0x1f, 0x8b]);
    let (_file, path) = memory(content);
    let raw = is_whole(&path, Part::Lines(0)).expect("no disk is involved");
    assert!(!raw || begins, "{} is in each file of ours", PREAMBLE.len());
}

/// Whether the sequence has more digits than names leave room for: no clock gets there.
fn wide(set: SetName) -> bool {
    set.sequence >= 999_999_999_999_999_999
}

fn whole(content: &[u8], expected: bool, part: Part) {
    let (_file, path) = memory(content);
    assert_eq!(is_whole(&path, part).expect("no disk is involved"), expected);
}

fn memory(content: &[u8]) -> (File, PathBuf) {
    let mut file = File::from(memfd_create("spool", MemfdFlags::CLOEXEC).expect("a memfd"));
    file.write_all(content).and_then(|()| file.rewind()).expect("memory");
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    (file, path)
}
