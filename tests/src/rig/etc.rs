//! `/etc` of a test's own: what this machine's says counts for nobody, and a test writes settings where the program looks
//! for them.

use std::{
    ffi::CString,
    fs,
    path::{Path, PathBuf},
};

use rustix::{
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount},
    thread::{UnshareFlags, unshare_unsafe},
};

use super::mount::Tmpfs;

const ETC: &str = "/etc";
/// Where the program's settings are.
const FOLDER: &str = "/etc/jobtrace";

/// This machine's `/etc` with an empty folder of settings, which the calling thread and what it starts see alone.
#[derive(Debug)]
pub struct Etc {
    /// Takes what is written.
    _layers: Tmpfs,
}

impl Etc {
    /// Mounts it, in a mount namespace of the calling thread's own.
    ///
    /// # Panics
    /// When it cannot be mounted: root and a kernel with overlayfs are needed.
    pub fn mount() -> Self {
        // SAFETY: no descriptor is unshared, and nobody relies on a working directory in common.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.expect("a mount namespace: root is needed");
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).expect("mounts of our own");
        let layers = Tmpfs::mount(1 << 20).expect("a tmpfs");
        let [upper, work] = ["upper", "work"].map(|name| layers.path().join(name));
        [&upper, &work].into_iter().for_each(|layer| fs::create_dir(layer).expect("a layer"));
        let (upper, work) = (upper.display(), work.display());
        let options = CString::new(format!("lowerdir={ETC},upperdir={upper},workdir={work}"));
        let options = options.expect("no zero byte");
        mount("overlay", ETC, "overlay", MountFlags::empty(), Some(options.as_c_str()))
            .expect("an overlay on /etc, does this kernel have overlayfs?");
        let etc = Self { _layers: layers };
        // What this machine has there is hidden, not removed.
        let _ = fs::remove_dir_all(FOLDER);
        fs::create_dir(FOLDER).expect("a folder of settings");
        etc
    }

    /// Writes `file` of the settings; where it is.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, file: &str, text: &str) -> PathBuf {
        let path = Path::new(FOLDER).join(file);
        fs::write(&path, text).expect("settings are written");
        path
    }
}

impl Drop for Etc {
    fn drop(&mut self) {
        if let Err(error) = unmount(ETC, UnmountFlags::DETACH) {
            eprintln!("left behind: the mount on {ETC}: {error}");
        }
    }
}
