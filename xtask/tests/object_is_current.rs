//! The committed BPF objects stand for the sources beside them, and the check that says so works.

use anyhow::Result;
use std::fs;
use std::path::Path;
use xtask::source_digest::{ALWAYS, OBJECTS, RECORD, Record, check, of_bytes, of_sources};

/// Writes a small tree with current objects under `root`.
fn current_tree(root: &Path) -> Result<()> {
    fs::create_dir_all(root.join("tracer-ebpf/src/always"))?;
    fs::create_dir_all(root.join("tracer-ebpf/object"))?;
    fs::write(root.join("tracer-ebpf/Cargo.toml"), "[package]\n")?;
    fs::write(root.join("tracer-ebpf/src/lib.rs"), "pub mod table;\n")?;
    fs::write(root.join("tracer-ebpf/src/always/main.rs"), "//! Programs.\n")?;
    for object in OBJECTS {
        fs::write(root.join(object.file), b"\x7fELF")?;
    }
    let record = Record {
        sources: of_sources(root)?,
        objects: OBJECTS.iter().map(|_| of_bytes(b"\x7fELF")).collect(),
        built_by: "rustc 1.0.0, LLVM 1".to_owned(),
    };
    fs::write(root.join(RECORD), record.to_text())?;
    Ok(())
}

fn complaint(root: &Path) -> String {
    check(root).expect_err("the tree is stale").to_string()
}

#[test]
fn committed_object_stands_for_these_sources() -> Result<()> {
    check(&xtask::root())
}

#[test]
fn untouched_tree_is_current() -> Result<()> {
    let tree = tempfile::tempdir()?;
    current_tree(tree.path())?;
    fs::write(tree.path().join("tracer-ebpf/src/.lib.rs.swp"), "an editor's")?;
    check(tree.path())
}

#[test]
fn changed_moved_and_new_sources_are_seen_and_the_cure_is_named() -> Result<()> {
    let changes: [fn(&Path) -> std::io::Result<()>; 4] = [
        |root| fs::write(root.join("tracer-ebpf/src/lib.rs"), "pub mod table; \n"),
        |root| fs::write(root.join("tracer-ebpf/Cargo.toml"), "[package]\nname = \"x\"\n"),
        |root| fs::write(root.join("tracer-ebpf/src/always/more.rs"), ""),
        |root| {
            let programs = root.join("tracer-ebpf/src/always");
            fs::rename(programs.join("main.rs"), programs.join("moved.rs"))
        },
    ];
    for change in changes {
        let tree = tempfile::tempdir()?;
        current_tree(tree.path())?;
        change(tree.path())?;
        assert!(complaint(tree.path()).contains("run `cargo xtask ebpf`"));
    }
    Ok(())
}

#[test]
fn another_object_than_the_recorded_one_is_seen() -> Result<()> {
    let tree = tempfile::tempdir()?;
    current_tree(tree.path())?;
    fs::write(tree.path().join(ALWAYS.file), b"\x7fELF patched by hand")?;
    assert!(complaint(tree.path()).contains("is not the object"));
    Ok(())
}
