//! Programs are counted, each one.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use jobtrace_tests::{rig::mount::Ext4, sibling::Sibling, traced::Traced};

use crate::made::{executions, forget_files};

const PROGRAMS: u64 = 300;
const BESIDE: u64 = 40;

/// So many copies of a program that does nothing, in `folder`.
pub fn copies(folder: &Path, count: u64) -> PathBuf {
    fs::create_dir(folder).unwrap();
    for at in 0..count {
        let copy = folder.join(format!("copy{at}"));
        fs::copy("/bin/true", &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder.to_owned()
}

#[test]
fn every_program_of_a_job_is_counted_and_none_of_another() {
    let disk = Ext4::mount(128 << 20).unwrap();
    let own = copies(&disk.path().join("own"), PROGRAMS);
    let beside = copies(&disk.path().join("beside"), BESIDE);
    let each = |folder: &Path| format!("for f in {}/*; do $f || exit 1; done", folder.display());
    let (own, beside) = (each(&own), each(&beside));
    let sibling = Sibling::start(&["sh", "-c", &beside]);
    for is_cold in [false, true] {
        if is_cold {
            forget_files();
        }
        let twice = format!("{own}; env true; env true");
        let job = Traced::run(&["--software"], &["sh", "-c", &twice]);
        assert!(job.output.status.success(), "{:?}", job.output);
        let software = &job.json["software"];
        // Those of nobody's folder have no names.
        assert_eq!(software["other_programs"], PROGRAMS, "{software:#}");
        assert_eq!(["env", "true"].map(|name| executions(software, name)), [2; 2], "{software:#}");
        assert!(software["lost"].is_null() || software["lost"] == 0, "{software:#}");
        assert!(!software.to_string().contains("copy"), "{software:#}");
    }
    sibling.end();
}
