//! One digest over everything that the BPF object is built from, and the record that is committed
//! beside the object.
//!
//! Only tracer-ebpf's own files count: the versions of its dependencies are in its manifest, and a
//! rebuild with `cargo xtask ebpf --check` sees the rest.

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

use crate::files_below;

/// The committed object, relative to the workspace's root.
pub const OBJECT: &str = "tracer-ebpf/object/tracer.bpf.o";
/// The record beside it: digests of the sources and of the object, and who built it.
pub const RECORD: &str = "tracer-ebpf/object/SOURCE.sha256";

/// What [`RECORD`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Hexadecimal SHA-256 of the sources: [`of_sources`].
    pub sources: String,
    /// Hexadecimal SHA-256 of the object's bytes.
    pub object: String,
    /// The compiler, its LLVM and the linker, in words.
    pub built_by: String,
}

impl Record {
    /// The record as it is committed.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("sources {}\nobject {}\nbuilt-by {}\n", self.sources, self.object, self.built_by)
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
            object: field("object")?,
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

/// Fails unless the committed object is the one its record names and was built from the sources
/// that lie under `root` now.
///
/// # Errors
/// Says which of the two differs, and the cure.
pub fn check(root: &Path) -> Result<()> {
    const CURE: &str = "run `cargo xtask ebpf` and commit tracer-ebpf/object";
    let record = fs::read_to_string(root.join(RECORD))
        .with_context(|| format!("{RECORD} cannot be read: {CURE}"))?;
    let record = Record::parse(&record)?;
    let object =
        fs::read(root.join(OBJECT)).with_context(|| format!("{OBJECT} cannot be read: {CURE}"))?;
    if record.object != of_bytes(&object) {
        bail!("{OBJECT} is not the object that {RECORD} describes: {CURE}");
    }
    if record.sources != of_sources(root)? {
        bail!("{OBJECT} was built from other sources than those of tracer-ebpf now: {CURE}");
    }
    Ok(())
}
