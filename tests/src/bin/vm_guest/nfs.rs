//! The kernel's own NFS server on the loopback, and its client's mounts of what it exports. No daemon of NFS is
//! there: version 4 takes none but what answers whose export a client may see, and that is said in advance; what
//! version 3 asks others is answered in [`helpers`].

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::mount::{UnmountFlags, unmount};

use crate::setup::mount_at;

mod helpers;

/// A folder in memory: nothing of it is on a disk.
const EXPORTED: &str = "/run/nfs/exported";
/// The server's control files.
const SERVER: &str = "/proc/fs/nfsd";
/// Answers of its helpers that hold until the end of times (of 32 bits): whose address the loopback's is, what
/// that client may see with which options, and which folder it asks for.
const ANSWERS: [(&str, &str); 3] = [
    ("auth.unix.ip", "nfsd 127.0.0.1 2147483647 guest\n"),
    // Any port, no check of paths below, an export by number (`linux/nfsd/export.h`); anonymous user and
    // group; its number. That of number 0 is the root.
    ("nfsd.export", "guest /run/nfs/exported 2147483647 9218 65534 65534 0\n"),
    ("nfsd.fh", "guest 1 \\x00000000 2147483647 /run/nfs/exported\n"),
];
/// Whether the kernel hands out leases on files, delegations of NFS among them.
const LEASES: &str = "/proc/sys/fs/leases-enable";
/// Each mount is a file system of its own, and asks the server for attributes whenever they are wanted.
const OPTIONS: &str = "addr=127.0.0.1,proto=tcp,sec=sys,nosharecache,actimeo=0";

/// A version of NFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// With POSIX access control lists, by a protocol beside it.
    Three,
    /// With lists of its own.
    Four,
}

/// A server with its mounts; all ends with it.
pub struct Nfs {
    mounts: Vec<PathBuf>,
}

impl Nfs {
    /// What this kernel lacks for `versions` of it.
    pub fn missing(versions: &[Version]) -> Option<String> {
        let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        let has = |name: &str| known.lines().any(|line| line.split('\t').nth(1) == Some(name));
        let needed = versions.iter().map(|version| version.file_system());
        let missing = std::iter::once("nfsd").chain(needed).find(|name| !has(name))?;
        Some(format!("this kernel comes without the file system {missing}"))
    }

    /// Starts the server and mounts what it exports once for each of `versions`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn begin(versions: &[Version]) -> Result<Self> {
        fs::create_dir_all(EXPORTED)?;
        mount_at("nfsd", Path::new(SERVER), "nfsd", "")?;
        let mut nfs = Self { mounts: Vec::new() };
        for (cache, answer) in ANSWERS {
            write(&format!("/proc/net/rpc/{cache}/channel"), answer)?;
        }
        // Older versions want a registry of services.
        let known = fs::read_to_string(format!("{SERVER}/versions")).context("versions")?;
        let wants_three = versions.contains(&Version::Three);
        let unwanted = if wants_three { &["2"][..] } else { &["2", "3"] };
        for old in unwanted.iter().filter(|old| known.contains(&format!("+{old}"))) {
            set("versions", &format!("-{old}"))?;
        }
        if wants_three && known.contains("-3") {
            set("versions", "+3")?;
        }
        let port = if wants_three { helpers::answer(handle()?)? } else { 0 };
        // A file that is delegated to its client is one whose attributes it need not ask for.
        write(LEASES, "0\n")?;
        // It waits as long for clients of a server before it, of whom there are none: the least that is allowed.
        set("nfsv4gracetime", "10")?;
        set("portlist", "tcp 2049")?;
        set("threads", "2")?;
        for (number, version) in versions.iter().enumerate() {
            let place = PathBuf::from(format!("/run/nfs/mount{number}"));
            let (source, own) = match version {
                Version::Three => (
                    format!("127.0.0.1:{EXPORTED}"),
                    format!("vers=3,port=2049,nolock,mountport={port},mountproto=tcp,mountvers=3"),
                ),
                Version::Four => ("127.0.0.1:/".into(), "vers=4.2,clientaddr=127.0.0.1".into()),
            };
            mount_at(&source, &place, version.file_system(), &format!("{own},{OPTIONS}"))?;
            // The first file is opened when the server waits no more.
            let opened = File::create(place.join(format!("opened{number}")));
            nfs.mounts.push(place);
            opened.context("cannot open a file on it")?;
        }
        Ok(nfs)
    }

    /// Where it is mounted, by number; what one makes there is there by the others too.
    pub fn mount(&self, number: usize) -> &str {
        self.mounts[number].to_str().expect("of ours")
    }
}

impl Drop for Nfs {
    fn drop(&mut self) {
        let ended = self.mounts.iter().try_for_each(|mount| {
            unmount(mount, UnmountFlags::empty())
                .with_context(|| format!("cannot unmount {}", mount.display()))
        });
        let ended = ended.and_then(|()| set("threads", "0"));
        let ended = ended.and_then(|()| write(LEASES, "1\n"));
        let ended = ended.and_then(|()| Ok(unmount(SERVER, UnmountFlags::empty())?));
        if let Err(error) = ended {
            eprintln!("nfs: {error:#}");
        }
    }
}

impl Version {
    fn file_system(self) -> &'static str {
        match self {
            Self::Three => "nfs",
            Self::Four => "nfs4",
        }
    }
}

/// What the server calls the exported folder.
fn handle() -> Result<Vec<u8>> {
    let mut file = File::options().read(true).write(true).open(format!("{SERVER}/filehandle"))?;
    let question = format!("guest {EXPORTED} 64\n");
    file.write_all(question.as_bytes()).context("the server knows no handle of its export")?;
    let mut text = String::new();
    file.read_to_string(&mut text).context("the server tells no handle of its export")?;
    let digits = text.trim().trim_start_matches("\\x");
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    bytes.filter(|bytes| !bytes.is_empty()).with_context(|| format!("no handle: {text:?}"))
}

/// Tells the server.
fn set(file: &str, text: &str) -> Result<()> {
    write(&format!("{SERVER}/{file}"), &format!("{text}\n"))
}

fn write(file: &str, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {text:?} to {file}"))
}
