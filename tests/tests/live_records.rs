//! Who may read the records of whom: two users, their own files, on a file system with access control lists.

use std::{
    env,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Command, Stdio},
};

use jobtrace::{
    model::{
        group::Group,
        info::JobInfo,
        job::Job,
        point::Origin,
        tables::{self, fact},
    },
    record::{Record, store::Store},
};
use jobtrace_tests::rig::folder;

const DIR: &str = "JOBTRACE_TEST_STORE";
const AGENT: u32 = 61_000;
const ADA: u32 = 61_001;
const BOB: u32 = 61_002;
/// 2026-11-22.
const TODAY: u64 = 1_795_305_600_000_000_000;

/// Run by the test below as another user: writes the records of two.
#[test]
fn as_the_agents_user() {
    let Some(dir) = env::var_os(DIR) else { return };
    let store = Store::open_for_users(Path::new(&dir), "n1").expect("a store");
    let records = [ADA, BOB].map(|uid| {
        let job = Job { job: uid.to_string(), manager: "slurm".into(), ..Job::default() };
        let origin = Origin { host: "n1".into(), ..Origin::default() };
        let mut record = Record::new(&origin, job, JobInfo::default(), TODAY);
        record.facts.set(const { fact("uid") }, u64::from(uid));
        record.add(1_000_000_000, &[Group::unknown(&tables::SCHED, vec![])], &[]);
        record
    });
    for record in &records {
        store.save(record).expect("saved");
    }
    assert_eq!(store.take_remark(), None, "there are lists");
}

/// Whether `uid` can do that, with no other rights than his own.
fn can(uid: u32, command: &[&str]) -> bool {
    let mut command_line = Command::new(command[0]);
    command_line.args(&command[1..]).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: setgroups is async-signal-safe, and drops root's groups before the user is taken on.
    unsafe {
        command_line.pre_exec(move || {
            let done = libc::setgroups(0, std::ptr::null()) == 0
                && libc::setgid(uid) == 0
                && libc::setuid(uid) == 0;
            done.then_some(()).ok_or_else(std::io::Error::last_os_error)
        });
    }
    command_line.status().expect("a command").success()
}

#[test]
fn each_user_reads_his_own_records_and_no_others() {
    let folder = folder("records").expect("a folder");
    let top = folder.path();
    // As the package's state folder: to be passed through.
    std::fs::set_permissions(top, std::fs::Permissions::from_mode(0o755)).expect("rights");
    let dir = top.join("records");
    std::fs::create_dir(&dir).expect("a folder");
    std::os::unix::fs::chown(&dir, Some(AGENT), Some(AGENT)).expect("an owner");
    let exe = top.join("test");
    std::fs::copy(env::current_exe().expect("a path"), &exe).expect("a copy");
    // Without a capability: a user of its own.
    let mut writer = Command::new(exe);
    writer.args(["--exact", "as_the_agents_user"]).env(DIR, &dir).uid(AGENT).gid(AGENT);
    let output = writer.output().expect("the test itself");
    assert!(output.status.success(), "{output:?}");

    let path = |what: &str| dir.join(what).to_str().expect("a path").to_owned();
    for (own, other) in [(ADA, BOB), (BOB, ADA)] {
        let record = |of: u32| path(&format!("{of}/2026-11-22/slurm-{of}-{TODAY}@n1.json.gz"));
        let heads = |of: u32| path(&format!("{of}/2026-11-22/heads@n1.jsonl"));
        let day = |of: u32| path(&format!("{of}/2026-11-22"));
        for mine in [record(own), heads(own)] {
            assert!(can(own, &["cat", &mine]), "{own} reads {mine}");
            assert!(!can(own, &["test", "-w", &mine]), "{own} does not write {mine}");
        }
        for mine in [path(&own.to_string()), day(own)] {
            assert!(can(own, &["ls", &mine]), "{own} lists {mine}");
            assert!(!can(own, &["touch", &format!("{mine}/x")]), "{own} makes nothing there");
        }
        for theirs in [record(other), heads(other)] {
            assert!(!can(own, &["cat", &theirs]), "{own} does not read {theirs}");
        }
        for theirs in [record(other), heads(other), day(other)] {
            assert!(!can(own, &["stat", &theirs]), "{own} does not see {theirs}");
        }
        assert!(!can(own, &["ls", &path(&other.to_string())]), "{own} does not list {other}'s");
        assert!(!can(own, &["ls", &path("")]), "nobody sees whose there are");
    }
    // The reader of both says how many it was refused.
    let all = jobtrace::record::store::read_heads(&dir, |_| true).expect("root reads all");
    assert_eq!((all.heads.len(), all.closed, all.damaged.len()), (2, 0, 0), "{all:?}");
}
