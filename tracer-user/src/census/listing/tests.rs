use std::{fs, os::unix::fs::symlink};

use super::*;

#[test]
fn names_and_versions_of_distributions() {
    for (entry, name, version) in [
        ("numpy-2.4.6.dist-info", "numpy", Some("2.4.6")),
        ("scikit_learn-1.5.0.dist-info", "scikit_learn", Some("1.5.0")),
        ("ruamel.yaml-0.18.6.dist-info", "ruamel.yaml", Some("0.18.6")),
        ("torch-2.9.0+cu124.dist-info", "torch", Some("2.9.0+cu124")),
        ("PyYAML-6.0.egg-info", "PyYAML", Some("6.0")),
        ("numpy-1.24.2-py3.11.egg-info", "numpy", Some("1.24.2")),
        ("python-dateutil-2.8.2.egg-info", "python-dateutil", Some("2.8.2")),
        ("six.egg-info", "six", None),
        ("dbus_python.egg-info", "dbus_python", None),
        ("old_thing-1.0-py3.9-linux-x86_64.egg", "old_thing", Some("1.0")),
    ] {
        let expected = Some((name.to_owned(), version.map(str::to_owned)));
        assert_eq!(parse(entry), expected, "{entry}");
    }
    assert_eq!(parse("numpy"), None);
    assert_eq!(parse(".dist-info"), None);
    assert_eq!(parse_conda("numpy-1.26.4-py311h64a7726_0.json"), Some("numpy"));
    assert_eq!(parse_conda("python-dateutil-2.9.0-pyhd8ed1ab_0.json"), Some("python-dateutil"));
    assert_eq!(parse_conda("history"), None);
}

#[test]
fn lists_of_files_tell_what_is_imported() {
    let record = "\
        ../../../bin/f2py,sha256=x,1\n\
        PIL/Image.py,sha256=x,1\n\
        PIL/_imaging.cpython-311-x86_64-linux-gnu.so,,\n\
        pillow-10.0.dist-info/RECORD,,\n\
        pillow.libs/libjpeg.so.62,,\n\
        six.py,sha256=x,1\n\
        __pycache__/six.cpython-311.pyc,,\n\
        data/readme.txt,,\n\
        _cffi_backend.cpython-311-x86_64-linux-gnu.so,,\n";
    assert_eq!(tops(record), BTreeSet::from(["PIL", "six", "_cffi_backend"]));
    assert!(tops("").is_empty());
}

/// An environment with these distributions, and the files in their folders.
fn site(files: &[(&str, &str)]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("lib/python3.11/site-packages");
    fs::create_dir_all(&site).unwrap();
    for (path, text) in files {
        let path = site.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    (folder, site)
}

#[test]
fn what_is_installed_is_found_and_whose_it_is() {
    let own = r#"{"url": "file:///home/ada/thesis", "dir_info": {"editable": true}}"#;
    let git = r#"{"url": "https://git.example.org/x", "vcs_info": {"vcs": "git"}}"#;
    let wheel = r#"{"url": "https://download.example.org/x.whl", "archive_info": {}}"#;
    let (_folder, site) = site(&[
        ("numpy-2.4.6.dist-info/RECORD", "numpy/__init__.py,,\n"),
        ("thesis-0.1.dist-info/direct_url.json", own),
        ("groupcode-0.1.dist-info/direct_url.json", git),
        ("torch-2.9.0.dist-info/direct_url.json", wheel),
        ("condaish-1.0.dist-info/direct_url.json", own),
        ("condaish-1.0.dist-info/INSTALLER", "conda\n"),
        ("listed-1.0.dist-info/direct_url.json", own),
        ("../../../conda-meta/listed-1.0-py311_0.json", "{}"),
        ("old.egg-info/PKG-INFO", "Metadata-Version: 1.0\nName: old\nVersion: 3.2\n"),
        ("twice-1.0.dist-info/METADATA", ""),
        ("twice-2.0.dist-info/METADATA", ""),
        ("strange_name-1.0.dist-info/RECORD", "surprise/__init__.py,,\n"),
    ]);
    fs::create_dir_all(site.join("linkednote-1.0.dist-info")).unwrap();
    let note = site.join("linkednote-1.0.dist-info/direct_url.json");
    symlink("../thesis-0.1.dist-info/direct_url.json", note).unwrap();
    let listing = read(&site, false).unwrap();
    let of = |name: &str| {
        let found = listing.distribution(name).unwrap();
        (found.version.as_deref(), found.is_own)
    };
    assert_eq!(of("linkednote"), (Some("1.0"), true), "a note that is not read");
    assert_eq!(of("numpy"), (Some("2.4.6"), false));
    assert_eq!(of("thesis"), (Some("0.1"), true));
    assert_eq!(of("groupcode"), (Some("0.1"), true));
    assert_eq!(of("torch"), (Some("2.9.0"), false));
    assert_eq!(of("condaish"), (Some("1.0"), false));
    assert_eq!(of("listed"), (Some("1.0"), false));
    assert_eq!(of("old"), (Some("3.2"), false));
    assert_eq!(of("twice"), (None, false));
    assert_eq!(listing.distribution("surprise"), None, "only its list of files tells");
    let with_files = read(&site, true).unwrap();
    assert_eq!(with_files.distribution("surprise").unwrap().name, "strange_name");
}

#[test]
fn an_alias_is_looked_for_in_its_order() {
    let (_folder, site) = site(&[
        ("opencv_python_headless-4.10.0.84.dist-info/METADATA", ""),
        ("scikit_learn-1.5.0.dist-info/METADATA", ""),
    ]);
    let listing = read(&site, false).unwrap();
    let name = |import| listing.distribution(import).map(|found| &*found.name);
    assert_eq!(name("cv2"), Some("opencv_python_headless"));
    assert_eq!(name("sklearn"), Some("scikit_learn"));
    assert_eq!(name("PIL"), None);
}

#[test]
fn nobody_makes_it_open_something_else() {
    let (folder, site) = site(&[("a-1.0.dist-info/METADATA", ""), ("secret", "Version: 9\n")]);
    fs::create_dir(site.join("linked.egg-info")).unwrap();
    symlink(site.join("secret"), site.join("linked.egg-info/PKG-INFO")).unwrap();
    fs::create_dir(site.join("piped.egg-info")).unwrap();
    let pipe = std::ffi::CString::new(
        site.join("piped.egg-info/PKG-INFO").into_os_string().into_encoded_bytes(),
    )
    .unwrap();
    // SAFETY: a path with its zero.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    let listing = read(&site, true).unwrap();
    assert_eq!(listing.distribution("linked").unwrap().version, None);
    assert_eq!(listing.distribution("piped").unwrap().version, None);
    assert!(read(&folder.path().join("nowhere"), false).is_err());
}
