//! Overlays that are mounted one after the other, each with a file of its own that has the number of the others':
//! `overlays FOLDER`. It is read where it is mounted first, where it is bound to, and there when the first mount is gone.
//! Says how many bytes were read of each.

use std::{
    collections::BTreeSet,
    ffi::CString,
    fs,
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use jobtrace_tests::account::Report;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

const OVERLAYS: u64 = 8;
const PIECE: usize = 50;
/// Pieces of the first file; each of the others has one more.
const PIECES: u64 = 100;

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder"));
    let [below, above, bound] = ["below", "above", "bound"].map(|name| folder.join(name));
    let [lower, empty] = ["lower", "empty"].map(|name| below.join(name));
    let mut report = Report::default();
    let mut numbers = BTreeSet::new();
    for place in [&below, &above, &bound] {
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
        let options = format!("lowerdir={}:{}", lower.display(), empty.display());
        let options = CString::new(options).expect("no zero byte");
        mount("above", &above, "overlay", MountFlags::RDONLY, Some(options.as_c_str()))
            .expect("an overlay");
        let about = fs::metadata(above.join(&name)).expect("the same file");
        numbers.insert((about.dev(), about.ino()));
        read(&above.join(&name));
        mount_bind(&above, &bound).expect("the same overlay");
        read(&bound.join(&name));
        unmount(&above, UnmountFlags::empty()).expect("nobody's place");
        read(&bound.join(&name));
        report.facts.insert(name, 3 * bytes);
        for place in [&bound, &below] {
            unmount(place, UnmountFlags::empty()).expect("nobody's place");
        }
    }
    assert!(numbers.len() as u64 <= OVERLAYS / 2, "each has a number of its own: {numbers:?}");
    println!("{}", serde_json::to_string(&report).expect("a report is JSON"));
}

fn read(file: &Path) {
    let mut file = fs::File::open(file).expect("a file of an overlay");
    while file.read(&mut [0; PIECE]).expect("its bytes") > 0 {}
}
