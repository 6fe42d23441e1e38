//! SIGKILL at any moment: nothing is lost, and what comes twice is the very same.

use std::{
    collections::BTreeSet,
    fs,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread::sleep,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    server::{Act, Server},
    spool::{Spool, lines_in, name, names, points},
};

const FILES: usize = 90;
const LINES: usize = 20;

/// Files with these numbers hold something that the server refuses.
fn is_refused(file: usize) -> bool {
    file.is_multiple_of(7)
}

/// Each file is in one place, or the server has it; and what is in `failed` has its reason.
fn assert_consistent(spool: &Spool, server: &Server) {
    let (outbox, failed) = (names(&spool.outbox()), names(&spool.failed()));
    let stored = server.stored();
    for file in 0..FILES {
        let name = name(file);
        let places = usize::from(outbox.contains(&name)) + usize::from(failed.contains(&name));
        let lines = points([file], LINES);
        match is_refused(file) {
            true => assert_eq!(places, 1, "{name}"),
            false => {
                assert!(!failed.contains(&name), "{name}");
                let is_stored = lines.iter().all(|line| stored.contains_key(line));
                assert!(places == 1 || is_stored, "{name} is lost");
            }
        }
        if failed.contains(&name) {
            assert!(failed.contains(&format!("{name}.reason")), "{name} without its reason");
        }
    }
    let kept: BTreeSet<_> =
        lines_in(&spool.outbox()).union(&lines_in(&spool.failed())).cloned().collect();
    let all: BTreeSet<_> = kept.iter().chain(stored.keys()).cloned().collect();
    assert_eq!(all, points(0..FILES, LINES));
}

#[test]
fn killed_at_random_moments() {
    let server = Server::start(|number, request| {
        // Now quick, now slow, so that kills fall everywhere.
        sleep(Duration::from_micros((number as u64 * 7919) % 3000));
        let of_refused = |file| request.text.contains(&format!("forks={file}i"));
        match (0..FILES).filter(|file| is_refused(*file)).any(of_refused) {
            true => Act::Say(400, "", "{\"error\":\"partial write\"}".into()),
            false => Act::Take,
        }
    });
    let spool = Spool::new(FILES, LINES);
    let mut kills = 0;
    while !names(&spool.outbox()).is_empty() {
        assert!(kills < 500, "no progress");
        let mut command = spool.command(&server.url());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        // Later ever later, so that a busy machine comes to an end too.
        sleep(Duration::from_micros((5000 + (kills * 6421) % 45_000) * (1 + kills / 100)));
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        assert_consistent(&spool, &server);
    }
    let ended = spool.push(&server.url(), &[]);
    assert_eq!(ended.status, 0, "nothing is left to do: {}", ended.words);
    assert_consistent(&spool, &server);
    let good: BTreeSet<_> = points((0..FILES).filter(|file| !is_refused(*file)), LINES);
    assert_eq!(server.stored().into_keys().collect::<BTreeSet<_>>(), good);
    let requests = server.requests();
    let different: BTreeSet<_> = requests.iter().map(|request| &request.text).collect();
    assert_eq!(different.len(), FILES, "sent again as it was");
    let strange: Vec<_> =
        names(&spool.failed()).into_iter().filter(|name| name.starts_with('.')).collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert!(kills >= 10, "{kills}");
    eprintln!("{kills} kills, {} requests for {FILES} files", requests.len());
}

#[test]
fn killed_when_the_server_has_stored_and_not_yet_answered() {
    let pid = Arc::new(AtomicU32::new(0));
    let victim = pid.clone();
    let server = Server::start(move |_, request| {
        if request.text.contains("forks=2i") {
            while victim.load(Ordering::SeqCst) == 0 {
                sleep(Duration::from_millis(1));
            }
            let pid = Pid::from_raw(victim.load(Ordering::SeqCst) as i32).unwrap();
            let _ = kill_process(pid, Signal::KILL);
        }
        Act::Take
    });
    let spool = Spool::new(4, LINES);
    let mut child = spool.command(&server.url()).stderr(Stdio::null()).spawn().unwrap();
    pid.store(child.id(), Ordering::SeqCst);
    assert_eq!(child.wait().unwrap().code(), None, "killed");
    assert_eq!(names(&spool.outbox()), [name(2), name(3)].into());
    // Another server would store it as a new one does: the same lines under the same stamps.
    let bytes = fs::read(spool.outbox().join(name(2))).unwrap();
    let again = Server::start(|_, _| Act::Take);
    assert_eq!(spool.push(&again.url(), &[]).status, 0);
    assert!(!bytes.is_empty());
    let first = server.requests().into_iter().find(|request| request.text.contains("forks=2i"));
    let second = again.requests().into_iter().next().unwrap();
    assert_eq!(first.unwrap().text, second.text);
    assert_eq!(names(&spool.outbox()).len(), 0);
}
