//! What only a live process tells: its cgroups, its environment, its owner, a step daemon's title. Reads
//! /proc and cgroup directories; each reading is bounded, and what cannot be read is unknown.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use procfs::process::Process;

use super::{
    answer::{Answer, Role},
    facts::JobFacts,
    sluid::job_in_title,
    variables::VARIABLES,
};
use crate::base::identity::host;

/// Longest environment that is read: a task's own is some KiB, a hostile one may be many MiB.
const LONGEST_ENVIRON_BYTES: u64 = 1 << 20;
/// Longest title; step daemons' are short.
const LONGEST_TITLE_BYTES: u64 = 256;
/// Of a status its owner stands in the first 200 bytes, behind a name of 64 at most.
const LONGEST_STATUS_BYTES: u64 = 512;
/// Bytes that a reading has room for from the start: most of what is read here comes in one call then.
const ROOM_BYTES: usize = 4096;
/// Tasks whose environment is asked for a SLUID's number.
const MOST_TASKS: usize = 16;

/// /proc/PID/cgroup.
///
/// # Errors
/// When there is no such process.
pub fn read_cgroup(pid: u32) -> io::Result<String> {
    let bytes = fs::read(format!("/proc/{pid}/cgroup"))?;
    // A cgroup's name may be any bytes but a slash, a zero and a line feed.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What process `pid`, which `answer` is about, tells of its job. Complete after its exec only. The
/// owner is the path's, else the process's by the kernel, and the environment's last of all.
pub fn read_facts(answer: &Answer, pid: u32) -> JobFacts {
    let mut facts = JobFacts::parse(answer, &read_environ(pid), &host());
    // A container's root is nobody in particular, and neither is a step daemon's.
    let is_owners = answer.role == Role::Job && is_owners(&answer.manager);
    let own = || is_owners.then(|| read_uid(pid)).flatten().filter(|uid| *uid != 0);
    facts.uid = answer.uid.or_else(own).or(facts.uid);
    let named = || facts.uid.and_then(uzers::get_user_by_uid);
    let known = || named().map(|user| user.name().to_string_lossy().into_owned());
    facts.user = answer.user.clone().or_else(known).or(facts.user);
    facts
}

/// The environment of process `pid`, as the kernel shows it; empty where it cannot be read. Anything in it, an owner too,
/// may be what a user wrote there.
pub fn read_environ(pid: u32) -> Vec<u8> {
    read_start(&format!("/proc/{pid}/environ"), LONGEST_ENVIRON_BYTES)
}

/// Whether the processes of this manager's jobs run as the job's owner.
pub fn is_owners(manager: &str) -> bool {
    OWNED.contains(&manager)
}

/// Whether the tasks of this manager's jobs can tell what their paths do not; `has_owner` where a path tells who
/// runs the job.
pub fn tells_more(manager: &str, has_owner: bool) -> bool {
    has_variables(manager) || (is_owners(manager) && !has_owner)
}

/// Whether this manager gives its jobs' tasks variables that name the job.
pub fn has_variables(manager: &str) -> bool {
    VARIABLES.iter().any(|(known, _)| *known == manager)
}

/// Whether process `pid` runs a program that it has executed: before, its environment is that of whoever made it, and once it
/// ends it has none.
pub fn has_executed(pid: u32) -> bool {
    // include/linux/sched.h
    const PF_EXITING: u32 = 0x4;
    const PF_FORKNOEXEC: u32 = 0x40;
    let stat = i32::try_from(pid).ok().and_then(|pid| Process::new(pid).ok()?.stat().ok());
    stat.is_some_and(|stat| stat.flags & (PF_EXITING | PF_FORKNOEXEC) == 0)
}

/// Whether this manager's jobs have steps with cgroups of their own.
pub fn has_steps(manager: &str) -> bool {
    manager == "slurm"
}

/// Managers whose jobs' processes run as the job's owner.
const OWNED: [&str; 12] = [
    "slurm",
    "pbs",
    "torque",
    "lsf",
    "uge",
    "oar",
    "flux",
    "htcondor",
    "apptainer",
    "jupyterhub",
    "run",
    "session",
];

/// The number of the job whose directory (named by SLUID) is `directory`: by the title of a step daemon
/// in `step_*/slurm`, which only root can be, else by SLURM_JOB_ID of a task, which is its user's to write.
/// `None` where neither answers, as before the first step.
pub fn read_sluid_job(answer: &Answer, directory: &Path) -> Option<String> {
    let steps: Vec<_> = fs::read_dir(directory)
        .ok()?
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"step_"))
        .map(|entry| entry.path())
        .collect();
    let title =
        |pid: u32| job_in_title(&read_start(&format!("/proc/{pid}/cmdline"), LONGEST_TITLE_BYTES));
    let daemons = steps.iter().flat_map(|step| read_pids(&step.join("slurm")));
    let by_title = daemons.take(MOST_TASKS).find_map(title);
    by_title.or_else(|| {
        let task = Answer { role: Role::Job, ..answer.clone() };
        let mut tasks = steps.iter().flat_map(|step| read_tasks(step)).take(MOST_TASKS);
        tasks.find_map(|pid| JobFacts::parse(&task, &read_environ(pid), "").job)
    })
}

