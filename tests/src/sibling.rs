//! The same work beside the job, in a cgroup of its own, over and over until the job has ended: none
//! of it may appear in the job's numbers.

use std::{
    ffi::OsString,
    fs,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use crate::{account::Report, own_cgroup::OwnCgroup};

/// The work that is not the job's.
pub struct Sibling {
    stop: Arc<AtomicBool>,
    rounds: Option<JoinHandle<Vec<Report>>>,
}

impl Sibling {
    /// Starts `command`, and starts it again whenever it ends.
    pub fn start(command: &[&str]) -> Self {
        let words: Vec<OsString> = command.iter().map(OsString::from).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let rounds = std::thread::spawn(move || {
            let cgroup = OwnCgroup::make("sibling", &["blkio", "cpuacct"]);
            let mut reports = Vec::new();
            while reports.is_empty() || !told.load(Ordering::Relaxed) {
                reports.push(one_round(&cgroup, &words));
            }
            reports
        });
        Self { stop, rounds: Some(rounds) }
    }

    /// Waits for the round that is under way; the reports of all.
    pub fn end(mut self) -> Vec<Report> {
        self.stop.store(true, Ordering::Relaxed);
        self.rounds.take().map(|rounds| rounds.join().unwrap()).unwrap_or_default()
    }
}

impl Drop for Sibling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(rounds) = self.rounds.take() {
            let _ = rounds.join();
        }
    }
}

fn one_round(cgroup: &OwnCgroup, words: &[OsString]) -> Report {
    let procs = cgroup.procs();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    let enter = move || procs.iter().try_for_each(|procs| fs::write(procs, "0"));
    // SAFETY: the child opens and writes files, and the paths were made before the fork. It allocates
    // for the C string of a long path only, which the C library allows after a fork.
    unsafe { command.pre_exec(enter) };
    let output = command.output().unwrap();
    assert!(output.status.success(), "the sibling {words:?} failed: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}
