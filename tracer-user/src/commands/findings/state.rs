//! Who was told what: a file of JSON that appears whole.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use anyhow::{Context, Result};

use crate::{
    files::{folder::Folder, publish::cure},
    report::findings::Told,
};

/// What the file at `path` says; nothing where there is none.
///
/// # Errors
/// When it cannot be read, or is no such file; the message names the cure.
pub fn load(path: &Path) -> Result<Told> {
    let name = path.display();
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).with_context(|| {
            format!("{name} does not say who was told what: remove it, and everybody is told again")
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Told::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {name}")),
    }
}

/// Writes it, in place of what is there.
///
/// # Errors
/// When it cannot be written; what was there stands.
pub fn save(path: &Path, told: &Told) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} is no name of a file", path.display()))?;
    let text = serde_json::to_vec(told)?;
    let write = || -> io::Result<()> {
        let folder = Folder::open(parent.unwrap_or(Path::new(".")))?;
        let new = format!(".{name}.new");
        let mut file = folder.create(&new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        folder.rename(&new, &folder, name)?;
        folder.sync()
    };
    write().map_err(|error| {
        let message = format!("cannot write {}: {}", path.display(), cure(&error));
        anyhow::Error::new(error).context(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_loaded_and_what_is_damaged_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("told.json");
        assert!(load(&path).unwrap().is_empty());
        let told = Told::from([("ada".into(), [("gpu_unused".into(), 7)].into())]);
        for _ in 0..2 {
            save(&path, &told).unwrap();
            assert_eq!(load(&path).unwrap(), told);
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing else is left there");
        fs::write(&path, "{").unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("remove it"));
        let nowhere = save(&dir.path().join("x/told.json"), &told).unwrap_err();
        assert!(nowhere.to_string().contains("name another folder"), "{nowhere:#}");
    }
}
