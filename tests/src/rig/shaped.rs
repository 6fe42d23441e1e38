//! Directories as a scheduler would make them, by hand: jobs of any length, any number, any name.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Write},
    ops::RangeInclusive,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use jobtrace::cgroup::hierarchies::Hierarchies;

use super::cgroups;
use crate::{
    account::{Account, block_bytes},
    work::settled,
};

/// A directory of the test's own in some hierarchies, in which jobs are made; all goes with it.
#[derive(Debug)]
pub struct Shaped {
    tops: Vec<PathBuf>,
}

/// One cgroup, in each of the hierarchies.
#[derive(Clone, Debug)]
pub struct Directories(pub Vec<PathBuf>);

impl Shaped {
    /// In the hierarchies of these v1 controllers, of v2 where one is empty.
    ///
    /// # Panics
    /// When one is not mounted, or this is not root; as all of this, for it is a test's.
    pub fn make(controllers: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("jobtrace-agent-{}-{number}", std::process::id());
        let found = Hierarchies::read().unwrap();
        let mount = |controller: &&str| {
            let hierarchy =
                if controller.is_empty() { found.v2.as_ref() } else { found.v1(controller) };
            hierarchy.unwrap_or_else(|| panic!("no hierarchy of {controller:?}")).mount.clone()
        };
        let tops: Vec<_> = controllers.iter().map(|c| mount(c).join(&name)).collect();
        tops.iter().for_each(|top| fs::create_dir(top).unwrap());
        Self { tops }
    }

    /// Makes `path` below the own directory, with all above it.
    pub fn directory(&self, path: impl AsRef<Path>) -> Directories {
        let all: Vec<_> = self.tops.iter().map(|top| top.join(path.as_ref())).collect();
        all.iter().for_each(|directory| fs::create_dir_all(directory).unwrap());
        Directories(all)
    }

    /// Slurm's directory of a job, and of a step in it where one is named.
    pub fn job(&self, uid: u32, job: u32, step: &str) -> Directories {
        self.directory(format!("slurm/uid_{uid}/job_{job}/{step}"))
    }

    /// Removes the job's directory with its steps', which must be empty of processes.
    pub fn remove_job(&self, uid: u32, job: u32) {
        self.directory(format!("slurm/uid_{uid}/job_{job}")).remove();
    }
}

impl Drop for Shaped {
    fn drop(&mut self) {
        for top in &self.tops {
            if let Err(error) = cgroups::remove(top) {
                eprintln!("shaped: {error:#}");
            }
        }
    }
}

impl Directories {
    /// A command that runs inside.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let procs: Vec<_> = self.0.iter().map(|directory| directory.join("cgroup.procs")).collect();
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        let enter = move || procs.iter().try_for_each(|procs| fs::write(procs, "0"));
        // SAFETY: the child opens and writes files, and the paths were made before the fork. It
        // allocates for the C string of a long path only, which the C library allows after a fork.
        unsafe { command.pre_exec(enter) };
        command
    }

    /// Runs it to its good end; what it printed.
    pub fn run(&self, words: &[&str]) -> String {
        let output = self.command(words[0]).args(&words[1..]).output().unwrap();
        assert!(output.status.success(), "{words:?} failed: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs it to its good end, watched.
    pub fn watch(&self, words: &[&str]) -> Ran {
        let (mut told, mut tell) = io::pipe().unwrap();
        let at_entry = move || {
            let mut text = [0; 1024];
            for file in ["/proc/self/io", "/proc/self/schedstat"] {
                let length = File::open(file)?.read(&mut text)?;
                tell.write_all(&text[..length])?;
            }
            Ok(())
        };
        let mut command = self.command(words[0]);
        command.args(&words[1..]).stdout(Stdio::piped());
        // SAFETY: the child reads and writes files, and allocates nothing.
        unsafe { command.pre_exec(at_entry) };
        let mut child = Running(command.spawn().unwrap());
        // Its end of the pipe, which the command holds here, is closed there by the program's start.
        drop(command);
        let (mut entry, mut printed) = (String::new(), String::new());
        told.read_to_string(&mut entry).unwrap();
        child.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
        let account = ended(child.0.id());
        let all = fs::read_to_string(format!("/proc/{}/io", child.0.id())).unwrap();
        let status = child.0.wait().unwrap();
        assert!(status.success(), "{words:?} failed, {status}: {printed}");
        let on_cpu_ns = entry.lines().last().and_then(|line| line.split(' ').next()?.parse().ok());
        let since = |before: u64, all: u64| all - before..=all;
        Ran {
            printed,
            account,
            on_cpu_ns: since(on_cpu_ns.unwrap(), account.on_cpu_ns),
            read_bytes: since(block_bytes(&entry)[0], block_bytes(&all)[0]),
        }
    }

    /// Removes it and the directories in it, which must be empty of processes.
    pub fn remove(&self) {
        for directory in self.0.iter().flat_map(|directory| cgroups::tree(directory)) {
            // The kernel lets go of a task a moment after it was reaped.
            while let Err(error) = fs::remove_dir(&directory) {
                assert_eq!(error.raw_os_error(), Some(libc::EBUSY), "{}", directory.display());
                std::thread::yield_now();
            }
        }
    }
}

/// A process that has ended, by the kernel's account of it as a zombie: complete, its end included. What
/// it did between its making and its entry is not the cgroup's: the lower bounds leave it out. Pages of
/// programs that the kernel has dropped and that are read again are in these numbers.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What it printed.
    pub printed: String,
    /// All of its own, since its making.
    pub account: Account,
    /// Time on CPU inside.
    pub on_cpu_ns: RangeInclusive<u64>,
    /// Bytes that it and all whom it reaped read from block devices inside.
    pub read_bytes: RangeInclusive<u64>,
}

/// Killed and reaped when dropped.
#[derive(Debug)]
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the child `pid` is a zombie, and leaves it one; its account.
fn ended(pid: u32) -> Account {
    // SAFETY: an out-parameter of ours; zeros are a valid value.
    let waited = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_PID, pid, &mut info, libc::WEXITED | libc::WNOWAIT)
    };
    assert_eq!(waited, 0, "waitid: {}", io::Error::last_os_error());
    settled(pid as i32)
}
