//! Operations on files under `jobtrace run --io`: a program that counts its own against what is told of the file
//! system that it uses, beside the same in another folder that is not the job's.

use std::{collections::BTreeMap, fs, path::Path};

use jobtrace::base::kernel_release::version_of;
use jobtrace_tests::{
    agree::Agreement,
    operations::{self, groups, sum, text},
    sibling::Sibling,
    traced::Traced,
};
use serde_json::Value;

use super::{Found, unknown, workload};
use crate::{
    nfs::{Nfs, Version},
    setup::mount_at,
};

/// A file system in memory.
pub fn local() -> Found {
    let mut agree = Agreement::new();
    let disk = Path::new("/run/disk");
    mount_at("disk", disk, "tmpfs", "").unwrap_or_else(|error| panic!("{error:#}"));
    counted(&mut agree, [disk; 2], "tmpfs", "1");
    Ok(agree)
}

/// Overlays that have the same device number, one after the other, and files with the same number. Before 6.8 they are told
/// apart by where the kernel keeps their roots, which may be one place.
pub fn in_turn() -> Found {
    let systems = fs::read_to_string("/proc/filesystems").expect("the kernel's file systems");
    if !systems.lines().any(|line| line.ends_with("\toverlay")) {
        return Err("this kernel has no overlays".into());
    }
    if kernel_release() < (6, 8) {
        return Err("this kernel gives mounts no numbers of their own (before 6.8)".into());
    }
    let folder = "/run/in_turn";
    fs::create_dir(folder).expect("a new folder");
    let mut agree = Agreement::new();
    let (job, report) = Traced::report(&["--io"], &[&workload("overlays"), folder]);
    operations::agree_by_name(&mut agree, &job.json, &report);
    Ok(agree)
}

/// Both versions of NFS, and what the client itself counts that it asked the server, where the job is alone.
pub fn network() -> Found {
    let versions = [Version::Three, Version::Four];
    if let Some(missing) = Nfs::missing(&versions) {
        return Err(missing);
    }
    let nfs = Nfs::begin(&versions).unwrap_or_else(|error| panic!("{error:#}"));
    let mut agree = Agreement::new();
    for (number, version) in versions.iter().enumerate() {
        let mounts = [nfs.mount(number), nfs.mount(1 - number)];
        let before = asked(mounts[0]);
        let json = counted(&mut agree, mounts.map(Path::new), "nfs", "10");
        let after = asked(mounts[0]);
        let of = |mount: &str, op: &str| {
            let is_it = |group: &&Value| text(group, "mount") == mount && text(group, "op") == op;
            sum(groups(&json, "node_mount").iter().filter(is_it), "ops")
        };
        for op in ["write", "commit", "remove", "rename", "link"] {
            let name = format!("{version:?}: requests to {op}");
            agree.exact(&name, of(mounts[0], op), after[op] - before[op]);
        }
        agree.between("files removed", of(mounts[0], "remove"), 100..=200);
        let of_others = groups(&json, "node_mount").iter();
        let of_others = sum(of_others.filter(|group| text(group, "mount") == mounts[1]), "ops");
        agree.between("requests of others, on the other mount", of_others, 1..=1_000_000);
    }
    Ok(agree)
}

/// How many requests of each kind the client has counted on `mount`.
fn asked(mount: &str) -> BTreeMap<String, u64> {
    let text = fs::read_to_string("/proc/self/mountstats").expect("the kernel's counts");
    let own = text.split("device ").find(|part| part.contains(&format!(" mounted on {mount} ")));
    let (_, counts) =
        own.and_then(|own| own.split_once("per-op statistics")).expect("a mount of NFS");
    let row = |line: &str| {
        let (name, numbers) = line.trim().split_once(':')?;
        Some((name.to_lowercase(), numbers.split_whitespace().next()?.parse().ok()?))
    };
    counts.lines().filter_map(row).collect()
}

/// Every operation, error and byte on the first of `mounts`, of type `fs`, beside the same work on the second that is
/// not the job's; one `part` of so many of what there is to do. Gives the numbers.
fn counted(agree: &mut Agreement, mounts: [&Path; 2], fs: &str, part: &str) -> Value {
    let mut folders = ["own", "beside"].into_iter().zip(mounts).map(|(name, mount)| {
        let folder = mount.join(name);
        fs::create_dir_all(&folder).expect("a folder");
        folder.to_str().expect("a name of ours").to_owned()
    });
    let (own, beside) = (folders.next().unwrap(), folders.next().unwrap());
    let program = workload("file_ops");
    let sibling = Sibling::start(&[&program, &beside, "1", part]);
    let (job, report) = Traced::report(&["--io"], &[&program, &own, "1", part]);
    sibling.end();
    if let Some(why) = unknown(&job, "operations on files") {
        panic!("{why}");
    }
    let notes = job.json["notes"].to_string();
    let left_out = notes.matches("this kernel left out").count();
    // From 7.0 on it tells of runs that were left out at calls of any task; no operation may be missing for it.
    let most = u64::from(kernel_release() >= (7, 0));
    agree.between("notes that runs were left out", left_out as u64, 0..=most);
    operations::agree(agree, &job.json, [fs, mounts[0].to_str().expect("as above")], &report);
    job.json
}

/// Its first two numbers.
fn kernel_release() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel's release");
    version_of(&release)
}
