//! Two folders shown as one, for reading, by overlayfs.

use std::{ffi::CString, path::Path};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use super::folder;

/// The overlay, mounted while its value lives.
#[derive(Debug)]
pub struct Overlay(TempDir);

impl Overlay {
    /// One of `layers`, the first of which is on top.
    ///
    /// # Panics
    /// When it cannot be mounted: root and a kernel with overlayfs are needed.
    pub fn of(layers: [&Path; 2]) -> Self {
        let place = folder("overlay").expect("a folder for the overlay");
        let [above, below] = layers.map(|layer| layer.to_str().expect("a temporary folder's name"));
        let options = CString::new(format!("lowerdir={above}:{below}")).expect("no zero byte");
        mount("overlay", place.path(), "overlay", MountFlags::RDONLY, Some(options.as_c_str()))
            .expect("cannot mount an overlay, is this root, and does this kernel have overlayfs?");
        Self(place)
    }

    /// One over the folder `layers`, of a file system that is written to: below it `lower` is shown, `upper` takes
    /// what is written.
    ///
    /// # Panics
    /// As [`Self::of`].
    pub fn writable(layers: &Path) -> Self {
        let lower = layers.join("lower");
        std::fs::create_dir(&lower).expect("a folder of the overlay's");
        Self::over(&lower, layers)
    }

    /// One over the folder `lower`; what is written is in `upper` of the folder `layers`, which may be another file system.
    ///
    /// # Panics
    /// As [`Self::of`].
    pub fn over(lower: &Path, layers: &Path) -> Self {
        let place = folder("overlay").expect("a folder for the overlay");
        let [upper, work] = ["upper", "work"].map(|name| layers.join(name));
        for layer in [&upper, &work] {
            std::fs::create_dir(layer).expect("a folder of the overlay's");
        }
        let name = |layer: &Path| layer.to_str().expect("a temporary folder's name").to_owned();
        let (lower, upper, work) = (name(lower), name(&upper), name(&work));
        // Else kernels may put the layer into the numbers of files.
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work},xino=off");
        let options = CString::new(options).expect("no zero byte");
        mount("overlay", place.path(), "overlay", MountFlags::empty(), Some(options.as_c_str()))
            .expect("cannot mount an overlay, is this root, and does this kernel have overlayfs?");
        Self(place)
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        self.0.path().to_str().expect("a temporary folder's name")
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.path())
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        if let Err(error) = unmount(self.0.path(), UnmountFlags::DETACH) {
            eprintln!("left behind: the mount {}: {error}", self.path());
        }
    }
}
