//! Waits for a network file system under `jobtrace run`: in `job_wait` with its type and mount, and on no block
//! device. A sibling does the same on another mount of the same server.

use std::{fs, path::Path};

use jobtrace_tests::{
    agree::{Agreement, MS},
    sharing::Sharing,
    sibling::Sibling,
    traced::Traced,
};

use super::{Found, waits::known, workload};
use crate::nfs::{Nfs, Version};

/// Calls that ask the server.
const COUNT: u64 = 250;
/// Of its files: what `rest read` reads in so many calls.
const FILE_BYTES: usize = COUNT as usize * (64 << 10);
/// In a workload's words: a file.
const FILE: &str = "FILE";
/// Off a CPU by the workload's account and not by ours, or the other way round; and waits of the program's
/// start and end.
const MARGIN_NS: u64 = 30 * MS;

/// Reads and writes past the page cache, fsync, and what asks for attributes with a descriptor and without.
pub fn network_file_system() -> Found {
    let versions = [Version::Four; 2];
    if let Some(missing) = Nfs::missing(&versions) {
        return Err(missing);
    }
    let nfs = Nfs::begin(&versions).unwrap_or_else(|error| panic!("{error:#}"));
    let mut agree = Agreement::new();
    for (program, work, call, fs) in [
        ("rest", &["read", FILE, "250"][..], "read", "nfs"),
        ("wait", &["direct", "250", "0", FILE], "write", "nfs"),
        ("wait", &["store", "250", "0", FILE], "sync", "nfs"),
        ("wait", &["attributes", "250", "0", FILE], "metadata", "nfs"),
        // By its path.
        ("wait", &["stat", "250", "0", FILE], "metadata", "unknown"),
    ] {
        waits(&mut agree, &nfs, program, work, call, fs)?;
    }
    Ok(agree)
}

/// Copies of records on the versions of NFS: who can read which, in each of the three ways to protect them.
pub fn copies_of_records() -> Found {
    let versions = [Version::Three, Version::Four];
    if let Some(missing) = Nfs::missing(&versions) {
        return Err(missing);
    }
    let nfs = Nfs::begin(&versions).unwrap_or_else(|error| panic!("{error:#}"));
    let top = Path::new("/run/sharing");
    fs::create_dir(top).expect("a folder");
    let sharing = Sharing::new(top).unwrap_or_else(|error| panic!("{error:#}"));
    let mut agree = Agreement::new();
    for (number, version) in versions.iter().enumerate() {
        let shared = Path::new(nfs.mount(number)).join(format!("{version:?}"));
        fs::create_dir(&shared).expect("a folder");
        let has_lists = *version == Version::Three;
        let compared = sharing.agrees(&mut agree, &shared, has_lists);
        compared.unwrap_or_else(|error| panic!("{error:#}"));
    }
    Ok(agree)
}

/// Runs `program` with the words `work` on the one mount in a job and on the other in a sibling. The job's waits
/// in calls of the kind `call` are for the file system `fs`, and no block device and no other mount has any of it.
fn waits(
    agree: &mut Agreement,
    nfs: &Nfs,
    program: &str,
    work: &[&str],
    call: &str,
    fs: &str,
) -> Result<(), String> {
    let mounts = [nfs.mount(0), nfs.mount(1)];
    let [own, beside] = mounts.map(|mount| {
        let file = format!("{mount}/{}", mount.replace('/', "-"));
        if !Path::new(&file).exists() {
            fs::write(&file, vec![7; FILE_BYTES]).expect("a file of it");
        }
        let words =
            work.iter().map(|word| if *word == FILE { file.clone() } else { word.to_string() });
        std::iter::once(workload(program)).chain(words).collect::<Vec<_>>()
    });
    let [own, beside] =
        [&own, &beside].map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
    let sibling = Sibling::start(&beside);
    let (job, report) = Traced::report(&[], &own);
    sibling.end();
    let causes = known(&job)?;
    causes.add_up(agree);
    let name = format!("{} of {fs}", work[0]);
    let mount = if fs == "unknown" { "" } else { mounts[0] };
    let filed = causes.for_files(call, |of, at| (of, at) == (fs, mount));
    // An answer may be there before its task begins to wait for it, and some calls ask more than once.
    agree.between(&format!("{name}: waits, job_wait"), filed.count, COUNT / 10..=COUNT * 5);
    let off = report.fact(if program == "rest" { "reads_ns" } else { "off_cpu_ns" });
    agree.near(&format!("{name}: ns, job_wait"), filed.ns, off..=off, 2, MARGIN_NS);
    let blocked = causes.of_cause(&format!("blocked_{call}"));
    // Opening and closing have no descriptor.
    let all = causes.for_files(call, |_, at| at == mounts[0] || at.is_empty()).ns;
    agree.near(&format!("{name}: ns, blocked_{call}"), blocked.ns, all..=all, 0, MARGIN_NS);
    let groups = job.json["block"].as_array().map_or(&[][..], Vec::as_slice);
    let requests = groups.iter().filter_map(|group| group["ops"].as_u64()).sum();
    agree.exact(&format!("{name}: requests to block devices"), requests, 0);
    let calls = ["read", "write", "sync", "metadata"];
    let elsewhere = calls.map(|call| causes.for_files(call, |_, at| at == mounts[1]).count);
    agree.exact(&format!("{name}: waits, other mount"), elsewhere.iter().sum(), 0);
    Ok(())
}
