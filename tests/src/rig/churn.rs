//! Cgroups that come and go as fast as asked, each perhaps with a short-lived task inside, and exact
//! counts of what was done.

use std::{
    ffi::CString,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use jobtrace::cgroup::hierarchies::Hierarchies;

use super::{PATIENCE, cgroups};

/// What to do.
#[derive(Clone, Debug)]
pub struct Churn<'a> {
    /// A v1 controller, or empty for v2.
    pub controller: &'a str,
    /// Folders between the rig's own and the cgroups, e.g. `slurm/uid_0`; may be empty.
    pub below: &'a str,
    /// What the cgroups are called, a number after it: `job_` gives `job_0`, `job_1`, …
    pub prefix: &'a str,
    /// How many to make in all.
    pub count: u64,
    /// How many at most a second; `None`: as fast as it goes.
    pub per_second: Option<u32>,
    /// How many threads make them: as many cgroups exist at once, at most.
    pub at_once: usize,
    /// Whether each has a task that enters and ends.
    pub with_task: bool,
    /// How long each stays.
    pub stay: Duration,
}

impl Default for Churn<'_> {
    /// 100 in v2, one after the other, without tasks.
    fn default() -> Self {
        Self {
            controller: "",
            below: "",
            prefix: "job_",
            count: 100,
            per_second: None,
            at_once: 1,
            with_task: false,
            stay: Duration::ZERO,
        }
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Churned {
    /// Cgroups made, those of `below` and the rig's own not counted.
    pub made: u64,
    /// Cgroups removed again.
    pub removed: u64,
    /// Tasks that entered one and ended well.
    pub tasks: u64,
    /// From the first to the last.
    pub took: Duration,
}

impl Churn<'_> {
    /// Does it, and takes the rig's own directory away again.
    ///
    /// # Errors
    /// When the hierarchy is not mounted, or one cgroup cannot be made, entered or removed.
    pub fn run(&self) -> Result<Churned> {
        let top = Top::make(self.controller)?;
        let parent = top.0.join(self.below);
        fs::create_dir_all(&parent).with_context(|| format!("cannot make {}", parent.display()))?;
        let (next, tasks, removed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let begin = Instant::now();
        let one_by_one = || -> Result<()> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.count {
                    return Ok(());
                }
                self.wait_for_turn(number, begin);
                let directory = parent.join(format!("{}{number}", self.prefix));
                tasks.fetch_add(self.one(&directory)?, Ordering::Relaxed);
                removed.fetch_add(1, Ordering::Relaxed);
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..self.at_once.max(1)).map(|_| scope.spawn(one_by_one)).collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| bail!("a thread of the churn panicked"))
            })
        })?;
        let took = begin.elapsed();
        let removed = removed.into_inner();
        Ok(Churned { made: removed, removed, tasks: tasks.into_inner(), took })
    }

    /// By the clock, not by the last one: a delay is caught up with.
    fn wait_for_turn(&self, number: u64, begin: Instant) {
        let Some(rate) = self.per_second else { return };
        let due = Duration::from_secs_f64(number as f64 / f64::from(rate.max(1)));
        thread::sleep(due.saturating_sub(begin.elapsed()));
    }

    /// Makes, fills and removes one cgroup; gives how many tasks were inside.
    fn one(&self, directory: &Path) -> Result<u64> {
        let shown = directory.display();
        fs::create_dir(directory).with_context(|| format!("cannot make {shown}"))?;
        if self.with_task {
            visit(&directory.join("cgroup.procs")).with_context(|| format!("a task in {shown}"))?;
        }
        thread::sleep(self.stay);
        let begin = Instant::now();
        while let Err(error) = fs::remove_dir(directory) {
            if error.raw_os_error() != Some(libc::EBUSY) || begin.elapsed() > PATIENCE {
                bail!("cannot remove {shown}: {error}");
            }
            thread::yield_now();
        }
        Ok(self.with_task.into())
    }
}

/// A process that writes itself to `procs` and ends.
fn visit(procs: &Path) -> Result<()> {
    let path = CString::new(procs.as_os_str().as_bytes())?;
    // SAFETY: the caller may have threads, so the child makes system calls only; the path outlives it.
    let pid = unsafe {
        match libc::fork() {
            0 => {
                let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                let entered = libc::write(file, c"0".as_ptr().cast(), 1) == 1;
                libc::_exit(i32::from(!entered))
            }
            pid => pid,
        }
    };
    if pid < 0 {
        bail!("cannot fork: {}", io::Error::last_os_error());
    }
    let mut status = 0;
    // SAFETY: a child of ours, reaped once.
    let reaped = unsafe { libc::waitpid(pid, &mut status, 0) };
    if reaped != pid || status != 0 {
        bail!("it did not enter, wait status {status}");
    }
    Ok(())
}

/// The rig's own directory, right below the hierarchy's mount.
struct Top(PathBuf);

impl Top {
    fn make(controller: &str) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let found = Hierarchies::read()?;
        let hierarchy =
            if controller.is_empty() { found.v2.as_ref() } else { found.v1(controller) };
        let mount = &hierarchy
            .with_context(|| format!("no hierarchy of {controller:?} (empty: v2) is mounted"))?
            .mount;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let own = mount.join(format!("jobtrace-churn-{}-{number}", std::process::id()));
        fs::create_dir(&own).with_context(|| format!("cannot make {}", own.display()))?;
        Ok(Self(own))
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        if let Err(error) = cgroups::remove(&self.0) {
            eprintln!("churn: {error:#}");
        }
    }
}
