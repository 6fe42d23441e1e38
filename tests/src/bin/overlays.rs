//! Overlays that are mounted one after the other, each with a file of its own that has the number of the others':
//! `overlays FOLDER`. Says how many bytes it read of each.

use std::{ffi::CString, fs, io::Read, os::unix::fs::MetadataExt, path::PathBuf};

use jobtrace_tests::account::Report;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

const OVERLAYS: u64 = 8;
const PIECE: usize = 50;
/// Pieces of the first file; each of the others has one more.
const PIECES: u64 = 100;

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder"));
    let [below, above] = ["below", "above"].map(|name| folder.join(name));
    let [lower, empty] = ["lower", "empty"].map(|name| below.join(name));
    let mut report = Report::default();
    let mut numbers = Vec::new();
    for place in [&below, &above] {
        fs::create_dir(place).expect("a new folder");
    }
    for number in 0..OVERLAYS {
        mount("below", &below, "tmpfs", MountFlags::empty(), None::<&std::ffi::CStr>)
            .expect("a tmpfs, as root");
        for layer in [&lower, &empty] {
            fs::create_dir(layer).expect("a layer");
        }
        let name = format!("overlay{number}");
        let bytes = (PIECES + number) * PIECE as u64;
        fs::write(lower.join(&name), vec![b'x'; bytes as usize]).expect("a file");
        numbers.push(fs::metadata(lower.join(&name)).expect("that file").ino());
        let options = format!("lowerdir={}:{}", lower.display(), empty.display());
        let options = CString::new(options).expect("no zero byte");
        mount("above", &above, "overlay", MountFlags::RDONLY, Some(options.as_c_str()))
            .expect("an overlay");
        let mut file = fs::File::open(above.join(&name)).expect("the same file");
        while file.read(&mut [0; PIECE]).expect("its bytes") > 0 {}
        drop(file);
        report.facts.insert(name, bytes);
        for place in [&above, &below] {
            unmount(place, UnmountFlags::empty()).expect("nobody's place");
        }
    }
    numbers.dedup();
    assert_eq!(numbers.len(), 1, "files with numbers of their own");
    println!("{}", serde_json::to_string(&report).expect("a report is JSON"));
}
