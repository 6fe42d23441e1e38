//! A container by runc, without an engine around it: the cgroup's path is the caller's choice, so
//! that it looks like Docker's, Podman's or Kubernetes'. Inside are the host's own programs, read
//! only; nothing of the host's network, processes or other files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{PATIENCE, cgroups, daemon::Daemon, folder, program};

/// The host's folders that a program needs, as far as they are there.
const SHOWN: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc"];

/// Whose container it looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `/docker/<64 hex>`.
    Docker,
    /// `/machine.slice/libpod-<64 hex>.scope/container`.
    Podman,
    /// `/kubepods/burstable/pod<uid>/<64 hex>`.
    Kubernetes,
}

impl Kind {
    /// The cgroup's path for a container of this id.
    pub fn path(self, id: &str) -> String {
        match self {
            Self::Docker => format!("/docker/{id}"),
            Self::Podman => format!("/machine.slice/libpod-{id}.scope/container"),
            Self::Kubernetes => {
                let uid = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..32]].join("-");
                format!("/kubepods/burstable/pod{uid}/{id}")
            }
        }
    }
}

/// A container.
#[derive(Debug)]
pub struct Container {
    id: String,
    cgroup: String,
    state: PathBuf,
    runc: PathBuf,
    pid: i32,
    process: Daemon,
    own_cgroups: Vec<PathBuf>,
    _above: cgroups::Shared,
    folder: TempDir,
}

impl Container {
    /// Starts `words` in a container of a new id; `shown` are more of the host's folders to see, read
    /// only, say that of the test programs.
    ///
    /// # Errors
    /// When runc is not installed or refuses.
    pub fn start(kind: Kind, words: &[&str], shown: &[&Path]) -> Result<Self> {
        let runc = program("runc", "runc")?;
        let folder = folder("container")?;
        let id = new_id();
        let cgroup = kind.path(&id);
        let bundle = folder.path().join("bundle");
        for name in ["rootfs", "rootfs/proc", "rootfs/dev", "rootfs/tmp", "rootfs/sys"] {
            fs::create_dir_all(bundle.join(name))?;
        }
        let shown: Vec<&Path> = SHOWN
            .iter()
            .map(Path::new)
            .chain(shown.iter().copied())
            .filter(|p| p.exists())
            .collect();
        let settings = configuration(&cgroup, words, &shown);
        fs::write(bundle.join("config.json"), serde_json::to_vec(&settings)?)?;

        let (own_cgroups, above) = directories(&cgroup)?;
        let state = folder.path().join("state");
        let mut command = Command::new(&runc);
        let started = folder.path().join("pid");
        command.arg("--root").arg(&state).args(["run", "--pid-file"]).arg(&started);
        command.arg("--bundle").arg(&bundle).arg(&id);
        let process = Daemon::start(&mut command, &folder.path().join("log"))?;
        let mut container =
            Self { id, cgroup, state, runc, pid: 0, process, own_cgroups, _above: above, folder };
        container.pid = container.wait_until_started(&started)?;
        Ok(container)
    }

    /// runc writes the process's id once its program is executed; a short one has ended by then.
    fn wait_until_started(&mut self, started: &Path) -> Result<i32> {
        super::wait_for("the container's start", PATIENCE, || {
            let ended = self.process.ended();
            match fs::read_to_string(started).ok().and_then(|pid| pid.trim().parse().ok()) {
                Some(pid) => Some(Ok(pid)),
                None => ended.map(Err),
            }
        })?
        .map_err(|status| anyhow!("the container did not start, {status}"))
        .with_context(|| self.process.last_lines())
    }

    /// 64 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The path of its cgroup below each hierarchy's mount.
    pub fn cgroup(&self) -> &str {
        &self.cgroup
    }

    /// Its first process, as the host sees it.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits for its first process to end; gives what it printed.
    ///
    /// # Errors
    /// When it ends otherwise than by status 0, or not within `patience`.
    pub fn wait(&mut self, patience: Duration) -> Result<String> {
        let ended = super::wait_for("the container's end", patience, || self.process.ended())?;
        ensure!(ended.success(), "the container ended, {ended}: {}", self.process.last_lines());
        fs::read_to_string(self.folder.path().join("log")).context("the container's output")
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let runc = |words: &[&str]| {
            Command::new(&self.runc).arg("--root").arg(&self.state).args(words).output()
        };
        // `run` deletes it at its end; then there is nothing left to do.
        let _ = runc(&["delete", "--force", &self.id]);
        self.process.stop();
        for directory in &self.own_cgroups {
            if let Err(error) = cgroups::remove(directory) {
                eprintln!("container: {error:#}");
            }
        }
    }
}

/// The cgroup's directories in all hierarchies, and those above them that are not there yet.
fn directories(cgroup: &str) -> Result<(Vec<PathBuf>, cgroups::Shared)> {
    let (mut own, mut above) = (Vec::new(), Vec::new());
    let mut mounts = cgroups::mounts()?;
    // runc joins the named hierarchy too, where systemd's place is.
    mounts.extend([PathBuf::from("/sys/fs/cgroup/systemd")].into_iter().filter(|m| m.is_dir()));
    for mount in mounts {
        let full = mount.join(cgroup.trim_start_matches('/'));
        let inner: Vec<&Path> =
            full.ancestors().skip(1).take_while(|&path| path != mount).collect();
        above.extend(inner.into_iter().rev().map(Path::to_owned));
        own.push(full);
    }
    Ok((own, cgroups::Shared::before(above)))
}

/// 64 digits that no other container has.
fn new_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let own = [time, u64::from(std::process::id()), COUNT.fetch_add(1, Ordering::Relaxed), !time];
    own.iter().map(|word| format!("{:016x}", word.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
}

/// The bundle's `config.json`.
fn configuration(cgroup: &str, words: &[&str], shown: &[&Path]) -> Value {
    let mut mounts = vec![
        json!({"destination": "/proc", "type": "proc", "source": "proc"}),
        json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
               "options": ["nosuid", "mode=755"]}),
        json!({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"}),
        json!({"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]}),
        json!({"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup",
               "options": ["nosuid", "noexec", "nodev", "ro"]}),
    ];
    mounts.extend(shown.iter().map(|path| {
        json!({"destination": path, "type": "bind", "source": path, "options": ["rbind", "ro"]})
    }));
    let namespaces = ["pid", "network", "ipc", "uts", "mount"].map(|kind| json!({"type": kind}));
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": {"uid": 0, "gid": 0},
            "args": words,
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "cwd": "/",
        },
        "root": {"path": "rootfs"},
        "hostname": "container",
        "mounts": mounts,
        "linux": {
            "cgroupsPath": cgroup,
            "namespaces": namespaces,
            "resources": {"devices": [{"allow": true, "access": "rwm"}]},
        },
    })
}
