//! Images of file systems, mounted one after the other at one place, as containers' are: a device's number is each one's in
//! turn.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use rustix::mount::{UnmountFlags, unmount};
use tempfile::TempDir;

use super::{folder, program, run};

const IMAGE_BYTES: u64 = 4 << 20;

/// Images, none of them mounted.
#[derive(Debug)]
pub struct Images {
    folder: TempDir,
    /// Its name holds `jobtrace`: the residue check knows it by that.
    place: PathBuf,
    count: usize,
}

impl Images {
    /// So many, of what `fill` puts into a folder for each. Their files have no generations, and the same numbers.
    ///
    /// # Errors
    /// When one cannot be made (`mkfs.ext4` of e2fsprogs).
    pub fn make(count: usize, fill: impl Fn(usize, &Path)) -> Result<Self> {
        let make = program("mkfs.ext4", "e2fsprogs")?;
        let folder = folder("images")?;
        let place = folder.path().join("jobtrace");
        fs::create_dir(&place)?;
        let images = Self { folder, place, count };
        for number in 0..count {
            let content = images.folder.path().join("content");
            fs::create_dir(&content)?;
            fill(number, &content);
            let image = images.image(number);
            fs::File::create(&image)?.set_len(IMAGE_BYTES).context("no room for an image")?;
            run(Command::new(&make).args(["-qF", "-d"]).args([&content, &image]))?;
            fs::remove_dir_all(content)?;
        }
        Ok(images)
    }

    fn image(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("{number}.img"))
    }

    /// Where each is mounted in its turn.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// A shell's script that mounts each, does what `each` says of it, and unmounts it.
    pub fn in_turn(&self, each: impl Fn(usize) -> String) -> String {
        let place = self.place.display();
        let one = |number: usize| {
            let image = self.image(number);
            let image = image.display();
            format!("mount -o loop,ro {image} {place} && {{ {}; umount {place}; }}", each(number))
        };
        (0..self.count).map(one).collect::<Vec<_>>().join(" && ")
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        // What was cut short left one there.
        while unmount(&self.place, UnmountFlags::DETACH).is_ok() {}
    }
}
