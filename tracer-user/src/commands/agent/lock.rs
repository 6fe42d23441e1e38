//! One agent for each node: a lock on a file, which the kernel gives back however its holder ends, and
//! which names the holder.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, open},
    io::Errno,
};

use crate::{base::text::clean, files::publish::cure};

/// Name of the file in the state folder. It stays when the agent ends: to remove it would let two
/// agents lock two files of one name.
const FILE: &str = "agent.lock";
/// Longest note of a holder that is read.
const NOTE_BYTES: u64 = 256;

/// Held as long as this lives.
#[derive(Debug)]
pub struct NodeLock {
    _file: File,
    path: PathBuf,
}

impl NodeLock {
    /// Takes the lock in `state_dir`, which is made where it is absent, and writes `pid` and `start`
    /// (words for people) into it.
    ///
    /// # Errors
    /// When another agent holds it, which is named, or the file cannot be made.
    pub fn take(state_dir: &Path, pid: u32, start: &str) -> Result<Self> {
        let told = |what: &str, path: &Path, error: io::Error| {
            let message = format!("cannot {what} {}: {}", path.display(), cure(&error));
            anyhow::Error::new(error).context(message)
        };
        fs::create_dir_all(state_dir)
            .map_err(|error| told("create the state folder", state_dir, error))?;
        let path = state_dir.join(FILE);
        // Whoever may open the file may lock it, so nobody else may open it.
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = open(&path, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| told("open", &path, error.into()))?;
        let mut file = File::from(file);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => bail!(refusal(&mut file, &path)),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{pid} {start}"))
            .map_err(|error| told("write", &path, error))?;
        Ok(Self { _file: file, path })
    }

    /// The locked file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Names the holder, as far as it wrote itself down.
fn refusal(file: &mut File, path: &Path) -> String {
    let mut note = String::new();
    let _ = file.take(NOTE_BYTES).read_to_string(&mut note);
    let (pid, start) = note.trim().split_once(' ').unwrap_or((note.trim(), ""));
    match pid.parse::<u32>() {
        Ok(pid) => format!(
            "another agent runs on this node: pid {pid}, since {}; stop it with `systemctl stop jobtrace` or `kill {pid}`",
            clean(start, true),
        ),
        Err(_) => format!(
            "another agent is starting on this node and holds the lock {}; `fuser {0}` shows its pid",
            path.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_and_told_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("run/jobtrace");
        let first = NodeLock::take(&state, 4242, "2026-11-21 10:00:00 UTC").unwrap();
        let error = NodeLock::take(&state, 4243, "later").unwrap_err().to_string();
        for word in ["pid 4242", "2026-11-21 10:00:00 UTC", "kill 4242", "systemctl stop"] {
            assert!(error.contains(word), "{error}");
        }
        let note = fs::read_to_string(first.path()).unwrap();
        assert_eq!(note, "4242 2026-11-21 10:00:00 UTC\n", "the second one left it alone");
        drop(first);
        let third = NodeLock::take(&state, 7, "then").unwrap();
        assert_eq!(fs::read_to_string(third.path()).unwrap(), "7 then\n");
    }

    #[test]
    fn what_a_killed_agent_left_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), "99 long ago, with a longer note than the next\n")
            .unwrap();
        let lock = NodeLock::take(dir.path(), 1, "now").unwrap();
        assert_eq!(fs::read_to_string(lock.path()).unwrap(), "1 now\n");
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let other = dir.path().join("other");
        fs::write(&other, "keep").unwrap();
        std::os::unix::fs::symlink(&other, dir.path().join(FILE)).unwrap();
        let error = NodeLock::take(dir.path(), 1, "now").unwrap_err().to_string();
        assert!(error.contains(FILE) && error.contains("name another folder"), "{error}");
        assert_eq!(fs::read_to_string(&other).unwrap(), "keep");
    }
}
