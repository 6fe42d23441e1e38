//! A real systemd as the first process of namespaces of its own (PIDs, mounts, cgroups, network, UTS,
//! IPC), on hosts whose own first process may be anything. Real units, scopes, journal and watchdog, in
//! cgroup v2 below a directory of the rig's. Its root is a minimal Debian, made once and kept as a
//! tarball beside the test programs; every boot unpacks it into memory (about 200 MB).

use std::{
    ffi::OsStr,
    fs::{self, Permissions},
    os::{
        fd::AsFd,
        unix::{fs::PermissionsExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tempfile::TempDir;

use super::{cache, cgroups, daemon::Daemon, folder, program, run, wait_for};

/// How long the boot may take: unpacking included, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long its namespace may take to end.
const LAST: Duration = Duration::from_secs(10);
const BOOT: &str = include_str!("boot.sh");
const SUITE: &str = "bookworm";
const PACKAGES: &str = "systemd,systemd-sysv,dbus,libpam-systemd,procps";
/// What no test reads.
const LEFT_OUT: [&str; 5] = [
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/share/info/*",
    "/usr/share/zoneinfo/*",
];

/// A booted systemd.
#[derive(Debug)]
pub struct Systemd {
    /// `unshare`, whose child is systemd and dies with it.
    outer: Daemon,
    init_pid: i32,
    cgroup: PathBuf,
    _folder: TempDir,
}

impl Systemd {
    /// Boots one up to `basic.target`, about 3 s; the very first time makes its root, which takes a
    /// minute at most.
    ///
    /// # Errors
    /// When the root cannot be made, cgroup v2 is not mounted, or the boot fails: the end of its log
    /// says why.
    pub fn start() -> Result<Self> {
        let tarball = root_tarball()?;
        let folder = folder("systemd")?;
        let (boot, root) = (folder.path().join("boot.sh"), folder.path().join("root"));
        fs::write(&boot, BOOT)?;
        fs::create_dir(&root)?;
        let cgroup = cgroups::v2()?.join(cgroup_name());
        fs::create_dir(&cgroup).with_context(|| format!("cannot make {}", cgroup.display()))?;
        let mut command = Command::new(program("unshare", "util-linux")?);
        command.args(["--cgroup", "--mount", "--pid", "--uts", "--ipc", "--net", "--fork"]);
        command.args(["--kill-child", "sh"]).args([&boot, &tarball, &root]);
        let procs = cgroup.join("cgroup.procs");
        let enter = move || fs::write(&procs, "0");
        // SAFETY: opens and writes a file whose path was made before the fork; at most it allocates the
        // C string of a long path, which the C library allows after a fork.
        unsafe { command.pre_exec(enter) };
        let log = folder.path().join("log");
        let outer = match Daemon::start(&mut command, &log) {
            Ok(outer) => outer,
            Err(error) => {
                let _ = cgroups::remove(&cgroup);
                return Err(error);
            }
        };
        let mut systemd = Self { outer, init_pid: 0, cgroup, _folder: folder };
        systemd.wait_for_boot()?;
        Ok(systemd)
    }

    fn wait_for_boot(&mut self) -> Result<()> {
        let outer = self.outer.pid();
        let init = self.outer.wait_until("systemd is started", PATIENCE, || {
            let children =
                fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).ok()?;
            let init: i32 = children.split_whitespace().next()?.parse().ok()?;
            let name = fs::read_to_string(format!("/proc/{init}/comm")).ok()?;
            (name.trim() == "systemd").then_some(init)
        })?;
        self.init_pid = init;
        let active = ["systemctl", "is-active", "--quiet", "basic.target", "dbus.socket"];
        let mut entry = enter(init, &active);
        self.outer.wait_until("systemd reaches basic.target", PATIENCE, || {
            entry.output().ok()?.status.success().then_some(())
        })
    }

    /// The id of systemd as the host sees it.
    pub fn init_pid(&self) -> i32 {
        self.init_pid
    }

    /// Its cgroup as the host sees it: what `/sys/fs/cgroup` is inside.
    pub fn cgroup(&self) -> &Path {
        &self.cgroup
    }

    /// A command inside, with all namespaces and the root of systemd's; its cgroup stays the
    /// caller's until something (a scope, a service) moves it.
    pub fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        enter(self.init_pid, words)
    }

    /// Runs a command inside to its end; it must end well.
    ///
    /// # Errors
    /// When it does not.
    pub fn run<S: AsRef<OsStr>>(&self, words: &[S]) -> Result<Output> {
        run(&mut self.command(words))
    }

    /// The host's path of a file inside, for reading and writing.
    pub fn path(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{inside}", self.init_pid))
    }

    /// Writes a file inside, and the folders above it; `mode` as for chmod.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn install(&self, inside: &str, bytes: &[u8], mode: u32) -> Result<()> {
        ensure!(inside.starts_with('/'), "{inside} is no absolute path");
        let path = self.path(inside);
        fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        Ok(())
    }

    /// Moves the calling thread, and what it starts from now on, into systemd's network, which has a
    /// loopback and nothing else.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn join_network(&self) -> Result<()> {
        let network = fs::File::open(format!("/proc/{}/ns/net", self.init_pid))?;
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
            .context("cannot join the network of systemd")
    }

    /// The end of what systemd and its services have printed.
    pub fn last_lines(&self) -> String {
        self.outer.last_lines()
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        // The kernel ends the whole namespace with its first process, which `unshare` then reaps.
        if self.init_pid > 0 && self.outer.ended().is_none() {
            // SAFETY: no pointers; a child of `unshare`, which has not reaped it while it runs.
            unsafe { libc::kill(self.init_pid, libc::SIGKILL) };
            let _ = wait_for("the end of systemd", LAST, || self.outer.ended());
        }
        self.outer.kill();
        if let Err(error) = cgroups::remove(&self.cgroup) {
            eprintln!("systemd: {error:#}");
        }
    }
}

fn enter<S: AsRef<OsStr>>(init: i32, words: &[S]) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--target", &init.to_string(), "--all", "--root", "--wd", "--"]);
    command.args(["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"]);
    command.args(words);
    command
}

fn cgroup_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("jobtrace-systemd-{}-{number}", std::process::id())
}

/// Made beside its final name and renamed: a run that is interrupted leaves no half root.
fn root_tarball() -> Result<PathBuf> {
    let cache = cache()?;
    let tarball = cache.join(format!("systemd-{SUITE}.tar"));
    if tarball.is_file() {
        return Ok(tarball);
    }
    let making = tempfile::Builder::new().prefix("making-").suffix(".tar").tempfile_in(&cache)?;
    let mut command = Command::new(program("mmdebstrap", "mmdebstrap")?);
    command.args(["--quiet", "--variant=minbase", "--format=tar"]);
    command.arg(format!("--include={PACKAGES}")).arg("--dpkgopt=force-unsafe-io");
    for folder in LEFT_OUT {
        command.arg(format!("--dpkgopt=path-exclude={folder}"));
    }
    run(command.arg(SUITE).arg(making.path()))?;
    fs::set_permissions(making.path(), Permissions::from_mode(0o644))?;
    making.persist(&tarball).context("cannot keep the root of systemd")?;
    Ok(tarball)
}