/// Processes in the tasks of `step`: v2 has them in `user`.
fn read_tasks(step: &Path) -> impl Iterator<Item = u32> {
    let tasks = [step.join("user"), step.to_owned()].into_iter().flat_map(|parent| {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"task_"))
    });
    tasks.flat_map(|task| read_pids(&task.path()))
}

fn read_pids(directory: &Path) -> Vec<u32> {
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    // Zero is a process outside of this pid namespace.
    text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect()
}

/// The real user id of a process; that of the owner of /proc/PID may be root's.
pub fn read_uid(pid: u32) -> Option<u32> {
    let status = read_start(&format!("/proc/{pid}/status"), LONGEST_STATUS_BYTES);
    uid_in(&String::from_utf8_lossy(&status))
}

/// The real user id in the text of a /proc/PID/status.
pub(crate) fn uid_in(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The first bytes of a file; none where it cannot be read.
fn read_start(path: &str, most: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ROOM_BYTES.min(most as usize));
    if let Ok(file) = File::open(path)
        && file.take(most).read_to_end(&mut bytes).is_err()
    {
        bytes.clear();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::CommandExt,
        process::{Child, Command},
        thread,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::resolve::Resolver;

    /// A process of that title and environment, for as long as the guard lives.
    struct Titled(Child);

    impl Titled {
        fn new(title: &str, environ: &[(&str, &str)]) -> Self {
            let mut command = Command::new("sleep");
            command.arg0(title).arg("60").env_clear().envs(environ.iter().copied());
            let process = Self(command.spawn().unwrap());
            // To have executed its program is not to have its arguments yet.
            let file = if environ.is_empty() { "cmdline" } else { "environ" };
            let file = format!("/proc/{}/{file}", process.0.id());
            let deadline = Instant::now() + Duration::from_secs(20);
            while fs::read(&file).unwrap().is_empty() {
                assert!(Instant::now() < deadline, "{file} stays empty");
                thread::sleep(Duration::from_millis(1));
            }
            process
        }
    }

    impl Drop for Titled {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn place(directory: &Path, name: &str, process: &Titled) {
        let directory = directory.join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("cgroup.procs"), format!("0\n{}\n", process.0.id())).unwrap();
    }

    #[test]
    fn a_sluids_number_is_the_daemons_then_a_tasks() {
        let resolver = Resolver::new(&[]).unwrap();
        let answer = resolver.path("/system.slice/slurmstepd.scope/s5K1KKYAYG5D00");
        let tmp = tempfile::tempdir().unwrap();
        assert_eq!(read_sluid_job(&answer, tmp.path()), None);
        let other =
            Titled::new("sleep", &[("SLURM_JOB_ID", "12"), ("SLURM_JOB_SLUID", "s5K1KKYAYG5D01")]);
        place(tmp.path(), "step_0/user/task_0", &other);
        assert_eq!(read_sluid_job(&answer, tmp.path()), None, "another job's environment");
        let task = Titled::new("sleep", &[("SLURM_JOB_ID", "3385")]);
        place(tmp.path(), "step_0/user/task_1", &task);
        assert_eq!(read_sluid_job(&answer, tmp.path()).as_deref(), Some("3385"));
        let daemon = Titled::new("slurmstepd: [3386.0]", &[]);
        place(tmp.path(), "step_0/slurm", &daemon);
        assert_eq!(read_sluid_job(&answer, tmp.path()).as_deref(), Some("3386"));
        assert_eq!(read_sluid_job(&answer, &tmp.path().join("gone")), None);
    }

    #[test]
    fn the_kernel_knows_the_owner_better_than_the_environment() {
        let resolver = Resolver::new(&[]).unwrap();
        let process = Titled::new("sleep", &[("SLURM_JOB_ID", "5"), ("SLURM_JOB_UID", "77")]);
        let answer = resolver.path("/system.slice/slurmstepd.scope/job_5/step_0/user/task_0");
        let facts = read_facts(&answer, process.0.id());
        let own = rustix::process::getuid().as_raw();
        assert_eq!(facts.uid, Some(if own == 0 { 77 } else { own }));
        let answer = resolver.path("/slurm/uid_4242/job_5");
        assert_eq!(read_facts(&answer, process.0.id()).uid, Some(4242));
        assert_eq!(read_facts(&answer, u32::MAX).job, None);
        assert!(read_cgroup(process.0.id()).unwrap().contains(":/"));
        assert!(read_cgroup(u32::MAX).is_err());
    }

    #[test]
    fn who_was_forked_has_not_executed_yet() {
        assert!(has_executed(std::process::id()) && !has_executed(u32::MAX));
        let (mut told, mut tell) = io::pipe().unwrap();
        let mut command = Command::new("true");
        let own = move || {
            let executed = has_executed(std::process::id());
            std::io::Write::write_all(&mut tell, &[executed.into()])
        };
        // SAFETY: the child reads a file of /proc and writes a byte; it allocates, which the C library allows after a
        // fork.
        unsafe { command.pre_exec(own) };
        assert!(command.status().unwrap().success());
        let mut executed = [1];
        told.read_exact(&mut executed).unwrap();
        assert_eq!(executed, [0]);
    }
}
