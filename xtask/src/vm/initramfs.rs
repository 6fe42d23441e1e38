//! The guest's file system: the first process, jobtrace, the workloads, the libraries they need, and a
//! kernel's modules, as an archive that the kernel unpacks into memory.

use super::arch::Arch;
use super::kernels::Kernel;
use super::programs;
use anyhow::{Context, Result};
use cpio::newc::{Builder, trailer};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use xtask::guest::{MODULES, PROGRAMS};
use xtask::source_digest::of_bytes;

/// Workloads of the checks, of `tests/src/bin`.
const WORKLOADS: &[&str] = &[
    "spin", "rest", "wait", "breed", "touch", "transfer", "amounts", "mixed", "messages",
    "file_ops", "imports", "overlays",
];
/// The guest's first process.
const GUEST: &str = "vm_guest";
/// Where another BPF object lies in the guest.
const OBJECT: &str = "/object.bpf.o";
/// The users that jobs have.
const PASSWD: &[u8] = b"root:x:0:0:root:/:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n";

/// What is the same for all kernels of an architecture: paths in the guest, and their bytes.
pub struct Contents {
    files: BTreeMap<String, Vec<u8>>,
    has_object: bool,
}

impl Contents {
    /// Builds the workloads and gathers them with `jobtrace`; `object` replaces the one in it.
    ///
    /// # Errors
    /// When they do not build, or a library is not found.
    pub fn build(arch: Arch, jobtrace: &Path, object: Option<&Path>) -> Result<Self> {
        let built = programs::workloads(arch)?;
        let mut programs = vec![
            ("/init".to_owned(), built.join(GUEST)),
            (format!("{PROGRAMS}/jobtrace"), jobtrace.to_owned()),
        ];
        programs
            .extend(WORKLOADS.iter().map(|name| (format!("{PROGRAMS}/{name}"), built.join(name))));
        let mut files = BTreeMap::from([("/etc/passwd".to_owned(), PASSWD.to_vec())]);
        for (place, program) in programs {
            for (library, file) in programs::libraries(arch, &program)? {
                let bytes = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
                files.insert(library, bytes);
            }
            files.insert(place, programs::stripped(arch, &program)?);
        }
        if let Some(object) = object {
            files.insert(OBJECT.to_owned(), fs::read(object).context("read the BPF object")?);
        }
        Ok(Self { files, has_object: object.is_some() })
    }

    /// A digest of all of it.
    pub fn digest(&self) -> String {
        let all = self.files.iter().map(|(path, bytes)| format!("{path} {}\n", of_bytes(bytes)));
        of_bytes(all.collect::<String>().as_bytes())
    }

    /// Words for the kernel's command line that become the first process's environment: the kernel
    /// hands it all that it does not know itself.
    pub fn environment(&self) -> String {
        let object =
            if self.has_object { format!(" JOBTRACE_BPF_OBJECT={OBJECT}") } else { String::new() };
        format!("JOBTRACE_BIN={PROGRAMS}/jobtrace JOBTRACE_TESTS_EXACT=1{object}")
    }

    /// Writes the archive for `kernel`.
    ///
    /// # Errors
    /// When a module cannot be read, or the disk refuses.
    pub fn write(&self, kernel: &Kernel, file: &Path) -> Result<()> {
        let mut archive = Archive::create(file)?;
        archive.folders(MODULES)?;
        for (path, bytes) in &self.files {
            archive.add(path, bytes)?;
        }
        for module in &kernel.modules {
            let name = module.file_name().unwrap_or_default().to_string_lossy();
            let bytes = fs::read(module).with_context(|| format!("read {}", module.display()))?;
            archive.add(&format!("{MODULES}/{name}"), &bytes)?;
        }
        archive.end()
    }
}

/// A cpio archive of the form newc, as Documentation/driver-api/early-userspace of Linux has it.
struct Archive {
    out: Option<BufWriter<File>>,
    made: Vec<String>,
}

impl Archive {
    fn create(file: &Path) -> Result<Self> {
        let out = File::create(file).with_context(|| format!("make {}", file.display()))?;
        let mut archive = Self { out: Some(BufWriter::new(out)), made: Vec::new() };
        archive.folders("/dev")?;
        // The kernel opens it for the first process before anything is mounted.
        let console = Builder::new("dev/console").mode(0o020_600).rdev_major(5).rdev_minor(1);
        archive.entry(console, &[])?;
        Ok(archive)
    }

    fn entry(&mut self, head: Builder, bytes: &[u8]) -> Result<()> {
        let out = self.out.take().context("the archive has ended")?;
        let mut entry = head.write(out, bytes.len().try_into().context("a file of 4 GiB")?);
        entry.write_all(bytes)?;
        self.out = Some(entry.finish()?);
        Ok(())
    }

    /// Makes a folder and those above it.
    fn folders(&mut self, path: &str) -> Result<()> {
        let mut name = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            name = if name.is_empty() { part.to_owned() } else { format!("{name}/{part}") };
            if !self.made.contains(&name) {
                self.entry(Builder::new(&name).mode(0o040_755), &[])?;
                self.made.push(name.clone());
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folders(folder)?;
        }
        let name = path.trim_start_matches('/');
        self.entry(Builder::new(name).mode(0o100_755), bytes)
    }

    fn end(mut self) -> Result<()> {
        let out = self.out.take().context("the archive has ended")?;
        trailer(out)?.flush().context("write the archive")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_holds_what_was_put_in_each_folder_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("archive");
        let mut archive = Archive::create(&file).unwrap();
        archive.add("/bin/a", b"first").unwrap();
        archive.add("/bin/b", b"second").unwrap();
        archive.end().unwrap();
        let mut names = Vec::new();
        let mut rest = File::open(&file).unwrap();
        loop {
            let reader = cpio::newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            names.push((reader.entry().name().to_owned(), reader.entry().file_size()));
            rest = reader.finish().unwrap();
        }
        let names: Vec<_> = names.iter().map(|(name, size)| (name.as_str(), *size)).collect();
        let wanted = [("dev", 0), ("dev/console", 0), ("bin", 0), ("bin/a", 5), ("bin/b", 6)];
        assert_eq!(names, wanted);
    }
}
