//! The committed BPF object stands for the sources beside it, and the check that says so works.

use anyhow::Result;
use std::fs;
use std::path::Path;
use xtask::source_digest::{OBJECT, RECORD, Record, check, of_bytes, of_sources};

/// Writes a small tree with a current object under `root`.
fn current_tree(root: &Path) -> Result<()> {
    fs::create_dir_all(root.join("tracer-ebpf/src/programs"))?;
    fs::create_dir_all(root.join("tracer-ebpf/object"))?;
    fs::write(root.join("tracer-ebpf/Cargo.toml"), "[package]\n")?;
    fs::write(root.join("tracer-ebpf/src/main.rs"), "mod programs;\n")?;
    fs::write(root.join("tracer-ebpf/src/programs/mod.rs"), "//! Programs.\n")?;
    fs::write(root.join(OBJECT), b"\x7fELF")?;
    let record = Record {
        sources: of_sources(root)?,
        object: of_bytes(b"\x7fELF"),
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
    fs::write(tree.path().join("tracer-ebpf/src/.main.rs.swp"), "an editor's")?;
    check(tree.path())
}

#[test]
fn changed_moved_and_new_sources_are_seen_and_the_cure_is_named() -> Result<()> {
    let changes: [fn(&Path) -> std::io::Result<()>; 4] = [
        |root| fs::write(root.join("tracer-ebpf/src/main.rs"), "mod programs; \n"),
        |root| fs::write(root.join("tracer-ebpf/Cargo.toml"), "[package]\nname = \"x\"\n"),
        |root| fs::write(root.join("tracer-ebpf/src/programs/more.rs"), ""),
        |root| {
            let programs = root.join("tracer-ebpf/src/programs");
            fs::rename(programs.join("mod.rs"), programs.join("moved.rs"))
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
    fs::write(tree.path().join(OBJECT), b"\x7fELF patched by hand")?;
    assert!(complaint(tree.path()).contains("is not the object"));
    Ok(())
}
