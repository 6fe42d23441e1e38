//! Operations on files under `jobtrace run --io`: a program that counts its own against what is told of the file
//! system that it uses, beside the same in another folder that is not the job's.

use std::{fs, path::Path};

use jobtrace_tests::{agree::Agreement, operations, sibling::Sibling, traced::Traced};

use super::{Found, workload};
use crate::{
    nfs::{Nfs, Version},
    setup::mount_at,
};

/// A file system in memory, and one that hands on to it.
pub fn local() -> Found {
    let mut agree = Agreement::new();
    let disk = Path::new("/run/disk");
    mount_at("disk", disk, "tmpfs", "").unwrap_or_else(|error| panic!("{error:#}"));
    counted(&mut agree, disk, "tmpfs", "1");
    Ok(agree)
}

/// Both versions of NFS.
pub fn network() -> Found {
    let versions = [Version::Three, Version::Four];
    if let Some(missing) = Nfs::missing(&versions) {
        return Err(missing);
    }
    let nfs = Nfs::begin(&versions).unwrap_or_else(|error| panic!("{error:#}"));
    let mut agree = Agreement::new();
    for number in 0..versions.len() {
        counted(&mut agree, Path::new(nfs.mount(number)), "nfs", "1");
    }
    Ok(agree)
}

/// Every operation, error and byte on `mount`, of type `fs`. `copies` is how often this kernel counts what a copy moves.
fn counted(agree: &mut Agreement, mount: &Path, fs: &str, copies: &str) {
    let [own, beside] = ["own", "beside"].map(|name| {
        let folder = mount.join(name);
        fs::create_dir_all(&folder).expect("a folder");
        folder.to_str().expect("a name of ours").to_owned()
    });
    let program = workload("file_ops");
    let sibling = Sibling::start(&[&program, &beside, copies]);
    let (job, report) = Traced::report(&["--io"], &[&program, &own, copies]);
    sibling.end();
    operations::agree(agree, &job.json, [fs, mount.to_str().expect("as above")], &report);
}
