//! No name leads out of a folder, and what is read of it is bounded.

use std::{fs, io::Write};

use super::*;

#[test]
fn nothing_leads_out_of_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "kept").unwrap();
    let inside = dir.path().join("inside");
    fs::create_dir(&inside).unwrap();
    std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
    std::os::unix::fs::symlink(outside.join("file"), inside.join("file")).unwrap();
    let folder = Folder::open(&inside).unwrap();
    assert!(folder.folder("link").is_err() && folder.make_folder("link").is_err());
    for refused in [folder.create("file"), folder.append("file")] {
        assert!(refused.is_err());
    }
    assert!(folder.read("file", 10).is_err() && folder.stat("file").is_none());
    for name in ["", ".", "..", "../outside/file", "a/b", "/etc/passwd", "a\0b"] {
        let error = folder.read(name, 10).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
        assert!(folder.create(name).is_err() && folder.remove(name).is_err());
    }
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
    assert_eq!(
        folder.entries().unwrap(),
        [("file".to_owned(), Kind::Other), ("link".to_owned(), Kind::Other)]
    );
    rustix::fs::mkfifoat(&folder, "pipe", Mode::from_raw_mode(0o600)).unwrap();
    assert!(folder.read("pipe", 10).is_err(), "nobody waits for its writer");
}

#[test]
fn what_is_read_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::open(dir.path()).unwrap();
    let (sub, is_new) = folder.make_folder("sub").unwrap();
    assert!(is_new && !folder.make_folder("sub").unwrap().1);
    sub.create("file").unwrap().write_all(b"12345").unwrap();
    assert_eq!(sub.read("file", 5).unwrap(), b"12345");
    assert_eq!(sub.read("file", 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    assert!(is_torn(&sub.append("file").unwrap()).unwrap());
    sub.rename("file", &folder, "moved").unwrap();
    assert_eq!(folder.stat("moved").unwrap().bytes, 5);
    assert!(folder.remove("moved").unwrap() && !folder.remove("moved").unwrap());
    folder.remove_folder("sub").unwrap();
    assert_eq!(folder.entries().unwrap(), []);
}
