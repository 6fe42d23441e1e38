//! Copies of records, without a server.

use std::path::Path;

use jobtrace::{
    model::{info::JobInfo, job::Job, point::Origin},
    record::{
        Record,
        store::{Store, read_heads},
    },
};

use super::spool::{Ended, end, push};

/// 2020-01-01.
const LONG_AGO: u64 = 1_577_836_800_000_000_000;

fn copy(from: &Path, to: &Path, max_age: &str) -> Ended {
    let mut push = push();
    push.args(["--records-access", "open", "--records-max-age", max_age, "--records"]);
    end(push.arg(from).arg("--records-to").arg(to))
}

#[test]
fn copies_that_are_too_old_are_removed_which_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = ["own", "shared"].map(|name| dir.path().join(name));
    std::fs::create_dir(&to).unwrap();
    let store = Store::open_for_users(&from, "n1").unwrap();
    let origin = Origin { host: "n1".into(), ..Origin::default() };
    let job = Job { job: "1".into(), manager: "slurm".into(), ..Job::default() };
    store.save(&Record::new(&origin, job, JobInfo::default(), LONG_AGO)).unwrap();
    let copied = copy(&from, &to, "36500 days");
    assert_eq!(copied.status, 0, "{copied:?}");
    assert!(copied.words.contains("1 record ("), "{copied:?}");
    assert_eq!(read_heads(&to, |_| true).unwrap().heads.len(), 1);
    let removed = copy(&from, &to, "1 day");
    let said = format!("removed 1 record older than 1 day from {}", to.display());
    assert!(removed.words.contains(&said), "{removed:?}");
    assert!(removed.words.contains("0 records (0 bytes) copied to "), "{removed:?}");
    assert!(removed.words.contains(", 1 removed there"), "{removed:?}");
    assert_eq!(read_heads(&to, |_| true).unwrap().heads.len(), 0);
    let refused = copy(&from, &to, "3h");
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.words.contains("--records-max-age must be at least 1 day"), "{refused:?}");
}
