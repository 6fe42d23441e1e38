//! The set of pinned programs and maps in bpffs: where it lies, whose it is, how it goes.
//!
//! A set is a folder. It is made under a name that nobody takes over, and gets its own by a rename once
//! it is whole. Its name holds a digest of all that its programs were made from: another object, other
//! settings, another set.

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::DirBuilderExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use aya::{
    Ebpf,
    maps::{Map, MapData},
};
use flate2::Crc;
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, open},
    io::Errno,
};

/// Magic number of bpffs.
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;
const SET: &str = "set-";
const NEW: &str = "new-";

/// Name of the set of programs from `object`, by `settings`: all that they were loaded with.
pub fn set_name(object: &[u8], settings: &str) -> String {
    let digest = |bytes: &[u8]| {
        let mut crc = Crc::new();
        crc.update(bytes);
        crc.sum()
    };
    format!("{:08x}{:08x}", digest(object), digest(settings.as_bytes()))
}

/// The folder of the whole set `name` in `root`.
pub fn set_dir(root: &Path, name: &str) -> PathBuf {
    root.join(format!("{SET}{name}"))
}

/// Who may take over, make and remove sets, until it is dropped or its process ends: an agent that pins does not lose its
/// own to another one.
#[derive(Debug)]
pub struct Owner(#[expect(dead_code, reason = "held")] Option<OwnedFd>);

impl Owner {
    /// The owner of the sets in `root`, which need not be there; `None` where another process is it.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn of(root: &Path) -> Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = |folder: &OwnedFd| flock(folder, FlockOperation::NonBlockingLockExclusive);
        let held = match open(root, flags, Mode::empty()) {
            Err(Errno::NOENT) => Ok(Some(Self(None))),
            Err(error) => Err(error),
            Ok(folder) => match lock(&folder) {
                Ok(()) => Ok(Some(Self(Some(folder)))),
                Err(Errno::WOULDBLOCK) => Ok(None),
                Err(error) => Err(error),
            },
        };
        held.with_context(|| format!("cannot lock {}", root.display()))
    }
}

/// Makes `root`, in which sets lie.
///
/// # Errors
/// When the kernel refuses.
pub fn make_root(root: &Path) -> Result<()> {
    make(root).with_context(|| {
        format!(
            "cannot create {}: mount bpffs on /sys/fs/bpf, or set `pin` to false",
            root.display()
        )
    })
}

fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(folder)
}

/// Makes the folder in which the set `name` is put together.
///
/// # Errors
/// When `root` is not in bpffs, or the kernel refuses.
pub fn begin(root: &Path, name: &str) -> Result<PathBuf> {
    make_root(root)?;
    let kind = rustix::fs::statfs(root)
        .with_context(|| format!("cannot look at {}", root.display()))?
        .f_type;
    #[allow(clippy::unnecessary_cast, reason = "the type differs between architectures")]
    let is_bpffs = kind as i64 == BPF_FS_MAGIC;
    ensure!(
        is_bpffs,
        "{} is not in bpffs: mount -t bpf bpf /sys/fs/bpf, or set `pin` to false",
        root.display()
    );
    let dir = root.join(format!("{NEW}{name}"));
    make(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    Ok(dir)
}

/// Gives the set in `dir`, which [`begin`] made, its name: it is whole. Gives its folder.
///
/// # Errors
/// When the kernel refuses.
pub fn finish(root: &Path, name: &str, dir: &Path) -> Result<PathBuf> {
    let done = set_dir(root, name);
    fs::rename(dir, &done).with_context(|| format!("cannot name {}", done.display()))?;
    Ok(done)
}

/// A set in the making; dropped before its end, it is removed.
pub struct Pinning {
    root: PathBuf,
    name: String,
    dir: PathBuf,
    done: bool,
}

impl Pinning {
    /// Removes other sets from `root`, and pins the maps of `ebpf` as those of the set `name`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn begin(root: &Path, name: String, ebpf: &Ebpf) -> Result<Self> {
        remove_all(root, None)?;
        let dir = begin(root, &name)?;
        let pinning = Self { root: root.to_owned(), name, dir, done: false };
        for (map_name, map) in ebpf.maps().filter(|(name, _)| *name != "AYA_LOGS") {
            let path = map_pin(&pinning.dir, map_name);
            map.pin(&path).with_context(|| format!("cannot pin {}", path.display()))?;
        }
        Ok(pinning)
    }

    /// Where what is still to be pinned goes.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All is pinned: gives the set its name, and its folder.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn finish(mut self) -> Result<PathBuf> {
        let dir = finish(&self.root, &self.name, &self.dir)?;
        self.done = true;
        Ok(dir)
    }
}

impl Drop for Pinning {
    fn drop(&mut self) {
        if !self.done {
            let _ = remove_all(&self.root, None);
        }
    }
}

/// Removes every set in `root` but `kept`, whole or not; programs that nobody else holds are detached.
/// Gives the names of what was removed.
///
/// # Errors
/// When something of a set cannot be removed.
pub fn remove_all(root: &Path, kept: Option<&str>) -> Result<Vec<String>> {
    let mut removed = Vec::new();
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(removed),
        entries => entries.with_context(|| format!("cannot read {}", root.display()))?,
    };
    let kept = kept.map(|name| format!("{SET}{name}"));
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !(name.starts_with(SET) || name.starts_with(NEW)) || kept.as_ref() == Some(&name) {
            continue;
        }
        let path = entry.path();
        // Attachments first: nothing runs that has lost a part.
        let mut files: Vec<_> = fs::read_dir(&path)
            .with_context(|| format!("cannot read {}", path.display()))?
            .flatten()
            .map(|file| file.path())
            .collect();
        files.sort_by_key(|file| !is_link(file));
        for file in files {
            fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        }
        fs::remove_dir(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        removed.push(name);
    }
    Ok(removed)
}

fn is_link(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"link-"))
}

/// File of a pinned map; bpffs refuses dots.
pub fn map_pin(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("map-{}", name.replace('.', "_")))
}

/// The map pinned at `path`.
///
/// # Errors
/// When there is none.
pub fn open_pin(path: &Path) -> Result<Map> {
    let opened = MapData::from_pin(path).and_then(Map::from_map_data);
    opened.with_context(|| format!("cannot open {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_object_or_setting_is_another_set() {
        let name = set_name(b"a", "1");
        assert_eq!(name, set_name(b"a", "1"));
        assert_ne!(name, set_name(b"b", "1"));
        assert_ne!(name, set_name(b"a", "2"));
        assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn a_folder_that_is_not_in_bpffs_is_refused_with_the_cure() {
        let tmp = tempfile::tempdir().unwrap();
        let refused = begin(&tmp.path().join("x"), "1").unwrap_err();
        assert!(refused.to_string().contains("mount -t bpf"), "{refused}");
    }

    #[test]
    fn sets_are_removed_and_nothing_else() {
        let tmp = tempfile::tempdir().unwrap();
        for dir in ["set-1", "new-1", "set-2", "other"] {
            fs::create_dir(tmp.path().join(dir)).unwrap();
            fs::write(tmp.path().join(dir).join("link-x-0"), "").unwrap();
        }
        let mut removed = remove_all(tmp.path(), Some("2")).unwrap();
        removed.sort();
        assert_eq!(removed, ["new-1", "set-1"]);
        assert!(tmp.path().join("set-2/link-x-0").exists() && tmp.path().join("other").exists());
        assert!(remove_all(&tmp.path().join("absent"), None).unwrap().is_empty());
    }
}
