//! Jobs of Slurm's shape in whatever hierarchies this boot has, and the kernel's account of all they
//! did, complete: from the moment their first process entered until it was gone.

use std::{
    env, fs,
    io::Read,
    ops::RangeInclusive,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Error, Result, anyhow};
use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::{
    account::{Account, Report},
    agent::Agent,
    rig::shaped::{Directories, Shaped},
    work::reap,
};

/// Until a task that has closed its files is off its CPU for the last time, all CPUs being busy.
const LAST_WAIT: Duration = Duration::from_millis(500);

/// The hierarchy by which the agent tells jobs apart: v2, or the v1 controller that sites use.
pub fn hierarchy() -> &'static str {
    let found = Hierarchies::read().unwrap();
    if found.v2.is_some() {
        return "v2";
    }
    if found.v1("memory").is_some() { "memory" } else { "freezer" }
}

/// An agent that reads once a second, with slots for all that the checks make at once.
///
/// # Errors
/// When it does not start.
pub fn agent() -> Result<Agent> {
    let hierarchy = hierarchy();
    Agent::start(&format!("hierarchy = \"{hierarchy}\"\nslots = 200\nspare_slots = 100"))
}

/// Where jobs can be made, in every hierarchy that counts something of them; that of the tasks first.
pub fn place() -> Shaped {
    let found = Hierarchies::read().unwrap();
    if found.v2.is_some() {
        return Shaped::make(&[""]);
    }
    let more = ["blkio", "cpuacct"].into_iter().filter(|name| found.v1(name).is_some());
    Shaped::make(&[hierarchy()].into_iter().chain(more).collect::<Vec<_>>())
}

/// Directories of a job of root's, which v2 charges for memory and block I/O.
///
/// # Errors
/// When a controller cannot be switched on.
pub fn make(place: &Shaped, job: u32) -> Result<Directories> {
    let made = place.job(0, job, "step_0");
    let Some(v2) = Hierarchies::read()?.v2 else { return Ok(made) };
    let above: Vec<_> = made.0[0].ancestors().skip(1).collect();
    for directory in above.iter().rev().filter(|directory| directory.starts_with(&v2.mount)) {
        let file = directory.join("cgroup.subtree_control");
        fs::write(&file, "+io +memory").with_context(|| format!("{}", file.display()))?;
    }
    Ok(made)
}

/// What a job's processes did.
pub struct Ran {
    /// What the workload said of itself: its children's accounts and its facts.
    pub report: Report,
    /// Its first process right before it entered the job.
    before: Account,
    /// The same right after.
    after: Account,
    /// The same once it was a zombie; its faults are those of its children too.
    end: Account,
}

impl Ran {
    /// A value of all tasks, as members of the job: known but for the moment of entering.
    pub fn range(&self, value: impl Fn(&Account) -> u64) -> RangeInclusive<u64> {
        let all = value(&self.report.children) + value(&self.end);
        all - value(&self.after)..=all - value(&self.before)
    }

    /// The same of page faults.
    pub fn faults(&self, value: impl Fn(&Account) -> u64) -> RangeInclusive<u64> {
        let all = value(&self.end);
        all - value(&self.after)..=all - value(&self.before)
    }
}

/// Runs a workload of ours in a job to its end.
#[expect(clippy::zombie_processes, reason = "reap waits for it, after reading the zombie")]
pub fn run(job: &Directories, words: &[&str]) -> Ran {
    let note = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg(note.path());
    // The tasks' hierarchy last: the moment of entering is that of the last one.
    command.args(job.0.iter().rev().map(|directory| directory.join("cgroup.procs")));
    command.arg("--").args(words).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    // A zombie may wait for its CPU once more before it is off it for good, and that counts.
    thread::sleep(LAST_WAIT);
    let (end, status) = reap(child.id() as i32);
    assert_eq!(status, 0, "{words:?} ended with wait status {status}: {printed}");
    let noted = fs::read_to_string(note.path()).unwrap();
    let (before, after) = serde_json::from_str(&noted).unwrap();
    let report = serde_json::from_str(&printed).expect("a workload ends with its report");
    Ran { report, before, after, end }
}

/// The child of [`run`]: `NOTE PROCS… -- CMD…`. Gives only what went wrong.
pub fn enter_and_become(words: &[String]) -> Error {
    let parts = words.iter().position(|word| word == "--").filter(|at| *at >= 2);
    let Some(at) = parts.filter(|at| *at + 1 < words.len()) else {
        return anyhow!("no file, cgroups and command to become");
    };
    let (note, procs, last) = (&words[0], &words[1..at - 1], &words[at - 1]);
    let entered = || -> Result<()> {
        for file in procs {
            fs::write(file, "0").with_context(|| format!("cannot enter {file}"))?;
        }
        let before = Account::own();
        fs::write(last, "0").with_context(|| format!("cannot enter {last}"))?;
        let after = Account::own();
        fs::write(Path::new(note), serde_json::to_vec(&(before, after))?)?;
        Ok(())
    };
    match entered() {
        Ok(()) => Command::new(&words[at + 1]).args(&words[at + 2..]).exec().into(),
        Err(error) => error,
    }
}
