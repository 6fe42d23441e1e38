//! Block devices: one of a test's own, and the name of the disk below a file.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

pub use xtask::ram_disk::RamDisk;

/// Name of the whole disk that holds `path`; panics where it is on none.
pub fn device_below(path: &Path) -> String {
    let number = fs::metadata(path).unwrap().dev();
    let link = format!("/sys/dev/block/{}:{}", libc::major(number), libc::minor(number));
    let whole = fs::canonicalize(&link).unwrap_or_else(|_| {
        panic!("{} is on no block device: set CARGO_TARGET_DIR", path.display())
    });
    // A partition's directory lies in its disk's.
    let whole = if whole.join("partition").exists() { whole.parent().unwrap() } else { &whole };
    whole.file_name().unwrap().to_string_lossy().into_owned()
}
