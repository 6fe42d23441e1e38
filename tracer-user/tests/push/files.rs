//! Files that are not whole, vanish, are none, or belong to somebody else.

use std::{fs, os::unix::fs::symlink, process::Command};

use super::{
    server::{Act, Server},
    spool::{PREAMBLE, Spool, end, name, names, once, os, point, points, push},
};

#[test]
fn files_that_are_not_whole_are_refused_by_us() {
    let (spool, server) = (Spool::new(1, 3), Server::start(|_, _| Act::Take));
    let whole = fs::read(spool.outbox().join(name(0))).unwrap();
    fs::write(spool.outbox().join("cut.lp.gz"), &whole[..whole.len() - 9]).unwrap();
    fs::write(spool.outbox().join("empty.lp.gz"), "").unwrap();
    fs::write(spool.outbox().join("text.lp.gz"), point(5, 5)).unwrap();
    fs::write(spool.outbox().join("half.lp"), format!("{}job_sched n=1i 17", point(6, 6))).unwrap();
    fs::write(spool.outbox().join("plain.lp"), format!("{PREAMBLE}{}", point(7, 7))).unwrap();
    let ended = spool.push(&server.url(), &[]);
    assert_eq!(ended.status, 1, "{}", ended.words);
    let mut expected = points([0], 3);
    expected.insert(point(7, 7).trim_end().to_owned());
    assert_eq!(once(&server.stored()), expected);
    assert_eq!(names(&spool.outbox()).len(), 0);
    for name in ["cut.lp.gz", "empty.lp.gz", "text.lp.gz", "half.lp"] {
        assert!(spool.failed().join(name).exists(), "{name}");
        let words = fs::read_to_string(spool.failed().join(format!("{name}.reason"))).unwrap();
        assert!(words.contains("the file is incomplete"), "{words}");
    }
}

#[test]
fn what_is_no_finished_file_is_left_alone() {
    let (spool, server) = (Spool::new(1, 3), Server::start(|_, _| Act::Take));
    let outbox = spool.outbox();
    for name in
        ["n1-0a0b0c0d-000000000000000000-1.hlog", ".hidden.lp.gz", "notes.txt", "x.lp.gz.tmp"]
    {
        fs::write(outbox.join(name), "x").unwrap();
    }
    fs::create_dir(outbox.join("folder.lp.gz")).unwrap();
    symlink("/etc/passwd", outbox.join("link.lp")).unwrap();
    assert!(Command::new("mkfifo").arg(outbox.join("pipe.lp")).status().unwrap().success());
    let mut before = names(&outbox);
    assert_eq!(spool.push(&server.url(), &[]).status, 0);
    before.remove(&name(0));
    assert_eq!(names(&outbox), before);
    assert_eq!(once(&server.stored()), points([0], 3));
}

#[test]
fn files_that_somebody_drops_meanwhile_are_no_error() {
    let spool = Spool::new(6, 3);
    let outbox = spool.outbox();
    let server = Server::start(move |number, _| {
        if number == 1 {
            // This one while it is sent, a later one before.
            let _ = fs::remove_file(outbox.join(name(1)));
            let _ = fs::remove_file(outbox.join(name(4)));
        }
        Act::Take
    });
    let ended = spool.push(&server.url(), &[]);
    assert_eq!(ended.status, 0, "{}", ended.words);
    assert!(ended.words.contains("1 file gone before they were sent"), "{}", ended.words);
    assert_eq!(once(&server.stored()), points([0, 1, 2, 3, 5], 3));
}

#[test]
fn a_refused_file_that_somebody_drops_meanwhile_leaves_nothing() {
    let spool = Spool::new(1, 3);
    let outbox = spool.outbox();
    let server = Server::start(move |_, _| {
        let _ = fs::remove_file(outbox.join(name(0)));
        Act::Say(400, "", "bad".into())
    });
    assert_eq!(spool.push(&server.url(), &[]).status, 0);
    assert_eq!(names(&spool.failed()).len(), 0);
}

#[test]
fn refused_files_are_bounded_and_what_goes_is_said() {
    let spool = Spool::new(20, 30);
    let one = fs::metadata(spool.outbox().join(name(0))).unwrap().len();
    let server = Server::start(|_, _| Act::Say(400, "", "bad".into()));
    // Room for a few, with their reasons.
    let room = (one + 400) * 5;
    let ended = spool.push(&server.url(), &["--failed-max-bytes", &room.to_string()]);
    assert_eq!(ended.status, 1);
    assert!(ended.words.contains("1 refused file"), "{}", ended.words);
    let kept = names(&spool.failed());
    let files: Vec<_> = kept.iter().filter(|name| name.ends_with(".lp.gz")).collect();
    assert!((3..=8).contains(&files.len()), "{kept:?}");
    assert_eq!(files.last().unwrap().as_str(), name(19), "the newest stay");
    assert_eq!(kept.len(), files.len() * 2, "each with its reason");
}

#[test]
fn the_folder_of_a_run_is_sent_too() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/forks.jobtrace.gz");
    let out = tempfile::tempdir().unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_jobtrace"));
    run.args(["run", "--quiet", "--replay", recording, "--out"]).arg(out.path());
    assert!(run.status().unwrap().success());
    let before = super::spool::lines_in(out.path());
    assert!(before.len() > 20);
    let server = Server::start(|_, _| Act::Take);
    let mut command = push();
    command.args(["--spool", os(&out.path()), "--url", &server.url()]);
    let ended = end(&mut command);
    assert_eq!(ended.status, 0, "{}", ended.words);
    assert_eq!(once(&server.stored()), before);
    assert_eq!(super::spool::lines_in(out.path()).len(), 0);
}

#[test]
fn a_second_one_is_refused() {
    let server = Server::start(|_, _| Act::Hang);
    let spool = Spool::new(1, 1);
    let first = spool.follow(&server.url(), &[]);
    super::spool::wait_for("the first", || !server.requests().is_empty());
    let ended = spool.push(&server.url(), &[]);
    assert_eq!(ended.status, 2, "{}", ended.words);
    assert!(ended.words.contains("another `jobtrace push`"), "{}", ended.words);
    assert_eq!(first.end().0, Some(0));
    let server = Server::start(|_, _| Act::Take);
    assert_eq!(spool.push(&server.url(), &[]).status, 0, "the lock is gone with its holder");
}

#[test]
fn a_dry_run_tells_and_touches_nothing() {
    let spool = Spool::new(2, 3);
    let before = names(spool.path());
    let url = format!("http://127.0.0.1:{}", super::server::dead_port());
    let ended = spool.push(&url, &["--dry-run"]);
    assert_eq!((ended.status, ended.words.as_str()), (0, ""));
    assert!(ended.stdout.contains(&format!("{}  3 lines, ", name(0))), "{}", ended.stdout);
    let last = ended.stdout.lines().last().unwrap();
    assert!(last.starts_with("would send 2 files, 6 lines, ") && last.contains(&url), "{last}");
    fs::write(spool.outbox().join("bad.lp.gz"), "x").unwrap();
    let ended = spool.push(&url, &["--dry-run"]);
    assert_eq!(ended.status, 1);
    assert!(ended.stdout.contains("bad.lp.gz  incomplete"), "{}", ended.stdout);
    assert_eq!((names(spool.path()), names(&spool.outbox()).len()), (before, 3));
}
