//! Where one job is in each hierarchy, and the id by which the kernel's probes know it there.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path, sync::Arc};

use crate::base::{directory::Directory, kept::KeptFile};

/// One job's directory in one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kernel's `hierarchy_id`: 0 is v2.
    pub number: u32,
    /// Controllers of the hierarchy: v1's are its own, v2's those on offer.
    pub controllers: Arc<[String]>,
    /// Where the hierarchy is mounted: the last of the directory's ancestors.
    pub mount: Arc<Path>,
    /// The cgroup's directory.
    pub directory: Directory,
    /// Whether the directory is the job's alone. Otherwise the job stays in a cgroup that others may
    /// be in too: its limits hold, its counts are not the job's.
    pub own: bool,
}

impl Place {
    /// A job's own at `<mount>/<path>` of hierarchy `number`.
    #[cfg(test)]
    pub(super) fn of_test(number: u32, controllers: &[&str], mount: &Path, path: &str) -> Self {
        let controllers = controllers.iter().map(|name| (*name).to_owned()).collect();
        let directory = mount.join(path).into();
        Self { number, controllers, mount: mount.into(), directory, own: true }
    }

    /// The directory and its ancestors, up to the mount point.
    pub fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.directory.ancestors().take_while(|path| path.starts_with(&self.mount))
    }
}

/// A job's places, at most one per hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Places(pub Vec<Place>);

impl Places {
    /// The place in the unified hierarchy.
    pub fn v2(&self) -> Option<&Place> {
        self.0.iter().find(|place| place.number == 0)
    }

    /// The place in the v1 hierarchy of `controller`.
    pub fn v1(&self, controller: &str) -> Option<&Place> {
        let has = |place: &&Place| {
            place.number != 0 && place.controllers.iter().any(|name| name == controller)
        };
        self.0.iter().find(has)
    }

    /// The file `name` of the directory in the unified hierarchy.
    pub fn v2_file(&self, name: &'static str) -> Option<KeptFile> {
        Some(KeptFile::new(self.v2()?.directory.clone(), name))
    }

    /// The file `name` of the directory in the v1 hierarchy of `controller`.
    pub fn v1_file(&self, controller: &str, name: &'static str) -> Option<KeptFile> {
        Some(KeptFile::new(self.v1(controller)?.directory.clone(), name))
    }

    /// The places that are the job's alone.
    pub fn own(&self) -> impl Iterator<Item = &Place> {
        self.0.iter().filter(|place| place.own)
    }
}

/// What tells a cgroup apart from all others of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupId {
    /// The kernel's `cgroup->root->hierarchy_id`: 0 is v2.
    pub hierarchy: u32,
    /// The kernel's `cgroup->kn->id`, which is the inode of the directory.
    pub id: u64,
    /// v1: the controller whose `task->cgroups->subsys[]` leads to it. v2: none, it is `dfl_cgrp`.
    pub controller: Option<&'static str>,
}

impl CgroupId {
    /// Id of the cgroup at `place`.
    ///
    /// # Errors
    /// When the directory cannot be looked up.
    pub fn of(place: &Place, controller: Option<&'static str>) -> io::Result<Self> {
        let id = fs::metadata(&place.directory)?.ino();
        Ok(Self { hierarchy: place.number, id, controller })
    }
}
