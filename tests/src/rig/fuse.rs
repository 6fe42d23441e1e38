//! A file system of a test's own that answers each kind of request after a known delay: the kernel's FUSE
//! protocol (`include/uapi/linux/fuse.h`), spoken to /dev/fuse by one thread.
//!
//! One folder with [`FILE`], whose bytes are all zero and which takes every write, and [`SCRIPT`], a program.
//! Nothing is cached but a file's pages while it is open.

use std::{
    collections::BTreeMap,
    ffi::CString,
    fs::File,
    io::{ErrorKind, PipeWriter, Read, Write, pipe},
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    thread::{JoinHandle, sleep, spawn},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::{
    event::{PollFd, PollFlags, poll},
    mount::{MountFlags, UnmountFlags, mount, unmount},
};
use tempfile::TempDir;

use super::folder;

/// The file to read, write and map.
pub const FILE: &str = "file";
/// A program that does nothing: the kernel reads it once and executes another in its place.
pub const SCRIPT: &str = "script";
/// Bytes of [`FILE`].
pub const FILE_BYTES: u64 = 64 << 20;

const SCRIPT_TEXT: &[u8] = b"#!/bin/true\n";
/// Bytes of one write at most, and of whatever else a request holds.
const MOST_WRITTEN: usize = 128 << 10;
const ROOM: usize = MOST_WRITTEN + 4096;
/// The kernel's `fuse_in_header`.
const HEADER: usize = 40;
/// The version of the protocol spoken here: later ones add what is not used.
const VERSION: (u32, u32) = (7, 31);
/// `FUSE_ASYNC_READ`: several reads at once, for which the kernel then waits page by page.
const ASYNC_READ: u32 = 1;
/// One page, so that each page is asked for by itself.
const READ_AHEAD: u32 = 4096;

/// A kind of request, by its number in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Request {
    /// A name in a folder.
    Lookup = 1,
    /// Attributes.
    Attributes = 3,
    /// Opening a file.
    Open = 14,
    /// Reading a file.
    Read = 15,
    /// Writing one.
    Write = 16,
    /// Storing what was written.
    Sync = 20,
    /// Reading a folder.
    Folder = 28,
    /// An ioctl.
    Ioctl = 39,
}

