//! `run --top` when the terminal is gone and the kernel tells nobody, or takes nothing any more: the command goes on, and
//! its record is saved.

use std::{
    fs,
    path::{Path, PathBuf},
};

use jobtrace::model::info::Exit;
use jobtrace_tests::agent::records;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{program::wait_for, terminal::Shell, top::watch_as};

/// A run that is watched until the terminal is closed; what it leaves is in `folder`.
struct Watched {
    folder: TempDir,
    shell: Shell,
    jobtrace: Pid,
}

impl Watched {
    /// Runs a command that ends with status 7 when it is let go, under a shell that ignores SIGHUP, as all below it then
    /// do; standard error goes to the file `said`.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().display();
        let arguments = format!(
            "--save {dir}/records -- sh -c 'echo lost; until test -e {dir}/go-on; do sleep 0.1; done; exit 7' \
             2> {dir}/said; echo $? > {dir}/status; exit"
        );
        let shell = watch_as("trap '' HUP; ", &arguments);
        let jobtrace = Pid::from_raw(shell.child()).unwrap();
        assert!(is_viewed(jobtrace));
        Self { folder, shell, jobtrace }
    }

    /// The same whose terminal is gone, and whose view has noticed.
    fn lost() -> Self {
        let mut run = Self::start();
        run.shell.hang_up();
        wait_for("the view's end", || (!is_viewed(run.jobtrace)).then_some(()));
        run
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn let_go(&self) {
        fs::write(self.file("go-on"), "").unwrap();
    }

    fn terminate(&self) {
        kill_process(self.jobtrace, Signal::TERM).unwrap();
    }

    /// Waits for the status that the shell saw.
    fn status(&self) -> String {
        let whole = |path: &Path| fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'));
        wait_for("the status", || whole(&self.file("status")))
    }

    /// Waits for the record of the end.
    fn exit(&self) -> Exit {
        wait_for("the record", || records(&self.file("records")).ok()?.first()?.totals.exit)
    }
}

/// Whether a thread of it shows the run.
fn is_viewed(jobtrace: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", jobtrace.as_raw_pid())).unwrap();
    let names = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("comm")));
    names.flatten().any(|name| name == "view\n")
}

#[test]
fn the_command_goes_on_without_its_terminal() {
    let run = Watched::lost();
    run.let_go();
    assert_eq!(run.status(), "7\n");
    assert_eq!(run.exit(), Exit { code: Some(7), signal: None });
    let said = fs::read_to_string(run.file("said")).unwrap();
    let lost = "jobtrace: the view of the run ended early: the terminal is gone or takes nothing; what the command wrote \
                there is lost\n";
    assert!(said.starts_with(lost) && said.contains("exit status 7"), "{said}");
}

#[test]
fn a_signal_ends_the_command_when_the_terminal_is_gone() {
    let run = Watched::lost();
    run.terminate();
    assert_eq!(run.status(), "143\n");
    assert_eq!(run.exit(), Exit { code: None, signal: Some(libc::SIGTERM) });
}

#[test]
fn a_terminal_that_takes_nothing_delays_neither_the_record_nor_a_signal() {
    let run = Watched::start();
    run.shell.hold();
    run.let_go();
    assert_eq!(run.exit(), Exit { code: Some(7), signal: None });
    // It waits for the terminal, which is to have what the command wrote.
    run.terminate();
    assert_eq!(run.status(), "7\n");
}
