//! Who was told what: a file of JSON that appears whole. Whoever holds it is alone with it until he has told.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::{
    files::{folder::Folder, publish::cure},
    report::findings::Told,
};

/// Longest file that is read: who was told what within a day or so, of all users.
const MOST_BYTES: u64 = 64 << 20;
/// How long another `jobtrace findings` is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// The file, held until this is dropped.
#[derive(Debug)]
pub struct State {
    /// What it says; nothing where there is no file yet.
    pub told: Told,
    path: PathBuf,
    folder: Folder,
    name: String,
    /// Of a file beside it, which stays: the file itself is replaced.
    _lock: File,
}

impl State {
    /// Waits until nobody else holds the file at `path`, and reads it.
    ///
    /// # Errors
    /// When somebody does for too long, when it cannot be read, or is no such file; the message names the cure.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_within(path, PATIENCE)
    }

    fn open_within(path: &Path, patience: Duration) -> Result<Self> {
        let shown = path.display();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("{shown} is no name of a file"))?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let cannot = |what: &str, error: io::Error| {
            let message = format!("cannot {what} {shown}: {}", cure(&error));
            anyhow::Error::new(error).context(message)
        };
        let folder = Folder::open(parent.unwrap_or(Path::new(".")));
        let folder = folder.map_err(|error| cannot("write", error))?;
        let lock = folder.append(&format!(".{name}.lock"));
        let lock = lock.map_err(|error| cannot("write beside", error))?;
        wait(&lock, patience).with_context(|| format!("cannot lock {shown}"))?;
        let told = match folder.read(&name, MOST_BYTES) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| {
                format!(
                    "{shown} does not say who was told what: remove it, and everybody is told again"
                )
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Told::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        };
        Ok(Self { told, path: path.to_owned(), folder, name, _lock: lock })
    }

    /// Writes what it says, in place of what is there.
    ///
    /// # Errors
    /// When it cannot be written; what was there stands.
    pub fn save(self) -> Result<()> {
        let text = serde_json::to_vec(&self.told)?;
        let write = || -> io::Result<()> {
            let new = format!(".{}.new", self.name);
            let mut file = self.folder.create(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            self.folder.rename(&new, &self.folder, &self.name)?;
            self.folder.sync()
        };
        write().map_err(|error| {
            let message = format!("cannot write {}: {}", self.path.display(), cure(&error));
            anyhow::Error::new(error).context(message)
        })
    }
}

/// Until it is ours.
fn wait(lock: &File, patience: Duration) -> Result<()> {
    let until = Instant::now() + patience;
    loop {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() >= until => {
                let seconds = patience.as_secs();
                bail!(
                    "another jobtrace findings has held it for {seconds} s: end that, or name another file"
                );
            }
            Err(Errno::WOULDBLOCK) => thread::sleep(LOOK),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn told(at_ns: u64) -> Told {
        Told::from([("ada".into(), [("gpu_unused".into(), at_ns)].into())])
    }

    #[test]
    fn what_is_saved_is_loaded_and_what_is_damaged_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("told.json");
        assert!(State::open(&path).unwrap().told.is_empty());
        for at_ns in [7, 8] {
            let mut state = State::open(&path).unwrap();
            state.told = told(at_ns);
            state.save().unwrap();
            assert_eq!(State::open(&path).unwrap().told, told(at_ns));
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "it and its lock");
        fs::write(&path, "{").unwrap();
        assert!(State::open(&path).unwrap_err().to_string().contains("remove it"));
        let nowhere = State::open(&dir.path().join("x/told.json")).unwrap_err();
        assert!(nowhere.to_string().contains("name another folder"), "{nowhere:#}");
    }

    #[test]
    fn who_comes_meanwhile_waits_and_sees_what_was_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("told.json");
        let mut first = State::open(&path).unwrap();
        let refused = State::open_within(&path, Duration::ZERO).unwrap_err();
        assert!(format!("{refused:#}").contains("name another file"), "{refused:#}");
        let second = thread::spawn({
            let path = path.clone();
            move || State::open(&path).unwrap().told.clone()
        });
        first.told = told(7);
        first.save().unwrap();
        assert_eq!(second.join().unwrap(), told(7));
    }

    #[test]
    fn what_is_no_file_keeps_nobody_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [&pipe, &dir.path().to_path_buf()] {
            let refused = State::open_within(path, Duration::ZERO).unwrap_err();
            assert!(format!("{refused:#}").contains("it is no file"), "{refused:#}");
        }
    }
}