/// The file system, mounted while its value lives.
#[derive(Debug)]
pub struct Fuse {
    path: PathBuf,
    /// Closed, it ends the server.
    stop: Option<PipeWriter>,
    server: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl Fuse {
    /// Mounts one that answers the requests of `delays` so late, and all others at once.
    ///
    /// # Errors
    /// When it cannot be mounted: root and a kernel with FUSE are needed.
    pub fn mount(delays: &[(Request, Duration)]) -> Result<Self> {
        let folder = folder("fuse")?;
        let path = folder.path().join("jobtrace");
        std::fs::create_dir(&path)?;
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = device.context("cannot open /dev/fuse: does this kernel have FUSE?")?;
        let options =
            format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
        let options = CString::new(options)?;
        mount("jobtrace", &path, "fuse", MountFlags::NODEV, Some(options.as_c_str()))
            .context("cannot mount a FUSE file system, is this root")?;
        let delays = delays.iter().map(|(request, delay)| (*request as u32, *delay)).collect();
        let (told, stop) = pipe()?;
        let server = spawn(move || Server { device, delays }.serve(&told));
        Ok(Self { path, stop: Some(stop), server: Some(server), _folder: folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> String {
        self.path.join(name).to_str().expect("a temporary folder's name").to_owned()
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // Without its server whoever still waits for it gets an error, and unmounting does not wait.
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
        if let Err(error) = unmount(&self.path, UnmountFlags::DETACH) {
            eprintln!("left behind: the mount {}: {error}", self.path.display());
        }
    }
}

/// What answers.
struct Server {
    device: File,
    delays: BTreeMap<u32, Duration>,
}

impl Server {
    /// Answers until the other end of `told` is closed or the file system is unmounted.
    fn serve(mut self, told: &std::io::PipeReader) {
        hurry();
        let mut buffer = vec![0; ROOM];
        loop {
            let mut both =
                [PollFd::new(&self.device, PollFlags::IN), PollFd::new(told, PollFlags::empty())];
            if poll(&mut both, None).is_err() {
                continue;
            }
            if !both[1].revents().is_empty() {
                return;
            }
            match self.device.read(&mut buffer) {
                Ok(bytes) => self.answer(&buffer[..bytes]),
                // A request that its task has given up.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn answer(&mut self, request: &[u8]) {
        let number = |at: usize| word(request, at);
        let (kind, unique, node) = (number(4), long(request, 8), long(request, 16));
        if let Some(delay) = self.delays.get(&kind) {
            sleep(*delay);
        }
        let Some(answer) = answer_to(kind, node, &request[HEADER..]) else { return };
        let (error, body) = match &answer {
            Ok(body) => (0, &body[..]),
            Err(error) => (-error, &[][..]),
        };
        let mut whole = Vec::with_capacity(16 + body.len());
        whole.extend((16 + body.len() as u32).to_ne_bytes());
        whole.extend(error.to_ne_bytes());
        whole.extend(unique.to_ne_bytes());
        whole.extend(body);
        // Who asked may be gone.
        let _ = self.device.write_all(&whole);
    }
}

/// Runs the calling thread before all others, so that answers are late by their delay alone, also on a
/// busy machine.
fn hurry() {
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: a priority of ours. Where it is refused, answers come later.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &first) };
}

/// What the kernel calls the folder, [`FILE`] and [`SCRIPT`].
const ROOT_NODE: u64 = 1;
const FILE_NODE: u64 = 2;
const SCRIPT_NODE: u64 = 3;

/// The answer to a request about `node`; `None` where none is expected.
fn answer_to(kind: u32, node: u64, body: &[u8]) -> Option<Result<Vec<u8>, i32>> {
    const FORGET: u32 = 2;
    const SET_ATTRIBUTES: u32 = 4;
    const STATFS: u32 = 17;
    const RELEASE: u32 = 18;
    const INIT: u32 = 26;
    const OPEN_FOLDER: u32 = 27;
    const RELEASE_FOLDER: u32 = 29;
    const INTERRUPT: u32 = 36;
    const FORGET_SEVERAL: u32 = 42;
    let is = |request: Request| kind == request as u32;
    Some(Ok(match kind {
        FORGET | FORGET_SEVERAL | INTERRUPT => return None,
        INIT => greeting(),
        SET_ATTRIBUTES => attributes_valid(node),
        // Of all that only how long a name may be, which an overlay heeds.
        STATFS => [vec![0; 44], 255_u32.to_ne_bytes().to_vec(), vec![0; 32]].concat(),
        RELEASE | RELEASE_FOLDER => Vec::new(),
        // A handle and flags: none of them is used.
        OPEN_FOLDER => vec![0; 16],
        _ if is(Request::Open) => vec![0; 16],
        _ if is(Request::Lookup) => return Some(lookup(body)),
        _ if is(Request::Attributes) => attributes_valid(node),
        _ if is(Request::Read) => content(node, long(body, 8), word(body, 16)),
        _ if is(Request::Write) => (u64::from(word(body, 16))).to_ne_bytes().to_vec(),
        _ if is(Request::Sync) => Vec::new(),
        _ if is(Request::Folder) => names(long(body, 8)),
        _ if is(Request::Ioctl) => vec![0; 16],
        // Flushing, extended attributes and whatever else: the kernel asks once and never again.
        _ => return Some(Err(libc::ENOSYS)),
    }))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// `fuse_init_out`.
fn greeting() -> Vec<u8> {
    let words = [VERSION.0, VERSION.1, READ_AHEAD, ASYNC_READ, 0, MOST_WRITTEN as u32, 1];
    let mut answer: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    answer.resize(64, 0);
    answer
}

/// `fuse_attr`.
fn attributes(node: u64) -> Vec<u8> {
    let (mode, bytes) = match node {
        ROOT_NODE => (libc::S_IFDIR | 0o755, 0),
        FILE_NODE => (libc::S_IFREG | 0o644, FILE_BYTES),
        _ => (libc::S_IFREG | 0o755, SCRIPT_TEXT.len() as u64),
    };
    let mut answer = Vec::with_capacity(88);
    answer.extend([node, bytes, bytes / 512, 0, 0, 0].iter().flat_map(|long| long.to_ne_bytes()));
    // Of nanoseconds three, then mode, links, user, group, device, size of a block, flags.
    let words = [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0];
    answer.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    answer
}

/// `fuse_attr_out`: valid for no time at all.
fn attributes_valid(node: u64) -> Vec<u8> {
    [vec![0; 16], attributes(node)].concat()
}

/// `fuse_entry_out` of the name that ends with a zero byte.
fn lookup(name: &[u8]) -> Result<Vec<u8>, i32> {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let node = match std::str::from_utf8(name) {
        Ok(FILE) => FILE_NODE,
        Ok(SCRIPT) => SCRIPT_NODE,
        _ => return Err(libc::ENOENT),
    };
    Ok([node.to_ne_bytes().to_vec(), vec![0; 32], attributes(node)].concat())
}

/// Bytes of a file.
fn content(node: u64, at: u64, most: u32) -> Vec<u8> {
    if node == FILE_NODE {
        let left = FILE_BYTES.saturating_sub(at);
        return vec![0; left.min(most.into()) as usize];
    }
    SCRIPT_TEXT.iter().skip(at as usize).take(most as usize).copied().collect()
}

/// `fuse_dirent` of each name from number `from` on.
fn names(from: u64) -> Vec<u8> {
    let mut answer = Vec::new();
    let all = [(FILE_NODE, FILE), (SCRIPT_NODE, SCRIPT)];
    for (index, (node, name)) in all.iter().enumerate().skip(from as usize) {
        answer.extend(node.to_ne_bytes());
        answer.extend((index as u64 + 1).to_ne_bytes());
        answer.extend((name.len() as u32).to_ne_bytes());
        answer.extend(u32::from(libc::DT_REG).to_ne_bytes());
        answer.extend(name.bytes());
        answer.resize(answer.len().next_multiple_of(8), 0);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_protocols_sizes() {
        assert_eq!(greeting().len(), 64);
        assert_eq!(attributes(FILE_NODE).len(), 88);
        assert_eq!(attributes_valid(ROOT_NODE).len(), 104);
        assert_eq!(lookup(b"file\0").unwrap().len(), 128);
        assert_eq!(lookup(b"missing\0"), Err(libc::ENOENT));
        assert_eq!(names(0).len(), 32 + 32);
        assert!(names(2).is_empty());
        assert_eq!(content(FILE_NODE, FILE_BYTES - 1, 4096).len(), 1);
        assert_eq!(content(SCRIPT_NODE, 0, 4096), SCRIPT_TEXT);
    }
}
