//! `--follow`: what comes is sent, and the end comes when it is asked for.

use std::time::Duration;

use super::{
    server::{Act, Server, connects, dead_port},
    spool::{Spool, name, names, once, points, wait_for},
};

/// The longest that an end may take.
const END: Duration = Duration::from_secs(2);

#[test]
fn what_comes_is_sent_and_sigterm_ends_it() {
    let (spool, server) = (Spool::new(2, 3), Server::start(|_, _| Act::Take));
    let running = spool.follow(&server.url(), &[]);
    wait_for("the first files", || server.stored().len() == 6);
    (2..5).for_each(|file| spool.add(file, 3));
    wait_for("the new files", || server.stored().len() == 15);
    wait_for("an empty outbox", || names(&spool.outbox()).is_empty());
    assert_eq!(once(&server.stored()), points(0..5, 3));
    let words = running.words();
    let (status, time) = running.end();
    assert_eq!(status, Some(0), "{words}");
    assert!(time < END, "{time:?}");
}

#[test]
fn a_server_that_hangs_does_not_delay_the_end() {
    let server = Server::start(|_, _| Act::Hang);
    let spool = Spool::new(2, 3);
    let running = spool.follow(&server.url(), &[]);
    wait_for("the request", || !server.requests().is_empty());
    let (status, time) = running.end();
    assert_eq!(status, Some(0));
    assert!((Duration::from_secs(1)..END).contains(&time), "{time:?}");
    let words = std::fs::read_to_string(spool.path().join("log")).unwrap();
    let said = "interrupted: what was under way will be sent or copied again";
    assert_eq!(words.matches(said).count(), 1, "{words}");
    assert_eq!((names(&spool.outbox()).len(), names(&spool.failed()).len()), (2, 0));
}

#[test]
fn a_long_wait_does_not_delay_the_end() {
    let server = Server::start(|_, _| Act::Say(503, "retry-after: 3000\r\n", String::new()));
    let spool = Spool::new(2, 3);
    let running = spool.follow(&server.url(), &[]);
    wait_for("the trouble", || running.words().contains("files stay; next attempt in 3"));
    let (status, time) = running.end();
    assert_eq!((status, time < Duration::from_secs(1)), (Some(0), true), "{time:?}");
    assert_eq!(names(&spool.outbox()).len(), 2);
}

#[test]
fn it_outlasts_a_server_that_is_away() {
    let spool = Spool::new(2, 3);
    let port = dead_port();
    assert!(!connects(port));
    let running = spool.follow(&format!("http://127.0.0.1:{port}"), &["--retries", "1"]);
    wait_for("the trouble", || running.words().contains("files stay; next attempt in"));
    spool.add(2, 3);
    assert_eq!(names(&spool.outbox()).len(), 3);
    let (status, _) = running.end();
    assert_eq!(status, Some(0));
    let server = Server::start(|number, _| match number {
        0 | 1 => Act::Say(500, "", "starting".into()),
        _ => Act::Take,
    });
    let running = spool.follow(&server.url(), &["--retries", "1"]);
    wait_for("all files", || server.stored().len() == 9);
    wait_for("an empty outbox", || names(&spool.outbox()).is_empty());
    assert!(running.words().contains("the server accepts lines again"), "{}", running.words());
}

#[test]
fn a_file_that_makes_the_server_fail_does_not_hold_up_what_comes() {
    let server = Server::start(|_, request| match request.text.contains("forks=0i") {
        true => Act::Say(500, "", "panic".into()),
        false => Act::Take,
    });
    let spool = Spool::new(3, 3);
    let running = spool.follow(&server.url(), &[]);
    wait_for("the others", || server.stored().len() == 6);
    wait_for("an almost empty outbox", || names(&spool.outbox()) == [name(0)].into());
    assert_eq!(running.end().0, Some(0));
}

#[test]
fn who_is_not_let_in_ends_also_when_following() {
    let server = Server::start(|_, _| Act::Say(401, "", "authorization failed".into()));
    let spool = Spool::new(1, 1);
    let mut running = spool.follow(&server.url(), &[]);
    assert_eq!(running.child.wait().unwrap().code(), Some(2));
    assert!(running.words().contains("all files stay"), "{}", running.words());
}
