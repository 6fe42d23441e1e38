//! How far it is, on a terminal.

#[path = "../launch/terminal.rs"]
#[allow(dead_code, reason = "what others do with a terminal")]
mod terminal;

use std::{
    fs,
    time::{Duration, Instant},
};

use jobtrace::record::name;

use super::{
    lists::{BEGIN, DAY, OWNER, job, list},
    program::jobtrace,
};
use terminal::Terminal;

/// Longer than it takes to begin on any machine, and then to be told.
const LONG: Duration = Duration::from_secs(4);

#[test]
fn who_waits_sees_how_far_it_is_and_keeps_the_answer_alone() {
    let dir = tempfile::tempdir().unwrap();
    let line = job(dir.path(), 1, "ada", "n1", BEGIN, 1).line();
    let first = dir.path().join(OWNER).join(name::day(BEGIN)).join(name::heads("n1"));
    let lines = (0..3_000).map(|id| line.replace("slurm-1-", &format!("slurm-{id}-")));
    fs::write(&first, lines.collect::<String>()).unwrap();
    let (mut days, mut begin) = (1, BEGIN);
    let told = loop {
        let mut command = jobtrace();
        command.env("NO_COLOR", "1").args(["usage", "--from"]).arg(dir.path());
        let mut terminal = Terminal::start(&mut command);
        // It holds the terminal open.
        drop(command);
        let started = Instant::now();
        let told = terminal.read_until("");
        assert!(terminal.child.wait().unwrap().success(), "{told}");
        if started.elapsed() > LONG {
            break told;
        }
        // The same heads on as many days again: this machine is too fast.
        for _ in 0..days {
            begin += DAY;
            let folder = dir.path().join(OWNER).join(name::day(begin));
            fs::create_dir(&folder).unwrap();
            fs::hard_link(&first, folder.join(name::heads("n1"))).unwrap();
        }
        days *= 2;
    };
    let (progress, table) = told.split_once("USER").unwrap();
    assert!(progress.starts_with("\rjobtrace: folders read: "), "{told:?}");
    assert!(progress.ends_with(" \r"), "what was told is gone: {told:?}");
    assert!(progress.contains(&format!(" of {days}\r")), "{told:?}");
    let plain = list("usage", dir.path(), &[]);
    assert_eq!((plain.status, plain.stderr.as_str()), (0, ""), "no terminal");
    assert_eq!(table.replace("\r\n", "\n"), plain.stdout.strip_prefix("USER").unwrap());
}
