//! What an init system would have done: file systems, cgroups, modules.

use std::{
    ffi::CString,
    fs,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, mount};
use xtask::guest::{CGROUPS, MODULES};

const CGROUP: &str = "/sys/fs/cgroup";
/// Hierarchies of v1, by their controllers, as systemd mounts them.
const V1: [&str; 7] = ["memory", "cpu,cpuacct", "blkio", "freezer", "pids", "cpuset", "devices"];
/// What v2 hands to the cgroups below its root, as systemd has it.
const V2: [&str; 4] = ["cpu", "io", "memory", "pids"];

/// Mounts everything, cgroups of the version that the command line asks for.
///
/// # Errors
/// When a file system that every kernel has cannot be mounted.
pub fn mount_all() -> Result<()> {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
        ("bpf", "/sys/fs/bpf"),
        ("tracefs", "/sys/kernel/tracing"),
    ] {
        mount_one(kind, Path::new(place), "")?;
    }
    match option(&command_line()?, CGROUPS).as_deref() {
        Some("v1") => mount_v1(),
        _ => mount_v2(),
    }
}

fn mount_v2() -> Result<()> {
    mount_one("cgroup2", Path::new(CGROUP), "")?;
    for controller in V2 {
        let file = Path::new(CGROUP).join("cgroup.subtree_control");
        fs::write(file, format!("+{controller}")).with_context(|| format!("no {controller}"))?;
    }
    Ok(())
}

/// Those that the kernel has: newer ones come without the memory controller of v1.
fn mount_v1() -> Result<()> {
    mount_one("tmpfs", Path::new(CGROUP), "")?;
    let known = fs::read_to_string("/proc/cgroups")?;
    for controllers in V1 {
        let is_known = |name: &str| known.lines().any(|line| line.split('\t').next() == Some(name));
        if !controllers.split(',').all(is_known) {
            continue;
        }
        let place = Path::new(CGROUP).join(controllers);
        fs::create_dir(&place)?;
        // The kernel of one that v2 alone has knows its name too.
        if mount_one("cgroup", &place, controllers).is_err() {
            fs::remove_dir(&place)?;
        }
    }
    let tree = Path::new(CGROUP).join("memory/memory.use_hierarchy");
    if tree.exists() {
        // Before 5.11 limits hold for the cgroups below only where this is set.
        fs::write(&tree, "1").context("memory.use_hierarchy")?;
    }
    Ok(())
}

fn mount_one(kind: &str, place: &Path, options: &str) -> Result<()> {
    mount_at(kind, place, kind, options)
}

/// Mounts `source`, of a `kind`, and makes the folder for it.
///
/// # Errors
/// When the kernel refuses.
pub fn mount_at(source: &str, place: &Path, kind: &str, options: &str) -> Result<()> {
    fs::create_dir_all(place).with_context(|| format!("cannot make {}", place.display()))?;
    let options = CString::new(options)?;
    mount(source, place, kind, MountFlags::empty(), Some(options.as_c_str()))
        .with_context(|| format!("cannot mount {kind} on {}", place.display()))
}

/// Switches the loopback device on.
///
/// # Errors
/// When the kernel refuses.
pub fn begin_loopback() -> Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").context("no socket")?;
    // SAFETY: the kernel reads and writes a request of its size, zeros but for name and flags.
    let done = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &raw const request)
    };
    anyhow::ensure!(done == 0, "cannot switch lo on: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Loads what the host packed, in the order of the names.
///
/// # Errors
/// When the kernel refuses one.
pub fn load_modules() -> Result<()> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(MODULES)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    for path in files {
        let file = fs::File::open(&path)?;
        rustix::system::finit_module(&file, c"", 0)
            .with_context(|| format!("cannot load {}", path.display()))?;
    }
    Ok(())
}

/// The kernel's command line.
///
/// # Errors
/// When /proc is not mounted.
pub fn command_line() -> Result<String> {
    fs::read_to_string("/proc/cmdline").context("cannot read /proc/cmdline")
}

/// The value of `key=value` on the kernel's command line.
pub fn option(line: &str, key: &str) -> Option<String> {
    let word = line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    word.map(str::to_owned)
}
