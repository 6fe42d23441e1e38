//! Names and properties of block devices, from sysfs.

use std::{collections::HashMap, path::Path};

/// A whole disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name, `nvme0n1`; `8:0` where sysfs knows none (removed meanwhile).
    pub name: String,
    /// Whether the kernel stamps when a request was made (`queue/iostats`): with it off the stamp is
    /// stale on some kernels.
    pub counts_queue_time: bool,
}

/// The devices seen so far, by number (`major << 20 | minor`).
#[derive(Debug, Default)]
pub struct Devices {
    known: HashMap<u32, Device>,
}

impl Devices {
    /// The device of that number; looked up once.
    pub fn get(&mut self, number: u32) -> &Device {
        self.known.entry(number).or_insert_with(|| read(Path::new("/sys/dev/block"), number))
    }
}

fn read(sysfs: &Path, number: u32) -> Device {
    let id = format!("{}:{}", number >> 20, number & 0xf_ffff);
    let link = sysfs.join(&id);
    let name = std::fs::read_link(&link)
        .ok()
        .and_then(|target| Some(target.file_name()?.to_string_lossy().into_owned()));
    let iostats = std::fs::read_to_string(link.join("queue/iostats"));
    Device {
        name: name.unwrap_or(id),
        counts_queue_time: iostats.is_ok_and(|text| text.trim() == "1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_by_its_link_and_an_unknown_one_by_its_number() {
        let sysfs = tempfile::tempdir().unwrap();
        let disk = sysfs.path().join("disk9");
        std::fs::create_dir_all(disk.join("queue")).unwrap();
        std::fs::write(disk.join("queue/iostats"), "1\n").unwrap();
        std::os::unix::fs::symlink(&disk, sysfs.path().join("254:3")).unwrap();
        let known = Device { name: "disk9".into(), counts_queue_time: true };
        assert_eq!(read(sysfs.path(), 254 << 20 | 3), known);
        let unknown = Device { name: "8:1048575".into(), counts_queue_time: false };
        assert_eq!(read(sysfs.path(), 8 << 20 | 0xf_ffff), unknown);
    }
}
