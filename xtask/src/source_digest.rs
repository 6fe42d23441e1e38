//! One digest over everything that the BPF objects are built from, and the record that is committed
//! beside the objects.
//!
//! Only tracer-ebpf's own files count: the versions of its dependencies are in its manifest, and a
//! rebuild with `cargo xtask ebpf --check` sees the rest.

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

use crate::files_below;

/// A committed BPF object.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// The binary target of tracer-ebpf that it is built from.
    pub target: &'static str,
    /// Where it lies, relative to the workspace's root.
    pub file: &'static str,
}

/// The programs that always run.
pub const ALWAYS: Object = Object { target: "always", file: "tracer-ebpf/object/always.bpf.o" };
/// The programs that count file operations, on request.
pub const IO: Object = Object { target: "io", file: "tracer-ebpf/object/io.bpf.o" };
/// The programs that see which software jobs run, on request.
pub const CENSUS: Object = Object { target: "census", file: "tracer-ebpf/object/census.bpf.o" };
/// All of them: one for what always runs, and one for each thing that runs on request.
pub const OBJECTS: &[Object] = &[ALWAYS, IO, CENSUS];
/// The record beside them: digests of the sources and of each object, and who built them.
pub const RECORD: &str = "tracer-ebpf/object/SOURCE.sha256";

/// What [`RECORD`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Hexadecimal SHA-256 of the sources: [`of_sources`].
    pub sources: String,
    /// Hexadecimal SHA-256 of each object's bytes, in the order of [`OBJECTS`].
    pub objects: Vec<String>,
    /// The compiler, its LLVM and the linker, in words.
    pub built_by: String,
}

impl Record {
    /// The record as it is committed.
    #[must_use]
    pub fn to_text(&self) -> String {
        let objects = OBJECTS.iter().zip(&self.objects);
        let objects: String =
            objects.map(|(object, digest)| format!("{} {digest}\n", object.target)).collect();
        format!("sources {}\n{objects}built-by {}\n", self.sources, self.built_by)
    }

    /// Parses what [`Record::to_text`] wrote.
    ///
    /// # Errors
    /// When a line is missing.
    pub fn parse(text: &str) -> Result<Self> {
        let field = |key: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
                .map(str::to_owned)
                .with_context(|| format!("{RECORD} has no line `{key}`: run `cargo xtask ebpf`"))
        };
        Ok(Self {
            sources: field("sources")?,
            objects: OBJECTS.iter().map(|object| field(object.target)).collect::<Result<_>>()?,
            built_by: field("built-by")?,
        })
    }
}

/// Hexadecimal SHA-256 of `bytes`.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> String {
    in_hex(&Sha256::digest(bytes))
}

fn in_hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Digest of the sources under `root`: for tracer-ebpf's manifest and each file below its `src`,
/// sorted by relative path, the path, the length and the content.
///
/// # Errors
/// When a file cannot be read.
pub fn of_sources(root: &Path) -> Result<String> {
    let mut files = vec![PathBuf::from("tracer-ebpf/Cargo.toml")];
    for file in files_below(&root.join("tracer-ebpf/src"))? {
        let file = file.strip_prefix(root)?.to_owned();
        // An editor's leavings are not sources; git ignores them too.
        let is_left = file.components().any(|c| c.as_os_str().as_encoded_bytes().starts_with(b"."));
        if !is_left && file.extension().is_some_and(|extension| extension == "rs") {
            files.push(file);
        }
    }
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        let content = fs::read(root.join(&file)).with_context(|| format!("read {file:?}"))?;
        digest.update(file.as_os_str().as_encoded_bytes());
        digest.update([0]);
        digest.update((content.len() as u64).to_le_bytes());
        digest.update(content);
    }
    Ok(in_hex(&digest.finalize()))
}

/// Fails unless the committed objects are those that their record names and were built from the
/// sources that lie under `root` now.
///
/// # Errors
/// Says what differs, and the cure.
pub fn check(root: &Path) -> Result<()> {
    const CURE: &str = "run `cargo xtask ebpf` and commit tracer-ebpf/object";
    let record = fs::read_to_string(root.join(RECORD))
        .with_context(|| format!("{RECORD} cannot be read: {CURE}"))?;
    let record = Record::parse(&record)?;
    for (Object { file, .. }, digest) in OBJECTS.iter().zip(&record.objects) {
        let object =
            fs::read(root.join(file)).with_context(|| format!("{file} cannot be read: {CURE}"))?;
        if *digest != of_bytes(&object) {
            bail!("{file} is not the object that {RECORD} describes: {CURE}");
        }
    }
    if record.sources != of_sources(root)? {
        bail!(
            "the BPF objects were built from other sources than those of tracer-ebpf now: {CURE}"
        );
    }
    Ok(())
}
