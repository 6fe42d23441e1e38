//! The kernel modules that the guest needs: loop devices, for block I/O of known amounts; and those that single
//! checks use where the kernel comes with them.

use crate::process::in_words;
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::files_below;

/// What the checks need, by module name.
const NEEDED: &[&str] = &["loop"];
/// What some can do without, and then say so: NFS, its server and its client; overlays.
const WANTED: &[&str] = &["nfsd", "nfsv3", "nfsv4", "overlay"];

/// The names of all of them, by which kept ones are told from those of another version of this chore.
pub fn names() -> String {
    [NEEDED, WANTED].concat().join(" ")
}

/// Copies the modules that are needed or wanted, those that they depend on first, from anywhere below
/// `folder` to `into`, unpacked and numbered in the order in which they must be loaded.
///
/// # Errors
/// When one that is needed, or that another depends on, is missing or cannot be unpacked.
pub fn gather(folder: &Path, into: &Path) -> Result<Vec<PathBuf>> {
    let _ = fs::remove_dir_all(into);
    fs::create_dir_all(into).with_context(|| format!("make {}", into.display()))?;
    // Every module file below, by module name.
    let mut all = HashMap::new();
    for file in files_below(folder)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if let Some((name, _)) = name.split_once(".ko") {
            all.insert(name.replace('-', "_"), file.clone());
        }
    }
    let mut order: Vec<(String, Vec<u8>)> = Vec::new();
    let wanted = WANTED.iter().filter(|name| all.contains_key(**name));
    for name in NEEDED.iter().chain(wanted) {
        add(name, &all, &mut order).with_context(|| format!("modules of {}", folder.display()))?;
    }
    let mut files = Vec::new();
    for (number, (name, bytes)) in order.iter().enumerate() {
        let file = into.join(format!("{number:02}-{name}.ko"));
        fs::write(&file, bytes).with_context(|| format!("write {}", file.display()))?;
        files.push(file);
    }
    Ok(files)
}

fn add(
    name: &str,
    all: &HashMap<String, PathBuf>,
    order: &mut Vec<(String, Vec<u8>)>,
) -> Result<()> {
    if order.iter().any(|(own, _)| own == name) {
        return Ok(());
    }
    let file = all.get(name).with_context(|| format!("there is no module {name}"))?;
    let bytes = unpacked(file)?;
    for needed in dependencies(&bytes) {
        add(&needed, all, order)?;
    }
    order.push((name.to_owned(), bytes));
    Ok(())
}

fn unpacked(file: &Path) -> Result<Vec<u8>> {
    let packer = match file.extension().and_then(|end| end.to_str()) {
        Some("ko") => return fs::read(file).with_context(|| format!("read {}", file.display())),
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => bail!("{} is packed in a way that is not known here", file.display()),
    };
    let mut command = Command::new(packer);
    command.arg("-dc").arg(file);
    let done = command.output().with_context(|| format!("start {}", in_words(&command)))?;
    if !done.status.success() {
        bail!("`{}` failed: {}", in_words(&command), done.status);
    }
    Ok(done.stdout)
}

/// `depends=a,b` of the section .modinfo, which holds words that end in a zero byte.
fn dependencies(module: &[u8]) -> Vec<String> {
    let words = module.split(|byte| *byte == 0);
    let line = words.filter_map(|word| word.strip_prefix(b"depends=")).next().unwrap_or_default();
    let names = String::from_utf8_lossy(line).into_owned();
    names.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_comes_last_and_may_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        for (name, needs) in [("nfsd", ""), ("loop", ""), ("nfsv4", "sunrpc"), ("sunrpc", "")] {
            let text = format!("\x7fELF\0depends={needs}\0");
            fs::write(folder.path().join(format!("{name}.ko")), text).unwrap();
        }
        let into = folder.path().join("into");
        let names = |files: Vec<PathBuf>| -> Vec<String> {
            let name = |file: &PathBuf| file.file_name().unwrap().to_string_lossy().into_owned();
            files.iter().map(name).collect()
        };
        let all = ["00-loop.ko", "01-nfsd.ko", "02-sunrpc.ko", "03-nfsv4.ko"];
        assert_eq!(names(gather(folder.path(), &into).unwrap()), all);
        fs::remove_dir_all(&into).unwrap();
        fs::remove_file(folder.path().join("nfsd.ko")).unwrap();
        let some = ["00-loop.ko", "01-sunrpc.ko", "02-nfsv4.ko"];
        assert_eq!(names(gather(folder.path(), &into).unwrap()), some);
    }

    #[test]
    fn what_a_module_depends_on_comes_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("kernel/drivers");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("loop.ko"), b"\x7fELF\0license=GPL\0depends=a-b\0name=loop\0").unwrap();
        fs::write(deep.join("a-b.ko"), b"\x7fELF\0depends=\0name=a_b\0").unwrap();
        let into = folder.path().join("into");
        let files = gather(&deep, &into).unwrap();
        assert_eq!(files, [into.join("00-a_b.ko"), into.join("01-loop.ko")]);
        fs::remove_file(deep.join("a-b.ko")).unwrap();
        let error = format!("{:#}", gather(&deep, &into).unwrap_err());
        assert!(error.ends_with("there is no module a_b"), "{error}");
    }
}
