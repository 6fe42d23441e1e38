//! Real surroundings for the agent under test: a scheduler, a data base, an init system, a container,
//! crowds of cgroups, disks that are full, a clock that is stepped. Each is a value that ends the
//! processes it started, by their ids, and removes what it made when it is dropped, in a panic too.
//!
//! What a rig starts dies with the *thread* that started it, so that a killed test leaves no server
//! behind: start a rig in the test that uses it, and never keep one in a static. Everything has a
//! folder, a name and ports of its own and listens on the loopback only: tests of several checkouts
//! may run on one machine.

use std::{
    env,
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
    process::{Command, Output},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

pub mod bpffs;
pub mod cgroups;
pub mod churn;
pub mod clock;
pub mod container;
pub mod core_dumps;
pub mod daemon;
pub mod etc;
pub mod full_disk;
pub mod fuse;
pub mod images;
pub mod influx;
pub mod mount;
pub mod overlay;
pub mod quota;
pub mod read_only;
pub mod scripts;
pub mod shaped;
pub mod share;
pub mod slurm;
pub mod systemd;
pub mod venv;
pub mod victoria;
pub mod workload;

/// How long anything awaited may take, however busy the machine is: only a test that fails waits so long.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at something awaited, or as long as a look takes.
const PACE: Duration = Duration::from_millis(20);

/// Waits until `look` gives a value.
///
/// # Errors
/// When it has none after `patience`: `what` did not happen.
pub fn wait_for<T>(
    what: &str,
    patience: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Result<T> {
    let begin = Instant::now();
    loop {
        let looked = Instant::now();
        if let Some(value) = look() {
            return Ok(value);
        }
        if begin.elapsed() > patience {
            bail!("{what}: not within {} s", patience.as_secs());
        }
        // What is awaited needs a CPU too.
        sleep(PACE.max(looked.elapsed()));
    }
}

/// The file of a program that Debian's `package` has.
///
/// # Errors
/// When it is not installed; says how to get it.
fn program(name: &str, package: &str) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .with_context(|| {
            format!(
                "{name} is not installed: `cargo xtask test --live` installs it, or `apt-get \
                 install {package}`"
            )
        })
}

/// Runs a command to its end; it must end well.
fn run(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} failed, {}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output)
}

/// A folder that vanishes with its value; others may enter and read it.
pub fn folder(name: &str) -> Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix(&format!("jobtrace-{name}-"))
        .permissions(Permissions::from_mode(0o755))
        .tempdir();
    folder.context("cannot make a folder for temporary files")
}

/// A folder beside the test programs for what is dear to make. It is its target folder's owner's,
/// who may then remove it where the tests run as root.
fn cache() -> Result<PathBuf> {
    let program = env::current_exe().context("where is this program")?;
    let target = program.ancestors().nth(3).context("no target folder around this program")?;
    let cache = target.join("rigs");
    fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    let owner = fs::metadata(target)?;
    std::os::unix::fs::chown(&cache, Some(owner.uid()), Some(owner.gid()))?;
    Ok(cache)
}

/// A TCP port of the loopback that nobody listens on now.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}
