//! A file system of a test's own that answers each kind of request after a known delay: FUSE, spoken to
//! /dev/fuse by one thread.
//!
//! One folder with [`FILE`], whose bytes are all zero and which takes every write, [`SCRIPT`], a program, and [`SITE`], with
//! a Python [`MODULE`]; from there who looks for [`HANG`] hangs it: nobody has an answer any more until its value is dropped.
//! Nothing is cached but a file's pages while it is open.

use std::{
    collections::BTreeMap,
    ffi::CString,
    fs::File,
    io::{ErrorKind, PipeWriter, Read, Write, pipe},
    os::{fd::AsRawFd, unix::fs::MetadataExt},
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

mod protocol;

use protocol::ROOM;
pub use protocol::{FILE, FILE_BYTES, HANG, MODULE, Request, SCRIPT, SITE};

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
        let server = Server { device, delays, hangs: false };
        let server = spawn(move || server.serve(&told));
        Ok(Self { path, stop: Some(stop), server: Some(server), _folder: folder })
    }

    /// Has the kernel read so many KiB of its files ahead, 128 at most.
    ///
    /// # Errors
    /// When sysfs has no such setting for it.
    pub fn read_ahead(&self, kib: u32) -> Result<()> {
        // Its answer to the greeting set another: who gets attributes has waited for that.
        let device = self.path.metadata()?.dev();
        let name = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let file = format!("/sys/class/bdi/{name}/read_ahead_kb");
        std::fs::write(&file, kib.to_string()).with_context(|| format!("cannot set {file}"))
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
    hangs: bool,
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
        if let Some(delay) = self.delays.get(&protocol::kind(request)) {
            sleep(*delay);
        }
        let answer = protocol::answer(request).filter(|_| !self.hangs);
        self.hangs |= protocol::is_hang(request);
        if let Some(answer) = answer {
            // Who asked may be gone.
            let _ = self.device.write_all(&answer);
        }
    }
}

/// Runs the calling thread before all others, so that answers are late by their delay alone, also on a
/// busy machine.
fn hurry() {
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: a priority of ours. Where it is refused, answers come later.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &first) };
}
