//! Records of two users, copies of them, and who can read which: on any file system that a cluster may share.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use anyhow::{Context, Result};
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

use crate::{agree::Agreement, traced::program};

/// Two users.
pub const ADA: u32 = 61_001;
/// The other.
pub const BOB: u32 = 61_002;
/// Whom `push` runs as.
pub const COPIER: u32 = 61_003;
/// The begin of all records: 2026-11-22.
pub const TODAY: u64 = 1_795_305_600_000_000_000;

/// A record of a job of the user `uid`.
pub fn record(uid: u32) -> Record {
    let job = Job { job: uid.to_string(), manager: "slurm".into(), ..Job::default() };
    let origin = Origin { host: "n1".into(), ..Origin::default() };
    let mut record = Record::new(&origin, job, JobInfo::default(), TODAY);
    record.facts.set(const { fact("uid") }, u64::from(uid));
    record.add(1_000_000_000, &[Group::unknown(&tables::SCHED, vec![])], &[]);
    record
}

/// Where it lies below a folder of records.
pub fn place(uid: u32) -> String {
    format!("{uid}/2026-11-22/slurm-{uid}-{TODAY}@n1.json.gz")
}

/// What `work` gives where `uid` does it, with that group and no other rights.
pub fn as_user<T: Send>(uid: u32, work: impl FnOnce() -> T + Send) -> T {
    let become_user = move || {
        // SAFETY: by system calls of its own a thread takes on another user alone; the C library's take all along.
        let done = unsafe {
            libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) == 0
                && libc::syscall(libc::SYS_setresgid, uid, uid, uid) == 0
                && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0
        };
        assert!(done, "not user {uid}: {}", io::Error::last_os_error());
    };
    let done = thread::scope(|scope| {
        let thread = scope.spawn(move || {
            become_user();
            work()
        });
        thread.join()
    });
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Records of both users, and a program that copies them.
pub struct Sharing {
    records: PathBuf,
    exe: PathBuf,
}

impl Sharing {
    /// Of records in a folder of `top`, where the program goes too: everybody must reach it.
    ///
    /// # Errors
    /// When something of it cannot be written.
    pub fn new(top: &Path) -> Result<Self> {
        let (records, exe) = (top.join("records"), top.join("jobtrace"));
        let store = Store::open_for_users(&records, "n1")?;
        for uid in [ADA, BOB] {
            store.save(&record(uid))?;
        }
        // As the package's: the group reads all. The copier is no member of anything else.
        give(&records, COPIER)?;
        fs::copy(program()?, &exe).context("cannot copy jobtrace")?;
        Ok(Self { records, exe })
    }

    /// Copies into `to`; the exit status and what was said.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn copy(&self, access: &str, to: &Path) -> Result<(Option<i32>, String)> {
        let mut push = Command::new(&self.exe);
        push.args(["push", "--records-access", access, "--records"]).arg(&self.records);
        push.args(["--records-max-age", "36500 days", "--records-to"]).arg(to);
        push.uid(COPIER).gid(COPIER).stdin(Stdio::null());
        let output = push.output()?;
        Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    /// Copies in each of the three ways into folders of `shared`, whose file system has access control lists or not, and
    /// looks who can read what.
    ///
    /// # Errors
    /// When it cannot be tried.
    pub fn agrees(&self, agree: &mut Agreement, shared: &Path, has_lists: bool) -> Result<()> {
        let is = |agree: &mut Agreement, what: &str, ours: bool, truth: bool| {
            agree.exact(&format!("{}: {what}", shared.display()), ours.into(), truth.into());
        };
        let folder = |name: &str| -> Result<PathBuf> {
            let path = shared.join(name);
            fs::create_dir(&path)?;
            chown(&path, Some(COPIER), Some(COPIER))?;
            Ok(path)
        };
        let reads = |uid: u32, of: u32, dir: &Path| {
            let file = dir.join(place(of));
            as_user(uid, || fs::read(file).is_ok())
        };
        for access in ["users", "open"] {
            let dir = folder(access)?;
            let (status, said) = self.copy(access, &dir)?;
            is(agree, &format!("{access}: all went well ({said})"), status == Some(0), true);
            is(agree, &format!("{access}: two were copied"), said.contains("2 records ("), true);
            let lacks = said.contains("has no access control lists: users cannot read")
                && said.contains("set records_access to \"prepared\" or \"open\"");
            is(
                agree,
                &format!("{access}: says that lists lack"),
                lacks,
                access == "users" && !has_lists,
            );
            for (own, other) in [(ADA, BOB), (BOB, ADA)] {
                let reads_own = access == "open" || has_lists;
                is(
                    agree,
                    &format!("{access}: {own} reads his own"),
                    reads(own, own, &dir),
                    reads_own,
                );
                is(
                    agree,
                    &format!("{access}: {own} reads {other}'s"),
                    reads(own, other, &dir),
                    access == "open",
                );
                let made = as_user(own, || fs::write(dir.join("x"), "").is_ok());
                is(agree, &format!("{access}: {own} writes there"), made, false);
            }
            let (_, said) = self.copy(access, &dir)?;
            is(
                agree,
                &format!("{access}: nothing is copied again ({said})"),
                said.contains("0 records ("),
                true,
            );
        }
        // Root makes a folder for each user, once: here for one of two. Its group is the user's own.
        let dir = folder("prepared")?;
        let of_ada = dir.join(ADA.to_string());
        fs::create_dir(&of_ada)?;
        chown(&of_ada, Some(COPIER), Some(ADA))?;
        fs::set_permissions(&of_ada, Permissions::from_mode(0o2750))?;
        let (status, said) = self.copy("prepared", &dir)?;
        is(agree, "prepared: something remained", status == Some(1), true);
        let told = said.contains(&format!("for user {BOB}: their records are not copied"));
        is(agree, &format!("prepared: the other is named ({said})"), told, true);
        is(agree, "prepared: reads his own", reads(ADA, ADA, &dir), true);
        is(agree, "prepared: reads the other's", reads(BOB, ADA, &dir), false);
        is(agree, "prepared: the other's folder", dir.join(BOB.to_string()).exists(), false);
        // One that is not the copier's is named, and the others are served.
        let of_bob = dir.join(BOB.to_string());
        fs::create_dir(&of_bob)?;
        fs::remove_dir_all(of_ada.join("2026-11-22"))?;
        let (status, said) = self.copy("prepared", &dir)?;
        is(agree, "prepared: refused", status == Some(1), true);
        let told = said
            .contains(&format!("of user {BOB}: their records are not copied until it belongs to"));
        is(agree, &format!("prepared: the refused one is named ({said})"), told, true);
        is(agree, "prepared: copied again", reads(ADA, ADA, &dir), true);
        Ok(())
    }
}

/// Gives all that is below `dir`, and it, to a group.
fn give(dir: &Path, group: u32) -> Result<()> {
    chown(dir, None, Some(group))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => give(&entry.path(), group)?,
            false => chown(entry.path(), None, Some(group))?,
        }
    }
    Ok(())
}
