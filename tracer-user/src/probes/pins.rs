//! The set of pinned programs and maps in bpffs: where it lies, whose it is, how it goes.
//!
//! A set is a folder. It is made under a name that nobody takes over, and gets its own by a rename once
//! it is whole. Its name holds a digest of all that its programs were made from: another object, other
//! settings, another set.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use aya::Ebpf;
use flate2::Crc;

use super::{drain::Probes, load::Options};
use crate::base::layout::Layout;

/// Magic number of bpffs.
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;
const SET: &str = "set-";
const NEW: &str = "new-";

/// Name of the set of programs from `object` for `layout` and `options`.
pub fn set_name(object: &[u8], layout: &Layout, options: &Options) -> String {
    let mut settings = Crc::new();
    let text = format!(
        "{} {layout:?} {:?} {} {}",
        env!("CARGO_PKG_VERSION"),
        options.faults,
        options.most_slots,
        options.whole_node
    );
    settings.update(text.as_bytes());
    let mut crc = Crc::new();
    crc.update(object);
    format!("{:08x}{:08x}", crc.sum(), settings.sum())
}

/// The folder of the whole set `name` in `root`.
pub fn set_dir(root: &Path, name: &str) -> PathBuf {
    root.join(format!("{SET}{name}"))
}

/// Makes the folder in which the set `name` is put together.
///
/// # Errors
/// When `root` is not in bpffs, or the kernel refuses.
pub fn begin(root: &Path, name: &str) -> Result<PathBuf> {
    let make = |path: &Path| fs::DirBuilder::new().mode(0o700).recursive(true).create(path);
    make(root).with_context(|| {
        format!(
            "cannot create {}: mount bpffs on /sys/fs/bpf, or set `pin` to false",
            root.display()
        )
    })?;
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
pub(super) struct Pinning {
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

    /// Pins the rest, and gives the set its name.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn finish(mut self, probes: &mut Probes) -> Result<()> {
        probes.unpinned = probes.programs.pin(&self.dir)?;
        probes.maps.pin(&self.dir)?;
        let dir = finish(&self.root, &self.name, &self.dir)?;
        probes.programs.set_pins(&dir);
        probes.maps.set_pins(&dir);
        self.done = true;
        Ok(())
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

/// File of a slot's pinned bank.
pub fn bank_pin(dir: &Path, kind: &str, slot: u16) -> PathBuf {
    dir.join(format!("{kind}-{slot}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::FaultMode;

    #[test]
    fn another_object_or_setting_is_another_set() {
        let layout =
            Layout { tasks_hierarchy: 0, tasks_controller: None, block_hierarchy: Some(0) };
        let options = Options::new(FaultMode::Major);
        let name =
            |object: &[u8], layout: &Layout, options: &Options| set_name(object, layout, options);
        let base = name(b"a", &layout, &options);
        assert_eq!(base, name(b"a", &layout, &options));
        assert_ne!(base, name(b"b", &layout, &options));
        assert_ne!(base, name(b"a", &layout, &Options { most_slots: 5, ..options.clone() }));
        assert_ne!(base, name(b"a", &Layout { tasks_hierarchy: 3, ..layout.clone() }, &options));
        assert!(base.bytes().all(|byte| byte.is_ascii_hexdigit()));
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
